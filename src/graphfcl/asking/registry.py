"""Names to strategies: those of this package, those registered in this process, and installed plug-ins.

A strategy of this package is added by one file and one line in ``STRATEGIES``. One from outside is known once it was
handed to :func:`register_strategy`, named as ``module:Class`` on the command line (:func:`strategy_from`), or installed
with an entry point of the group ``graphfcl.strategies``. A name that stands in a file is never imported.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from graphfcl.asking.contract import Strategy
from graphfcl.errors import InputError, did_you_mean
from graphfcl.plug_ins import (
    described,
    import_class,
    installed_plug_ins,
    loaded_plug_in,
    object_at,
    refuse_taken_name,
    refuse_unfit_class,
    source_of,
)
from graphfcl.source_code import reference_of

if TYPE_CHECKING:
    from collections.abc import Mapping

ENTRY_POINTS = "graphfcl.strategies"
PACKAGE = "graphfcl.asking"
OF_EACH_CLASS = "of-each-class"  # a row of the track ``asked`` that is no strategy: no strategy may be called so

# By name: the module of this package and the class that it defines.
STRATEGIES: Mapping[str, str] = {
    "random": "random:Random",
    "typical": "typical:Typical",
    "uncertain": "uncertain:Uncertain",
    "unknown": "unknown:Unknown",
    "auto": "covering:Covering",
}


@dataclass(frozen=True)
class NamedStrategy:
    """A strategy class and the name it is known by.

    kept: the class, or of a strategy of this package its place in ``STRATEGIES``.
    source: of one from outside, ``module:Class`` and the hash of its code; results are kept apart by it.
    """

    name: str
    kept: type[Strategy] | str
    source: str = ""

    @property
    def strategy(self) -> type[Strategy]:
        """The class; that of a strategy of this package is imported when it is first asked for."""
        if not isinstance(self.kept, str):
            return self.kept
        return object_at(PACKAGE, self.kept)

    @property
    def title(self) -> str:
        return self.strategy.title

    @property
    def reference(self) -> str:
        return self.strategy.reference

    def make(self) -> Strategy:
        return self.strategy()


_registered: dict[str, NamedStrategy] = {}  # by name; what this process brought from outside

Kind = TypeVar("Kind", bound=type[Strategy])


def find_strategy(name: str, source: str = "") -> NamedStrategy:
    """The strategy of a name, or of a ``module:Class`` that is known already.

    source: what a file says of where the strategy comes from; it is named in the message if the strategy is missing.
    """
    own = {each: NamedStrategy(each, place) for each, place in STRATEGIES.items()}
    known = own | _registered
    by_reference = {reference_of(each.strategy): each for each in _registered.values()}
    found = known.get(name) or by_reference.get(name)
    if found is not None:
        return found
    origin = source.partition("@")[0] or (name if ":" in name else "")
    points = installed_plug_ins(ENTRY_POINTS)
    for point in points:
        if name in (point.name, point.value) or origin == point.value:
            strategy = loaded_plug_in(point)
            refuse_no_strategy(strategy, described(point))
            return _registered[register_strategy(strategy).name]
    if origin:
        raise InputError(
            f"the strategy {name!r} comes from outside graphfcl ({origin}) and is not known here: if you trust it, "
            f"name it as --strategy {origin}, or call register_strategy in Python."
        )
    raise InputError(f"there is no strategy {name!r}: {did_you_mean(name, [*known, *(each.name for each in points)])}")


def register_strategy(strategy: Kind) -> Kind:
    """Make a strategy of your own known by its name, in this process.

    Answers the class, so that it can stand above it as a decorator. The same class may be registered again.
    """
    refuse_no_strategy(strategy, "register_strategy")
    there = _registered.get(strategy.name)
    refuse_taken_name(strategy, {*STRATEGIES, OF_EACH_CLASS}, None if there is None else there.strategy)
    _registered[strategy.name] = NamedStrategy(strategy.name, strategy, source_of(strategy))
    return strategy


def strategy_from(text: str, where: str | None = None) -> NamedStrategy:
    """What a user may write for a strategy: a name, or ``module:Class`` of their own.

    where: how the user wrote it, for messages.
    """
    if ":" not in text:
        return find_strategy(text)
    where = where or f"--strategy {text}"
    found = import_class(text, where, Strategy)
    refuse_no_strategy(found, where)
    if STRATEGIES.get(found.name) == reference_of(found).removeprefix(f"{PACKAGE}."):
        return find_strategy(found.name)
    return _registered[register_strategy(found).name]


def outside_strategies() -> tuple[NamedStrategy, ...]:
    """What was registered in this process."""
    return tuple(_registered.values())


def refuse_no_strategy(found: Any, where: str) -> None:
    """Refuse what cannot be a strategy, in one sentence that says what it lacks."""
    refuse_unfit_class(found, where, Strategy)
    try:
        inspect.signature(found).bind()
    except (TypeError, ValueError) as error:
        raise InputError(f"{where}: {reference_of(found)} must be made without arguments.") from error
