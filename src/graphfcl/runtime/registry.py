"""One registry for everything that can be extended: methods, strategies, datasets and metrics.

A name means what this package defines, what :meth:`Registry.register` added in this process, or what an installed
package offers with an entry point of the group ``graphfcl.methods``, ``graphfcl.strategies``, ``graphfcl.datasets`` or
``graphfcl.metrics``. Names from files are only looked up here: nothing that a file names is imported.
"""

import importlib
import inspect
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar, Generic, TypeVar
from weakref import WeakKeyDictionary

from graphfcl.errors import GraphfclWarning, InputError, did_you_mean, in_one_line
from graphfcl.runtime.source_code import reference_of, source_hash

NAME = re.compile(r"[A-Za-z0-9][\w.+-]*")
_hashes: WeakKeyDictionary[type, str] = WeakKeyDictionary()  # of the code in memory: a file may be edited later

Thing = TypeVar("Thing")


@dataclass(frozen=True)
class Entry(Generic[Thing]):
    """A thing and its name.

    kept: the thing, or its place ``module:Name`` in this package, which is imported when it is first used.
    source: of a class from outside, ``module:Class`` and the hash of its code; results are kept apart by it.
    """

    name: str
    kept: Thing | str
    source: str = ""

    @property
    def thing(self) -> Thing:
        if not isinstance(self.kept, str):
            return self.kept
        module, _, name = self.kept.partition(":")
        return getattr(importlib.import_module(module), name)

    @property
    def title(self) -> str:
        """One line for lists."""
        return getattr(self.thing, "title", "")

    @property
    def reference(self) -> str:
        """Where it comes from: a paper."""
        return getattr(self.thing, "reference", "")


class Described:
    """A class that can be registered: a subclass that has no name or title of its own gets them.

    The name MostLinks becomes most-links; the title is the first line of the docstring.
    """

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    reference: ClassVar[str] = ""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" not in vars(cls):
            cls.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", cls.__name__.strip("_")).lower()
        if "reference" not in vars(cls):
            cls.reference = ""
        if "title" not in vars(cls):
            cls.title = (vars(cls).get("__doc__") or "").strip().split("\n")[0]


AnEntry = TypeVar("AnEntry", bound=Entry[Any])


class Registry(Generic[Thing, AnEntry]):
    """Names to entries of one kind.

    kind, group: ``method`` and ``graphfcl.methods``. own: things of this package, or their places, by name.
    check: raises an InputError for what cannot be such a thing; it takes the thing and where it comes from.
    reference: of a thing, ``module:Name`` of its code; the same code may be registered again.
    reserved: names that nothing may have. hint: what else a user may write, for the message about an unknown name.
    """

    def __init__(
        self,
        kind: str,
        group: str,
        own: Mapping[str, Thing | str],
        entry: type[AnEntry],
        check: Callable[[Any, str], None],
        *,
        reference: Callable[[Thing], str] = reference_of,
        reserved: Iterable[str] = (),
        hint: str = "",
    ) -> None:
        self.kind, self.group, self.hint = kind, group, hint
        self.own = {name: entry(name, kept) for name, kept in own.items()}
        self.registered: dict[str, AnEntry] = {}  # by name
        self.written: dict[str, AnEntry] = {}  # by the reference that a user wrote
        self._entry, self._check, self._reference, self._reserved = entry, check, reference, set(reserved)
        self._of_plug_ins: set[str] = set()  # names
        self._scanned = False  # whether :meth:`all` has loaded the plug-ins

    def find(self, name: str, source: str = "") -> AnEntry:
        """The entry of a name, or of a registered ``module:Name``.

        source: what a file says of where the thing comes from; it is named in the message if the thing is missing.
        """
        by_reference = {self._reference(each.thing): each for each in self.registered.values()} | self.written
        entry = self.own.get(name) or self.registered.get(name) or by_reference.get(name)
        if entry is not None:
            return entry
        origin = source.partition("@")[0] or (name if ":" in name else "")
        for point in self.plug_ins():
            if name in (point.name, point.value) or origin == point.value:
                return self._loaded(point)
        if origin:
            raise InputError(
                f"the {self.kind} {name!r} comes from outside graphfcl ({origin}) and is not known here: if you trust "
                f"it, add --{self.kind} {origin} to the command, or call register_{self.kind} in Python."
            )
        names = self.names()
        hint = did_you_mean(name, names, f"there are {', '.join(names)}{f'; {self.hint}' if self.hint else ''}.")
        raise InputError(f"there is no {self.kind} {name!r}: {hint}")

    def register(self, thing: Any, where: str = "") -> AnEntry:
        """Register a thing under its name, in this process. where: how the user wrote it, for messages."""
        self._check(thing, where or f"register_{self.kind}")
        name, reference, there = thing.name, self._reference(thing), self.registered.get(thing.name)
        taken = ""
        if name in self.own or name in self._reserved:
            taken = "graphfcl itself uses that name"
        elif there is not None and self._reference(there.thing) != reference:
            taken = f"{self._reference(there.thing)} has that name already"
        if taken:
            raise InputError(f"{reference} is called {name!r}, but {taken}: give it another `name`.")
        self.registered[name] = self._entry(name, thing, source_of(thing) if isinstance(thing, type) else "")
        return self.registered[name]

    def import_class(self, reference: str, where: str, base: type) -> AnEntry:
        """The ``module:Class`` that a user named; the current folder is on the path then."""
        kind = import_class(reference, where, base)
        self._check(kind, where)
        if self.is_own(kind):
            return self.own[kind.name]
        self.written[reference] = self.register(kind, where)
        return self.written[reference]

    def is_own(self, thing: Any) -> bool:
        """Whether a thing is this package's own of its name."""
        own = self.own.get(thing.name)
        return own is not None and own.kept in (thing, self._reference(thing))

    def outside(self) -> tuple[AnEntry, ...]:
        """What was registered in this process, except plug-ins, which every process finds by itself."""
        return tuple(entry for entry in self.registered.values() if entry.name not in self._of_plug_ins)

    def names(self) -> list[str]:
        """All names; nothing is imported."""
        return [*self.own, *self.registered, *(point.name for point in self.plug_ins())]

    def all(self) -> list[AnEntry]:
        """All entries, plug-ins included; a broken plug-in leaves a warning."""
        for point in () if self._scanned else self.plug_ins():
            try:
                self._loaded(point)
            except InputError as error:
                warnings.warn(str(error), GraphfclWarning, 2)
        self._scanned = True
        return [*self.own.values(), *self.registered.values()]

    def plug_ins(self) -> list[EntryPoint]:
        """Installed plug-ins, by name; a name of this package's own is not theirs to take."""
        return sorted(entry_points(group=self.group), key=lambda point: (point.name, point.value))

    def plug_in_rows(self) -> list[tuple[str, str, str]]:
        """Name, what and reference of every installed plug-in; of a broken one, why it is broken."""
        rows = []
        for point in self.plug_ins():
            try:
                entry = self._loaded(point)
                rows.append((point.name, entry.title, entry.reference or point.value))
            except InputError as error:
                rows.append((point.name, f"broken plug-in: {error}", point.value))
        return rows

    def _loaded(self, point: EntryPoint) -> AnEntry:
        where = f"the plug-in {point.name} ({point.value})"
        try:
            thing = point.load()
        except (Exception, SystemExit) as error:
            raise InputError(
                f"{where} cannot be imported ({in_one_line(error)}): fix or remove its package."
            ) from error
        entry = self.register(thing, where)
        self._of_plug_ins.add(entry.name)
        return entry


def import_class(reference: str, where: str, base: type) -> Any:
    """What ``module:Class`` names; the current folder is on the path then.

    where: how the user wrote it, for messages. base: what the class should derive from, for a hint.
    """
    module_name, _, class_name = reference.partition(":")
    if not module_name or not class_name:
        raise InputError(f"{where}: write it as module:Class.")
    if module_name.endswith(".py") or "/" in module_name:
        dotted = module_name.removesuffix(".py").strip("./").replace("/", ".")
        raise InputError(f"{where}: name the module, not its file: {dotted}:{class_name}.")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # a foreign module may raise anything when it is imported
        missing = isinstance(error, ModuleNotFoundError) and error.name == module_name.split(".")[0]
        fix = "run from the folder that holds it, or install it" if missing else "fix it, or what it needs"
        raise InputError(f"{where}: {module_name} cannot be imported ({in_one_line(error)}): {fix}.") from error
    kind: Any = module
    for part in class_name.split("."):
        kind = getattr(kind, part, None)
    if kind is None:
        kinds = [name for name, each in vars(module).items() if _derives_from(each, base) and each is not base]
        hint = did_you_mean(class_name, kinds) if kinds else f"it has no {base.__name__.lower()}."
        raise InputError(f"{where}: {module_name} has no {class_name}: {hint}")
    return kind


def _derives_from(kind: Any, base: type) -> bool:
    return isinstance(kind, type) and issubclass(kind, base)


def check_class(kind: Any, where: str, base: type) -> None:
    """Refuse what does not derive from a base class, lacks something that it requires, or has no usable name."""
    if not _derives_from(kind, base):
        raise InputError(
            f"{where}: it is no class that derives from graphfcl.{base.__name__}: let it derive from that."
        )
    name = reference_of(kind)
    if inspect.isabstract(kind):
        missing = ", ".join(sorted(kind.__abstractmethods__))
        raise InputError(f"{where}: {name} lacks {missing}: graphfcl.{base.__name__} says what each must do.")
    check_name(kind.name, where, name)


def check_name(name: Any, where: str, what: str) -> None:
    """Refuse a name that could not stand in a file, a table or a command."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InputError(f"{where}: the name of {what} is {name!r}: use letters, digits and - . _ +.")


def source_of(kind: type) -> str:
    """``module:Class`` and the hash of the code, by which results of classes from outside are kept apart."""
    if kind not in _hashes:
        _hashes[kind] = source_hash(kind)
    return f"{reference_of(kind)}@{_hashes[kind][:16]}"
