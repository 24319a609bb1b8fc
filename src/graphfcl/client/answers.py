"""The answers of a service. The service describes its routes with these classes, the client reads JSON into them.

Ids are texts; a class is a text, or an integer if the model has integer classes. ``version`` is the version of the
model that an answer is based on. ``next_cursor`` leads to the next page of a list; it is None on the last one. A field
with a default may be missing from the JSON.
"""

from dataclasses import dataclass, field
from typing import Literal

ClassName = str | int
Status = Literal["computing", "ready"]
LabelRole = Literal["train", "validation", "support", "accepted"]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What all answers have."""

    version: int


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A node of a batch that was left out, the kind of its problem, and why."""

    id: str
    kind: Literal["unknown-node"]
    why: str


@dataclass(frozen=True, kw_only=True)
class ClassProbability:
    """A class and how probable it is."""

    name: ClassName
    probability: float


@dataclass(frozen=True, kw_only=True)
class ClassShare:
    """A class and its share of some nodes."""

    name: ClassName
    share: float


@dataclass(frozen=True, kw_only=True)
class Recall:
    """``right`` of ``of`` measured nodes, and the 95 % interval of their share."""

    right: int
    of: int
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class ExpectedErrors:
    """How many of some predictions are wrong, by their probabilities, and the range of 95 % of such counts."""

    mean: float
    low: int
    high: int


# The model


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
    """What a version changed. kind: ``fit``, ``learn``, ``rename`` and so on. what: the change in words."""

    version: int
    when: str
    kind: str
    what: str
    classes: tuple[ClassName, ...]
    accuracy: Accuracy | None = None
    warning: str | None = None


@dataclass(frozen=True, kw_only=True)
class Versions(Answer):
    """Versions, the newest first."""

    versions: tuple[ListedVersion, ...]
    next_cursor: str | None


# Nodes


@dataclass(frozen=True, kw_only=True)
class Statement:
    """Who gave a label and when; empty where that is unknown. kept: what else came with
    it, such as a reason, a note, or further columns of a table.
    """

    by: str
    when: str
    kept: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class ListedNode:
    """A node and its label."""

    id: str
    label: ClassName | None


@dataclass(frozen=True, kw_only=True)
class Nodes(Answer):
    """Nodes of a listing."""

    nodes: tuple[ListedNode, ...]
    next_cursor: str | None


@dataclass(frozen=True, kw_only=True)
class Feature:
    """A feature of a node."""

    name: str
    value: float


@dataclass(frozen=True, kw_only=True)
class Node(ListedNode, Answer):
    """A node: its label and who gave it, its likeliest classes, whether it looks like none, its largest features."""

    statements: tuple[Statement, ...]
    classes: tuple[ClassProbability, ...]
    unknown: bool
    unknown_score: float
    degree: int
    features: tuple[Feature, ...]


@dataclass(frozen=True, kw_only=True)
class Neighbour(ListedNode):
    """A node near another. x, y: where to draw it, from -1 to 1. hops: its distance."""

    predicted: ClassName
    unknown: bool
    x: float
    y: float
    hops: int


@dataclass(frozen=True, kw_only=True)
class Neighbours(Answer):
    """Nodes around a node, which comes first. edges: pairs of places in ``nodes``, each once.

    total: nodes within two hops; None if a node has too many neighbours to count them.
    """

    nodes: tuple[Neighbour, ...]
    edges: tuple[tuple[int, int], ...]
    total: int | None


@dataclass(frozen=True, kw_only=True)
class Word:
    """A feature and how much it speaks for the predicted class."""

    name: str
    weight: float


@dataclass(frozen=True, kw_only=True)
class NeighbourShare:
    """A neighbour and its share in a prediction."""

    id: str
    share: float


@dataclass(frozen=True, kw_only=True)
class Explanation(Answer):
    """Why a node gets its class. summary: sentences."""

    id: str
    summary: tuple[str, ...]
    classes: tuple[ClassProbability, ...]
    words: tuple[Word, ...]
    neighbours: tuple[NeighbourShare, ...]


@dataclass(frozen=True, kw_only=True)
class Predictions(Answer):
    """Predictions in columns, one value for each of ``ids``; left_out: nodes that have none."""

    ids: tuple[str, ...]
    classes: tuple[ClassName, ...]
    probabilities: tuple[float, ...]
    unknown: tuple[bool, ...]
    unknown_score: tuple[float, ...]
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True, kw_only=True)
class Spread(Answer):
    """How diverse some nodes are, 0..1. alike: so little that more diverse nodes would teach more."""

    spread: float
    alike: bool
    say: str


@dataclass(frozen=True, kw_only=True)
class Map(Answer):
    """Nodes in two dimensions, in columns: entries at one place are of one node.

    status: ``computing`` while the positions of this version are not ready. Then the nodes are those of
    ``layout_version``, none if that is None; classes, doubts and flags are always of ``version``.
    shown, total: how many nodes are listed, and how many the graph has. changed_since: the version with which answers
    are compared; None if there is none or its answers are gone.
    x, y: from 0 to 10,000. class_places: the place in ``classes`` of a node's label, without a label of its likeliest
    class. doubts: 100 · (1 − p_1 + p_2) of its two likeliest classes. flags: the sum of 1 if it has no label and looks
    unknown, 2 if its answer changed, 4 if it has a label.
    """

    status: Status
    layout_version: int | None
    shown: int
    total: int
    changed_since: int | None
    classes: tuple[ClassName, ...]
    ids: tuple[str, ...]
    x: tuple[int, ...]
    y: tuple[int, ...]
    class_places: tuple[int, ...]
    doubts: tuple[int, ...]
    flags: tuple[int, ...]


# Labels, and what to label next


@dataclass(frozen=True, kw_only=True)
class NodeLabel:
    """The label of a node. role: what it is for: ``train`` and ``validation`` of the fit, ``support`` since then.

    ``accepted``: a prediction that was accepted, from which the model does not learn.
    """

    id: str
    label: ClassName = field(metadata={"alias": "class"})
    role: LabelRole
    statements: tuple[Statement, ...]


@dataclass(frozen=True, kw_only=True)
class NodeLabels(Answer):
    """Labels in the order of the nodes. total: of all pages."""

    labels: tuple[NodeLabel, ...]
    total: int
    next_cursor: str | None


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """A node worth labelling. why: one sentence."""

    id: str
    reason: str
    why: str
    classes: tuple[ClassProbability, ...]
    unknown: bool
    unknown_score: float


@dataclass(frozen=True, kw_only=True)
class Suggestions(Answer):
    """Nodes to label next; empty while ``status`` is ``computing``."""

    status: Status
    suggestions: tuple[Suggestion, ...]


@dataclass(frozen=True, kw_only=True)
class Group:
    """A group of similar nodes that look unknown. neighbours: classes next to it. nodes: its members."""

    number: int
    size: int
    typical: tuple[str, ...]
    words: tuple[str, ...]
    neighbours: tuple[ClassShare, ...]
    estimated_purity: float
    why: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Groups(Answer):
    """Groups to be named; empty while ``status`` is ``computing``."""

    status: Status
    groups: tuple[Group, ...]


@dataclass(frozen=True, kw_only=True)
class QueuedNode:
    """A node without a label, its most likely classes, and whether it looks like none of them."""

    id: str
    classes: tuple[ClassProbability, ...]
    unknown: bool


@dataclass(frozen=True, kw_only=True)
class Queue(Answer):
    """Nodes without a label in the order in which to label them. unlabelled: number of all of them.

    order_version: the version whose order it is, None for a simple one; ``status`` is ``ready`` if it is this version.
    """

    status: Status
    order_version: int | None
    unlabelled: int
    nodes: tuple[QueuedNode, ...]
    next_cursor: str | None


@dataclass(frozen=True, kw_only=True)
class Claimed(Answer):
    """Leases of nodes. held: those that the holder has now, for so many ``seconds``. taken: those that others have."""

    held: tuple[str, ...]
    taken: tuple[str, ...]
    seconds: float


# Tasks of Label Studio


@dataclass(frozen=True, kw_only=True)
class Choices:
    """The class that was chosen or predicted, alone in a list."""

    choices: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class TaskResult:
    """A choice for a tag of the labelling configuration."""

    from_name: str
    to_name: str
    type: Literal["choices"]
    value: Choices


@dataclass(frozen=True, kw_only=True)
class TaskPrediction:
    """What the model predicts."""

    model_version: str
    score: float
    result: tuple[TaskResult, ...]


@dataclass(frozen=True, kw_only=True)
class TaskAnnotation:
    """The label of a node."""

    result: tuple[TaskResult, ...]
    was_cancelled: bool


@dataclass(frozen=True, kw_only=True)
class TaskData:
    """A node and what a person sees of it."""

    node: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Task:
    """A node to be labelled in Label Studio; ``dataclasses.asdict`` makes what it imports."""

    data: TaskData
    predictions: tuple[TaskPrediction, ...]
    annotations: tuple[TaskAnnotation, ...]


@dataclass(frozen=True, kw_only=True)
class LabelStudioTasks(Answer):
    """Tasks for Label Studio. config: the labelling configuration of their project."""

    config: str
    tasks: tuple[Task, ...]
    next_cursor: str | None


# Changes


@dataclass(frozen=True, kw_only=True)
class Changed(Answer):
    """A change that was made. what: its kind. retired: classes that lost their last label.

    version: the one it wrote; that of the model if it changed nothing, because all of it was known or skipped.
    learned: new labels. confirmed: those that somebody else had given too. unchanged: those that were known. conflicts:
    labels of nodes that have another one. left_out: nodes whose labels were skipped. accepted: predictions that are
    kept, with the errors expected among them. reviewed: labels that were looked at and stay. taken_back: labels
    removed. nodes, edges: how many are new; with a prefix, those that were there and were updated, were skipped, or are
    the same. equals: the version that a rollback restored.
    """

    what: str
    learned: int | None = None
    classes: tuple[ClassName, ...] = ()
    new_classes: tuple[ClassName, ...] = ()
    confirmed: int | None = None
    unchanged: int | None = None
    conflicts: int | None = None
    accepted: int | None = None
    expected_errors: ExpectedErrors | None = None
    reviewed: int | None = None
    left_out: tuple[LeftOut, ...] = ()
    taken_back: int | None = None
    nodes: int | None = None
    edges: int | None = None
    updated_nodes: int | None = None
    updated_edges: int | None = None
    skipped_nodes: int | None = None
    skipped_edges: int | None = None
    same_nodes: int | None = None
    same_edges: int | None = None
    retired: tuple[ClassName, ...] = ()
    equals: int | None = None
    warning: str | None = None


# Health, and the Open Inference Protocol


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
