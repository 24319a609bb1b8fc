"""Names to methods: those of this package, those registered in this process, and installed plug-ins.

A method of this package is added by one file with its learner and one line in ``GROUPS``; it is imported when its
learner is first asked for, so that a command that needs no learner does not wait for torch. A method from outside is
known once it was handed to :func:`register_method`, named as ``module:Class`` on the command line
(:func:`import_method`), or installed with an entry point of the group ``graphfcl.methods``. A name that stands in a
file is never imported.
"""

from __future__ import annotations

import inspect
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from graphfcl.devices import chosen_device
from graphfcl.errors import InputError, did_you_mean, in_one_line
from graphfcl.methods.learner import Learner
from graphfcl.methods.settings import SettingRow, flat_settings, settings_as_json, settings_rows, with_changes
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
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "graphfcl.methods"
CALLS = {
    "fit": ("base", "progress", "encoders"),
    "learn": ("session",),
    "scores": ("visible", "nodes"),
}  # what is handed in
PACKAGE = "graphfcl.methods"


@dataclass(frozen=True)
class Method:
    """A learner class, and how it is made.

    kept: the class, or of a method of this package its place in ``GROUPS``.
    source: of a method from outside, ``module:Class`` and the hash of its code; results are kept apart by it.
    """

    name: str
    kept: type[Learner] | str
    source: str = ""

    @property
    def learner(self) -> type[Learner]:
        """The class; that of a method of this package is imported now, if nobody asked for it before."""
        if not isinstance(self.kept, str):
            return self.kept
        return object_at(PACKAGE, self.kept)

    @property
    def title(self) -> str:
        return self.learner.title

    @property
    def reference(self) -> str:
        return self.learner.reference

    def make(self, changes: dict[str, Any] | None = None, *, seed: int = 0, device: str = "cpu") -> Learner:
        """The learner with changed settings; texts are turned into the types of their fields.

        device: ``cpu``, ``cuda``, ``cuda:1`` for the second GPU, or ``auto`` for a GPU if there is one.
        """
        return self.learner(self.settings_with(changes or {}), seed=seed, device=chosen_device(device))

    def settings_with(self, changes: dict[str, Any]) -> Any:
        """The settings that differ from the defaults in ``changes``."""
        return with_changes(self.learner.settings_type(), changes, self.name)

    def settings_rows(self) -> list[SettingRow]:
        """Name, default, kind and explanation of each setting."""
        return settings_rows(self.learner.settings_type())


# By group and by the name of the method: the module of this package and the class that it defines.
GROUPS: Mapping[str, Mapping[str, str]] = {
    "closed forms": {
        "anchor": "anchor.learner:Anchor",
        "sgc-ridge": "sgc_ridge:SgcRidge",
        "ranpac": "ranpac:Ranpac",
        "teen": "teen:Teen",
        "fecam": "fecam:Fecam",
    },
    "the table of HAG-Meta": {
        "hag-meta": "hag_meta.learner:HagMeta",
        "proto-gcn": "proto:ProtoGcn",
        "proto-gat": "proto:ProtoGat",
        "meta-gnn": "meta_gnn:MetaGnn",
        "gpn": "gpn:Gpn",
        "er-gnn": "er_gnn:ErGnn",
        "icarl": "icarl:ICarl",
        "cec": "cec:Cec",
    },
    "later graph methods": {
        "tap": "tap.learner:Tap",
        "geometer": "geometer.learner:Geometer",
        "mecoin": "mecoin.learner:Mecoin",
        "lpmc": "lpmc.learner:Lpmc",
        "tem": "tem:Tem",
    },
    "references": {
        "finetune": "finetune:Finetune",
        "joint": "joint.learner:Joint",
    },
    "controls": {
        "closed-set-control": "closed_set_control:ClosedSetControl",
    },
}
LEARNERS: Mapping[str, str] = {name: place for group in GROUPS.values() for name, place in group.items()}
METHODS: tuple[Method, ...] = tuple(Method(name, place) for name, place in LEARNERS.items())
ALIASES = {"ours": "anchor"}

_registered: dict[str, Method] = {}  # by name; what this process brought from outside
_written: dict[
    str, Method
] = {}  # by the reference that a user wrote, which may name a class that is imported elsewhere

Kind = TypeVar("Kind", bound=type[Learner])


def find_method(name: str, source: str = "") -> Method:
    """The method of a name, of an alias, or of a ``module:Class`` that is known already.

    source: what a file says of where the method comes from; it is named in the message if the method is missing.
    """
    known = {method.name: method for method in METHODS} | _registered
    by_reference = _written | {reference_of(method.learner): method for method in _registered.values()}
    found = known.get(ALIASES.get(name, name)) or by_reference.get(name)
    if found is not None:
        return found
    origin = source.partition("@")[0] or (name if ":" in name else "")
    for point in _plug_ins():
        if name in (point.name, point.value) or origin == point.value:
            return _loaded(point)
    if origin:
        raise InputError(
            f"the method {name!r} comes from outside graphfcl ({origin}) and is not known here: if you trust it, add "
            f"--method {origin} to the command, or call register_method in Python."
        )
    names = [*known, *(point.name for point in _plug_ins())]
    mend = did_you_mean(name, names, f"there are {', '.join(names)}; --method module:Class brings one of your own.")
    raise InputError(f"there is no method {name!r}: {mend}")


def register_method(learner: Kind) -> Kind:
    """Make a learner of your own known by its name, in this process and in the workers of its grids.

    Answers the class, so that it can stand above it as a decorator. The same class may be registered again, as when
    a cell of a notebook runs twice.
    """
    refuse_no_learner(learner, "register_method")
    there = _registered.get(learner.name)
    refuse_taken_name(learner, {*LEARNERS, *ALIASES}, None if there is None else there.learner)
    _registered[learner.name] = Method(learner.name, learner, source_of(learner))
    return learner


def import_method(reference: str, where: str | None = None) -> Method:
    """The method ``module:Class`` that a user named on the command line; the current folder is on the path then.

    where: how the user wrote it, for messages.
    """
    where = where or f"--method {reference}"
    found = import_class(reference, where, Learner)
    refuse_no_learner(found, where)
    if is_own(found):
        return find_method(found.name)
    _written[reference] = _registered[register_method(found).name]
    return _written[reference]


def method_from(text: str, where: str | None = None) -> Method:
    """What a user may write for a method: a name, or ``module:Class`` of their own."""
    return import_method(text, where) if ":" in text else find_method(text)


def is_own(learner: type[Learner]) -> bool:
    """Whether a class is the learner of a method of this package."""
    return f"{PACKAGE}.{LEARNERS.get(learner.name)}" == reference_of(learner)


def outside_methods() -> tuple[Method, ...]:
    """What was registered in this process."""
    return tuple(_registered.values())


def plug_in_rows() -> list[tuple[str, str, str]]:
    """Name, what and reference of every installed plug-in; of a broken one, why it is broken."""
    rows = []
    for point in _plug_ins():
        try:
            method = _loaded(point)
            rows.append((point.name, method.title, method.reference or point.value))
        except InputError as error:
            rows.append((point.name, f"broken plug-in: {error}", point.value))
    return rows


def refuse_no_learner(found: Any, where: str) -> None:
    """Refuse what cannot be a method, in one sentence that says what it lacks."""
    refuse_unfit_class(found, where, Learner)
    name = reference_of(found)
    settings = found.settings_type
    if not (isinstance(settings, type) and is_dataclass(settings)):
        raise InputError(f"{where}: settings_type of {name} is no dataclass: make it a frozen dataclass.")
    if not settings.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise InputError(f"{where}: settings of {name} can be changed: write @dataclass(frozen=True).")
    bare = [field.name for field in fields(settings) if field.default is MISSING and field.default_factory is MISSING]
    if bare:
        raise InputError(f"{where}: give every setting of {name} a default ({', '.join(bare)}).")
    try:
        defaults = settings()
        same = with_changes(defaults, flat_settings(settings_as_json(defaults)), found.name) == defaults
    except Exception as error:  # whatever somebody else's settings do
        raise InputError(f"{where}: the default settings of {name} cannot be made ({in_one_line(error)}).") from error
    if not same:
        raise InputError(
            f"{where}: the settings of {name} are not the same after they have been through JSON: use numbers, texts, "
            "None, tuples of these, and dataclasses of these."
        )
    try:
        inspect.signature(found).bind(defaults, seed=0, device="cpu")
    except (TypeError, ValueError) as error:
        raise InputError(f"{where}: {name} must take (settings, *, seed, device), as Learner does.") from error
    for method, taken in CALLS.items():
        try:
            inspect.signature(getattr(found, method)).bind(None, *taken)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"{where}: {method} of {name} must take (self, {', '.join(taken)}), as that of Learner does."
            ) from error


def _plug_ins() -> list[EntryPoint]:
    """Installed plug-ins; a name of this package's own is not theirs to take."""
    return installed_plug_ins(ENTRY_POINTS)


def _loaded(point: EntryPoint) -> Method:
    learner = loaded_plug_in(point)
    refuse_no_learner(learner, described(point))
    return _registered[register_method(learner).name]
