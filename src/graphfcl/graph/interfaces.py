"""Types that stand for several graph classes: ``AnyGraph`` with labels, ``VisibleNodes`` without labels."""

from typing import Protocol, TypeAlias

import numpy as np
from scipy import sparse

from graphfcl.graph.folder.reader import GraphFolder
from graphfcl.graph.graph import Graph
from graphfcl.graph.views import Features
from graphfcl.graph.visible import VisibleGraph

# Streams, evaluations and models take either class, so they use only what both classes offer.
AnyGraph: TypeAlias = Graph | GraphFolder


class VisibleNodes(Protocol):
    """Visible nodes of a graph with features and edges, but without labels and ids.

    This protocol has two implementations. :class:`~graphfcl.graph.visible.VisibleGraph` holds everything in memory, as
    one block of rows. :class:`~graphfcl.graph.folder.visible.VisibleFolder` reads a graph folder in many blocks.

    Each node has a number and a row. Its number is the same in every visible graph of a stream. In memory, only
    visible nodes have rows. In a folder, hidden nodes keep their rows, with no edges and with raw features of 0.

    Examples:
        >>> from graphfcl import VisibleNodes, load_dataset, make_stream
        >>> graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> visible: VisibleNodes = make_stream(graph).base.visible_graph
        >>> visible.node_count < graph.node_count  # nodes of later classes are hidden
        True
        >>> visible.features_at(visible.rows(visible.nodes[:3])).shape[0]
        3
    """

    @property
    def node_count(self) -> int:
        """Number of visible nodes."""

    @property
    def row_count(self) -> int:
        """Number of rows n, including the rows of hidden nodes."""

    @property
    def edge_count(self) -> int:
        """Number of undirected edges between visible nodes."""

    @property
    def feature_count(self) -> int:
        """Number of columns d of the features."""

    @property
    def sparse_features(self) -> bool:
        """Whether features are CSR matrices."""

    @property
    def weighted(self) -> bool:
        """Whether any edge has a weight other than 1."""

    @property
    def relations(self) -> tuple[str, ...]:
        """Names of the edge types."""

    @property
    def nodes(self) -> np.ndarray:
        """(node_count,) int64 numbers of the visible nodes, ascending."""

    @property
    def degrees(self) -> np.ndarray:
        """(n,) float32 sum of the edge weights of each row."""

    def rows(self, nodes: np.ndarray) -> np.ndarray:
        """Return the rows of nodes.

        Args:
            nodes: (m,) Node numbers, in any order.

        Returns:
            (m,) int64 Rows, in the same order.

        Raises:
            InputError: If a node is not visible.
        """

    def numbers(self, rows: np.ndarray) -> np.ndarray:
        """Return the node numbers of rows, the reverse of :meth:`rows`.

        Args:
            rows: (m,) Rows of visible nodes, in any order.

        Returns:
            (m,) int64 Node numbers, in the same order.
        """

    def contains(self, nodes: np.ndarray) -> np.ndarray:
        """Tell which nodes are visible.

        Args:
            nodes: (m,) Node numbers.

        Returns:
            (m,) bool, True where the node is visible.
        """

    def row_blocks(self) -> list[tuple[int, int]]:
        """Return ranges of rows ``(start, stop)`` that cover all rows, each small enough to be read at once."""

    def features_at(self, rows: np.ndarray) -> Features:
        """Return the features of rows, as a learner sees them.

        Args:
            rows: (m,) Rows, in any order.

        Returns:
            (m, d) float32 Features, a CSR matrix if :attr:`sparse_features` is true.
        """

    def neighbours_at(self, rows: np.ndarray, relation: str = "edges") -> sparse.csr_array:
        """Return rows of the adjacency matrix A.

        Args:
            rows: (m,) Rows, in any order.
            relation: Edge type, one of :attr:`relations`.

        Returns:
            (m, n) float32 CSR matrix.

        Raises:
            InputError: If the graph has no edges of this type.
        """

    def product(self, values: np.ndarray) -> np.ndarray:
        """Multiply the adjacency matrix A with an array.

        Args:
            values: (n,) or (n, k) One value or row of values for each row.

        Returns:
            A · values, of the same shape.
        """

    def around(self, rows: np.ndarray, hops: int) -> VisibleGraph:
        """Load the neighbourhood of rows, which is enough to compute Â^hops X for these rows.

        Args:
            rows: (m,) Rows, in any order.
            hops: Largest distance from these rows, in edges.

        Returns:
            The nodes within this distance, in memory. Their numbers are the rows here. Edges between the outermost
            nodes are left out. Degrees count all edges of the whole visible graph.
        """

    def loaded(self) -> VisibleGraph:
        """Load all visible nodes into memory."""
