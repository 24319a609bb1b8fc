"""Learners. A method is added by one file with its learner and one line in ``METHODS``."""

import types
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from graphfcl.errors import InputError, did_you_mean
from graphfcl.methods.anchor.learner import Anchor
from graphfcl.methods.cec import Cec
from graphfcl.methods.er_gnn import ErGnn
from graphfcl.methods.finetune import Finetune
from graphfcl.methods.gpn import Gpn
from graphfcl.methods.hag_meta.learner import HagMeta
from graphfcl.methods.hag_meta.settings import HagMetaSettings
from graphfcl.methods.icarl import ICarl
from graphfcl.methods.joint import Joint
from graphfcl.methods.learner import Learner, LearnerState, Progress
from graphfcl.methods.meta_gnn import MetaGnn
from graphfcl.methods.proto import ProtoGat, ProtoGcn


@dataclass(frozen=True)
class Method:
    """A learner class and what to say of it."""

    learner: Any
    title: str
    reference: str

    @property
    def name(self) -> str:
        return self.learner.name

    @property
    def settings(self) -> Any:
        return self.learner.settings_type

    def make(self, changes: dict[str, Any] | None = None, *, seed: int = 0, device: str = "cpu") -> Learner:
        """The learner with changed settings; texts are turned into the types of their fields."""
        return self.learner(self.settings_with(changes or {}), seed=seed, device=device)

    def settings_rows(self) -> list[tuple[str, str, str]]:
        """Name, default and kind of each setting."""
        return _rows(self.settings(), "")

    @staticmethod
    def settings_as_json(learner: Any) -> dict[str, Any]:
        """All settings of a learner as plain values, nested as they are."""
        return learner.settings.as_json()

    @staticmethod
    def flat_settings(values: dict[str, Any]) -> dict[str, Any]:
        """Nested settings as :meth:`make` takes them: {"pretraining": {"epochs": 5}} is {"pretraining.epochs": 5}."""
        flat: dict[str, Any] = {}
        for key, value in values.items():
            if isinstance(value, dict):
                flat |= {f"{key}.{inner}": each for inner, each in Method.flat_settings(value).items()}
            else:
                flat[key] = _tuples(value)
        return flat

    def settings_with(self, changes: dict[str, Any]) -> Any:
        settings = self.settings()
        for key, value in changes.items():
            settings = _changed(settings, key.split("."), value, self.name)
        return settings


def _tuples(value: Any) -> Any:
    return tuple(_tuples(each) for each in value) if isinstance(value, list) else value


def _rows(settings: Any, prefix: str) -> list[tuple[str, str, str]]:
    hints = get_type_hints(type(settings))
    rows = []
    for field in fields(settings):
        value = getattr(settings, field.name)
        if is_dataclass(value):
            rows += _rows(value, f"{prefix}{field.name}.")
        else:
            rows.append((f"{prefix}{field.name}", str(value).lower(), _kind(hints[field.name])))
    return rows


def _changed(settings: Any, path: list[str], value: Any, where: str) -> Any:
    known = [field.name for field in fields(settings)]
    if path[0] not in known:
        raise InputError(f"{where} has no setting {path[0]!r}: {did_you_mean(path[0], known)}")
    inner = getattr(settings, path[0])
    if len(path) > 1:
        if not is_dataclass(inner):
            raise InputError(f"{where}.{path[0]} is a single setting: write {path[0]}=value.")
        return replace(settings, **{path[0]: _changed(inner, path[1:], value, f"{where}.{path[0]}")})
    hint = get_type_hints(type(settings))[path[0]]
    return replace(settings, **{path[0]: _converted(value, hint, f"{where}.{path[0]}")})


def _converted(value: Any, hint: Any, where: str) -> Any:
    """A text as the type of its field: bool, int, float, one of some words, or none."""
    if not isinstance(value, str):
        return value
    options = _options(hint)
    for option in options:
        if option is type(None) and value.lower() == "none":
            return None
        if option is bool and value.lower() in ("true", "false"):
            return value.lower() == "true"
        if get_origin(option) is Literal and value in get_args(option):
            return value
        if option in (int, float):
            try:
                return option(value)
            except ValueError:
                continue
        if option is str:
            return value
    if any(get_origin(option) is tuple for option in options):
        raise InputError(f"{where} is a list, which can only be set in Python.")
    raise InputError(f"{where} is {value!r}; it must be {_kind(hint)}.")


def _options(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _kind(hint: Any) -> str:
    """What may be written for a type: words, or the name of a kind of number."""
    words: list[str] = []
    for option in _options(hint):
        if get_origin(option) is Literal:
            words += [str(word) for word in get_args(option)]
        elif option is type(None):
            words.append("none")
        elif option is bool:
            words += ["true", "false"]
        else:
            words.append({int: "whole number", float: "number", str: "word"}.get(option, "list"))
    return " or ".join(words)


METHODS: tuple[Method, ...] = (
    Method(
        Anchor,
        "whitened class sums as anchors, means moved by the visible graph; closed form, stores no node",
        "this project, docs/anchor.md",
    ),
    Method(
        HagMeta,
        "pseudo-incremental meta-training with node-level and task-level attention",
        "Tan, Ding, Guo, Liu: Graph Few-shot Class-incremental Learning. WSDM 2022",
    ),
    Method(
        ProtoGcn,
        "prototypes on the pre-trained GCN",
        "Snell, Swersky, Zemel: Prototypical Networks for Few-shot Learning. NeurIPS 2017",
    ),
    Method(
        ProtoGat,
        "prototypes on a pre-trained GAT",
        "Snell et al. 2017, with Veličković et al.: Graph Attention Networks. ICLR 2018",
    ),
    Method(
        MetaGnn,
        "MAML: an initialisation that adapts to a few supports",
        "Zhou et al.: Meta-GNN: On Few-shot Node Classification in Graph Meta-learning. CIKM 2019",
    ),
    Method(
        Gpn,
        "prototypes of supports that a node valuator weights",
        "Ding et al.: Graph Prototypical Networks for Few-shot Learning on Attributed Networks. CIKM 2020",
    ),
    Method(
        ErGnn,
        "a growing head with a replay buffer of chosen nodes",
        "Zhou, Cao: Overcoming Catastrophic Forgetting in Graph Neural Networks with Experience Replay. AAAI 2021",
    ),
    Method(
        ICarl,
        "herded exemplars, distillation, nearest mean of exemplars",
        "Rebuffi, Kolesnikov, Sperl, Lampert: iCaRL: Incremental Classifier and Representation Learning. CVPR 2017",
    ),
    Method(
        Cec,
        "self-attention over prototypes and query, frozen encoder",
        "Zhang et al.: Few-Shot Incremental Learning with Continually Evolved Classifiers. CVPR 2021",
    ),
    Method(
        Finetune,
        "a growing linear head, fine-tuned on supports alone",
        "baseline",
    ),
    Method(
        Joint,
        "retrained at each session on all labels of all classes (uses pool labels)",
        "upper reference",
    ),
)


ALIASES = {"ours": "anchor"}


def find_method(name: str) -> Method:
    known = {method.name: method for method in METHODS}
    name = ALIASES.get(name, name)
    if name not in known:
        raise InputError(f"there is no method {name!r}: {did_you_mean(name, list(known))}")
    return known[name]


__all__ = ["METHODS", "HagMeta", "HagMetaSettings", "Learner", "LearnerState", "Method", "Progress", "find_method"]
