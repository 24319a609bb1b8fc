"""What of a graph exists for a learner at one moment."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy import sparse

from graphfcl.errors import InputError
from graphfcl.graph.views import Features
from graphfcl.runtime.arrays import read_only, with_short_indices

RELATIONS = ("edges",)  # kinds of edges


@dataclass(frozen=True, eq=False)
class VisibleGraph:
    """A graph of its own, cut out of a larger one of which it knows nothing: no labels, no other nodes or edges.

    All of it is read-only. Indices of CSR matrices have 32 bits if these suffice.

    nodes: (n,) int64, ascending. A node keeps its number in every visible graph of a stream; learners and
        evaluators speak of nodes by these numbers, and :meth:`rows` finds their rows here.
    adjacency: (n, n) CSR float32, rows in the order of ``nodes``.
    features: (n, d) float32, CSR or dense.
    """

    nodes: np.ndarray
    adjacency: sparse.csr_array
    features: Features

    relations: ClassVar[tuple[str, ...]] = RELATIONS

    def __post_init__(self) -> None:
        for name in ("adjacency", "features"):
            object.__setattr__(self, name, with_short_indices(getattr(self, name)))
        for values in (self.nodes, self.adjacency, self.features):
            read_only(values)

    def __repr__(self) -> str:
        return f"VisibleGraph({self.nodes.size:,} nodes, {self.edge_count:,} edges)"

    @property
    def node_count(self) -> int:
        return int(self.nodes.size)

    @property
    def row_count(self) -> int:
        return self.node_count

    @property
    def edge_count(self) -> int:
        return int(self.adjacency.nnz) // 2

    @property
    def feature_count(self) -> int:
        return int(self.features.shape[1])

    @property
    def sparse_features(self) -> bool:
        return not isinstance(self.features, np.ndarray)

    @cached_property
    def weighted(self) -> bool:
        return bool((self.adjacency.data != 1).any())

    @cached_property
    def degrees(self) -> np.ndarray:
        """(n,) float32: number of neighbours, or the sum of edge weights; the self loop is not in it."""
        counts = np.diff(self.adjacency.indptr)
        if not self.weighted:
            return read_only(counts.astype(np.float32))
        rows = np.repeat(np.arange(self.node_count, dtype=np.int32), counts)
        sums = np.bincount(rows, weights=self.adjacency.data, minlength=self.node_count)
        return read_only(sums.astype(np.float32))

    @cached_property
    def normalised(self) -> sparse.csr_array:
        """Â = D̃^{-1/2} (A + I) D̃^{-1/2} with D̃ the degrees of A + I, all of this visible graph."""
        scale = 1 / np.sqrt(self.degrees + 1)
        matrix = self.adjacency + sparse.eye_array(self.node_count, dtype=np.float32, format="csr")
        matrix.data *= np.repeat(scale, np.diff(matrix.indptr))
        matrix.data *= scale[matrix.indices]
        return read_only(matrix)

    def with_features(self, features: Features) -> "VisibleGraph":
        """The same nodes and edges with other features; what is known of the edges already is not computed again."""
        other = VisibleGraph(self.nodes, self.adjacency, features)
        computed = ("degrees", "normalised")
        other.__dict__.update({name: self.__dict__[name] for name in computed if name in self.__dict__})
        return other

    def rows(self, nodes: np.ndarray) -> np.ndarray:
        """Rows of node numbers; a node that is not visible is an error."""
        nodes = np.asarray(nodes)
        rows = np.searchsorted(self.nodes, nodes)
        if nodes.size and (rows.max() >= self.node_count or not np.array_equal(self.nodes[rows], nodes)):
            hidden = nodes[~np.isin(nodes, self.nodes)]
            raise InputError(f"node {hidden[0]} is not in the visible graph: ask only for nodes that exist now.")
        return rows

    def numbers(self, rows: np.ndarray) -> np.ndarray:
        """(m,) node numbers of rows."""
        return self.nodes[rows]

    def contains(self, nodes: np.ndarray) -> np.ndarray:
        """Whether each node number is visible."""
        return np.isin(nodes, self.nodes)

    def row_blocks(self) -> list[tuple[int, int]]:
        """One block: all of it is in memory."""
        return [(0, self.row_count)]

    def features_at(self, rows: np.ndarray) -> Features:
        """(m, d) features of rows in any order."""
        return self.features[rows]

    def neighbours_at(self, rows: np.ndarray, relation: str = RELATIONS[0]) -> sparse.csr_array:
        """(m, n) rows of the adjacency in any order."""
        require_relation(relation)
        return self.adjacency[rows]

    def product(self, values: np.ndarray) -> np.ndarray:
        """A · values, for values of shape (n,) or (n, k)."""
        return self.adjacency @ values

    def around(self, rows: np.ndarray, hops: int) -> "VisibleGraph":
        """The nodes within ``hops`` edges of some rows, numbered by their rows here, with the degrees of this graph.

        Edges between the outermost nodes are left out.
        """
        near = nodes_near(self.neighbours_at, rows, hops, self.row_count)
        small = VisibleGraph(near.nodes, near.adjacency, self.features[near.nodes])
        return small.with_degrees(self.degrees[near.nodes])

    def with_degrees(self, degrees: np.ndarray) -> "VisibleGraph":
        """The same graph as a part of a larger one, whose (n,) degrees count edges that are not here."""
        other = VisibleGraph(self.nodes, self.adjacency, self.features)
        other.__dict__["degrees"] = read_only(degrees)
        return other

    def loaded(self) -> "VisibleGraph":
        """The graph itself."""
        return self


def require_relation(relation: str) -> None:
    """Refuse a kind of edges that a graph does not have."""
    if relation not in RELATIONS:
        raise InputError(f"the graph has no edges of the kind {relation!r}: use one of {', '.join(RELATIONS)}.")


@dataclass(frozen=True, eq=False)
class Nearby:
    """The nodes within some edges of a few rows.

    nodes: (m,) rows, ascending. adjacency: (m, m) their edges, without those between outermost nodes. inner: (i,) the
    rows that are not outermost, and ``inner_rows`` (i, n) their edges. outermost: (m - i,) the others.
    """

    nodes: np.ndarray
    adjacency: sparse.csr_array
    inner: np.ndarray
    inner_rows: sparse.csr_array
    outermost: np.ndarray


def nodes_near(
    neighbours_at: Callable[[np.ndarray], sparse.csr_array], rows: np.ndarray, hops: int, row_count: int
) -> Nearby:
    """Follow edges from some rows. neighbours_at: (m,) ascending rows → (m, row_count) their edges."""
    nodes = outermost = np.unique(rows)
    inner: list[np.ndarray] = []
    blocks: list[sparse.csr_array] = []
    for _ in range(hops):
        blocks.append(neighbours_at(outermost))
        inner.append(outermost)
        outermost = np.setdiff1d(blocks[-1].indices, nodes)
        nodes = np.union1d(nodes, outermost)
    if not blocks:
        nothing = sparse.csr_array((0, row_count), dtype=np.float32)
        return Nearby(nodes, sparse.csr_array((nodes.size,) * 2, dtype=np.float32), nodes[:0], nothing, nodes)
    inside, block = np.concatenate(inner), sparse.csr_array(sparse.vstack(blocks, format="csr"))
    columns = np.searchsorted(nodes, block.indices)
    places = np.repeat(np.searchsorted(nodes, inside), np.diff(block.indptr))
    whole = sparse.coo_array((block.data, (places, columns)), shape=(nodes.size, nodes.size))
    return Nearby(nodes, sparse.csr_array(whole.tocsr()), inside, block, outermost)


def join_without_edges(visible: VisibleGraph, nodes: np.ndarray, features: Features) -> VisibleGraph:
    """The visible graph and some more nodes of which only the features are known: they have no edges."""
    if nodes.size == 0:
        return visible
    every = np.concatenate([visible.nodes, nodes])
    order = np.argsort(every, kind="stable")
    if isinstance(features, np.ndarray):
        rows = np.concatenate([visible.features, features])[order]
    else:
        rows = sparse.csr_array(sparse.vstack([visible.features, features], format="csr")[order])
    adjacency = visible.adjacency.copy()
    adjacency.resize((every.size, every.size))
    return VisibleGraph(nodes=every[order], adjacency=adjacency[order][:, order], features=rows)
