"""Names to methods. A method of this package is added by one file with its learner and one line in ``LEARNERS``."""

from dataclasses import dataclass
from typing import Any

from graphfcl.errors import InputError, did_you_mean
from graphfcl.methods.anchor import Anchor
from graphfcl.methods.cec import Cec
from graphfcl.methods.er_gnn import ErGnn
from graphfcl.methods.finetune import Finetune
from graphfcl.methods.gpn import Gpn
from graphfcl.methods.hag_meta import HagMeta
from graphfcl.methods.icarl import ICarl
from graphfcl.methods.joint import Joint
from graphfcl.methods.learner import Learner
from graphfcl.methods.meta_gnn import MetaGnn
from graphfcl.methods.proto import ProtoGat, ProtoGcn
from graphfcl.methods.settings import SettingRow, settings_rows, with_changes


@dataclass(frozen=True)
class Method:
    """A learner class, and how it is made."""

    learner: type[Learner]

    @property
    def name(self) -> str:
        return self.learner.name

    @property
    def title(self) -> str:
        return self.learner.title

    @property
    def reference(self) -> str:
        return self.learner.reference

    def make(self, changes: dict[str, Any] | None = None, *, seed: int = 0, device: str = "cpu") -> Learner:
        """The learner with changed settings; texts are turned into the types of their fields."""
        return self.learner(self.settings_with(changes or {}), seed=seed, device=device)

    def settings_with(self, changes: dict[str, Any]) -> Any:
        """The settings that differ from the defaults in ``changes``."""
        return with_changes(self.learner.settings_type(), changes, self.name)

    def settings_rows(self) -> list[SettingRow]:
        """Name, default, kind and explanation of each setting."""
        return settings_rows(self.learner.settings_type())


LEARNERS: tuple[type[Learner], ...] = (
    Anchor,
    HagMeta,
    ProtoGcn,
    ProtoGat,
    MetaGnn,
    Gpn,
    ErGnn,
    ICarl,
    Cec,
    Finetune,
    Joint,
)
METHODS: tuple[Method, ...] = tuple(Method(learner) for learner in LEARNERS)
ALIASES = {"ours": "anchor"}


def find_method(name: str) -> Method:
    """The method of a name."""
    known = {method.name: method for method in METHODS}
    name = ALIASES.get(name, name)
    if name not in known:
        raise InputError(f"there is no method {name!r}: {did_you_mean(name, list(known))}")
    return known[name]
