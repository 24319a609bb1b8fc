"""Strategies by name. One of this package is added by a class and a line in ``STRATEGIES``."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from graphfcl.active.contract import Strategy
from graphfcl.errors import InputError
from graphfcl.runtime.registry import Entry, Registry, check_class
from graphfcl.runtime.source_code import reference_of

OF_EACH_CLASS = "of-each-class"  # a row of the track ``active`` that is no strategy: no strategy may be called so

# By name: the module of this package and the class that it defines.
STRATEGIES: Mapping[str, str] = {
    "random": "strategies:Random",
    "typical": "strategies:Typical",
    "uncertain": "strategies:Uncertain",
    "unknown": "strategies:Unknown",
    "auto": "covering:Covering",
}
Kind = TypeVar("Kind", bound=type[Strategy])


@dataclass(frozen=True)
class NamedStrategy(Entry[type[Strategy]]):
    """A strategy class and the name it is known by."""

    @property
    def strategy(self) -> type[Strategy]:
        return self.thing

    def make(self) -> Strategy:
        return self.strategy()


def find_strategy(name: str, source: str = "") -> NamedStrategy:
    """The strategy of a name, or of a ``module:Class`` that is known already.

    source: what a file says of where the strategy comes from; it is named in the message if the strategy is missing.
    """
    return REGISTRY.find(name, source)


def register_strategy(strategy: Kind) -> Kind:
    """Make a strategy of your own known by its name, in this process and in the workers of its grids.

    Returns the class, so that it can be used as a decorator. The same class may be registered again.
    """
    REGISTRY.register(strategy)
    return strategy


def strategy_from(text: str, where: str | None = None) -> NamedStrategy:
    """What a user may write for a strategy: a name, or ``module:Class`` of their own.

    where: how the user wrote it, for messages.
    """
    if ":" not in text:
        return find_strategy(text)
    return REGISTRY.import_class(text, where or f"--strategy {text}", Strategy)


def outside_strategies() -> tuple[NamedStrategy, ...]:
    """What was registered in this process."""
    return REGISTRY.outside()


def refuse_no_strategy(strategy: Any, where: str) -> None:
    """Refuse what cannot be a strategy, in one sentence that says what it lacks."""
    check_class(strategy, where, Strategy)
    try:
        inspect.signature(strategy).bind()
    except (TypeError, ValueError) as error:
        raise InputError(f"{where}: {reference_of(strategy)} must be made without arguments.") from error


REGISTRY: Registry[type[Strategy], NamedStrategy] = Registry(
    "strategy",
    "graphfcl.strategies",
    {name: f"graphfcl.active.{place}" for name, place in STRATEGIES.items()},
    NamedStrategy,
    refuse_no_strategy,
    reserved=(OF_EACH_CLASS,),
)
