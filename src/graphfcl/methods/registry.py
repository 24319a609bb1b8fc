"""Methods by name.

A method of this package is added by one file with its learner and one line in ``GROUPS``; it is imported when its
learner is first used, so that a command that needs no learner does not wait for torch.
"""

from __future__ import annotations

import inspect
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from graphfcl.errors import InputError, in_one_line
from graphfcl.methods.learner import Learner
from graphfcl.methods.settings import SettingRow, flat_settings, settings_as_json, settings_rows, with_changes
from graphfcl.runtime.devices import chosen_device
from graphfcl.runtime.registry import Entry, Registry, check_class
from graphfcl.runtime.source_code import reference_of

if TYPE_CHECKING:
    from collections.abc import Mapping

CALLS = {
    "fit": ("base", "progress", "encoders"),
    "learn": ("session",),
    "scores": ("visible", "nodes"),
}  # what is handed in


@dataclass(frozen=True)
class Method(Entry[type[Learner]]):
    """A learner class, and how it is made."""

    @property
    def learner(self) -> type[Learner]:
        return self.thing

    def make(self, changes: dict[str, Any] | None = None, *, seed: int = 0, device: str = "cpu") -> Learner:
        """The learner with changed settings; texts are turned into the types of their fields.

        device: ``cpu``, ``cuda``, ``cuda:1`` for the second GPU, or ``auto`` for a GPU if there is one.
        """
        return self.learner(self.settings_with(changes or {}), seed=seed, device=chosen_device(device))

    def settings_with(self, changes: dict[str, Any]) -> Any:
        """The settings that differ from the defaults in ``changes``; groups may be mappings, and tuples lists."""
        return with_changes(self.learner.settings_type(), flat_settings(changes), self.name)

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
        "hag-meta": "hag_meta:HagMeta",
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
        "joint": "joint:Joint",
        "anchor-pool": "anchor_pool:AnchorPool",
    },
    "controls": {
        "closed-set-control": "closed_set_control:ClosedSetControl",
    },
}
LEARNERS: Mapping[str, str] = {name: place for group in GROUPS.values() for name, place in group.items()}
Kind = TypeVar("Kind", bound=type[Learner])


def find_method(name: str, source: str = "") -> Method:
    """The method of a name, or of a ``module:Class`` that is known already.

    source: what a file says of where the method comes from; it is named in the message if the method is missing.
    """
    return REGISTRY.find(name, source)


def register_method(learner: Kind) -> Kind:
    """Make a learner of your own known by its name, in this process and in the workers of its grids.

    Returns the class, so that it can be used as a decorator. The same class may be registered again, as when a cell of
    a notebook runs twice.
    """
    REGISTRY.register(learner)
    return learner


def import_method(reference: str, where: str | None = None) -> Method:
    """The method ``module:Class`` that a user named on the command line; the current folder is on the path then.

    where: how the user wrote it, for messages.
    """
    return REGISTRY.import_class(reference, where or f"--method {reference}", Learner)


def method_from(text: str, where: str | None = None) -> Method:
    """What a user may write for a method: a name, or ``module:Class`` of their own."""
    return import_method(text, where) if ":" in text else find_method(text)


def refuse_no_learner(learner: Any, where: str) -> None:
    """Refuse what cannot be a method, in one sentence that says what it lacks."""
    check_class(learner, where, Learner)
    name = reference_of(learner)
    settings = learner.settings_type
    if not (isinstance(settings, type) and is_dataclass(settings)):
        raise InputError(f"{where}: settings_type of {name} is no dataclass: make it a frozen dataclass.")
    if not settings.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise InputError(f"{where}: settings of {name} can be changed: write @dataclass(frozen=True).")
    bare = [field.name for field in fields(settings) if field.default is MISSING and field.default_factory is MISSING]
    if bare:
        raise InputError(f"{where}: give every setting of {name} a default ({', '.join(bare)}).")
    try:
        defaults = settings()
        same = with_changes(defaults, flat_settings(settings_as_json(defaults)), learner.name) == defaults
    except Exception as error:  # whatever somebody else's settings do
        raise InputError(f"{where}: the default settings of {name} cannot be made ({in_one_line(error)}).") from error
    if not same:
        raise InputError(
            f"{where}: the settings of {name} are not the same after they have been through JSON: use numbers, texts, "
            "None, tuples of these, and dataclasses of these."
        )
    try:
        inspect.signature(learner).bind(defaults, seed=0, device="cpu")
    except (TypeError, ValueError) as error:
        raise InputError(f"{where}: {name} must take (settings, *, seed, device), as Learner does.") from error
    for method, taken in CALLS.items():
        try:
            inspect.signature(getattr(learner, method)).bind(None, *taken)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"{where}: {method} of {name} must take (self, {', '.join(taken)}), as that of Learner does."
            ) from error


REGISTRY: Registry[type[Learner], Method] = Registry(
    "method",
    "graphfcl.methods",
    {name: f"graphfcl.methods.{place}" for name, place in LEARNERS.items()},
    Method,
    refuse_no_learner,
    hint="--method module:Class brings one of your own",
)
METHODS: tuple[Method, ...] = tuple(REGISTRY.own.values())
is_own = REGISTRY.is_own
outside_methods = REGISTRY.outside
plug_in_rows = REGISTRY.plug_in_rows
