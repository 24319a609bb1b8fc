"""The contract of strategies, which select the nodes to label next.

A strategy of your own derives from :class:`Strategy` and defines :meth:`~Strategy.choose`. ``docs/your-strategy.md``
shows an example.
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
ROWS_AT_A_TIME = 1 << 16  # rows of probabilities in a block


class Memory:
    """A thread-safe cache of the ``most`` results that were used last. A key must identify all inputs of its result."""

    def __init__(self, most: int = 4) -> None:
        self._most, self._lock = most, threading.RLock()
        self._results: dict[Hashable, Any] = {}  # least recently used first

    def find(self, key: Hashable, compute: Callable[[], Result]) -> Result:
        """Return the result of a key, and compute it if it is missing. Other threads wait meanwhile."""
        with self._lock:
            result = self._results.pop(key) if key in self._results else compute()
            self._results[key] = result
            while len(self._results) > self._most:
                del self._results[next(iter(self._results))]
            return result


class RowValues(Protocol):
    """An (n, C) table that is read by rows: an array, or an object that computes rows when they are read."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, rows: np.ndarray, /) -> np.ndarray:
        """Values of some rows, in any order, shape (r, C)."""
        ...


@dataclass(frozen=True, eq=False)
class ActiveLearningState:
    """Everything that a strategy may use to choose nodes.

    Nodes are identified by their rows of the visible graph, 0 to n − 1. All arrays are read-only. C is the number of
    known classes.

    Args:
        visible: Visible graph, in memory or on disk.
        vectors: Vectors by which nodes are compared, float32, shape (n, d).
        candidates: Rows that may be chosen, in arbitrary order, shape (c,).
        labelled: Rows of labelled nodes, shape (m,). Empty if no node is labelled.
        columns: Class of each labelled node, as a column of ``scores``, shape (m,).
        late: Whether each class was learned after session 0, shape (C,). For a graph without a model, whether the class
            has few labels.
        scores: Probabilities of the known classes, shape (n, C). Read them by rows (``scores[rows]``). None without a
            model.
        unknown_score: Out-of-distribution score of each node, shape (n,); higher for nodes that resemble no known
            class. None without a model.
        budget: Largest number of nodes to choose.
        random: Random generator. It must be the only source of randomness.
        memory: Cache of earlier results on the same vectors, candidates and labels. Begin keys with the name of the
            strategy.

    Examples:
        >>> import numpy as np
        >>> from graphfcl import ActiveLearningState, find_strategy, load_dataset
        >>> graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> none = np.zeros(0, dtype=np.int64)
        >>> state = ActiveLearningState(
        ...     visible=graph.visible(np.arange(200)), vectors=np.eye(200, dtype=np.float32),
        ...     candidates=np.arange(100), labelled=none, columns=none, late=np.zeros(0, dtype=bool),
        ...     scores=None, unknown_score=None, budget=5, random=np.random.default_rng(0))
        >>> len(find_strategy("random").make().choose(state))
        5
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
        """Number of nodes to choose: the budget, or the number of candidates if there are fewer."""
        return max(0, min(self.budget, int(self.candidates.size)))

    def shuffled(self) -> np.ndarray:
        """Return the candidates in random order, shape (c,)."""
        return self.candidates[self.random.permutation(self.candidates.size)]

    def likeliest(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Find the most likely class of some rows. Probabilities are read in blocks.

        Args:
            rows: Rows of the visible graph, shape (r,).

        Returns:
            Three arrays of shape (r,): the most likely class, its probability, and the margin to the probability of the
            second class (the probability itself if only one class is known).
        """
        assert self.scores is not None
        return likeliest_classes(self.scores, rows)


def likeliest_classes(scores: RowValues, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the most likely class of some rows: see :meth:`ActiveLearningState.likeliest`."""
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
    """One node to label, and the reason for choosing it.

    Args:
        row: Row of the node in the visible graph.
        reason: ``cluster`` (typical of a cluster without a labelled node), ``unknown`` (resembles no known class),
            ``uncovered`` (few similar nodes are labelled), ``between`` (two classes are about equally likely) or
            ``random`` (drawn at random).

    Examples:
        >>> from graphfcl import Query
        >>> Query(row=12, reason="uncovered")
        Query(row=12, reason='uncovered')
    """

    row: int
    reason: Reason


class Strategy(Described, ABC):
    """Base class of strategies, which select the nodes to label next.

    A subclass defines :meth:`choose` and can be made without arguments. It keeps nothing between two calls: all that it
    may use is in the state.

    Examples:
        >>> from graphfcl import Query, Strategy
        >>> class MostLinks(Strategy):
        ...     '''Candidates with the most links first.'''
        ...     def choose(self, state):
        ...         degrees = state.visible.degrees
        ...         best = sorted(state.candidates.tolist(), key=lambda row: -degrees[row])
        ...         return [Query(row, "cluster") for row in best[: state.wanted]]
        >>> MostLinks.name, MostLinks.title
        ('most-links', 'Candidates with the most links first.')
    """

    name: ClassVar[str] = "strategy"
    """Name on the command line and in tables. The default is made from the class's name: MostLinks is most-links."""
    title: ClassVar[str] = ""
    """One line for lists. The default is the first line of the docstring."""
    reference: ClassVar[str] = ""
    """Paper that the strategy comes from."""

    @abstractmethod
    def choose(self, state: ActiveLearningState) -> list[Query]:
        """Choose nodes to label.

        Args:
            state: Visible graph, candidates, labels, predictions and budget.

        Returns:
            At most ``state.budget`` queries, best first. Each row is a candidate and occurs once.

        Raises:
            InputError: If the strategy needs predictions and ``state.scores`` is None.
        """


def checked(queries: Any, state: ActiveLearningState, name: str) -> list[Query]:
    """Check what a strategy returned, and return it as a list of queries. ``name`` is the strategy's, for messages.

    Raises:
        InputError: If the queries break the contract: too many, a row twice, or a row that is not a candidate.
    """
    queries = _listed(queries, name)
    rows = [query.row for query in queries]
    if len(rows) > state.budget:
        raise InputError(
            f"the strategy {name!r} chose {len(rows)} nodes with a budget of {state.budget}: choose at most "
            f"{state.budget}."
        )
    for rule, broken in (
        ("is already labelled", set(rows) & set(state.labelled.tolist())),
        ("is not a candidate", set(rows) - set(state.candidates.tolist())),
        ("it chose before", {row for row, times in Counter(rows).items() if times > 1}),
    ):
        if broken:
            raise InputError(
                f"the strategy {name!r} chose row {min(broken)}, which {rule}: choose each candidate at most once."
            )
    return queries


def _listed(queries: Any, name: str) -> list[Query]:
    """Convert what a strategy returned to a list, and refuse elements that are not queries."""
    try:
        listed = list(queries)
    except TypeError:
        listed = [queries]
    for query in listed:
        if not (isinstance(query, Query) and isinstance(query.row, Integral) and query.reason in get_args(Reason)):
            raise InputError(
                f"the strategy {name!r} returned {query!r}: return a list of Query(row, reason), where the row is an "
                f"integer and the reason one of {', '.join(get_args(Reason))}."
            )
    return listed
