"""The interfaces of graphs: with labels for streams and models, without them for learners."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # an interface is no reason to import scipy
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    import numpy as np
    from scipy import sparse

    from graphfcl.graph.graph import Graph, TextSettings
    from graphfcl.graph.ids import ClassLabel
    from graphfcl.graph.tables.columns import ReadColumns
    from graphfcl.graph.views import Features, FeatureView
    from graphfcl.graph.visible import VisibleGraph


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


class AnyGraph(Protocol):
    """What streams, evaluations and models need of a graph.

    :class:`~graphfcl.graph.graph.Graph` is in memory; a :class:`~graphfcl.graph.folder.reader.GraphFolder` stays on the
    disk.
    """

    @property
    def name(self) -> str: ...

    @property
    def node_count(self) -> int: ...

    @property
    def edge_count(self) -> int:
        """Number of undirected edges."""

    @property
    def feature_count(self) -> int: ...

    @property
    def sparse_features(self) -> bool:
        """Whether features are CSR matrices."""

    @property
    def stored_values(self) -> int:
        """Number of feature values that are stored, or not zero."""

    @property
    def weighted(self) -> bool:
        """Whether some edge has another weight than 1."""

    @property
    def text(self) -> TextSettings | None:
        """Set if the features are word counts."""

    @property
    def column_min_nodes(self) -> int:
        """A learner sees a column of sparse features if so many nodes of session 0 have it."""

    @property
    def labels(self) -> np.ndarray:
        """(n,) positions in ``class_names``; -1 where the class is not known."""

    @property
    def class_names(self) -> tuple[str, ...]: ...

    @property
    def integer_classes(self) -> bool:
        """Whether the user's labels are integers; the names are these as texts."""

    @property
    def class_labels(self) -> tuple[ClassLabel, ...]:
        """The classes as the user writes them."""

    @property
    def class_sizes(self) -> np.ndarray:
        """(classes,) number of nodes of each class."""

    @property
    def node_ids(self) -> np.ndarray:
        """(n,) the user's ids, int64 or texts."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader changed, a sentence each."""

    @property
    def cleaned(self) -> int:
        """Number of ids and class names that the reader changed."""

    @property
    def columns(self) -> ReadColumns | None:
        """Those of the tables that it was read from."""

    @property
    def sha256(self) -> str:
        """A fingerprint of the content."""

    @property
    def byte_count(self) -> int:
        """Bytes of all arrays."""

    @property
    def same_class_share(self) -> float | None:
        """Share of edges, among those with both labels known, whose ends are of one class."""

    @property
    def isolated_node_count(self) -> int:
        """Number of nodes without an edge."""

    @property
    def component_count(self) -> int | None:
        """Number of connected components; None if they are not counted."""

    @property
    def unsupported_tracks(self) -> tuple[str, ...]:
        """Tracks of a stream that this kind of graph does not support."""

    @property
    def shuffled(self) -> bool:
        """Whether the order of nodes is random and secret, so that it tells nothing about their classes."""

    @property
    def work(self) -> Path | None:
        """The folder for intermediate files; None if the graph is computed in memory."""

    def class_number(self, label: ClassLabel) -> int | None:
        """The position of a class, or None."""

    def nodes_of(self, ids: list[str] | list[int] | np.ndarray) -> np.ndarray:
        """(m,) the nodes of the user's ids; -1 for an id that the graph does not have."""

    def device_for(self, wanted: str) -> str:
        """The device to compute on if a user wants this one; one that cannot be used is refused."""

    def with_workers(self) -> AbstractContextManager[AnyGraph]:
        """The same graph, with workers that run until the context ends."""

    def loaded(self) -> Graph:
        """The graph in memory, with the same nodes in the same order and the same fingerprint."""

    def feature_blocks(self, chosen: np.ndarray) -> Iterator[Features]:
        """The raw features of the nodes where ``chosen`` (n,) is true, in blocks that are not empty."""

    def visible(
        self, numbers: np.ndarray, view: FeatureView | None = None, node_of_number: np.ndarray | None = None
    ) -> VisibleNodes:
        """The subgraph of some nodes, with all edges among them.

        numbers: (m,) ascending, by which nodes are known there. view: what a learner sees of the raw features.
        node_of_number: (n,) the node behind each number; None: they are the same.
        """
