"""The model, its classes and versions; health, and the Open Inference Protocol."""

from dataclasses import dataclass
from typing import Literal

from graphfcl.client.answers.common import Answer, ClassName, Recall


@dataclass(frozen=True, kw_only=True)
class Model(Answer):
    """The model that the service serves.

    Attributes:
        method: Name of the method.
        nodes: Number of nodes in the graph.
        edges: Number of edges in the graph.
        classes: Number of classes.
        changed_at: Time at which this version was written.
        needs_token: Whether changes require the token.
        reads_need_token: Whether reading requires the token.
        warning: What is wrong with the model folder; missing if nothing is.
    """

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

    Attributes:
        name: Name of the class.
        labels: Number of labelled nodes.
        session: Version that added the class; 0 for classes of session 0, None for few-shot classes of the fit.
        recall: Recall of the class, from 0 to 1; None if it was not measured.
        recall_before: Recall before the last change; None if it was not measured.
        measured: The recall as counts, with its 95 % interval.
        gain: Estimated gain in recall from 10 more labels; None if it cannot be estimated.
        warning: Warning that the recall fell with the last change.
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
    """All classes of the model.

    Attributes:
        classes: Classes in the order of the model.
        say: Sentence that names the class which would gain most from more labels; empty if no gain can be estimated.
    """

    classes: tuple[ListedClass, ...]
    say: str


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """Accuracy after a change.

    Attributes:
        validation: Accuracy on the validation nodes of the fit; None if it was not measured.
        leave_one_out: Leave-one-out accuracy on the labels learned later; None if it was not measured.
    """

    validation: float | None
    leave_one_out: float | None


@dataclass(frozen=True, kw_only=True)
class ListedVersion:
    """A version of the model and what it changed.

    Attributes:
        version: Number of the version.
        when: Time at which the version was written.
        kind: Kind of the change, such as ``fit``, ``learn`` or ``rename``.
        what: Description of the change.
        classes: Classes that the change concerns.
        by: People who gave labels in this version.
        accuracy: Accuracy after the change; missing if it was not recorded.
        warning: What may be wrong with the change.
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
    """A page of versions, newest first.

    Attributes:
        versions: Versions of this page.
        next_cursor: Cursor of the next page; None on the last page.
    """

    versions: tuple[ListedVersion, ...]
    next_cursor: str | None


@dataclass(frozen=True, kw_only=True)
class Health(Answer):
    """The state of the service. A service that is not ready sends a problem instead.

    Attributes:
        status: ``ok`` if the process answers, ``ready`` if the model folder is complete.
    """

    status: Literal["ok", "ready"]


@dataclass(frozen=True, kw_only=True)
class Live(Answer):
    """Whether the process answers.

    Attributes:
        live: Always true; a process that is not alive does not answer.
    """

    live: bool


@dataclass(frozen=True, kw_only=True)
class Ready(Answer):
    """Whether the model is ready.

    Attributes:
        ready: Always true; if the model folder is not complete, a problem is sent instead.
    """

    ready: bool


@dataclass(frozen=True, kw_only=True)
class TensorDescription:
    """An input or output of the model.

    Attributes:
        name: Name of the tensor.
        datatype: Type of the values in the protocol, such as ``BYTES`` or ``FP64``.
        shape: Length of each axis; -1 stands for any length.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class ModelDescription(Answer):
    """The inputs and outputs of the model.

    Attributes:
        name: Name of the model, which is the name of its folder.
        versions: Versions that can be used; the current one only.
        platform: Always ``graphfcl``.
        inputs: Input tensors.
        outputs: Output tensors.
    """

    name: str
    versions: tuple[str, ...]
    platform: str
    inputs: tuple[TensorDescription, ...]
    outputs: tuple[TensorDescription, ...]


@dataclass(frozen=True, kw_only=True)
class TensorValues(TensorDescription):
    """An output of the model with its values.

    Attributes:
        data: Values of the tensor, one for each node.
    """

    data: tuple[str | float | bool, ...]


@dataclass(frozen=True, kw_only=True)
class InferenceAnswer(Answer):
    """Predictions as tensors.

    Attributes:
        model_name: Name of the model.
        model_version: Version of the model as a string.
        outputs: Output tensors.
        id: Id of the request, if it had one.
    """

    model_name: str
    model_version: str
    outputs: tuple[TensorValues, ...]
    id: str | None = None
