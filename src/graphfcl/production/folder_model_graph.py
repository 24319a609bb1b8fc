"""The graph of a model that stays on the disk: a graph folder, and what was added to it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from graphfcl.files import SharedLock, shared_lock
from graphfcl.graph import Features, Standardisation, TextWeights
from graphfcl.graph.build import adjacency_from_edges
from graphfcl.graph.folder import GraphFolder
from graphfcl.graph.folder.grown import AnyFolder, GrownFolder
from graphfcl.graph.folder.growth import Growth
from graphfcl.graph.folder_graph import FolderGraph
from graphfcl.graph.visible_folder import Means, VisibleFolder
from graphfcl.methods.blocks.work_folder import IN_USE, alone_in
from graphfcl.production.feature_columns import FeatureColumns, fresh_ids
from graphfcl.production.node_names import not_there

SHORT = 16  # digits of a digest in the name of a folder
ROWS_AT_A_TIME = 1 << 16


@dataclass(frozen=True, eq=False)
class FolderModelGraph:
    """Immutable, like :class:`GrowingGraph`; a node's number is its row, and nodes never leave.

    base: the graph folder, of which nothing is copied. growth: what was added. text_weights, standardisation: what
    turns raw features into those that a learner sees. means: what may be used to compute; each state of the graph has
    its own folder in ``means.work``.
    restate_due: the learner's sums are of nodes as they were before the graph grew; whoever computes scores restates a
    copy of it first.
    """

    base: GraphFolder
    growth: Growth
    means: Means
    text_weights: TextWeights | None = None
    standardisation: Standardisation | None = None
    restate_due: bool = False

    @classmethod
    def of(cls, graph: FolderGraph) -> "FolderModelGraph":
        """All nodes and edges of a graph folder; its words are weighed by how often they occur in it."""
        everybody = np.ones(graph.node_count, dtype=bool)
        weights = None if graph.text is None else graph.text_weights(everybody, graph.text)
        return cls(graph.folder, Growth.none(graph.folder), graph.means, weights)

    def standardised(self, nodes: np.ndarray) -> "FolderModelGraph":
        """With dense columns standardised by some nodes; a graph of words stays as it is."""
        if self.base.sparse_features:
            return self
        chosen = np.zeros(self.base.node_count, dtype=bool)
        chosen[nodes] = True
        return replace(self, standardisation=FolderGraph(self.base, self.means).standardisation(chosen))

    @cached_property
    def folder(self) -> AnyFolder:
        """The graph folder, or with it what was added."""
        if self.growth.is_empty:
            return self.base
        grown = GrownFolder(Path(), self.base, self.growth)
        grown.path = self.means.work.absolute() / f"grown-{grown.digest[:SHORT]}"
        return grown

    @property
    def node_count(self) -> int:
        return self.folder.node_count

    @property
    def edge_count(self) -> int:
        return self.folder.edge_count

    @property
    def next_number(self) -> int:
        return self.node_count

    @property
    def work(self) -> Path:
        """The folder of this state of the graph, in which everything may be deleted."""
        return self.means.work.absolute() / f"graph-{self.folder.digest[:SHORT]}"

    @contextmanager
    def in_use(self) -> Iterator[SharedLock]:
        """Held by whoever computes on this state of the graph: nobody else does, and nobody deletes its files.

        What killed processes were writing goes first.
        """
        with alone_in(self.means.work), shared_lock(self.work / IN_USE) as lock:
            with lock.alone() as free:
                for left in self.work.rglob(".*.tmp") if free else ():
                    left.unlink(missing_ok=True)
            yield lock

    @property
    def visible(self) -> VisibleFolder:
        """What a learner sees: everything. One object for all threads, by which caches know it."""
        known: VisibleFolder | None = self.__dict__.get("_visible")
        if known is not None:
            return known
        if isinstance(self.folder, GrownFolder):
            self.folder.write()
        view = self.text_weights or self.standardisation
        fresh = VisibleFolder.of(self.folder, None, view, replace(self.means, work=self.work))
        return self.__dict__.setdefault("_visible", fresh)

    @property
    def columns(self) -> FeatureColumns:
        """Its feature columns."""
        folder = self.base
        return FeatureColumns(folder.feature_count, not folder.sparse_features, folder.feature_names, self.text_weights)

    @property
    def is_whole_numbers(self) -> bool:
        """Whether its ids are whole numbers."""
        return self.growth.ids.dtype != object

    def all_words(self) -> dict[str, int]:
        """How many words its nodes have, and how many no learner sees; in blocks."""
        if self.text_weights is None:
            return {}
        total = {"words": 0, "unknown_words": 0}
        for start in range(0, self.node_count, ROWS_AT_A_TIME):
            part = self.folder.features(start, min(start + ROWS_AT_A_TIME, self.node_count))
            for name, count in self.columns.words_of(part).items():
                total[name] += count
        return total

    # Nodes by id

    def rows_of_ids(self, ids: Any) -> np.ndarray:
        """(m,) rows of the user's ids; -1 where there is no such node."""
        return self.folder.rows_of(ids)

    def numbers_of(self, ids: Any) -> np.ndarray:
        """(m,) node numbers of the user's ids; an id that is not there is an error."""
        return self._known_rows(ids, "node {} is not in the graph: check the ids.")

    def numbers_at(self, rows: Any) -> np.ndarray:
        """(m,) the numbers of some rows."""
        return np.asarray(rows, dtype=np.int64)

    def ids_at(self, rows: Any) -> np.ndarray:
        """(m,) the user's ids of some rows."""
        return self.folder.ids(rows)

    def ids_of(self, numbers: np.ndarray) -> np.ndarray:
        """(m,) the user's ids of node numbers."""
        return self.folder.ids(self.visible.rows(numbers))

    def with_own_ids(self, ids: Any) -> np.ndarray:
        """(m,) the same ids as this graph has them stored; one that is not there is an error."""
        return self.folder.ids(self.numbers_of(ids))

    def rows_in_order(self, start: int, stop: int) -> np.ndarray:
        """(stop − start,) the rows of some places in the order of the user: that of the source, then added nodes."""
        places, count = np.arange(start, stop), self.base.node_count
        inside = places < count
        places[inside] = self.base.shuffle.rows(places[inside])
        return places

    @property
    def ids(self) -> np.ndarray:
        """(n,) the user's ids of all nodes in memory, in the order of :meth:`rows_in_order`."""
        return self.folder.ids(self.rows_in_order(0, self.node_count))

    @property
    def names(self) -> "FolderModelGraph":
        """How its nodes are found."""
        return self

    def _known_rows(self, ids: Any, sentence: str) -> np.ndarray:
        rows = self.rows_of_ids(ids)
        if (rows < 0).any():
            raise not_there(ids, rows, sentence)
        return rows

    # Changes: each returns the new graph and the numbers of the nodes that are new or whose edges changed

    def with_nodes(self, ids: Any, features: Features) -> tuple["FolderModelGraph", np.ndarray]:
        """More nodes, without edges yet. features: (m, d) as its ``columns`` make them."""
        fresh = fresh_ids(
            ids,
            numbers=self.is_whole_numbers,
            rows_of_ids=self.rows_of_ids,
            id_of_row=lambda row: self.ids_at([row])[0],
        )
        self.columns.refuse_other_shape(features, fresh.size)
        grown = replace(self, growth=self.growth.with_nodes(fresh, features), restate_due=True)
        return grown, np.arange(self.node_count, self.node_count + fresh.size)

    def with_edges(
        self, source: Any, target: Any, weights: np.ndarray | None = None
    ) -> tuple["FolderModelGraph", np.ndarray]:
        """More edges, given by the ids of their ends; of two weights of a pair the larger stays."""
        sentence = (
            "an edge leads to node {}, which is not in the graph: add the node first, or drop the edge; nothing was "
            "changed."
        )
        ends = np.stack([self._known_rows(each, sentence) for each in (source, target)])
        # The checks of edges are those of a graph that has the ends of these edges alone.
        rows, places = np.unique(ends, return_inverse=True)
        places = places.reshape(ends.shape)
        small, _ = adjacency_from_edges(places[0], places[1], weights, rows.size, "the new edges")
        half = sparse.coo_array(sparse.triu(small, k=1))
        first, second = rows[half.row].astype(np.int64), rows[half.col].astype(np.int64)
        found = half.data.astype(np.float32)
        before = _weights_in(self.base, first, second)
        there = _weights_in(self.folder, first, second)
        more = found > there
        growth = self.growth.with_edges(first[more], second[more], found[more], before[more])
        return replace(self, growth=growth, restate_due=True), np.union1d(first[more], second[more])


def _weights_in(folder: AnyFolder, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(e,) what some pairs weigh in a folder; 0 where it has no such edge."""
    found = np.zeros(first.size, dtype=np.float32)
    inside = np.flatnonzero((first < folder.node_count) & (second < folder.node_count))
    if inside.size:
        rows, places = np.unique(first[inside], return_inverse=True)
        near = VisibleFolder.of(folder, None, None, Means(Path(), 0)).neighbours_at(rows)
        found[inside] = np.asarray(near[places, second[inside]]).ravel()
    return found
