"""Methods by name.

To add a method to this package, write a module with its learner and add a line to ``GROUPS``. The module is imported
when the learner is first used, so commands that need no learner do not wait for the import of torch.
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
}  # arguments of the calls that a run makes


@dataclass(frozen=True)
class Method(Entry[type[Learner]]):
    """An entry of the registry: the name of a method and its learner class."""

    @property
    def learner(self) -> type[Learner]:
        return self.thing

    def make(self, changes: dict[str, Any] | None = None, *, seed: int = 0, device: str = "cpu") -> Learner:
        """Make a learner.

        Args:
            changes: Settings that differ from the defaults; strings are converted to the types of the settings.
            seed: Seed of all random numbers.
            device: ``cpu``, ``cuda``, ``cuda:1`` for the second GPU, or ``auto`` for a GPU if there is one.
        """
        return self.learner(self.settings_with(changes or {}), seed=seed, device=chosen_device(device))

    def settings_with(self, changes: dict[str, Any]) -> Any:
        """Return the settings with some changes. Groups may be nested mappings, and tuples may be lists."""
        return with_changes(self.learner.settings_type(), flat_settings(changes), self.name)

    def settings_rows(self) -> list[SettingRow]:
        """List the name, default, kind and explanation of each setting."""
        return settings_rows(self.learner.settings_type())


# The module and class of each method, by group and name.
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
    """Find a method by name.

    Args:
        name: Name of a built-in, registered or plug-in method, or ``module:Class`` of a registered one.
        source: Origin of the method that a file recorded. The error message states it if the method is missing.

    Returns:
        The method. ``make(changes, seed=0, device="cpu")`` creates a learner with changed settings.

    Raises:
        InputError: If there is no such method.

    Examples:
        >>> from graphfcl import find_method
        >>> method = find_method("sgc-ridge")
        >>> method.title
        'class-balanced ridge regression on propagated features; closed form, stores no node'
        >>> learner = method.make({"rank": 64}, seed=1)
        >>> learner.name, learner.settings.rank
        ('sgc-ridge', 64)
    """
    return REGISTRY.find(name, source)


def register_method(learner: Kind) -> Kind:
    """Register your own learner class under its name.

    The name is then known in this process and in the workers of its grids. The same class may be registered again, for
    example when a notebook cell runs twice.

    Args:
        learner: A subclass of :class:`Learner`. Its ``name`` is derived from the class: NearestMean is nearest-mean.

    Returns:
        The class, so the function works as a decorator.

    Raises:
        InputError: If the class does not satisfy the contract's signatures and settings, has no source file, or has a
            name that is taken.

    Examples:
        The class must be in a module, here ``my_methods.py``:

        >>> from pathlib import Path
        >>> _ = Path("my_methods.py").write_text('''
        ... from graphfcl import Learner, register_method
        ...
        ... @register_method
        ... class NearestMean(Learner):
        ...     "Nearest class mean."
        ...     def fit(self, base, progress=None, encoders=None): ...
        ...     def learn(self, session): ...
        ...     def scores(self, visible, nodes): ...
        ... ''')
        >>> import my_methods
        >>> from graphfcl import find_method
        >>> find_method("nearest-mean").title
        'Nearest class mean.'
    """
    REGISTRY.register(learner)
    return learner


def import_method(reference: str, where: str | None = None) -> Method:
    """Import the method ``module:Class`` that a user named on the command line.

    The current folder is put on the import path. ``where`` quotes the user's input in error messages.
    """
    return REGISTRY.import_class(reference, where or f"--method {reference}", Learner)


def method_from(text: str, where: str | None = None) -> Method:
    """Resolve a method that a user wrote as a name or as ``module:Class``."""
    return import_method(text, where) if ":" in text else find_method(text)


def check_method(learner: Any, where: str) -> None:
    """Raise an :class:`InputError` that says why a class cannot be a method."""
    check_class(learner, where, Learner)
    name = reference_of(learner)
    settings = learner.settings_type
    if not (isinstance(settings, type) and is_dataclass(settings)):
        raise InputError(f"{where}: settings_type of {name} is not a dataclass: make it a frozen dataclass.")
    if not settings.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise InputError(f"{where}: the settings of {name} are mutable: write @dataclass(frozen=True).")
    bare = [field.name for field in fields(settings) if field.default is MISSING and field.default_factory is MISSING]
    if bare:
        raise InputError(f"{where}: give every setting of {name} a default ({', '.join(bare)}).")
    try:
        defaults = settings()
        same = with_changes(defaults, flat_settings(settings_as_json(defaults)), learner.name) == defaults
    except Exception as error:  # settings of other packages may raise anything
        raise InputError(f"{where}: the default settings of {name} cannot be made ({in_one_line(error)}).") from error
    if not same:
        raise InputError(
            f"{where}: the settings of {name} change when they are converted to JSON and back: use numbers, strings, "
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
                f"{where}: {method} of {name} must take (self, {', '.join(taken)}), as Learner.{method} does."
            ) from error


REGISTRY: Registry[type[Learner], Method] = Registry(
    "method",
    "graphfcl.methods",
    {name: f"graphfcl.methods.{place}" for name, place in LEARNERS.items()},
    Method,
    check_method,
    hint="--method module:Class brings one of your own",
)
METHODS: tuple[Method, ...] = tuple(REGISTRY.own.values())
is_own = REGISTRY.is_own
outside_methods = REGISTRY.outside
plug_in_rows = REGISTRY.plug_in_rows
