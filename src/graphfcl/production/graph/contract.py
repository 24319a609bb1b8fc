"""Protocol of the graph of a model, and the index of nodes in memory."""

# ruff: noqa: ARG002, ARG003  # one kind of graph needs arguments that the other does not

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

import numpy as np

from graphfcl.errors import InputError, quoted
from graphfcl.graph.ids import IdIndex, listed
from graphfcl.production.answers.answers import ModelAnswers
from graphfcl.production.graph.place import FolderUse

if TYPE_CHECKING:
    from graphfcl.graph import Features, TextWeights, VisibleNodes
    from graphfcl.graph.interfaces import AnyGraph
    from graphfcl.methods import Learner, Progress
    from graphfcl.production.answers.calibration import Calibration
    from graphfcl.production.answers.version_cache import CacheContents, CacheKeys
    from graphfcl.production.graph.feature_columns import FeatureColumns
    from graphfcl.runtime.files import SharedLock

Result = TypeVar("Result")
AT_A_TIME = 1 << 14  # nodes of a block, if predictions are computed for all nodes
UNKNOWN_NODE = "node {} is not in the graph: check the ids."
UNKNOWN_END = (
    "an edge leads to node {}, which is not in the graph: add the node first, or drop the edge (grow does so with "
    "unknown_ends=skip); nothing was changed."
)


class NodeIndex(Protocol):
    """The nodes of a graph by id, number and row, without their edges and features.

    A node keeps its number for ever, and no number is used twice. Its row is its place in arrays of all nodes.

    Attributes:
        ids: (n,) the user's ids of all nodes, in the order of the user.
    """

    ids: np.ndarray

    @property
    def node_count(self) -> int: ...

    @property
    def folder_nodes(self) -> int:
        """Number of nodes of the graph folder; they have the numbers below this one. 0 in memory."""
        return 0

    def rows_of_ids(self, ids: Any) -> np.ndarray:
        """Return (m,) rows of ids; -1 where there is no such node."""

    def rows_of(self, numbers: np.ndarray) -> np.ndarray:
        """Return (m,) rows of numbers, all of which exist."""

    def numbers_at(self, rows: Any) -> np.ndarray:
        """Return (m,) numbers of rows."""

    def ids_at(self, rows: Any) -> np.ndarray:
        """Return (m,) ids of rows."""

    def contains(self, numbers: np.ndarray) -> np.ndarray:
        """Return (m,) whether there is a node with each number."""

    def row_parts(self, row_bytes: int) -> Iterator[np.ndarray]:
        """Yield the rows of all nodes in the order of the user, in parts that fit into memory with ``row_bytes`` per
        row.
        """

    def known_rows(self, ids: Any, sentence: str = UNKNOWN_NODE) -> np.ndarray:
        """Return (m,) rows of ids, or raise an error with the text ``sentence`` if one does not exist.

        If the ids come from a table, they have a method ``place``, and the message begins with the place of the id.
        """
        rows = self.rows_of_ids(ids)
        missing = np.flatnonzero(rows < 0).tolist()
        if missing:
            more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
            where = f"{ids.place(missing[0])}: " if hasattr(ids, "place") else ""
            raise InputError(where + sentence.format(f"{quoted(listed(ids)[missing[0]])}{more}"))
        return rows

    def rows_of_ends(self, source: Any, target: Any) -> np.ndarray:
        """Return (2, e) rows of the ends of edges, or raise an error if one does not exist."""
        return np.stack([self.known_rows(ids, UNKNOWN_END) for ids in (source, target)])

    def numbers_of(self, ids: Any) -> np.ndarray:
        """Return (m,) numbers of ids, or raise an error if one does not exist."""
        return self.numbers_at(self.known_rows(ids))

    def ids_of(self, numbers: np.ndarray) -> np.ndarray:
        """Return (m,) ids of numbers, or raise an error if one does not exist."""
        missing = numbers[~self.contains(numbers)]
        if missing.size:
            raise InputError(f"node number {missing[0]} is not in the graph: ask only for nodes that exist.")
        return self.ids_at(self.rows_of(numbers))


class ModelGraph(NodeIndex, Protocol):
    """An immutable graph of a model: every change makes a new one. Default methods are for a graph in memory.

    Attributes:
        passes: Whether scores of all nodes take passes over files. Then a change computes none; the next query computes
            them and stores them in a work folder.
        restate_due: Whether the learner's class memory belongs to the graph before a change. Then a copy of the learner
            is restated before scores are computed.
        next_number: The first number that no node ever had.
        text_weights: Weights of words, if features are word counts.
    """

    passes: ClassVar[bool] = False
    restate_due: bool = False
    next_number: int
    text_weights: "TextWeights | None" = None

    @classmethod
    def refuse_method(cls, method: str) -> None:
        """Refuse a method that cannot compute on this kind of graph."""
        return

    @classmethod
    def fitting(cls, graph: "AnyGraph", keep: Callable[[], bool]) -> AbstractContextManager[None]:
        """Surround a fit to ``graph``: no other process computes there, and a refused fit leaves nothing behind.

        ``keep`` returns whether the fit left checkpoints to resume from.
        """
        return nullcontext()

    @classmethod
    def of(cls, graph: "AnyGraph") -> Self:
        """Make a model's graph of all nodes and edges of a graph to fit on, with TF-IDF weights of its words."""

    # Content

    @property
    def edge_count(self) -> int: ...

    @property
    def visible(self) -> "VisibleNodes":
        """What a learner sees: everything. Always the same object, by which caches identify it."""
        if "_visible" not in self.__dict__:
            self.__dict__.setdefault("_visible", self.make_visible())
        return self.__dict__["_visible"]

    def make_visible(self) -> "VisibleNodes":
        """Make the object for :attr:`visible`."""

    @property
    def columns(self) -> "FeatureColumns":
        """Feature columns of the graph."""

    @property
    def is_whole_numbers(self) -> bool:
        """Whether ids are whole numbers."""

    def all_words(self) -> dict[str, int]:
        """Count the words of all nodes; see :meth:`FeatureColumns.words_of`."""

    # Changes

    def with_nodes(self, ids: np.ndarray, features: "Features") -> tuple[Self, np.ndarray]:
        """Add nodes without edges; returns the graph and their numbers.

        ``ids``: (m,) new ids from :func:`clean_new_ids`. ``features``: (m, d) features from :attr:`columns`.
        """

    def features_at(self, rows: np.ndarray) -> "Features":
        """Return (m, d) raw features of rows."""

    def with_features(self, rows: np.ndarray, features: "Features") -> Self:
        """Replace the raw features of some distinct rows."""

    def weights_between(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return (e,) float32 weights of the edges between pairs of rows; 0 where there is no edge."""

    def with_weights(self, first: np.ndarray, second: np.ndarray, weights: np.ndarray, before: np.ndarray) -> Self:
        """Set the weights of distinct pairs of rows with first < second; 0 removes an edge. ``before``: (e,) current
        weights.
        """

    def without_nodes(self, ids: Any) -> tuple[Self, np.ndarray, np.ndarray]:
        """Remove nodes with their edges; returns the graph, the numbers of the nodes, and the numbers of their
        neighbours.
        """

    def standardised(self, nodes: np.ndarray) -> Self:
        """Standardise dense columns by some nodes; a graph of words does not change."""

    def with_refitted_features(self) -> Self:
        """Compute word weights from the current graph again, and remove the standardisation of dense columns."""

    def shares_numbers(self, other: "ModelGraph") -> bool:
        """Return whether a node has the same number in another graph of the same model."""
        return True

    def replaced_by(self, graph: "AnyGraph") -> tuple[Self, np.ndarray]:
        """Replace this graph by one that the user provides, which must have the same ids.

        Returns the new graph, and the (n,) numbers that the rows of ``graph`` have in it.
        """

    # Compute

    def device(self, wanted: str) -> str:
        """Return the device to compute on."""
        return wanted

    def in_use(self) -> "AbstractContextManager[SharedLock | None]":
        """Prevent other processes from deleting files of this graph while scores are computed on it."""
        return nullcontext()

    def at_work(self) -> AbstractContextManager[Self]:
        """Give the same graph, with workers that are started once for all computations inside."""
        return nullcontext(self)

    def cleared(self, lock: "SharedLock | None", remember: Callable[[str, Any], Any]) -> AbstractContextManager[None]:
        """Delete the files that a computation leaves behind, when it is done. ``lock``: from :meth:`in_use`.

        ``remember`` stores a value by name for a computation that may be interrupted and resumed, and returns the value
        that was stored first.
        """
        return nullcontext()

    def attempt(self, learner: "Learner", compute: "Callable[[Learner], Result]") -> Result:
        """Return what ``compute`` makes of a learner. After a damaged file it is called again."""
        return compute(learner)

    def carry(self, learner: "Learner", before: Self, touched: list[np.ndarray]) -> Mapping[str, Any]:
        """Move a learner from the graph before a change to this one; returns fields of the history entry.

        ``touched``: numbers of nodes that are new or whose features or edges changed.
        """
        return {}

    def restated(self) -> Self:
        """Return the graph after its learner was restated on it."""
        return self

    def all_scores(self, learner: "Learner", progress: "Progress") -> Any:
        """Return (rows, columns) scores of all nodes, as an array or a table on disk."""

    def make_answers(
        self, scores: Any, readings: np.ndarray, calibration: "Calibration", accuracy: dict[str, Any] | None
    ) -> ModelAnswers:
        """Make the answers about all nodes. On disk, their readings are written beside the scores."""
        return ModelAnswers(scores, readings, calibration, accuracy)

    # Store

    def use(self) -> FolderUse:
        """Return where the graph folder is and which resources may be used; empty for a graph in memory."""
        return FolderUse()

    def write_place(self, model: Path) -> None:
        """Store where the graph folder is in the model's folder; nothing to do for a graph in memory."""
        return

    def keep_answers(
        self,
        answers: ModelAnswers,
        learner: "Learner",
        keys: "CacheKeys",
        cache: "Callable[[CacheContents], None] | None",
    ) -> None:
        """Store the answers of a version for later readers. ``cache`` writes the cache of a model in memory."""


class StoredGraph(Protocol):
    """The graph of a version, read when it is needed. :class:`Damaged` is raised before anything invalid is used."""

    passes: ClassVar[bool] = False

    def read(self) -> ModelGraph:
        """Return the graph, checked."""

    def index(self) -> NodeIndex:
        """Return the index of the nodes, without reading the rest of the graph where that is possible."""

    def counts(self) -> tuple[int, int]:
        """Return the numbers of nodes and edges; almost nothing is read."""

    def contains(self, numbers: np.ndarray) -> np.ndarray:
        """Return (m,) whether there is a node with each number."""

    def origin(self) -> dict[str, Any]:
        """Return what a model card says about the place of the graph."""
        return {}

    def device(self, wanted: str) -> str:
        """Return the device to compute on."""
        return wanted

    def find_answers(self, keys: "CacheKeys", columns: int) -> ModelAnswers | None:
        """Return answers that were stored for a version outside of the cache. ``columns``: number of columns of the
        scores.
        """
        return None


@dataclass(frozen=True, eq=False)
class NodeNames(NodeIndex):
    """Nodes in memory: (n,) ``numbers``, ascending, and (n,) ``ids`` of the user. A row is a place in both."""

    numbers: np.ndarray
    ids: np.ndarray

    @property
    def node_count(self) -> int:
        return int(self.numbers.size)

    def rows_of_ids(self, ids: Any) -> np.ndarray:
        return self._index.rows(ids)

    def rows_of(self, numbers: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.numbers, numbers)

    def numbers_at(self, rows: Any) -> np.ndarray:
        return self.numbers[rows]

    def ids_at(self, rows: Any) -> np.ndarray:
        return self.ids[rows]

    def contains(self, numbers: np.ndarray) -> np.ndarray:
        return np.isin(numbers, self.numbers)

    def row_parts(self, row_bytes: int) -> Iterator[np.ndarray]:
        for start in range(0, max(1, self.node_count), AT_A_TIME):
            yield np.arange(start, min(start + AT_A_TIME, self.node_count))

    @cached_property
    def _index(self) -> IdIndex:
        return IdIndex(self.ids)
