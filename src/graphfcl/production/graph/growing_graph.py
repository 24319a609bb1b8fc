"""The graph of a model in memory, which grows and shrinks."""

# ruff: noqa: ARG002  # one kind of graph needs arguments that the other does not

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy import sparse

from graphfcl.errors import InputError, quoted
from graphfcl.graph import Features, Standardisation, TextWeights, VisibleGraph
from graphfcl.graph.ids import IdIndex
from graphfcl.graph.interfaces import AnyGraph
from graphfcl.graph.views import stacked
from graphfcl.methods import Learner, Progress
from graphfcl.production.answers.answers import ModelAnswers
from graphfcl.production.answers.version_cache import CacheContents, CacheKeys
from graphfcl.production.graph.contract import ModelGraph, NodeNames
from graphfcl.production.graph.feature_columns import FeatureColumns

WHOLE_ABOVE = 0.5  # if a change reaches a larger share of the nodes, all embeddings are computed again
NO_SUCH_NODE = "node {} is not in the graph: leave it out; nothing was changed."


@dataclass(frozen=True, eq=False)
class GrowingGraph(NodeNames, ModelGraph):
    """A :class:`ModelGraph` in memory.

    Attributes:
        numbers: (n,) int64 node numbers, ascending.
        ids: (n,) the user's ids, int64 or text.
        next_number: The first number that no node ever had.
        adjacency: (n, n) CSR, symmetric, without self-loops.
        features: (n, d) features; word counts if ``text_weights`` is set.
        feature_names: Names of the features, if they have names.
        text_weights: Turns word counts into features; fitted by ``fit`` and ``refit``.
        standardisation: Turns dense columns into features; fitted by ``fit`` and ``refit``.
    """

    next_number: int
    adjacency: sparse.csr_array
    features: Features
    feature_names: np.ndarray | None = None
    text_weights: TextWeights | None = None
    standardisation: Standardisation | None = None

    @classmethod
    def of(cls, graph: AnyGraph) -> Self:
        graph = graph.loaded()
        count, text = graph.node_count, graph.text
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

    def standardised(self, nodes: np.ndarray) -> Self:
        if not isinstance(self.features, np.ndarray):
            return self
        rows = self.features[self.visible.rows(nodes)]
        return replace(self, standardisation=Standardisation.fit(rows))

    def with_refitted_features(self) -> Self:
        text = self.text_weights
        groups = () if text is None or text.beside is None else text.beside.groups
        weights = None if text is None else TextWeights.fit(self.features, text.min_nodes, groups)
        return replace(self, text_weights=weights, standardisation=None)

    def replaced_by(self, graph: AnyGraph) -> tuple[Self, np.ndarray]:
        """Replace the graph; nodes keep their numbers."""
        rows = IdIndex(graph.node_ids).rows(self.ids)
        refuse_other_nodes(self.ids, rows, graph, self.node_count)
        fresh = GrowingGraph.of(graph)
        adjacency = fresh.adjacency[rows][:, rows]
        adjacency.sort_indices()
        replaced = replace(
            self,
            adjacency=adjacency,
            features=fresh.features[rows],
            feature_names=fresh.feature_names,
            text_weights=fresh.text_weights,
            standardisation=None,
        )
        numbers = np.empty(graph.node_count, dtype=np.int64)
        numbers[rows] = self.numbers
        return replaced, numbers

    @property
    def edge_count(self) -> int:
        return int(self.adjacency.nnz) // 2

    def make_visible(self) -> VisibleGraph:
        view = self.text_weights or self.standardisation
        features = self.features if view is None else view.apply(self.features)
        return VisibleGraph(nodes=self.numbers, adjacency=self.adjacency, features=features)

    @property
    def columns(self) -> FeatureColumns:
        dense = isinstance(self.features, np.ndarray)
        return FeatureColumns(self.features.shape[1], dense, self.feature_names, self.text_weights)

    @property
    def is_whole_numbers(self) -> bool:
        return self.ids.dtype != object

    def all_words(self) -> dict[str, int]:
        return self.columns.words_of(self.features)

    # Changes

    def with_nodes(self, ids: np.ndarray, features: Features) -> tuple[Self, np.ndarray]:
        size = self.node_count + ids.size
        adjacency = self.adjacency.copy()
        adjacency.resize((size, size))
        numbers = np.arange(self.next_number, self.next_number + ids.size, dtype=np.int64)
        grown = replace(
            self,
            numbers=np.concatenate([self.numbers, numbers]),
            next_number=self.next_number + ids.size,
            ids=np.concatenate([self.ids, ids]),
            adjacency=adjacency,
            features=stacked([self.features, features]),
        )
        return grown, numbers

    def features_at(self, rows: np.ndarray) -> Features:
        return self.features[rows]

    def with_features(self, rows: np.ndarray, features: Features) -> Self:
        order = np.arange(self.node_count)
        order[rows] = self.node_count + np.arange(rows.size)
        return replace(self, features=stacked([self.features, features])[order])

    def weights_between(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        if not first.size:  # scipy cannot select zero entries
            return np.zeros(0, dtype=np.float32)
        return np.asarray(self.adjacency[first, second], dtype=np.float32).ravel()

    def with_weights(self, first: np.ndarray, second: np.ndarray, weights: np.ndarray, before: np.ndarray) -> Self:
        ends = np.concatenate([first, second]), np.concatenate([second, first])
        new, changed = (
            sparse.csr_array((np.concatenate([values, values]), ends), shape=self.adjacency.shape)
            for values in (weights, np.ones_like(weights))
        )
        joined = sparse.csr_array(self.adjacency - self.adjacency.multiply(changed) + new)
        joined.eliminate_zeros()
        joined.sort_indices()
        return replace(self, adjacency=joined)

    def without_nodes(self, ids: Any) -> tuple[Self, np.ndarray, np.ndarray]:
        rows = self.known_rows(ids, NO_SUCH_NODE)
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
        """Return rows of all nodes at most ``hops`` edges away from some nodes.

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

    # Computing

    def carry(self, learner: Learner, before: Self, touched: list[np.ndarray]) -> Mapping[str, Any]:
        """Compute embeddings within reach of the change again, and keep the others.

        If more than ``WHOLE_ABOVE`` of the nodes are within reach, the learner computes all embeddings when they are
        needed.
        """
        embeddings = learner.embeddings(before.visible)
        ends = np.unique(np.concatenate(touched)) if touched else np.zeros(0, np.int64)
        reached = self.reach(ends, learner.reach)
        share = reached.size / max(1, self.node_count)
        if share <= WHOLE_ABOVE and embeddings.shape[1]:
            stayed = np.isin(self.numbers, before.numbers, assume_unique=True)
            moved = np.empty((self.node_count, embeddings.shape[1]), dtype=embeddings.dtype)
            moved[stayed] = embeddings[before.visible.rows(self.numbers[stayed])]
            if reached.size:
                moved[reached] = learner.embeddings_of_rows(self.visible, reached)
            learner.use_embeddings(self.visible, moved)
        return {"within_reach": round(share, 4)}

    def all_scores(self, learner: Learner, progress: Progress) -> np.ndarray:
        learner.embeddings(self.visible)
        return learner.scores(self.visible, self.numbers)

    def keep_answers(
        self, answers: ModelAnswers, learner: Learner, keys: CacheKeys, cache: Callable[[CacheContents], None] | None
    ) -> None:
        if cache is not None:
            cache(CacheContents(keys, self.ids, learner.embeddings(self.visible), answers.scores, answers.readings))


def refuse_other_nodes(ids: np.ndarray, rows: np.ndarray, graph: AnyGraph, node_count: int) -> None:
    """Refuse a graph that the user provides if it does not have exactly the nodes of the model.

    ``ids``: (m,) ids of nodes of the model. ``rows``: (m,) their rows in the graph, -1 where it lacks one.
    ``node_count``: number of nodes of the model.
    """
    missing = np.flatnonzero(rows < 0)
    if missing.size:
        more = f" (and {missing.size - 1} more)" if missing.size > 1 else ""
        raise InputError(
            f"{graph.name} lacks node {quoted(ids[[missing[0]]].tolist()[0])}{more} of the model: add it, or take it "
            "out of the model with `graphfcl shrink --nodes` first; nothing was changed."
        )
    if graph.node_count > node_count:
        others = np.setdiff1d(np.arange(graph.node_count), rows)
        more = f" (and {graph.node_count - node_count - 1} more)" if graph.node_count - node_count > 1 else ""
        raise InputError(
            f"node {quoted(graph.node_ids[[others[0]]].tolist()[0])}{more} of {graph.name} is not in the model: "
            "`graphfcl grow` it first, or leave it out; nothing was changed."
        )
