"""What some nodes have in common, in the user's own words: names of features, and classes that they link to."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from graphfcl.graph import Standardisation
from graphfcl.graph.ids import ClassLabel
from graphfcl.production.answers.row_values import node_rows
from graphfcl.production.graph import ModelGraph
from graphfcl.production.labels.label_store import LabelStore

WORDS = 6  # named at most
OFTEN = 0.3  # of the nodes have a word at least,
TIMES = 4.0  # and so many times the share of all nodes that have it
FAR = 1.0  # deviations by which the mean of a number differs
CLASSES = 3  # that neighbours are of, named at most


@dataclass(frozen=True, eq=False)
class Usual:
    """What the features of all nodes are like, computed once for all groups.

    shares: (d,) of sparse features, the share of nodes that have each. means, deviations: (d,) of dense ones.
    """

    shares: np.ndarray | None = None
    means: np.ndarray | None = None
    deviations: np.ndarray | None = None

    @classmethod
    def of(cls, graph: ModelGraph) -> "Usual":
        """Features are read in blocks of rows."""
        visible = graph.visible
        if graph.columns.names is None or not visible.feature_count:
            return cls()

        def blocks() -> Iterator[Any]:
            rows = node_rows(visible)
            cuts = [stop for _, stop in visible.row_blocks()[:-1]]
            return (visible.features_at(part) for part in np.split(rows, np.searchsorted(rows, cuts)))

        if not visible.sparse_features:
            found = Standardisation.fit_blocks(blocks)
            return cls(means=found.mean, deviations=found.deviation)
        return cls(shares=np.sum([_counts(block) for block in blocks()], axis=0) / max(1, visible.node_count))


def common_words(graph: ModelGraph, rows: np.ndarray, usual: Usual) -> tuple[str, ...]:
    """Features that are common among some nodes and rare elsewhere; none if features have no names.

    Of sparse features those that many of the nodes have, by p log(p / q): p is the share of the nodes that have it, q
    that of all nodes. Of dense ones those whose mean is far from that of all nodes: "high price", "low weight".
    """
    if not rows.size:
        return ()
    features = graph.visible.features_at(rows)
    if usual.means is not None and usual.deviations is not None:
        return _far_numbers(graph, features, usual.means, usual.deviations)
    if usual.shares is None:
        return ()
    inside = _counts(features) / rows.size
    worth = inside * np.log(np.maximum(inside, 1e-12) / np.maximum(usual.shares, 1e-12))
    worth = np.where((inside >= OFTEN) & (inside >= TIMES * usual.shares), worth, 0.0)
    best = np.argsort(-worth, kind="stable")[:WORDS]
    return tuple(graph.columns.name(column) for column in best[worth[best] > 0].tolist())


def _counts(features: sparse.csr_array) -> np.ndarray:
    """(d,) how many nodes have each feature."""
    return np.bincount(features.indices[features.data != 0], minlength=features.shape[1])


def _far_numbers(graph: ModelGraph, features: np.ndarray, means: np.ndarray, deviations: np.ndarray) -> tuple[str, ...]:
    away = features.mean(axis=0, dtype=np.float64) - means
    away = np.divide(away, deviations, out=np.zeros_like(deviations), where=deviations > 1e-12)
    best = np.argsort(-np.abs(away), kind="stable")[:WORDS]
    return tuple(
        f"{'high' if away[column] > 0 else 'low'} {graph.columns.name(column)}"
        for column in best.tolist()
        if abs(away[column]) >= FAR
    )


def linked_classes(
    graph: ModelGraph, label_store: LabelStore, rows: np.ndarray
) -> tuple[tuple[ClassLabel, float], ...]:
    """Classes of labelled nodes that some nodes link to, and their shares of these links, largest first."""
    position = np.full(graph.visible.row_count, -1, dtype=np.int64)
    position[graph.visible.rows(label_store.nodes)] = label_store.class_of_column()[label_store.columns]
    ends = position[graph.visible.neighbours_at(rows).indices]
    counts = np.bincount(ends[ends >= 0], minlength=len(label_store.classes))
    best = np.argsort(-counts, kind="stable")[:CLASSES]
    labels = label_store.labels
    return tuple((labels[each], float(counts[each] / counts.sum())) for each in best.tolist() if counts[each])
