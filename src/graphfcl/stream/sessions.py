"""What a learner is handed. None of these types has a place for a query label, except :class:`PaperSession`.

All arrays in them are read-only.
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

    Labels are columns: positions in ``classes``, which holds ``base_classes`` and then ``pseudo_novel_classes``.

    train, validation: node numbers; ``train_labels``, ``validation_labels``: their columns.
    pseudo_novel_tasks: the pseudo-novel columns in tasks of N.
    way, shot: the N and K of the sessions to come, which pseudo-incremental training imitates. Under the rule
        ``pool_as_supports`` their classes have K supports or more.
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

    new_classes: names, whose columns follow those of all classes before.
    supports: node numbers; ``support_labels``: their columns.
    visible_graph: what exists now. Under the track ``isolated`` it holds the nodes of this session alone; questions
        are asked on the graph of all classes seen, with the edges between sessions.
    earlier, earlier_labels: nodes and columns of all labels that known classes among ``support_labels`` had before, as
        a model in production keeps them. Streams leave them empty: there a learner remembers what it needs.
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
    """A session of the protocol ``paper``, which carries sampled queries *with their labels*, as Algorithm 2 prints.

    Results learned from one are marked "trained on query labels" wherever they are shown.
    """

    queries: np.ndarray
    query_labels: np.ndarray


@dataclass(frozen=True, eq=False)
class PooledSession(Session):
    """A session with the labels of the pool: nodes of the new classes that are neither supports nor queries.

    Only learners that declare it receive one. Their results are marked "uses pool labels" wherever they are shown.
    """

    pool: np.ndarray
    pool_labels: np.ndarray


def _freeze(session: Any) -> None:
    for each in fields(session):
        value = getattr(session, each.name)
        if isinstance(value, np.ndarray):
            read_only(value)
