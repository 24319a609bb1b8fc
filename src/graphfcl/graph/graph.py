"""The graph every other part stands on."""

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
CLASSES_SHOWN = 12  # in a notebook


@dataclass(frozen=True)
class TextSettings:
    """The feature columns are counts of words; TF-IDF is fitted when the nodes of session 0 are known.

    ``min_nodes``: a word enters the vocabulary if it occurs in at least so many of those nodes.
    ``beside``: the last columns are no words but numbers, in groups of so many columns. Learners see them standardised
    and each group as large as the words: see :class:`graphfcl.graph.text.NumbersBesideWords`.
    """

    min_nodes: int = 2
    beside: tuple[int, ...] = field(default=(), repr=False)


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected graph with node features and one class a node. Immutable.

    Use :func:`graphfcl.graph.build_graph` or one of the readers to make one: they check and clean what they get.

    adjacency: (n, n) CSR, float32, symmetric, no self loops, sorted column indices; values are edge weights (1 if
        the graph has none).
    features: (n, d) float32, CSR or dense, as it came.
    labels: (n,) int64, positions in ``class_names``; ``UNKNOWN`` (-1) where the class is not known.
    class_names: what the classes are called, as texts. integer_classes: the user's labels are integers, and the names
        are these as texts; ``class_labels`` are the classes as the user writes them.
    node_ids: (n,) the user's own ids, int64 or text, see :mod:`graphfcl.graph.ids`.
    text: set if the features are word counts, see :class:`TextSettings`.
    column_min_nodes: the columns of sparse features were selected so that at least so many nodes have each. A learner
        sees a column if so many nodes of session 0 have it.
    notes: what the builder changed (directions dropped, duplicates merged, …), a sentence each.
    cleaned: how many ids and class names the builder changed; the hash is that of the cleaned ones.
    columns: those of the tables that it was read from.
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
        """Its counts, classes and notes for a notebook."""
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
        """Undirected edges: each pair of nodes counts once."""
        return int(self.adjacency.nnz) // 2

    @property
    def feature_count(self) -> int:
        return int(self.features.shape[1])

    @property
    def sparse_features(self) -> bool:
        return not isinstance(self.features, np.ndarray)

    @property
    def stored_values(self) -> int:
        """Number of feature values that are not zero; in a CSR matrix those that are stored."""
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
        """Bytes of all arrays, and of the texts of ids."""
        texts = pack_texts(self.node_ids.tolist())[0].nbytes if self.node_ids.dtype == object else 0
        return sum(array.nbytes for array in self._arrays()) + texts

    @cached_property
    def same_class_share(self) -> float | None:
        """Share of edges, among those with both labels known, whose ends are of one class."""
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
        """A fingerprint of the content, the same on every machine; names and notes do not count."""
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
        """The position of a class, or None."""
        return class_position(self.class_names, label)

    def nodes_of(self, ids: "list[str] | list[int] | np.ndarray") -> np.ndarray:
        """Node numbers of the user's own ids, exactly as they are; -1 for an id the graph does not have."""
        return self._id_index.exact(ids)

    # What else streams and commands need of a graph: its files and workers, if it stays on disk (see GraphFolder)

    unsupported_tracks: ClassVar[tuple[str, ...]] = ()
    shuffled: ClassVar[bool] = False
    work: ClassVar[Path | None] = None

    def device_for(self, wanted: str) -> str:
        """The device itself."""
        return wanted

    def with_workers(self) -> AbstractContextManager["Graph"]:
        """The graph itself: it is computed in this process."""
        return nullcontext(self)

    def loaded(self) -> "Graph":
        """The graph itself."""
        return self

    def feature_blocks(self, chosen: np.ndarray) -> Iterator[Features]:
        """The raw features of the nodes where ``chosen`` (n,) is true, in one block."""
        if chosen.any():
            yield self.features if chosen.all() else self.features[np.flatnonzero(chosen)]

    def visible(
        self, numbers: np.ndarray, view: FeatureView | None = None, node_of_number: np.ndarray | None = None
    ) -> VisibleGraph:
        """The subgraph of some nodes, with all edges among them.

        numbers: (m,) ascending, by which nodes are known there. view: what a learner sees of the raw features.
        node_of_number: (n,) the node behind each number; None: they are the same.
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
