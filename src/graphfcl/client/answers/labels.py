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
    """Leases of nodes. held: nodes that the holder has, for ``seconds``. taken: nodes that others have."""

    held: tuple[str, ...]
    taken: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Changed(Answer):
    """A change that was made. what: its kind. retired: classes that lost their last label.

    version: the new version, or the current one if nothing changed because all of it existed already or was skipped.
    learned: number of new labels. confirmed: labels that another person had given before. unchanged: labels that
    existed already. conflicts: labels of nodes that have another label. left_out: nodes whose labels were skipped.
    accepted: number of accepted predictions, with ``expected_errors`` among them. reviewed: labels that were reviewed.
    taken_back: labels that were removed. nodes, edges: how many are new; with a prefix, how many existed already and
    were updated, were skipped, or are the same. equals: the version that a rollback restored.
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
