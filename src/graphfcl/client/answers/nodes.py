"""Nodes, predictions and the map."""

from dataclasses import dataclass

from graphfcl.client.answers.common import Answer, ClassName, ClassProbability, LeftOut, Status


@dataclass(frozen=True, kw_only=True)
class Statement:
    """Who gave a label, and when.

    Attributes:
        by: Name of the person; empty if unknown.
        when: Time at which the label was given; empty if unknown.
        kept: Further values stored with the label, such as the reason, the note, or other columns of a table.
    """

    by: str
    when: str
    kept: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class ListedNode:
    """A node and its label.

    Attributes:
        id: Id of the node.
        label: Class of the label; None if the node has none.
    """

    id: str
    label: ClassName | None


@dataclass(frozen=True, kw_only=True)
class Nodes(Answer):
    """A page of nodes.

    Attributes:
        nodes: Nodes of this page.
        next_cursor: Cursor of the next page; None on the last page.
    """

    nodes: tuple[ListedNode, ...]
    next_cursor: str | None


@dataclass(frozen=True, kw_only=True)
class Feature:
    """A feature of a node.

    Attributes:
        name: Name of the feature.
        value: Value of the feature, as the learner sees it.
    """

    name: str
    value: float


@dataclass(frozen=True, kw_only=True)
class Node(ListedNode, Answer):
    """A node with its label, prediction and largest features.

    Attributes:
        statements: Who gave the label and when, oldest first.
        classes: Most likely classes, at most five.
        unknown: Whether the node looks like none of the known classes.
        unknown_score: How much the node looks like none of the known classes.
        degree: Number of neighbours.
        features: Largest features by absolute value, at most 20.
    """

    statements: tuple[Statement, ...]
    classes: tuple[ClassProbability, ...]
    unknown: bool
    unknown_score: float
    degree: int
    features: tuple[Feature, ...]


@dataclass(frozen=True, kw_only=True)
class Neighbour(ListedNode):
    """A node around another node, with the position to draw it at.

    Attributes:
        predicted: Most likely class.
        unknown: Whether the node looks like none of the known classes.
        x: Horizontal position, from -1 to 1.
        y: Vertical position, from -1 to 1.
        hops: Distance from the node in the middle, in edges.
    """

    predicted: ClassName
    unknown: bool
    x: float
    y: float
    hops: int


@dataclass(frozen=True, kw_only=True)
class Neighbours(Answer):
    """The nodes around a node.

    Attributes:
        nodes: Nodes within two hops; the node in the middle comes first.
        edges: Edges between these nodes as pairs of positions in ``nodes``, each once.
        total: Number of nodes within two hops, the node itself included; None if it has too many neighbours to count.
    """

    nodes: tuple[Neighbour, ...]
    edges: tuple[tuple[int, int], ...]
    total: int | None


@dataclass(frozen=True, kw_only=True)
class Word:
    """A feature and its weight in an explanation.

    Attributes:
        name: Name of the feature.
        weight: How much the feature speaks for the predicted class; negative if it speaks against it.
    """

    name: str
    weight: float


@dataclass(frozen=True, kw_only=True)
class NeighbourShare:
    """A neighbour and its share in a prediction.

    Attributes:
        id: Id of the neighbour.
        share: Share of the neighbour in the prediction.
    """

    id: str
    share: float


@dataclass(frozen=True, kw_only=True)
class Explanation(Answer):
    """Why a node gets its predicted class.

    Attributes:
        id: Id of the node.
        summary: Explanation as sentences.
        classes: Most likely classes, at most five.
        words: Most important features, at most eight; empty if the method does not explain predictions.
        neighbours: Most important neighbours, at most eight; empty if the method does not explain predictions.
    """

    id: str
    summary: tuple[str, ...]
    classes: tuple[ClassProbability, ...]
    words: tuple[Word, ...]
    neighbours: tuple[NeighbourShare, ...]


@dataclass(frozen=True, kw_only=True)
class Predictions(Answer):
    """Predictions in columns, with one value for each id.

    Attributes:
        ids: Ids of the nodes.
        classes: Most likely class of each node.
        probabilities: Probability of that class.
        unknown: Whether each node looks like none of the known classes.
        unknown_score: How much each node looks like none of the known classes.
        left_out: Nodes that are not in the graph and have no prediction.
    """

    ids: tuple[str, ...]
    classes: tuple[ClassName, ...]
    probabilities: tuple[float, ...]
    unknown: tuple[bool, ...]
    unknown_score: tuple[float, ...]
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True, kw_only=True)
class Spread(Answer):
    """How diverse some nodes are.

    Attributes:
        spread: Share of random sets of one known class that are less diverse, from 0 to 1.
        alike: Whether the nodes are so similar that more diverse nodes would teach more.
        say: The result as a sentence.
    """

    spread: float
    alike: bool
    say: str


@dataclass(frozen=True, kw_only=True)
class Map(Answer):
    """Nodes in two dimensions, in columns. Entries at the same position of each column belong to one node.

    While ``status`` is ``computing``, the nodes and positions are those of ``layout_version``. Classes, doubts and
    flags are always those of ``version``.

    Attributes:
        status: Whether the positions of this version are ready.
        layout_version: Version for which the positions were computed; None before the first layout, when the map is
            empty.
        shown: Number of nodes on the map.
        total: Number of nodes in the graph.
        changed_since: Version with which the predictions are compared; None if there is none or its predictions are
            gone.
        classes: Classes of the model.
        ids: Ids of the nodes.
        x: Horizontal positions, from 0 to 10,000.
        y: Vertical positions, from 0 to 10,000.
        class_places: Position in ``classes`` of the node's label, or of its most likely class if it has no label.
        doubts: Doubt about each prediction: 100 · (1 − p_1 + p_2), with the probabilities of the two most likely
            classes.
        flags: Sum of 1 if the node has no label and looks unknown, 2 if its prediction changed, and 4 if it has a
            label.
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
