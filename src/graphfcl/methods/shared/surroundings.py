"""What a node's features and the nodes around it add to a score that is linear in them: parts of an explanation."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from graphfcl.graph import VisibleGraph
from graphfcl.methods.blocks import NodeTables

Numbered = tuple[tuple[int, float], ...]


@dataclass(frozen=True, eq=False)
class Surroundings:
    """A node among those that its vector is made of.

    graph: one with the features X that holds at least the neighbourhood of the node. row: that of the node in it.
    """

    tables: NodeTables
    graph: VisibleGraph
    row: int

    @cached_property
    def near(self) -> sparse.csr_array:
        """The row of Â: the node and its neighbours."""
        return self.graph.normalised[[self.row]]

    def numbers(self, rows: np.ndarray) -> np.ndarray:
        """Node numbers of rows of ``graph``."""
        return self.tables.numbers(self.graph, rows)

    def features(self, weights: np.ndarray, top: int) -> Numbered:
        """The own features that add most to x·w, with their columns; none if columns were folded together."""
        if not self.tables.has_feature_columns:
            return ()
        one = sparse.csr_array(self.graph.features[[self.row]])
        return strongest(one.indices, one.data * weights[one.indices], top)

    def around(self, weights: np.ndarray, hops: int, top: int) -> Numbered:
        """The nodes that add most to (Â…ÂX)w, with their numbers."""
        far = self.near
        for _ in range(hops - 1):
            far = far @ self.graph.normalised
        adds = np.asarray(self.graph.features[far.indices] @ weights).ravel()
        return strongest(self.numbers(far.indices), far.data * adds, top)


def strongest(numbers: np.ndarray, values: np.ndarray, top: int) -> Numbered:
    """The pairs with the largest absolute values."""
    order = np.argsort(-np.abs(values), kind="stable")[:top]
    return tuple((int(numbers[place]), float(values[place])) for place in order)
