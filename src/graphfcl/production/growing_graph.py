"""A graph that grows and shrinks while a learner lives on it."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from graphfcl.errors import InputError
from graphfcl.graph import Features, Graph, Standardisation, TextWeights, VisibleGraph
from graphfcl.graph.build import adjacency_from_edges
from graphfcl.printing import quoted
from graphfcl.production.feature_columns import FeatureColumns, fresh_ids
from graphfcl.production.node_names import NodeNames


@dataclass(frozen=True, eq=False)
class GrowingGraph:
    """Immutable: every change makes a new graph.

    numbers: (n,) int64, ascending. A node keeps its number for ever, and no number is given twice: learners and the
        ledger speak of nodes by them. ``next_number`` is the first that was never given.
    ids: (n,) the user's own, int64 or text. Those of an old folder stay as they are stored, cleaned or not.
    adjacency: (n, n) CSR, symmetric, no self loops. features: (n, d), word counts if ``text_weights`` is set.
    text_weights: what turns word counts into features, fitted by ``fit`` and ``refit``. standardisation: the same of
        dense columns.
    """

    numbers: np.ndarray
    next_number: int
    ids: np.ndarray
    adjacency: sparse.csr_array
    features: Features
    feature_names: np.ndarray | None = None
    text_weights: TextWeights | None = None
    standardisation: Standardisation | None = None

    @classmethod
    def of(cls, graph: Graph) -> "GrowingGraph":
        """All nodes and edges of a graph; its words are weighed by how often they occur in it."""
        count = graph.node_count
        text = graph.text
        weights = None if text is None else TextWeights.fit(graph.features, text.min_nodes, text.beside)
        return cls(
            numbers=np.arange(count, dtype=np.int64),
            next_number=count,
            ids=graph.node_ids,
            adjacency=graph.adjacency,
            features=graph.features,
            feature_names=graph.feature_names,
            text_weights=weights,
        )

    def standardised(self, nodes: np.ndarray) -> "GrowingGraph":
        """With dense columns standardised by some nodes; a graph of words stays as it is."""
        if not isinstance(self.features, np.ndarray):
            return self
        rows = self.features[self.visible.rows(nodes)]
        return replace(self, standardisation=Standardisation.fit(rows))

    def fitted_again(self) -> "GrowingGraph":
        """With words weighed by how often they occur in the graph as it is; dense columns are not standardised yet."""
        known = self.text_weights
        groups = () if known is None or known.beside is None else known.beside.groups
        weights = None if known is None else TextWeights.fit(self.features, known.min_nodes, groups)
        return replace(self, text_weights=weights, standardisation=None)

    @property
    def node_count(self) -> int:
        return int(self.numbers.size)

    @property
    def edge_count(self) -> int:
        return int(self.adjacency.nnz) // 2

    @property
    def visible(self) -> VisibleGraph:
        """What a learner sees: everything (the track ``open``). One object for all threads, by which caches know it."""
        known: VisibleGraph | None = self.__dict__.get("_visible")
        if known is not None:
            return known
        view = self.text_weights or self.standardisation
        features = self.features if view is None else view.apply(self.features)
        fresh = VisibleGraph(nodes=self.numbers, adjacency=self.adjacency, features=features)
        return self.__dict__.setdefault("_visible", fresh)

    def rows_of_ids(self, ids: Any) -> np.ndarray:
        """(m,) rows of the user's ids, each taken by itself; -1 where there is no such node."""
        return self.names.rows_of_ids(ids)

    def numbers_at(self, rows: Any) -> np.ndarray:
        """(m,) the numbers of some rows."""
        return self.numbers[rows]

    def ids_at(self, rows: Any) -> np.ndarray:
        """(m,) the user's ids of some rows."""
        return self.ids[rows]

    def with_own_ids(self, ids: Any) -> np.ndarray:
        """(m,) the same ids as this graph has them stored; one that is not there is an error."""
        return self.ids[self.visible.rows(self.numbers_of(ids))]

    def numbers_of(self, ids: Any) -> np.ndarray:
        """(m,) node numbers of the user's ids; an id that is not there is an error."""
        return self.names.numbers_of(ids)

    def id_of(self, number: int) -> Any:
        """The user's id of a node number."""
        return self.ids[self.visible.rows(np.array([number]))].tolist()[0]

    @property
    def columns(self) -> FeatureColumns:
        """Its feature columns."""
        dense = isinstance(self.features, np.ndarray)
        return FeatureColumns(self.features.shape[1], dense, self.feature_names, self.text_weights)

    @property
    def is_whole_numbers(self) -> bool:
        """Whether its ids are whole numbers."""
        return self.ids.dtype != object

    def all_words(self) -> dict[str, int]:
        """How many words its nodes have; see :meth:`FeatureColumns.words_of`."""
        return self.columns.words_of(self.features)

    @cached_property
    def names(self) -> NodeNames:
        """How its nodes are found."""
        return NodeNames(self.numbers, self.ids)

    # Changes: each returns the new graph and the numbers of the nodes that are new or whose edges changed

    def with_nodes(self, ids: Any, features: Features) -> tuple["GrowingGraph", np.ndarray]:
        """More nodes, without edges yet. features: (m, d) as its ``columns`` make them."""
        fresh = fresh_ids(
            ids,
            numbers=self.is_whole_numbers,
            rows_of_ids=self.rows_of_ids,
            id_of_row=lambda row: self.ids[row],
        )
        self.columns.refuse_other_shape(features, fresh.size)
        size = self.node_count + fresh.size
        adjacency = self.adjacency.copy()
        adjacency.resize((size, size))
        numbers = np.arange(self.next_number, self.next_number + fresh.size, dtype=np.int64)
        grown = replace(
            self,
            numbers=np.concatenate([self.numbers, numbers]),
            next_number=self.next_number + fresh.size,
            ids=np.concatenate([self.ids, fresh]),
            adjacency=adjacency,
            features=_stacked(self.features, features),
        )
        return grown, numbers

    def with_edges(
        self, source: Any, target: Any, weights: np.ndarray | None = None
    ) -> tuple["GrowingGraph", np.ndarray]:
        """More edges, given by the ids of their ends; of two weights of a pair the larger stays."""
        rows = self._ends(source, target)
        added, _ = adjacency_from_edges(rows[0], rows[1], weights, self.node_count, "the new edges")
        joined = self.adjacency.maximum(added).tocsr()
        joined.sort_indices()
        touched = np.unique((joined - self.adjacency).tocoo().row)
        return replace(self, adjacency=joined), self.numbers[touched]

    def without_edges(self, source: Any, target: Any) -> tuple["GrowingGraph", np.ndarray]:
        """Fewer edges; one that is not there is an error."""
        first, second = self._ends(source, target)
        there = np.asarray(self.adjacency[first, second]).ravel() > 0
        if not there.all():
            missing = int(np.flatnonzero(~there)[0])
            raise InputError(
                f"there is no edge between {quoted(self.ids[first[missing]])} and {quoted(self.ids[second[missing]])}: "
                "leave it out; nothing was changed."
            )
        gone, _ = adjacency_from_edges(first, second, None, self.node_count, "the edges to remove")
        kept = self.adjacency - self.adjacency.multiply(gone).tocsr()
        kept.eliminate_zeros()
        kept.sort_indices()
        return replace(self, adjacency=sparse.csr_array(kept)), self.numbers[np.union1d(first, second)]

    def without_nodes(self, ids: Any) -> tuple["GrowingGraph", np.ndarray, np.ndarray]:
        """Fewer nodes, their edges with them: the graph, their numbers, and those of their neighbours."""
        rows = self.names.known_rows(ids, "node {} is not in the graph: leave it out; nothing was changed.")
        stays = np.ones(self.node_count, dtype=bool)
        stays[rows] = False
        kept = np.flatnonzero(stays)
        neighbours = np.unique(self.adjacency[rows].indices)
        smaller = replace(
            self,
            numbers=self.numbers[kept],
            ids=self.ids[kept],
            adjacency=sparse.csr_array(self.adjacency[kept][:, kept]),
            features=self.features[kept],
        )
        return smaller, self.numbers[rows], self.numbers[neighbours[stays[neighbours]]]

    def reach(self, numbers: np.ndarray, hops: int) -> np.ndarray:
        """Rows of all nodes at most ``hops`` edges away from some nodes.

        If a node's degree changes, Â changes in its row and in the rows of its neighbours. After ``hops`` products with
        Â, exactly the rows within reach have changed.
        """
        marked = np.zeros(self.node_count, dtype=bool)
        frontier = self.visible.rows(numbers)
        marked[frontier] = True
        for _ in range(hops):
            around = np.unique(self.adjacency[frontier].indices)
            frontier = around[~marked[around]]
            if frontier.size == 0:
                break
            marked[frontier] = True
        return np.flatnonzero(marked)

    def _ends(self, source: Any, target: Any) -> tuple[np.ndarray, np.ndarray]:
        sentence = (
            "an edge leads to node {}, which is not in the graph: add the node first, or drop the edge; nothing was "
            "changed."
        )
        return self.names.known_rows(source, sentence), self.names.known_rows(target, sentence)


def _stacked(first: Features, second: Features) -> Features:
    if isinstance(first, np.ndarray):
        return np.concatenate([first, second])
    return sparse.csr_array(sparse.vstack([first, second], format="csr"))
