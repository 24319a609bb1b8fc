"""What the rest of ``production`` knows of the graph of a model, and the index of nodes in memory."""

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
AT_A_TIME = 1 << 14  # nodes that are answered about at a time, where all are
UNKNOWN_NODE = "node {} is not in the graph: check the ids."
UNKNOWN_END = (
    "an edge leads to node {}, which is not in the graph: add the node first, or drop the edge (grow does so with "
    "unknown_ends=skip); nothing was changed."
)


class NodeIndex(Protocol):
    """The nodes of a graph by id, number and row, without their edges and features.

    A node keeps its number for ever, and no number is used twice. Its row is its place in arrays of all nodes.

    ids: (n,) the user's ids of all nodes, in the order of the user.
    """

    ids: np.ndarray

    @property
    def node_count(self) -> int: ...

    @property
    def folder_nodes(self) -> int:
        """Numbers below it are of nodes of a graph folder, which no model ever changes."""
        return 0

    def rows_of_ids(self, ids: Any) -> np.ndarray:
        """(m,) rows of ids, each taken by itself; -1 where there is no such node."""

    def rows_of(self, numbers: np.ndarray) -> np.ndarray:
        """(m,) rows of numbers that are there."""

    def numbers_at(self, rows: Any) -> np.ndarray:
        """(m,) numbers of rows."""

    def ids_at(self, rows: Any) -> np.ndarray:
        """(m,) ids of rows."""

    def contains(self, numbers: np.ndarray) -> np.ndarray:
        """(m,) bool, whether there is a node of each number."""

    def row_parts(self, row_bytes: int) -> Iterator[np.ndarray]:
        """The rows of all nodes in the order of the user, in parts whose answers of ``row_bytes`` fit into memory."""

    def known_rows(self, ids: Any, sentence: str = UNKNOWN_NODE) -> np.ndarray:
        """(m,) rows of ids; one that is not there is an error, which says ``sentence``.

        Ids of a table have a ``place``, which the message begins with.
        """
        rows = self.rows_of_ids(ids)
        missing = np.flatnonzero(rows < 0).tolist()
        if missing:
            more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
            where = f"{ids.place(missing[0])}: " if hasattr(ids, "place") else ""
            raise InputError(where + sentence.format(f"{quoted(listed(ids)[missing[0]])}{more}"))
        return rows

    def rows_of_ends(self, source: Any, target: Any) -> np.ndarray:
        """(2, e) rows of the ends of edges; one that is not there is an error."""
        return np.stack([self.known_rows(ids, UNKNOWN_END) for ids in (source, target)])

    def numbers_of(self, ids: Any) -> np.ndarray:
        """(m,) numbers of ids; one that is not there is an error."""
        return self.numbers_at(self.known_rows(ids))

    def ids_of(self, numbers: np.ndarray) -> np.ndarray:
        """(m,) ids of numbers; one that is not there is an error."""
        strange = numbers[~self.contains(numbers)]
        if strange.size:
            raise InputError(f"node number {strange[0]} is not in the graph: ask only for nodes that exist.")
        return self.ids_at(self.rows_of(numbers))


class ModelGraph(NodeIndex, Protocol):
    """An immutable graph: every change makes a new one. Defaults are those of a graph in memory.

    passes: whether scores of all nodes take passes over files. Then a change of the model computes none: they are
    computed by the next query, and stored in a work folder.
    restate_due: whether the learner's class memory is of the graph before a change. A copy of the learner
    is restated before scores are computed.
    next_number: the first number that no node ever had.
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
        """Around a fit to ``graph``: no other process computes there, and a refused fit leaves nothing behind.

        keep: whether the fit left something to go on with.
        """
        return nullcontext()

    @classmethod
    def of(cls, graph: "AnyGraph") -> Self:
        """All nodes and edges of a graph to fit on, with TF-IDF weights of its words."""

    # What it has

    @property
    def edge_count(self) -> int: ...

    @property
    def visible(self) -> "VisibleNodes":
        """What a learner sees: all of it. Always the same object, by which caches identify it."""
        if "_visible" not in self.__dict__:
            self.__dict__.setdefault("_visible", self.make_visible())
        return self.__dict__["_visible"]

    def make_visible(self) -> "VisibleNodes":
        """What :attr:`visible` is when it is first used."""

    @property
    def columns(self) -> "FeatureColumns":
        """Its feature columns."""

    @property
    def is_whole_numbers(self) -> bool:
        """Whether its ids are whole numbers."""

    def all_words(self) -> dict[str, int]:
        """How many words its nodes have; see :meth:`FeatureColumns.words_of`."""

    # Changes

    def with_nodes(self, ids: np.ndarray, features: "Features") -> tuple[Self, np.ndarray]:
        """More nodes, without edges yet, and their numbers.

        ids: (m,) as :func:`clean_new_ids` makes them, none of which is there. features: (m, d) as its ``columns`` make
        them.
        """

    def features_at(self, rows: np.ndarray) -> "Features":
        """(m, d) raw features of rows."""

    def with_features(self, rows: np.ndarray, features: "Features") -> Self:
        """Other raw features of some rows, each once."""

    def weights_between(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """(e,) float32 weights of the edges between pairs of rows; 0 where there is no edge."""

    def with_weights(self, first: np.ndarray, second: np.ndarray, weights: np.ndarray, before: np.ndarray) -> Self:
        """Other weights of some pairs of rows, each once and first < second; 0 removes an edge.

        before: (e,) their weights now.
        """

    def without_nodes(self, ids: Any) -> tuple[Self, np.ndarray, np.ndarray]:
        """Fewer nodes, their edges with them: the graph, their numbers, and those of their neighbours."""

    def standardised(self, nodes: np.ndarray) -> Self:
        """With dense columns standardised by some nodes; a graph of words stays as it is."""

    def fitted_again(self) -> Self:
        """With words weighted by how often they occur in the graph as it is; dense columns are not standardised."""

    def shares_numbers(self, other: "ModelGraph") -> bool:
        """Whether a node has the same number in another graph of the same model."""
        return True

    def brought(self, graph: "AnyGraph") -> tuple[Self, np.ndarray]:
        """A graph to fit on, as the model's graph in place of this one; it must have the same ids.

        Besides, the (n,) numbers that the rows of ``graph`` have in it.
        """

    # Computing

    def device(self, wanted: str) -> str:
        """The device to compute on."""
        return wanted

    def in_use(self) -> "AbstractContextManager[SharedLock | None]":
        """Held while scores are computed on this graph: no other process deletes its files meanwhile."""
        return nullcontext()

    def at_work(self) -> AbstractContextManager[Self]:
        """The same graph, with workers that are started once for all that is computed inside."""
        return nullcontext(self)

    def cleared(self, lock: "SharedLock | None", remember: Callable[[str, Any], Any]) -> AbstractContextManager[None]:
        """Around a computation whose files are not needed afterwards. lock: of :meth:`in_use`.

        remember: keeps a value by name for a computation that is stopped and goes on, and returns the value kept first.
        """
        return nullcontext()

    def attempt(self, learner: "Learner", compute: "Callable[[Learner], Result]") -> Result:
        """What ``compute`` makes of a learner. It is called again, with an equal learner, if it met a damaged file."""
        return compute(learner)

    def carry(self, learner: "Learner", before: Self, touched: list[np.ndarray]) -> Mapping[str, Any]:
        """Let a learner know this graph in place of the one before; what the history says of it.

        touched: numbers of nodes that are new or whose edges changed.
        """
        return {}

    def restated(self) -> Self:
        """The same, once the learner was restated on it."""
        return self

    def all_scores(self, learner: "Learner", progress: "Progress") -> Any:
        """(rows, columns) scores of all nodes: an array, or a table on disk."""

    def make_answers(
        self, scores: Any, readings: np.ndarray, calibration: "Calibration", accuracy: dict[str, Any] | None
    ) -> ModelAnswers:
        """Answers of all nodes; on disk their readings are written beside the scores."""
        return ModelAnswers(scores, readings, calibration, accuracy)

    # Keeping

    def use(self) -> FolderUse:
        """Where it lies, and what may be used to compute on it; nothing in memory."""
        return FolderUse()

    def write_place(self, model: Path) -> None:
        """Let the model folder remember where the graph is, if it is not in the versions."""
        return

    def keep_answers(
        self,
        answers: ModelAnswers,
        learner: "Learner",
        keys: "CacheKeys",
        cache: "Callable[[CacheContents], None] | None",
    ) -> None:
        """Leave the answers of a version to those who load it. cache: writes the cache of a model in memory."""


class StoredGraph(Protocol):
    """The graph of a version; it is read when it is needed. ``Damaged`` is raised before anything wrong is used."""

    passes: ClassVar[bool] = False

    def read(self) -> ModelGraph:
        """The graph, checked."""

    def index(self) -> NodeIndex:
        """How its nodes are found, without the rest of the graph where that is possible."""

    def counts(self) -> tuple[int, int]:
        """How many nodes and edges there are; next to nothing is read."""

    def contains(self, numbers: np.ndarray) -> np.ndarray:
        """(m,) bool, whether there is a node of each number."""

    def origin(self) -> dict[str, Any]:
        """What a model card says of where it lies."""
        return {}

    def device(self, wanted: str) -> str:
        """The device to compute on."""
        return wanted

    def find_answers(self, keys: "CacheKeys", columns: int) -> ModelAnswers | None:
        """Answers that were computed and kept for a version, beside the cache. columns: of scores."""
        return None


@dataclass(frozen=True, eq=False)
class NodeNames(NodeIndex):
    """Nodes in memory. numbers: (n,) ascending. ids: (n,) the user's. A row is a place in both."""

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
