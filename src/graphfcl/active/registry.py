"""The registry of strategies. To add a built-in strategy, write its class and add a line to ``STRATEGIES``."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from graphfcl.active.contract import Strategy
from graphfcl.errors import InputError
from graphfcl.runtime.registry import Entry, Registry, check_class
from graphfcl.runtime.source_code import reference_of

OF_EACH_CLASS = "of-each-class"  # reserved name of the reference that uses an oracle (evaluation/active.py)

# Name → module of this package and class in it.
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
    """A strategy class and its name."""

    @property
    def strategy(self) -> type[Strategy]:
        return self.thing

    def make(self) -> Strategy:
        """Return a new strategy object."""
        return self.strategy()


def find_strategy(name: str, source: str = "") -> NamedStrategy:
    """Return the strategy with a name.

    Args:
        name: Name of a built-in strategy (``auto``, ``typical``, ``uncertain``, ``unknown``, ``random``), of a
            registered one, or ``module:Class`` of a registered one.
        source: Where a results file says that the strategy comes from, for the error message.

    Returns:
        An entry with ``name``, ``title`` and ``reference``; its ``make()`` returns a new strategy object.

    Raises:
        InputError: If no strategy has this name.

    Examples:
        >>> from graphfcl import find_strategy
        >>> strategy = find_strategy("uncertain")
        >>> strategy.title
        'Smallest margin between the two likeliest classes'
        >>> strategy.make()
        <graphfcl.active.strategies.Uncertain object at ...>
    """
    return REGISTRY.find(name, source)


def register_strategy(strategy: Kind) -> Kind:
    """Register a strategy class of your own under its name.

    It is known in this process and in the worker processes of :func:`run_grid`. The same class may be registered again.
    An installed package can offer strategies through entry points of the group ``graphfcl.strategies``.

    Args:
        strategy: Subclass of :class:`Strategy` that can be made without arguments.

    Returns:
        The class itself, so that this function can be used as a decorator.

    Raises:
        InputError: If the class cannot be used as a strategy, is not defined in a file, or another strategy has its
            name.

    Examples:
        In a module of your own, such as ``most_links.py``::

            @register_strategy
            class MostLinks(Strategy):
                ...

        A script imports the module before it uses the name:

        >>> from graphfcl import find_strategy
        >>> def make_strategy():
        ...     import most_links  # registers MostLinks
        ...     return find_strategy("most-links").make()
    """
    REGISTRY.register(strategy)
    return strategy


def strategy_from(text: str, where: str | None = None) -> NamedStrategy:
    """Find the strategy that a user named: a registered name, or ``module:Class``, which is imported.

    ``where`` is the option as the user wrote it, for messages.
    """
    if ":" not in text:
        return find_strategy(text)
    return REGISTRY.import_class(text, where or f"--strategy {text}", Strategy)


def outside_strategies() -> tuple[NamedStrategy, ...]:
    """The strategies that were registered in this process."""
    return REGISTRY.outside()


def refuse_no_strategy(strategy: Any, where: str) -> None:
    """Raise an InputError for a class that cannot be a strategy."""
    check_class(strategy, where, Strategy)
    try:
        inspect.signature(strategy).bind()
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{where}: {reference_of(strategy)} cannot be made without arguments: give each one a default."
        ) from error


REGISTRY: Registry[type[Strategy], NamedStrategy] = Registry(
    "strategy",
    "graphfcl.strategies",
    {name: f"graphfcl.active.{place}" for name, place in STRATEGIES.items()},
    NamedStrategy,
    refuse_no_strategy,
    reserved=(OF_EACH_CLASS,),
)
