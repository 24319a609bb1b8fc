"""The interfaces of graphs: with labels for streams and models, without them for learners."""

from typing import Protocol, TypeAlias

import numpy as np
from scipy import sparse

from graphfcl.graph.folder.reader import GraphFolder
from graphfcl.graph.graph import Graph
from graphfcl.graph.views import Features
from graphfcl.graph.visible import VisibleGraph

# What streams, evaluations and models work on: a graph in memory, or one that stays on disk. The type checker accepts
# only what both classes have.
AnyGraph: TypeAlias = Graph | GraphFolder


class VisibleNodes(Protocol):
    """The visible nodes of a graph, with features and neighbours; without labels, ids and hidden nodes.

    :class:`~graphfcl.graph.visible.VisibleGraph` holds all of it in memory, as one block of rows. A visible graph
    folder (:class:`~graphfcl.graph.folder.visible.VisibleFolder`) is read from the disk in many blocks.

    A node has a number, the same in every visible graph of a stream, and a row. In memory the rows are those of the
    visible nodes. On the disk a hidden node keeps its row, which has no edges and whose raw features count as 0.
    """

    @property
    def node_count(self) -> int:
        """Number of visible nodes."""

    @property
    def row_count(self) -> int:
        """Number of rows n, those of hidden nodes included."""

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
        """Whether some edge has another weight than 1."""

    @property
    def relations(self) -> tuple[str, ...]:
        """Names of the kinds of edges."""

    @property
    def nodes(self) -> np.ndarray:
        """(node_count,) int64 numbers of the visible nodes, ascending."""

    @property
    def degrees(self) -> np.ndarray:
        """(n,) float32 sums of the weights of a row's edges."""

    def rows(self, nodes: np.ndarray) -> np.ndarray:
        """(m,) int64 rows of node numbers; a node that is not visible is an error."""

    def numbers(self, rows: np.ndarray) -> np.ndarray:
        """(m,) int64 node numbers of rows, the reverse of :meth:`rows`."""

    def contains(self, nodes: np.ndarray) -> np.ndarray:
        """(m,) bool, whether each node number is visible."""

    def row_blocks(self) -> list[tuple[int, int]]:
        """Ranges of rows (start, stop) that cover all rows, each small enough to be read at once."""

    def features_at(self, rows: np.ndarray) -> Features:
        """(m, d) float32 features of rows in any order, as a learner sees them."""

    def neighbours_at(self, rows: np.ndarray, relation: str = "edges") -> sparse.csr_array:
        """(m, n) float32 rows of the adjacency A in any order."""

    def product(self, values: np.ndarray) -> np.ndarray:
        """A · values, for values of shape (n,) or (n, k)."""

    def around(self, rows: np.ndarray, hops: int) -> VisibleGraph:
        """The nodes within ``hops`` edges of some rows, in memory; enough to compute Â^hops X of these rows.

        The numbers of its nodes are the rows here. Edges between its outermost nodes are left out, and its degrees are
        those of the whole visible graph.
        """

    def loaded(self) -> VisibleGraph:
        """All of it in memory."""
