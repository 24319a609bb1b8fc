"""A graph that grows and shrinks while a learner lives on it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from graphfcl.errors import InputError
from graphfcl.graph import Features, Graph, Standardisation, TextWeights, VisibleGraph
from graphfcl.graph.build import adjacency_from_edges, clean_features
from graphfcl.graph.ids import listed, make_ids, text_array, whole_number
from graphfcl.graph.text import count_known_words, word_count
from graphfcl.printing import quoted
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
        weights = None if graph.text is None else TextWeights.fit(graph.features, graph.text.min_nodes)
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
        weights = None if known is None else TextWeights.fit(self.features, known.min_nodes)
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

    def with_own_ids(self, ids: Any) -> np.ndarray:
        """(m,) the same ids as this graph has them stored; one that is not there is an error."""
        return self.ids[self.visible.rows(self.numbers_of(ids))]

    def numbers_of(self, ids: Any) -> np.ndarray:
        """(m,) node numbers of the user's ids; an id that is not there is an error."""
        return self.names.numbers_of(ids)

    def id_of(self, number: int) -> Any:
        """The user's id of a node number."""
        return self.ids[self.visible.rows(np.array([number]))].tolist()[0]

    def feature_name(self, column: int) -> str:
        """What a feature that a learner sees is called."""
        if self.text_weights is not None:
            column = int(self.text_weights.columns[column])
        return f"feature_{column}" if self.feature_names is None else str(self.feature_names[column])

    @cached_property
    def names(self) -> NodeNames:
        """How its nodes are found."""
        return NodeNames(self.numbers, self.ids)

    # Changes: each returns the new graph and the numbers of the nodes that are new or whose edges changed

    def with_nodes(self, ids: Any, features: Features) -> tuple["GrowingGraph", np.ndarray]:
        """More nodes, without edges yet. features: (m, d) as :meth:`features_of` or a matrix of the same columns."""
        fresh = self._fresh_ids(ids)
        if features.shape != (fresh.size, self.features.shape[1]):
            raise InputError(
                f"the new nodes have features of shape {features.shape}, but {fresh.size} nodes with "
                f"{self.features.shape[1]} features each are needed."
            )
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

    def _fresh_ids(self, ids: Any) -> np.ndarray:
        """Valid ids of new nodes, in the form of this graph's."""
        given, numbers = listed(ids), self.ids.dtype != object
        fresh, _ = make_ids(given, lambda row: f"new node {row + 1}", read_numbers=numbers)
        if numbers and fresh.dtype == object:
            wrong = next(node for node in fresh.tolist() if whole_number(node) is None)
            raise InputError(f"node id {quoted(wrong)} is no whole number, but all ids of this graph are.")
        if not numbers:
            fresh = text_array([str(node) for node in fresh.tolist()])
        rows = self.rows_of_ids(fresh)
        if (rows >= 0).any():
            place = int(np.flatnonzero(rows >= 0)[0])
            stored = self.ids[rows[place]]
            spelled = "" if str(stored) == str(given[place]) else f" (as {quoted(stored)})"
            raise InputError(f"node {quoted(given[place])} is in the graph already{spelled}: leave it out.")
        return fresh

    def features_of(self, values: Any = None, *, texts: Sequence[str] | None = None) -> Features:
        """(m, d) features of new nodes, from one of three sources.

        values: a matrix with this graph's columns, or ``{"name": value}`` for each node (features not named are 0).
        texts: the text of each node.
        """
        if texts is not None:
            if self.text_weights is None or self.feature_names is None:
                raise InputError("the features of this graph do not come from text: give its feature columns instead.")
            return count_known_words(texts, self.feature_names)
        if values is None:
            raise InputError("the new nodes have no features: give a matrix, or texts if the graph was made from text.")
        if isinstance(values, list | tuple) and any(isinstance(each, Mapping) for each in values):
            values = self._named(values)
        rows = values.shape[0] if hasattr(values, "shape") else len(values)
        clean = clean_features(values, rows, "the new nodes")
        if isinstance(self.features, np.ndarray):
            return clean if isinstance(clean, np.ndarray) else clean.toarray()
        return sparse.csr_array(clean)

    def words_of(self, features: Features, texts: Sequence[str] | None = None) -> dict[str, int]:
        """How many words some nodes have, and how many of them no learner sees: they are outside the vocabulary.

        features: (m, d) of the nodes. texts: what they were made from, if it is at hand. Empty without a vocabulary.
        """
        if self.text_weights is None:
            return {}
        words = float(features.sum()) if texts is None else word_count(texts)
        known = float(features[:, self.text_weights.columns].sum())
        return {"words": round(words), "unknown_words": round(words - known)}

    def _named(self, values: Sequence[Mapping[str, float]]) -> sparse.csr_array:
        names = self.feature_names
        width = self.features.shape[1]
        known = {f"feature_{c}" if names is None else str(names[c]): c for c in range(width)}
        strange = [name for each in values for name in each if name not in known]
        if strange:
            raise InputError(f"the graph has no feature {quoted(strange[0])}: leave it out.")
        rows = np.repeat(np.arange(len(values)), [len(each) for each in values])
        columns = np.array([known[name] for each in values for name in each], dtype=np.int64)
        numbers = np.array([number for each in values for number in each.values()], dtype=np.float32)
        return sparse.csr_array(sparse.coo_array((numbers, (rows, columns)), shape=(len(values), len(known))))

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
