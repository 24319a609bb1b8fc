"""The graph of a model that stays on disk: a graph folder, and the differences of the model's graph from it."""

# ruff: noqa: ARG002  # one kind of graph needs arguments that the other does not

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from graphfcl.errors import InputError
from graphfcl.graph import Features, Standardisation, TextWeights
from graphfcl.graph.folder import GraphFolder
from graphfcl.graph.folder.grown import GrownFolder, Growth, grown_sha256
from graphfcl.graph.folder.visible import VisibleFolder
from graphfcl.graph.interfaces import AnyGraph
from graphfcl.methods import METHODS, Learner, Progress, find_method
from graphfcl.methods.blocks.damaged_files import computed_with
from graphfcl.methods.blocks.tile_files import BLOCK
from graphfcl.methods.blocks.work_folder import IN_USE, alone_in
from graphfcl.production.answers.answers import ModelAnswers
from graphfcl.production.answers.calibration import Calibration
from graphfcl.production.answers.version_cache import CacheContents, CacheKeys
from graphfcl.production.graph.contract import ModelGraph
from graphfcl.production.graph.feature_columns import FeatureColumns
from graphfcl.production.graph.growing_graph import NO_SUCH_NODE, refuse_other_nodes
from graphfcl.production.graph.place import FolderUse, write_place
from graphfcl.production.graph.work_files import CleanUpOnRefusal, keep_answers, write_answers
from graphfcl.runtime.devices import device_on_disk
from graphfcl.runtime.files import SharedLock, shared_lock
from graphfcl.runtime.resources import Resources

SHORT = 16  # digits of a digest in the name of a folder
SHARE = 4  # answers of one part of the rows take at most 1/4 of the memory

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class FolderModelGraph(ModelGraph):
    """A :class:`ModelGraph` on disk. A node's number is its row.

    Attributes:
        base: Graph folder, of which nothing is copied.
        growth: Differences of the model's graph from the graph folder.
        resources: Resources for computing. Each state of the graph has its own folder in ``resources.work``.
        text_weights: Turns word counts into features.
        standardisation: Turns dense columns into features.
        restate_due: See :class:`ModelGraph`.
    """

    base: GraphFolder
    growth: Growth
    resources: Resources
    text_weights: TextWeights | None = None
    standardisation: Standardisation | None = None
    restate_due: bool = False

    passes: ClassVar[bool] = True

    @classmethod
    def refuse_method(cls, method: str) -> None:
        if not find_method(method).learner.works_on_disk:
            able = " or ".join(each.name for each in METHODS if each.learner.works_on_disk)
            raise InputError(f"{method} needs the whole graph in memory: take {able}, or load the graph.")

    @classmethod
    @contextmanager
    def fitting(cls, graph: AnyGraph, keep: Callable[[], bool]) -> Iterator[None]:
        assert isinstance(graph, GraphFolder)
        with alone_in(graph.resources.work), CleanUpOnRefusal(graph.resources.work, keep=keep):
            yield

    @classmethod
    def of(cls, graph: AnyGraph) -> Self:
        assert isinstance(graph, GraphFolder)
        return cls(graph, Growth.none(graph), graph.resources).with_refitted_features()

    def standardised(self, nodes: np.ndarray) -> Self:
        if self.base.sparse_features:
            return self
        chosen = np.zeros(self.folder.node_count, dtype=bool)
        chosen[nodes] = True
        return replace(self, standardisation=Standardisation.fit_blocks(lambda: self.folder.feature_blocks(chosen)))

    def with_refitted_features(self) -> Self:
        text, shown = self.base.text, self._shown
        chosen = np.ones(self.folder.node_count, dtype=bool) if shown is None else shown
        weights = None
        if text is not None:
            blocks = partial(self.folder.feature_blocks, chosen)
            weights = TextWeights.fit_blocks(blocks, text.min_nodes, text.beside)
        return replace(self, text_weights=weights, standardisation=None, restate_due=False)

    def shares_numbers(self, other: ModelGraph) -> bool:
        """Numbers are rows of the graph folder."""
        return isinstance(other, FolderModelGraph) and other.base is self.base

    def replaced_by(self, graph: AnyGraph) -> tuple[Self, np.ndarray]:
        assert isinstance(graph, GraphFolder)
        for rows in self.row_parts(row_bytes=64):
            ids = self.ids_at(rows)
            refuse_other_nodes(ids, graph.nodes_of(ids), graph, self.node_count)
        return self.of(graph.with_resources(self.resources)), np.arange(graph.node_count)

    # Content

    @cached_property
    def folder(self) -> GraphFolder:
        """The graph folder, together with the differences from it if there are any."""
        if self.growth.is_empty:
            return self.base
        name = f"grown-{grown_sha256(self.base, self.growth)[:SHORT]}"
        return GrownFolder(self.resources.work.absolute() / name, self.base, self.growth)

    @cached_property
    def _shown(self) -> np.ndarray | None:
        """(rows,) whether a row has a node; None if all rows have one."""
        return self.growth.shown(self.base.node_count)

    @property
    def node_count(self) -> int:
        return self.base.node_count - int(self.growth.gone.size) + self.growth.added(self.base.node_count)

    @property
    def edge_count(self) -> int:
        return self.folder.edge_count

    @property
    def next_number(self) -> int:  # type: ignore[override]
        return self.growth.row_count

    def make_visible(self) -> VisibleFolder:
        if isinstance(self.folder, GrownFolder):
            self.folder.write()
        view = self.text_weights or self.standardisation
        resources, classes = replace(self.resources, work=self.work), len(self.base.class_names)
        return VisibleFolder.of(self.folder.rows, self._shown, view, resources, class_count=classes)

    @property
    def columns(self) -> FeatureColumns:
        folder = self.base
        return FeatureColumns(folder.feature_count, not folder.sparse_features, folder.feature_names, self.text_weights)

    @property
    def is_whole_numbers(self) -> bool:
        return self.growth.ids.dtype != object

    def all_words(self) -> dict[str, int]:
        if self.text_weights is None:
            return {}
        blocks = self.folder.feature_blocks(np.ones(self.folder.node_count, dtype=bool))
        counts = [self.columns.words_of(block) for block in blocks]
        return {name: sum(each[name] for each in counts) for name in ("words", "unknown_words")}

    # Nodes by id

    @property
    def folder_nodes(self) -> int:
        return self.base.node_count

    def rows_of_ids(self, ids: Any) -> np.ndarray:
        return self.folder.nodes_of(ids)

    def rows_of(self, numbers: np.ndarray) -> np.ndarray:
        return numbers

    def numbers_at(self, rows: Any) -> np.ndarray:
        return np.asarray(rows, dtype=np.int64)

    def ids_at(self, rows: Any) -> np.ndarray:
        return self.folder.ids(rows)

    def contains(self, numbers: np.ndarray) -> np.ndarray:
        inside = (numbers >= 0) & (numbers < self.growth.row_count)
        if self._shown is not None:
            inside[inside] = self._shown[numbers[inside]]
        return inside

    def row_parts(self, row_bytes: int) -> Iterator[np.ndarray]:
        """Yield rows in the order of the source, then added ones.

        Rows of the graph folder are shuffled, so each pass over its tables gathers as many as fit into a quarter of the
        memory.
        """
        count, size = self.base.node_count, BLOCK * max(1, self.resources.memory // SHARE // (BLOCK * row_bytes))
        for start in range(0, self.growth.row_count, size):
            rows = np.arange(start, min(start + size, self.growth.row_count))
            inside = rows < count
            rows[inside] = self.base.shuffle.rows(rows[inside])
            yield rows if self._shown is None else rows[self._shown[rows]]

    @property
    def ids(self) -> np.ndarray:  # type: ignore[override]
        return np.concatenate([self.ids_at(rows) for rows in self.row_parts(row_bytes=64)])

    # Changes

    def with_nodes(self, ids: np.ndarray, features: Features) -> tuple[Self, np.ndarray]:
        first = self.growth.row_count
        return self._changed(self.growth.with_nodes(ids, features)), np.arange(first, first + ids.size)

    def features_at(self, rows: np.ndarray) -> Features:
        return self.folder.rows.features_at(rows)

    def with_features(self, rows: np.ndarray, features: Features) -> Self:
        return self._changed(self.growth.with_features(rows, self.ids_at(rows), features))

    def weights_between(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        return _weights_in(self.folder, first, second)

    def with_weights(self, first: np.ndarray, second: np.ndarray, weights: np.ndarray, before: np.ndarray) -> Self:
        more = int(np.count_nonzero(weights)) - int(np.count_nonzero(before))
        return self._changed(
            self.growth.with_weights(first, second, weights, _weights_in(self.base, first, second), more)
        )

    def without_nodes(self, ids: Any) -> tuple[Self, np.ndarray, np.ndarray]:
        rows = np.unique(self.known_rows(ids, NO_SUCH_NODE))
        links = self.folder.rows.neighbours_at(rows)
        others = links.indices[~np.isin(links.indices, rows)]
        edges = others.size + (links.nnz - others.size) // 2
        growth = self.growth.without_nodes(rows, self.base.node_count, edges)
        return self._changed(growth), rows, np.unique(others).astype(np.int64)

    def _changed(self, growth: Growth) -> Self:
        return replace(self, growth=growth, restate_due=True)

    # Compute

    def device(self, wanted: str) -> str:
        return device_on_disk(wanted)

    @property
    def work(self) -> Path:
        """Folder of this state of the graph. Everything in it may be deleted."""
        return self.resources.work.absolute() / f"graph-{self.folder.sha256[:SHORT]}"

    @contextmanager
    def in_use(self) -> Iterator[SharedLock]:
        """Let one process compute at a time, and first delete files that killed processes left unfinished."""
        with alone_in(self.resources.work), shared_lock(self.work / IN_USE) as lock:
            with lock.alone() as free:
                for left in self.work.rglob(".*.tmp") if free else ():
                    left.unlink(missing_ok=True)
            yield lock

    @contextmanager
    def at_work(self) -> Iterator[Self]:
        if not self.resources.starts_workers:
            yield self
            return
        with self.resources.at_work() as resources:
            yield replace(self, resources=resources)

    @contextmanager
    def cleared(self, lock: SharedLock | None, remember: Callable[[str, Any], Any]) -> Iterator[None]:
        """Delete new files. The files from before are remembered, so a resumed computation also deletes what it left
        earlier.
        """
        before = set(remember("before the calibration run", sorted(path.name for path in self.work.iterdir())))
        yield
        with ExitStack() as stack:
            if lock is None or not stack.enter_context(lock.alone()):
                return  # another process computes there
            for path in [path for path in self.work.iterdir() if path.name not in before]:
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)

    def attempt(self, learner: Learner, compute: Callable[[Learner], Result]) -> Result:
        return computed_with(learner, compute)

    def restated(self) -> Self:
        return replace(self, restate_due=False)

    def all_scores(self, learner: Learner, progress: Progress) -> Any:
        learner.watch(self.visible, progress)
        return learner.all_scores(self.visible)

    def make_answers(
        self, scores: Any, readings: np.ndarray, calibration: Calibration, accuracy: dict[str, Any] | None
    ) -> ModelAnswers:
        return write_answers(self.work, scores, readings, calibration, accuracy)

    # Store

    def use(self) -> FolderUse:
        resources = self.resources
        return FolderUse(self.base.path.absolute(), resources.work.absolute(), resources.memory, resources.workers)

    def write_place(self, model: Path) -> None:
        write_place(model, self.base, self.resources)

    def keep_answers(
        self, answers: ModelAnswers, learner: Learner, keys: CacheKeys, cache: Callable[[CacheContents], None] | None
    ) -> None:
        with suppress(OSError, InputError):  # they can be computed again
            keep_answers(answers, self.resources.work, keys.readings)


def _weights_in(folder: GraphFolder, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return (e,) weights of some pairs in a folder; 0 where it has no such edge."""
    weights = np.zeros(first.size, dtype=np.float32)
    inside = np.flatnonzero((first < folder.node_count) & (second < folder.node_count))
    if inside.size:
        rows, places = np.unique(first[inside], return_inverse=True)
        weights[inside] = np.asarray(folder.rows.neighbours_at(rows)[places, second[inside]]).ravel()
    return weights
