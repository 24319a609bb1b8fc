"""Vectors by which nodes are compared: from the learner, or from features that depend on no label."""

from collections.abc import Callable

import numpy as np

from graphfcl.active.untrained import untrained_vectors
from graphfcl.graph.interfaces import VisibleNodes
from graphfcl.production.answers.row_values import node_rows
from graphfcl.production.model.state import ModelState

MANY = 50_000  # above this number of nodes, all nodes together are compared by principal components
SAMPLE = 10_000  # nodes from which the components are computed
COLUMNS = 64  # number of components
BLOCK = 16_384  # nodes whose vectors are projected at once

Vectors = Callable[[np.ndarray], np.ndarray]  # (r,) rows of the visible graph → (r, d) float32


def vectors_of(state: ModelState) -> Vectors:
    """Return the vectors of the nodes of a model. One thread at a time uses its learner.

    Without features, a learner sees little more than degrees; nodes are then compared by their links.
    """
    graph, visible = state.parts.graph, state.parts.graph.visible
    there = node_rows(visible)

    def of_rows(rows: np.ndarray) -> np.ndarray | None:
        nodes = graph.numbers_at(rows)
        return state.answering.using(lambda learner: learner.vectors_to_draw(visible, nodes))

    def of_all_rows(rows: np.ndarray) -> np.ndarray:
        """A row without a node has 0."""
        shown = np.isin(rows, there) if there.size < visible.row_count else np.ones(rows.size, dtype=bool)
        vectors = np.nan_to_num(np.asarray(of_rows(rows[shown]), dtype=np.float32))
        if shown.all():
            return vectors
        padded = np.zeros((rows.size, vectors.shape[1]), dtype=np.float32)
        padded[shown] = vectors
        return padded

    if visible.feature_count == 0 or of_rows(there[:1]) is None:
        return vectors_without_learner(visible, state.parts.configuration.seed)
    return of_all_rows


def vectors_without_learner(visible: VisibleNodes, seed: int = 0) -> Vectors:
    """Return vectors without a learner: features of a node and its neighbourhood, and links if features are few."""
    table = untrained_vectors(visible, seed=seed)
    return lambda rows: table[rows]


def vector_table(state: ModelState) -> np.ndarray:
    """Return the (n, d) vectors of :func:`vectors_of_all` for a model; computed once per state of the model."""
    count, seed = state.parts.graph.visible.row_count, state.parts.configuration.seed
    return state.answering.memory.find("vectors", lambda: vectors_of_all(vectors_of(state), count, seed))


def vectors_of_all(vectors: Vectors, count: int, seed: int) -> np.ndarray:
    """Return (n, d) vectors of ``count`` nodes; if there are many, their leading principal components, to save memory.

    The components are computed from a sample.
    """
    random = np.random.default_rng([seed, 21])
    if count <= MANY:
        return vectors(np.arange(count))
    sample = vectors(np.sort(random.choice(count, SAMPLE, replace=False)))
    mean = sample.mean(axis=0)
    directions = np.linalg.svd(sample - mean, full_matrices=False)[2][:COLUMNS].T if sample.shape[1] > COLUMNS else None
    values = np.empty((count, min(COLUMNS, sample.shape[1])), dtype=np.float32)
    for rows in np.array_split(np.arange(count), range(BLOCK, count, BLOCK)):
        values[rows] = vectors(rows) if directions is None else (vectors(rows) - mean) @ directions
    return values
