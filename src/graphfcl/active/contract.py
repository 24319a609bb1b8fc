"""The contract of strategies, which select what to label next.

A strategy of your own derives from :class:`Strategy` and defines :meth:`~Strategy.choose`; ``docs/your-strategy.md``
shows one.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, field
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar, get_args

import numpy as np

from graphfcl.errors import InputError
from graphfcl.runtime.arrays import read_only
from graphfcl.runtime.registry import Described

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from graphfcl.graph.interfaces import VisibleNodes

Reason = Literal["cluster", "unknown", "uncovered", "between", "random"]
Result = TypeVar("Result")
ROWS_AT_A_TIME = 1 << 16  # whose probabilities are read at once


class Memory:
    """A cache of the results used last, by a key that holds all that they depend on; threads may share it.

    most: how many are kept.
    """

    def __init__(self, most: int = 4) -> None:
        self._most, self._lock = most, threading.RLock()
        self._kept: dict[Hashable, Any] = {}

    def find(self, key: Hashable, compute: Callable[[], Result]) -> Result:
        """The result of this key, computed if it is missing; a second thread that needs it meanwhile waits."""
        with self._lock:
            result = self._kept.pop(key) if key in self._kept else compute()
            self._kept[key] = result
            while len(self._kept) > self._most:
                del self._kept[next(iter(self._kept))]
            return result


class RowValues(Protocol):
    """An (n, C) table that is read by rows: an array, or one of which rows are computed when they are read."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, rows: np.ndarray, /) -> np.ndarray:
        """(r, C) values of some rows in any order."""
        ...


@dataclass(frozen=True, eq=False)
class ActiveLearningState:
    """What is known when nodes to label are chosen. Rows are rows of the visible graph; all arrays are read-only.

    visible: the graph, in memory or on disk.
    vectors: (n, d) float32, what nodes are compared by.
    candidates: (c,) rows that may be named, in an order that means nothing.
    labelled: (m,) rows that have a label; ``columns``: (m,) their classes. Both are empty if nothing is labelled.
    late: (C,) whether each class came after session 0, or has few labels if there was no session 0.
    scores: (n, C) probabilities of the known classes, read by rows (``scores[rows]``); None without a model.
    unknown_score: (n,) higher for nodes that look less like the known classes; None without a model.
    budget: how many nodes to name.
    random: a generator; the only source of chance.
    memory: what was computed of the same vectors, candidates and labels before. Keys name the strategy.
    """

    visible: VisibleNodes
    vectors: np.ndarray
    candidates: np.ndarray
    labelled: np.ndarray
    columns: np.ndarray
    late: np.ndarray
    scores: RowValues | None
    unknown_score: np.ndarray | None
    budget: int
    random: np.random.Generator
    memory: Memory = field(default_factory=Memory)

    def __post_init__(self) -> None:
        labels = (self.labelled, self.columns, self.late)
        for array in (self.vectors, self.candidates, *labels, self.scores, self.unknown_score):
            if isinstance(array, np.ndarray):
                read_only(array)

    @property
    def wanted(self) -> int:
        """How many nodes can be named: the budget, or all candidates if they are fewer."""
        return max(0, min(self.budget, int(self.candidates.size)))

    def shuffled(self) -> np.ndarray:
        """(c,) the candidates in an order drawn by ``random``."""
        return self.candidates[self.random.permutation(self.candidates.size)]

    def likeliest(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(r,) the likeliest class of some rows, its probability, and by how much the second is less likely.

        With a single class the last is the probability itself. Scores are read in blocks.
        """
        assert self.scores is not None
        return likeliest_classes(self.scores, rows)


def likeliest_classes(scores: RowValues, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """See :meth:`ActiveLearningState.likeliest`."""
    blocks = [_likeliest(scores[rows[start : start + ROWS_AT_A_TIME]]) for start in range(0, rows.size, ROWS_AT_A_TIME)]
    best, highest, margin = map(np.concatenate, zip(*blocks or [_likeliest(scores[rows])], strict=True))
    return best, highest, margin


def _likeliest(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    highest = scores.max(axis=1)
    if scores.shape[1] == 1:
        return np.zeros(len(scores), dtype=np.int64), highest, highest
    two = np.partition(scores, -2, axis=1)[:, -2:]
    return scores.argmax(axis=1), highest, two[:, 1] - two[:, 0]


@dataclass(frozen=True)
class Query:
    """One node worth labelling, and why.

    row: its row in the visible graph.
    reason: ``cluster``: typical of a cluster that no label represents. ``unknown``: likely of none of the known
        classes. ``uncovered``: few of the nodes like it have a label. ``between``: two classes are about equally
        likely. ``random``: drawn.
    """

    row: int
    reason: Reason


class Strategy(Described, ABC):
    """Select which nodes to label next.

    A strategy keeps nothing between two calls: all that it may use is in the state.
    """

    name: ClassVar[str] = "strategy"
    """What it is called on the command line and in tables; by default the class's name: MostLinks is most-links."""
    title: ClassVar[str] = ""
    """One line for lists; by default the first line of the docstring."""
    reference: ClassVar[str] = ""
    """Where it comes from: a paper."""

    @abstractmethod
    def choose(self, state: ActiveLearningState) -> list[Query]:
        """At most ``budget`` candidates, no row twice, best first."""


def checked(queries: Any, state: ActiveLearningState, name: str) -> list[Query]:
    """The queries of a strategy as a list; one that breaks the contract is refused in one sentence.

    name: the strategy, for the message.
    """
    queries = _listed(queries, name)
    rows = [query.row for query in queries]
    if len(rows) > state.budget:
        raise InputError(
            f"the strategy {name!r} named {len(rows)} nodes with a budget of {state.budget}: name no more than it."
        )
    for rule, broken in (
        ("is labelled already", set(rows) & set(state.labelled.tolist())),
        ("is no candidate", set(rows) - set(state.candidates.tolist())),
        ("was named twice", {row for row, times in Counter(rows).items() if times > 1}),
    ):
        if broken:
            raise InputError(
                f"the strategy {name!r} named row {min(broken)}, which {rule}: name each candidate at most once."
            )
    return queries


def _listed(queries: Any, name: str) -> list[Query]:
    """The queries of a strategy as a list; an iterator is read once."""
    try:
        listed = list(queries)
    except TypeError:
        listed = [queries]
    for query in listed:
        if not (isinstance(query, Query) and isinstance(query.row, Integral) and query.reason in get_args(Reason)):
            raise InputError(
                f"the strategy {name!r} answered {query!r}: answer a list of Query(row, reason), where the row is an "
                f"integer and the reason one of {', '.join(get_args(Reason))}."
            )
    return listed
