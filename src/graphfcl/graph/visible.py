"""The part of a graph in memory that a learner sees: nodes, edges and features, without labels."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy import sparse

from graphfcl.errors import InputError
from graphfcl.graph.views import Features
from graphfcl.runtime.arrays import read_only, with_short_indices

RELATIONS = ("edges",)  # edge types


@dataclass(frozen=True, eq=False)
class VisibleGraph:
    """Subgraph that a learner sees, without labels, ids, and hidden nodes and edges.

    All arrays are read-only. CSR indices have 32 bits where these suffice.

    Args:
        nodes: (n,) int64 Node numbers, ascending. A node has the same number in every visible graph of a stream;
            :meth:`rows` turns numbers into rows.
        adjacency: (n, n) CSR float32 matrix, with rows in the order of ``nodes``.
        features: (n, d) float32 matrix, CSR or dense, with rows in the order of ``nodes``.

    Examples:
        >>> import numpy as np
        >>> from graphfcl import VisibleGraph, build_graph
        >>> graph = build_graph(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]), np.eye(3), ["a", "b", "b"])
        >>> visible = graph.visible(np.array([0, 1]))
        >>> visible
        VisibleGraph(2 nodes, 1 edges)
        >>> visible.degrees.tolist()
        [1.0, 1.0]
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
        """(n,) float32 sum of the edge weights of each node, without the self loop that Â adds."""
        counts = np.diff(self.adjacency.indptr)
        if not self.weighted:
            return read_only(counts.astype(np.float32))
        rows = np.repeat(np.arange(self.node_count, dtype=np.int32), counts)
        sums = np.bincount(rows, weights=self.adjacency.data, minlength=self.node_count)
        return read_only(sums.astype(np.float32))

    @cached_property
    def normalised(self) -> sparse.csr_array:
        """(n, n) CSR matrix Â = D̃^{-1/2} (A + I) D̃^{-1/2}, where D̃ are the degrees of A + I."""
        scale = 1 / np.sqrt(self.degrees + 1)
        matrix = self.adjacency + sparse.eye_array(self.node_count, dtype=np.float32, format="csr")
        matrix.data *= np.repeat(scale, np.diff(matrix.indptr))
        matrix.data *= scale[matrix.indices]
        return read_only(matrix)

    def with_features(self, features: Features) -> "VisibleGraph":
        """Return the same nodes and edges with other features.

        Args:
            features: (n, d) float32 matrix, CSR or dense.

        Returns:
            The new graph, which shares the degrees and Â that are already computed.
        """
        other = VisibleGraph(self.nodes, self.adjacency, features)
        computed = ("degrees", "normalised")
        other.__dict__.update({name: self.__dict__[name] for name in computed if name in self.__dict__})
        return other

    def rows(self, nodes: np.ndarray) -> np.ndarray:
        """Return the rows of nodes.

        Args:
            nodes: (m,) Node numbers, in any order.

        Returns:
            (m,) int64 Rows, in the same order.

        Raises:
            InputError: If a node is not visible.
        """
        nodes = np.asarray(nodes)
        rows = np.searchsorted(self.nodes, nodes)
        if nodes.size and (rows.max() >= self.node_count or not np.array_equal(self.nodes[rows], nodes)):
            hidden = nodes[~np.isin(nodes, self.nodes)]
            raise InputError(f"node {hidden[0]} is not in the visible graph: ask only for nodes that exist now.")
        return rows

    def numbers(self, rows: np.ndarray) -> np.ndarray:
        """Return the node numbers of rows, the reverse of :meth:`rows`.

        Args:
            rows: (m,) Rows, in any order.

        Returns:
            (m,) int64 Node numbers, in the same order.
        """
        return self.nodes[rows]

    def contains(self, nodes: np.ndarray) -> np.ndarray:
        """Tell which nodes are visible.

        Args:
            nodes: (m,) Node numbers.

        Returns:
            (m,) bool, True where the node is visible.
        """
        return np.isin(nodes, self.nodes)

    def row_blocks(self) -> list[tuple[int, int]]:
        """Return one range with all rows, which are in memory."""
        return [(0, self.row_count)]

    def features_at(self, rows: np.ndarray) -> Features:
        """Return the features of rows.

        Args:
            rows: (m,) Rows, in any order.

        Returns:
            (m, d) float32 matrix, CSR or dense.
        """
        return self.features[rows]

    def neighbours_at(self, rows: np.ndarray, relation: str = RELATIONS[0]) -> sparse.csr_array:
        """Return rows of the adjacency matrix.

        Args:
            rows: (m,) Rows, in any order.
            relation: Edge type, one of ``relations``.

        Returns:
            (m, n) float32 CSR matrix.

        Raises:
            InputError: If the graph has no edges of this type.
        """
        require_relation(relation)
        return self.adjacency[rows]

    def product(self, values: np.ndarray) -> np.ndarray:
        """Multiply the adjacency matrix A with an array.

        Args:
            values: (n,) or (n, k) One value or row of values for each node.

        Returns:
            A · values, of the same shape.
        """
        return self.adjacency @ values

    def around(self, rows: np.ndarray, hops: int) -> "VisibleGraph":
        """Cut out the neighbourhood of rows, which is enough to compute Â^hops X for these rows.

        Args:
            rows: (m,) Rows, in any order.
            hops: Largest distance from these rows, in edges.

        Returns:
            The nodes within this distance. Their numbers are the rows here. Edges between the outermost nodes are left
            out. Degrees count all edges of this graph.
        """
        nearby = find_nearby(self.neighbours_at, rows, hops, self.row_count)
        small = VisibleGraph(nearby.nodes, nearby.adjacency, self.features[nearby.nodes])
        return small.with_degrees(self.degrees[nearby.nodes])

    def with_degrees(self, degrees: np.ndarray) -> "VisibleGraph":
        """Return the same graph with the degrees that its nodes have in a larger graph.

        Args:
            degrees: (n,) float32 Degrees, which count edges that are not in this graph.

        Returns:
            The new graph, whose Â is computed from these degrees.
        """
        other = VisibleGraph(self.nodes, self.adjacency, self.features)
        other.__dict__["degrees"] = read_only(degrees)
        return other

    def loaded(self) -> "VisibleGraph":
        """Return the graph itself, which is in memory."""
        return self


def require_relation(relation: str) -> None:
    """Raise an InputError unless graphs have edges of this type."""
    if relation not in RELATIONS:
        raise InputError(f"the graph has no edges of the kind {relation!r}: use one of {', '.join(RELATIONS)}.")


@dataclass(frozen=True, eq=False)
class Nearby:
    """Neighbourhood of some rows of a graph with n rows.

    Attributes:
        nodes: (m,) Rows in the neighbourhood, ascending.
        adjacency: (m, m) Edges among them. Rows of outermost nodes are empty, so it has each edge between an inner and
            an outermost node only in the row of the inner node, and no edge between two outermost nodes.
        inner: (i,) Rows that are closer than the largest distance.
        inner_rows: (i, n) Rows of the adjacency matrix for ``inner``.
        outermost: (m - i,) Rows at the largest distance.
    """

    nodes: np.ndarray
    adjacency: sparse.csr_array
    inner: np.ndarray
    inner_rows: sparse.csr_array
    outermost: np.ndarray


def find_nearby(
    neighbours_at: Callable[[np.ndarray], sparse.csr_array], rows: np.ndarray, hops: int, row_count: int
) -> Nearby:
    """Find all rows within ``hops`` edges; ``neighbours_at`` maps (m,) ascending rows to (m, row_count) edges."""
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
    """Add nodes without edges to a visible graph; ``features`` are the rows of these nodes."""
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
