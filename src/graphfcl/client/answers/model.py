"""The model, its classes and versions; health, and the Open Inference Protocol."""

from dataclasses import dataclass
from typing import Literal

from graphfcl.client.answers.common import Answer, ClassName, Recall


@dataclass(frozen=True, kw_only=True)
class Model(Answer):
    """What is served. warning: what is wrong with the folder. changed_at: when this version was written."""

    method: str
    nodes: int
    edges: int
    classes: int
    changed_at: str
    needs_token: bool
    reads_need_token: bool
    warning: str | None = None


@dataclass(frozen=True, kw_only=True)
class ListedClass:
    """A class of the model.

    labels: number of labelled nodes. session: the version that added it, 0 for the fit. recall, recall_before: now and
    before the last change. measured: the recall as a number of nodes. gain: in recall, from 10 more labels. warning:
    that the last change cost it recall.
    """

    name: ClassName
    labels: int
    session: int | None
    recall: float | None
    recall_before: float | None
    measured: Recall | None
    gain: float | None
    warning: str | None = None


@dataclass(frozen=True, kw_only=True)
class OneClass(ListedClass, Answer):
    """A single class."""


@dataclass(frozen=True, kw_only=True)
class Classes(Answer):
    """All classes. say: a sentence on which would gain most from more labels."""

    classes: tuple[ListedClass, ...]
    say: str


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """Accuracy after a change, on validation nodes and by leave-one-out of later labels; None if not measured."""

    validation: float | None
    leave_one_out: float | None


@dataclass(frozen=True, kw_only=True)
class ListedVersion:
    """What a version changed. kind: ``fit``, ``learn``, ``rename`` and so on. what: the change in words. by: who
    gave labels in it.
    """

    version: int
    when: str
    kind: str
    what: str
    classes: tuple[ClassName, ...]
    by: tuple[str, ...] = ()
    accuracy: Accuracy | None = None
    warning: str | None = None


@dataclass(frozen=True, kw_only=True)
class Versions(Answer):
    """Versions, the newest first."""

    versions: tuple[ListedVersion, ...]
    next_cursor: str | None


@dataclass(frozen=True, kw_only=True)
class Health(Answer):
    """Whether the process answers, or the folder is complete; otherwise the answer is a problem."""

    status: Literal["ok", "ready"]


@dataclass(frozen=True, kw_only=True)
class Live(Answer):
    """Whether the process answers."""

    live: bool


@dataclass(frozen=True, kw_only=True)
class Ready(Answer):
    """Whether the model is ready."""

    ready: bool


@dataclass(frozen=True, kw_only=True)
class TensorDescription:
    """An input or output of the model."""

    name: str
    datatype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class ModelDescription(Answer):
    """Inputs and outputs of the model."""

    name: str
    versions: tuple[str, ...]
    platform: str
    inputs: tuple[TensorDescription, ...]
    outputs: tuple[TensorDescription, ...]


@dataclass(frozen=True, kw_only=True)
class TensorValues(TensorDescription):
    """An output of the model with its values."""

    data: tuple[str | float | bool, ...]


@dataclass(frozen=True, kw_only=True)
class InferenceAnswer(Answer):
    """Predictions as tensors. id: that of the request."""

    model_name: str
    model_version: str
    outputs: tuple[TensorValues, ...]
    id: str | None = None
