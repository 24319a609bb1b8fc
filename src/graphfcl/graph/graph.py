"""The graph in memory."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
from scipy import sparse

from graphfcl.graph.ids import ClassLabel, IdIndex, class_label, class_position, pack_texts
from graphfcl.graph.tables.columns import ReadColumns
from graphfcl.graph.views import Features, FeatureView
from graphfcl.graph.visible import VisibleGraph
from graphfcl.runtime.arrays import array_parts
from graphfcl.runtime.html import html_table

UNKNOWN = -1
CLASSES_SHOWN = 12  # classes that the HTML view in a notebook names


@dataclass(frozen=True)
class TextSettings:
    """Marks feature columns as word counts, to be weighted by TF-IDF.

    TF-IDF is fitted on the nodes of session 0 when a stream is made or a model is fitted.

    Args:
        min_nodes: Minimum number of session-0 nodes in which a word must occur to be used.
        beside: Widths of the groups of numeric columns behind the word columns. Learners see these columns
            standardised and scaled, so that words and each group have the same weight
            (:class:`graphfcl.graph.views.NumbersBesideWords`).
    """

    min_nodes: int = 2
    beside: tuple[int, ...] = field(default=(), repr=False)


@dataclass(frozen=True, eq=False)
class Graph:
    """Immutable undirected graph with node features and at most one class per node.

    Make graphs with :func:`build_graph` or a reader such as :func:`read_tables`, which check and clean their input. The
    constructor checks nothing.

    Args:
        adjacency: (n, n) CSR float32 matrix, symmetric, without self loops, with sorted column indices. Values are edge
            weights, all 1 in an unweighted graph.
        features: (n, d) float32 matrix, CSR or dense.
        labels: (n,) int64 Positions in ``class_names``; ``UNKNOWN`` (-1) where the class is not known.
        class_names: Names of the classes, as texts. The property ``class_labels`` has them as the user writes them.
        node_ids: (n,) The user's node ids, int64 or text.
        feature_names: (d,) Names of the feature columns. None if they have no names.
        text: Set if the features are word counts.
        name: Name of the graph in messages and results.
        notes: One sentence for each change that the builder made, such as merged duplicate edges.
        cleaned: Number of ids and class names that the builder changed. The fingerprint ``sha256`` is computed from
            the cleaned texts.
        columns: Column names of the tables that the graph was read from.
        integer_classes: Whether the user's labels are integers. ``class_names`` then holds them as texts.
        column_min_nodes: Minimum number of nodes by which the columns of sparse features were selected. Learners see a
            column only if this many nodes of session 0 have it.

    Examples:
        >>> from graphfcl import load_dataset
        >>> graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> graph
        Graph('synthetic', 200 nodes, 800 edges, 30 features, 6 classes)
        >>> graph.class_labels[0], int(graph.class_sizes[0])
        ('class-00', 64)
    """

    adjacency: sparse.csr_array
    features: Features
    labels: np.ndarray
    class_names: tuple[str, ...]
    node_ids: np.ndarray
    feature_names: np.ndarray | None = None
    text: TextSettings | None = None
    name: str = "graph"
    notes: tuple[str, ...] = ()
    cleaned: int = 0
    columns: ReadColumns | None = None
    integer_classes: bool = False
    column_min_nodes: int = 1

    def __post_init__(self) -> None:
        for array in self._arrays():
            array.flags.writeable = False

    def __repr__(self) -> str:
        return (
            f"Graph({self.name!r}, {self.node_count:,} nodes, {self.edge_count:,} edges, "
            f"{self.feature_count:,} features, {len(self.class_names)} classes)"
        )

    def _repr_html_(self) -> str:
        """Show counts, classes and notes in a notebook."""
        sizes = sorted(zip(self.class_sizes.tolist(), map(str, self.class_labels), strict=True), reverse=True)
        largest = ", ".join(f"{name} ({size:,})" for size, name in sizes[:CLASSES_SHOWN])
        more = f" and {len(sizes) - CLASSES_SHOWN} more" if len(sizes) > CLASSES_SHOWN else ""
        rows = [
            ("nodes", f"{self.node_count:,}"),
            ("edges", f"{self.edge_count:,}"),
            ("features", f"{self.feature_count:,}"),
            ("labelled nodes", f"{int(self.class_sizes.sum()):,}"),
            (f"{len(sizes)} classes", f"{largest}{more}"),
        ]
        return html_table(f"Graph {self.name!r}", rows, notes="\n".join(self.notes))

    @property
    def node_count(self) -> int:
        return int(self.adjacency.shape[0])

    @property
    def edge_count(self) -> int:
        """Number of undirected edges: each pair of nodes counts once."""
        return int(self.adjacency.nnz) // 2

    @property
    def feature_count(self) -> int:
        return int(self.features.shape[1])

    @property
    def sparse_features(self) -> bool:
        return not isinstance(self.features, np.ndarray)

    @property
    def stored_values(self) -> int:
        """Number of non-zero feature values (for a CSR matrix, of stored values)."""
        return int(self.features.nnz if self.sparse_features else np.count_nonzero(self.features))

    @cached_property
    def weighted(self) -> bool:
        return bool((self.adjacency.data != 1).any())

    @property
    def class_labels(self) -> tuple[ClassLabel, ...]:
        """The classes as the user writes them: integers or texts."""
        return tuple(class_label(name, self.integer_classes) for name in self.class_names)

    @cached_property
    def class_sizes(self) -> np.ndarray:
        """(classes,) number of nodes of each class."""
        return np.bincount(self.labels[self.labels >= 0], minlength=len(self.class_names))

    @property
    def byte_count(self) -> int:
        """Bytes of all arrays and of the text of the ids."""
        texts = pack_texts(self.node_ids.tolist())[0].nbytes if self.node_ids.dtype == object else 0
        return sum(array.nbytes for array in self._arrays()) + texts

    @cached_property
    def same_class_share(self) -> float | None:
        """Share of edges within one class, among edges with both labels known (edge homophily)."""
        rows = np.repeat(np.arange(self.node_count), np.diff(self.adjacency.indptr))
        first, second = self.labels[rows], self.labels[self.adjacency.indices]
        both = (first >= 0) & (second >= 0)
        return float((first[both] == second[both]).mean()) if both.any() else None

    @property
    def isolated_node_count(self) -> int:
        """Number of nodes without an edge."""
        return int((np.diff(self.adjacency.indptr) == 0).sum())

    @property
    def component_count(self) -> int:
        """Number of connected components."""
        from scipy.sparse.csgraph import connected_components

        return int(connected_components(self.adjacency, directed=False)[0]) if self.node_count else 0

    @cached_property
    def sha256(self) -> str:
        """Fingerprint of the content, the same on every machine.

        The name of the graph, feature names and notes are not part of it.
        """
        digest = hashlib.sha256(b"graphfcl graph 1")

        def add(tag: str, array: np.ndarray, kind: str) -> None:
            digest.update(f"{tag}:{array.shape}".encode())
            digest.update(np.ascontiguousarray(array, dtype=kind).data)

        def add_texts(tag: str, texts: Sequence[str]) -> None:
            joined = "\0".join(texts).encode()
            digest.update(f"{tag}:{len(joined)}:".encode())
            digest.update(joined)

        add("adjacency.indptr", self.adjacency.indptr, "<i8")
        add("adjacency.indices", self.adjacency.indices, "<i4")
        if self.weighted:
            add("adjacency.data", self.adjacency.data, "<f4")
        if sparse.issparse(self.features):
            add("features.indptr", self.features.indptr, "<i8")
            add("features.indices", self.features.indices, "<i4")
            add("features.data", self.features.data, "<f4")
        add("features", np.array(self.features.shape), "<i8")
        if isinstance(self.features, np.ndarray):
            add("features.dense", self.features, "<f4")
        add("labels", self.labels, "<i8")
        if self.node_ids.dtype.kind == "i":
            add("ids", self.node_ids, "<i8")
        else:
            add_texts("ids", self.node_ids.tolist())
        add_texts("classes", self.class_names)
        digest.update(repr(self.text).encode())
        if self.text is not None and self.text.beside:
            digest.update(f"beside:{self.text.beside}".encode())
        return digest.hexdigest()

    def class_number(self, label: ClassLabel) -> int | None:
        """Return the position of a class in ``class_names``.

        Args:
            label: The class as the user writes it, an integer or a text.

        Returns:
            The position, or None if the graph has no such class.
        """
        return class_position(self.class_names, label)

    def nodes_of(self, ids: "list[str] | list[int] | np.ndarray") -> np.ndarray:
        """Return the nodes with these ids.

        Args:
            ids: The user's ids, of the type of ``node_ids``: a number and its text are different ids.

        Returns:
            (m,) int64 Node numbers; -1 for an id that the graph does not have.
        """
        return self._id_index.exact(ids)

    # Members that streams and commands need of both Graph and GraphFolder. In memory they are trivial.

    unsupported_tracks: ClassVar[tuple[str, ...]] = ()
    shuffled: ClassVar[bool] = False
    work: ClassVar[Path | None] = None

    def device_for(self, wanted: str) -> str:
        """Return the device to compute on.

        Args:
            wanted: Name of a device, such as ``cpu`` or ``cuda``.

        Returns:
            The same name: graphs in memory can be used on every device.
        """
        return wanted

    def with_workers(self) -> AbstractContextManager["Graph"]:
        """Return a context with the graph itself, which is computed in this process."""
        return nullcontext(self)

    def loaded(self) -> "Graph":
        """Return the graph itself, which is in memory."""
        return self

    def feature_blocks(self, chosen: np.ndarray) -> Iterator[Features]:
        """Yield the raw features of some nodes in one block.

        Args:
            chosen: (n,) bool, True for these nodes.

        Returns:
            Iterator over (m, d) features: one block, or none if no node is chosen.
        """
        if chosen.any():
            yield self.features if chosen.all() else self.features[np.flatnonzero(chosen)]

    def visible(
        self, numbers: np.ndarray, view: FeatureView | None = None, node_of_number: np.ndarray | None = None
    ) -> VisibleGraph:
        """Cut out the subgraph of some nodes, with all edges among them.

        Args:
            numbers: (m,) Numbers of the nodes in the subgraph, ascending.
            view: Turns raw features into the features that learners see. None keeps raw features.
            node_of_number: (n,) Node of this graph for each number. None means that nodes and numbers are the same.

        Returns:
            The subgraph, without labels and ids.
        """
        nodes = numbers if node_of_number is None else node_of_number[numbers]
        adjacency = self.adjacency[nodes][:, nodes]
        adjacency.sort_indices()
        features = self.features[nodes]
        return VisibleGraph(numbers, adjacency, features if view is None else view.apply(features))

    @cached_property
    def _id_index(self) -> IdIndex:
        return IdIndex(self.node_ids)

    def _arrays(self) -> list[np.ndarray]:
        values = (self.adjacency, self.features, self.labels, self.node_ids, self.feature_names)
        return [part for each in values if each is not None for part in array_parts(each)]
