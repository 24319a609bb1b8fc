"""Contributions of a node's features and of surrounding nodes to a linear score, for explanations."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from scipy import sparse

from graphfcl.graph import VisibleGraph
from graphfcl.methods.blocks import NodeTables

Numbered = tuple[tuple[int, float], ...]


@dataclass(frozen=True, eq=False)
class Surroundings:
    """A node with its neighbourhood.

    Args:
        tables: The tables of the whole graph.
        graph: A graph with features X that contains at least the neighbourhood of the node.
        row: Row of the node in ``graph``.
    """

    tables: NodeTables
    graph: VisibleGraph
    row: int

    @cached_property
    def near(self) -> sparse.csr_array:
        """The node's row of Â, with entries for the node and its neighbours."""
        return self.graph.normalised[[self.row]]

    def numbers(self, rows: np.ndarray) -> np.ndarray:
        """Translate rows of ``graph`` to node numbers."""
        return self.tables.numbers(self.graph, rows)

    def features(self, weights: np.ndarray, top: int) -> Numbered:
        """List the node's features with the largest contributions to x·w, by column. Empty for hashed columns."""
        if not self.tables.has_feature_columns:
            return ()
        one = sparse.csr_array(self.graph.features[[self.row]])
        return strongest(one.indices, one.data * weights[one.indices], top)

    def around(self, weights: np.ndarray, hops: int, top: int) -> Numbered:
        """List the surrounding nodes with the largest contributions to (Â…ÂX)w, by node number."""
        far = self.near
        for _ in range(hops - 1):
            far = far @ self.graph.normalised
        adds = np.asarray(self.graph.features[far.indices] @ weights).ravel()
        return strongest(self.numbers(far.indices), far.data * adds, top)


def best_columns(scores: torch.Tensor, columns: Sequence[int] | None, top: int) -> list[int]:
    """Return ``columns``, or the ``top`` columns with the highest (C,) scores, and at least two if there are two."""
    if columns is not None:
        return list(columns)
    order = scores.argsort(descending=True).tolist()
    return [column for column in order if scores[column] > -torch.inf][: max(2, top)]


def strongest(numbers: np.ndarray, values: np.ndarray, top: int) -> Numbered:
    """Select the ``top`` pairs with the largest absolute values."""
    order = np.argsort(-np.abs(values), kind="stable")[:top]
    return tuple((int(numbers[place]), float(values[place])) for place in order)
