"""The registry behind methods, strategies, datasets and metrics.

A name refers to an object of this package, to one that :meth:`Registry.register` added in this process, or to one of an
installed package, through an entry point of the group ``graphfcl.methods``, ``graphfcl.strategies``,
``graphfcl.datasets`` or ``graphfcl.metrics``. Names in files are only looked up: no module that a file names is
imported.
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
_hashes: WeakKeyDictionary[type, str] = WeakKeyDictionary()  # hashes of loaded code, whose file may be edited later

Thing = TypeVar("Thing")


@dataclass(frozen=True)
class Entry(Generic[Thing]):
    """A registered object ("thing") and its name.

    Args:
        name: Name of the thing.
        kept: The thing, or its location ``module:Name`` in this package, which is imported on first use.
        source: For a class from outside this package: ``module:Class`` and the hash of its code, which distinguish
            results of different code.
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
        """The paper that describes it."""
        return getattr(self.thing, "reference", "")


class Described:
    """Base of classes that can be registered. Subclasses without ``name`` or ``title`` get default ones.

    The default name of a class MostLinks is most-links. The default title is the first line of the docstring.
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
    """Entries of one kind by name.

    Args:
        kind: Kind of the things in messages, such as ``method``.
        group: Group of entry points, such as ``graphfcl.methods``.
        own: Things of this package, or their locations, by name.
        entry: Class of the entries.
        check: Raises an InputError if a thing is not of this kind. It takes the thing and its origin for messages.
        reference: Returns ``module:Name`` of the code of a thing. The same code may be registered again.
        reserved: Names that are not allowed.
        hint: What else a user may write, for the message about an unknown name.
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
        self.written: dict[str, AnEntry] = {}  # by the module:Class that the user wrote
        self._entry, self._check, self._reference, self._reserved = entry, check, reference, set(reserved)
        self._of_plug_ins: set[str] = set()  # names of plug-ins
        self._scanned = False  # whether :meth:`all` has loaded the plug-ins

    def find(self, name: str, source: str = "") -> AnEntry:
        """Return the entry of a name or of a registered ``module:Name``; an InputError if there is none.

        ``source`` is the origin of the thing as a file states it, for the message.
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
        """Register a thing under its name in this process; ``where`` is how the user wrote it, for messages."""
        self._check(thing, where or f"register_{self.kind}")
        name, reference, existing = thing.name, self._reference(thing), self.registered.get(thing.name)
        taken = ""
        if name in self.own or name in self._reserved:
            taken = "graphfcl itself uses that name"
        elif existing is not None and self._reference(existing.thing) != reference:
            taken = f"{self._reference(existing.thing)} has that name already"
        if taken:
            raise InputError(f"{reference} is called {name!r}, but {taken}: give it another `name`.")
        self.registered[name] = self._entry(name, thing, source_of(thing) if isinstance(thing, type) else "")
        return self.registered[name]

    def import_class(self, reference: str, where: str, base: type) -> AnEntry:
        """Import and register the ``module:Class`` that a user named; the current folder is searched too."""
        kind = import_class(reference, where, base)
        self._check(kind, where)
        if self.is_own(kind):
            return self.own[kind.name]
        self.written[reference] = self.register(kind, where)
        return self.written[reference]

    def is_own(self, thing: Any) -> bool:
        """Tell whether a thing is the one that this package defines under its name."""
        own = self.own.get(thing.name)
        return own is not None and own.kept in (thing, self._reference(thing))

    def outside(self) -> tuple[AnEntry, ...]:
        """Return entries registered in this process, except plug-ins, which each process finds itself."""
        return tuple(entry for entry in self.registered.values() if entry.name not in self._of_plug_ins)

    def names(self) -> list[str]:
        """Return all names, without importing anything."""
        return [*self.own, *self.registered, *(point.name for point in self.plug_ins())]

    def all(self) -> list[AnEntry]:
        """Return all entries, including plug-ins. A broken plug-in causes a warning."""
        for point in () if self._scanned else self.plug_ins():
            try:
                self._loaded(point)
            except InputError as error:
                warnings.warn(str(error), GraphfclWarning, 2)
        self._scanned = True
        return [*self.own.values(), *self.registered.values()]

    def plug_ins(self) -> list[EntryPoint]:
        """Return installed plug-ins, sorted by name."""
        return sorted(entry_points(group=self.group), key=lambda point: (point.name, point.value))

    def plug_in_rows(self) -> list[tuple[str, str, str]]:
        """Return name, title and reference of each installed plug-in; for a broken one, the error."""
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
    """Import ``module:Class``; the current folder is added to the search path.

    Args:
        reference: ``module:Class``.
        where: How the user wrote it, for messages.
        base: Class from which it should derive, for a hint.
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
    except (Exception, SystemExit) as error:  # a user's module may raise anything when it is imported
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
    """Raise an InputError if a class does not derive from ``base``, lacks required methods or has an invalid name."""
    if not _derives_from(kind, base):
        raise InputError(
            f"{where}: it is not a class that derives from graphfcl.{base.__name__}: let it derive from that."
        )
    name = reference_of(kind)
    if inspect.isabstract(kind):
        missing = ", ".join(sorted(kind.__abstractmethods__))
        raise InputError(f"{where}: {name} lacks {missing}: graphfcl.{base.__name__} says what each must do.")
    check_name(kind.name, where, name)


def check_name(name: Any, where: str, what: str) -> None:
    """Raise an InputError for a name that cannot be used in files, tables and commands."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InputError(f"{where}: the name of {what} is {name!r}: use letters, digits and - . _ +.")


def source_of(kind: type) -> str:
    """Return ``module:Class`` and the hash of its code, which distinguish results of classes from outside."""
    if kind not in _hashes:
        _hashes[kind] = source_hash(kind)
    return f"{reference_of(kind)}@{_hashes[kind][:16]}"
