"""Labels, what to label next, and changes."""

from dataclasses import dataclass, field

from graphfcl.client.answers.common import (
    Answer,
    ClassName,
    ClassProbability,
    ClassShare,
    ExpectedErrors,
    LabelRole,
    LeftOut,
    Status,
)
from graphfcl.client.answers.nodes import Statement


@dataclass(frozen=True, kw_only=True)
class NodeLabel:
    """The label of a node.

    Attributes:
        id: Id of the node.
        label: Name of the class; ``class`` in JSON.
        role: Use of the label: ``train`` or ``validation`` in the fit, ``support`` if it was learned later, or
            ``accepted`` for a prediction that a person accepted. The model does not learn from accepted labels.
        statements: Who gave the label and when, oldest first.
    """

    id: str
    label: ClassName = field(metadata={"alias": "class"})
    role: LabelRole
    statements: tuple[Statement, ...]


@dataclass(frozen=True, kw_only=True)
class NodeLabels(Answer):
    """A page of labels, in the order of their nodes in the graph.

    Attributes:
        labels: Labels of this page.
        total: Number of labels on all pages.
        next_cursor: Cursor of the next page; None on the last page.
    """

    labels: tuple[NodeLabel, ...]
    total: int
    next_cursor: str | None


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """A node that is worth labelling.

    Attributes:
        id: Id of the node.
        reason: Reason of the suggestion: ``cluster``, ``unknown``, ``uncovered``, ``between`` or ``random``.
        why: The reason as a sentence.
        classes: Most likely classes, at most five.
        unknown: Whether the node looks like none of the known classes.
        unknown_score: How much the node looks like none of the known classes.
    """

    id: str
    reason: str
    why: str
    classes: tuple[ClassProbability, ...]
    unknown: bool
    unknown_score: float


@dataclass(frozen=True, kw_only=True)
class Suggestions(Answer):
    """Nodes to label next.

    Attributes:
        status: Whether the suggestions of this version are ready.
        suggestions: Suggested nodes; empty while ``status`` is ``computing``.
    """

    status: Status
    suggestions: tuple[Suggestion, ...]


@dataclass(frozen=True, kw_only=True)
class Group:
    """A group of similar nodes that look unknown, likely of one class without a name.

    Attributes:
        number: Number of the group in its list; group 1 is the tightest.
        size: Number of members.
        typical: Ids of up to five members that represent different parts of the group.
        words: Features that are common in the group and rare elsewhere.
        neighbours: Classes of the labelled nodes that members link to, with their shares of these links.
        estimated_purity: Estimated share of the group's largest class, from 0 to 1.
        why: Description of the group in one sentence.
        nodes: Ids of the members, most typical first.
    """

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
    """Groups of unknown nodes that can be named as classes.

    Attributes:
        status: Whether the groups of this version are ready.
        groups: Groups, the tightest first; empty while ``status`` is ``computing``.
    """

    status: Status
    groups: tuple[Group, ...]


@dataclass(frozen=True, kw_only=True)
class QueuedNode:
    """A node without a label in the labelling queue.

    Attributes:
        id: Id of the node.
        classes: Most likely classes, at most five.
        unknown: Whether the node looks like none of the known classes.
    """

    id: str
    classes: tuple[ClassProbability, ...]
    unknown: bool


@dataclass(frozen=True, kw_only=True)
class Queue(Answer):
    """A page of the nodes without a label, in the order in which to label them.

    Attributes:
        status: Whether the order was computed for this version.
        order_version: Version for which the order was computed; None if the order is the simple one.
        unlabelled: Number of all nodes without a label.
        nodes: Nodes of this page.
        next_cursor: Cursor of the next page; None on the last page.
    """

    status: Status
    order_version: int | None
    unlabelled: int
    nodes: tuple[QueuedNode, ...]
    next_cursor: str | None


@dataclass(frozen=True, kw_only=True)
class Claimed(Answer):
    """The result of a request to lease nodes.

    Attributes:
        held: Ids of the nodes that the holder has leased.
        taken: Ids of the nodes that other holders have leased.
        seconds: Seconds after which the leases expire unless they are renewed.
    """

    held: tuple[str, ...]
    taken: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Changed(Answer):
    """The result of a change. Which fields it has depends on the kind of change.

    Attributes:
        version: New version of the model, or the current version if the request changed nothing.
        what: Kind of the change, such as ``learn`` or ``rename``.
        learned: Number of new labels.
        classes: Classes of the new or accepted labels.
        new_classes: Classes that the labels started.
        confirmed: Number of labels that another person had given before.
        unchanged: Number of labels that existed already.
        conflicts: Number of labels whose node had another label.
        accepted: Number of accepted predictions.
        expected_errors: Expected number of errors among the accepted predictions.
        reviewed: Number of labels marked as reviewed.
        left_out: Nodes that are not in the graph, whose labels were skipped.
        taken_back: Number of removed labels.
        nodes: Number of added or removed nodes.
        edges: Number of added or removed edges.
        updated_nodes: Number of existing nodes whose features were updated.
        updated_edges: Number of existing edges whose weight was updated.
        skipped_nodes: Number of existing nodes with other features that were skipped.
        skipped_edges: Number of existing edges with another weight that were skipped.
        same_nodes: Number of nodes that existed already with the same features.
        same_edges: Number of edges that existed already with the same weight.
        retired: Classes that lost their last label.
        equals: Version that a rollback restored.
        warning: What may be wrong with the change.
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
