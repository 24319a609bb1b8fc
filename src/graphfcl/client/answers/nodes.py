"""Nodes, predictions and the map."""

from dataclasses import dataclass

from graphfcl.client.answers.common import Answer, ClassName, ClassProbability, LeftOut, Status


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
    """A page of nodes."""

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

    total: nodes within two hops; None if the node has too many neighbours to count them.
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
    """Predictions in columns, with one value for each of ``ids``. left_out: nodes without a prediction."""

    ids: tuple[str, ...]
    classes: tuple[ClassName, ...]
    probabilities: tuple[float, ...]
    unknown: tuple[bool, ...]
    unknown_score: tuple[float, ...]
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True, kw_only=True)
class Spread(Answer):
    """How diverse some nodes are, 0..1. alike: they are so similar that more diverse nodes would teach more."""

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
