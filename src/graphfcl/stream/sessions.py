"""Sessions: the labelled nodes and the visible graph that a learner receives.

All arrays are read-only. Only :class:`PaperSession` has fields for query labels.
"""

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from graphfcl.graph.interfaces import VisibleNodes
from graphfcl.runtime.arrays import read_only
from graphfcl.stream.protocol import ProtocolName, Track


def _no_numbers() -> np.ndarray:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class BaseSession:
    """Session 0: the classes with many labels.

    Labels are columns, that is positions in ``classes``: first ``base_classes``, then ``pseudo_novel_classes``.

    Args:
        base_classes: Names of the base classes.
        pseudo_novel_classes: Names of the pseudo-novel classes, on which learners may practise later sessions.
        train: Node numbers of the training nodes.
        train_labels: Columns of the training nodes.
        validation: Node numbers of the validation nodes.
        validation_labels: Columns of the validation nodes.
        pseudo_novel_tasks: Pseudo-novel columns, divided into tasks of N classes.
        visible_graph: Graph that the learner sees.
        way: Number N of new classes in each later session.
        shot: Number K of supports of each new class; at least K if the protocol sets ``pool_as_supports``.
        track: What of the graph is visible; see :class:`Protocol`.
        protocol: ``strict`` or ``paper``.

    Examples:
        >>> from graphfcl import load_dataset, make_stream
        >>> graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> base = make_stream(graph, base=2, pseudo_novel=1, way=1, shot=2).base
        >>> base.classes, base.train.size
        (('class-00', 'class-01', 'class-04'), 77)
    """

    base_classes: tuple[str, ...]
    pseudo_novel_classes: tuple[str, ...]
    train: np.ndarray
    train_labels: np.ndarray
    validation: np.ndarray
    validation_labels: np.ndarray
    pseudo_novel_tasks: tuple[tuple[int, ...], ...]
    visible_graph: VisibleNodes
    way: int
    shot: int
    track: Track
    protocol: ProtocolName = "strict"

    def __post_init__(self) -> None:
        _freeze(self)

    @property
    def classes(self) -> tuple[str, ...]:
        return self.base_classes + self.pseudo_novel_classes

    @property
    def pseudo_novel_columns(self) -> range:
        return range(len(self.base_classes), len(self.classes))


@dataclass(frozen=True, eq=False)
class Session:
    """Session t ≥ 1: new classes with K supports each.

    Args:
        number: Number t of the session.
        new_classes: Names of the new classes. Their columns follow the columns of all earlier classes.
        supports: Node numbers of the labelled nodes.
        support_labels: Columns of the labelled nodes.
        visible_graph: Graph that the learner sees. On the track ``isolated`` it has only the nodes of this session;
            predictions are made on the graph of all classes seen, with the edges between sessions.
        track: What of the graph is visible; see :class:`Protocol`.
        earlier: Node numbers of all earlier labels of known classes among ``support_labels``. Production models pass
            them. In streams they are empty: a learner there stores what it needs.
        earlier_labels: Columns of these nodes.

    Examples:
        >>> from graphfcl import load_dataset, make_stream
        >>> graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> session = make_stream(graph, base=2, pseudo_novel=1, way=1, shot=2).session(1)
        >>> session.new_classes, session.support_labels.tolist()
        (('class-02',), [3, 3])
    """

    number: int
    new_classes: tuple[str, ...]
    supports: np.ndarray
    support_labels: np.ndarray
    visible_graph: VisibleNodes
    track: Track
    earlier: np.ndarray = field(default_factory=_no_numbers, kw_only=True)
    earlier_labels: np.ndarray = field(default_factory=_no_numbers, kw_only=True)

    def __post_init__(self) -> None:
        _freeze(self)


@dataclass(frozen=True, eq=False)
class PaperSession(Session):
    """Session of the protocol ``paper``, with sampled queries and their labels, as in Algorithm 2 of the paper.

    Results of learners that use it are marked "trained on query labels". Other arguments are those of :class:`Session`.

    Args:
        queries: Node numbers of the sampled queries.
        query_labels: Columns of the queries.

    Examples:
        >>> from graphfcl import load_dataset, make_stream
        >>> graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> stream = make_stream(graph, base=2, pseudo_novel=1, way=1, shot=2, name="paper")
        >>> session = stream.session(1, with_query_labels=True)
        >>> session.queries.size, session.query_labels.size
        (8, 8)
    """

    queries: np.ndarray
    query_labels: np.ndarray


@dataclass(frozen=True, eq=False)
class PooledSession(Session):
    """Session with labels of the pool: nodes of the new classes that are neither supports nor queries.

    Only learners that declare it receive such sessions. Their results are marked "uses pool labels". Other arguments
    are those of :class:`Session`.

    Args:
        pool: Node numbers of the pool.
        pool_labels: Columns of the pool.

    Examples:
        >>> from graphfcl import load_dataset, make_stream
        >>> graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> stream = make_stream(graph, base=2, pseudo_novel=1, way=1, shot=2)
        >>> stream.session(1, with_pool_labels=True).pool.size
        9
    """

    pool: np.ndarray
    pool_labels: np.ndarray


def _freeze(session: Any) -> None:
    for each in fields(session):
        value = getattr(session, each.name)
        if isinstance(value, np.ndarray):
            read_only(value)
