"""Sources of graph folders: graphs that are read in blocks."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np

from graphfcl.errors import InputError
from graphfcl.graph.graph import Features, Graph, TextSettings
from graphfcl.graph.ids import pack_texts
from graphfcl.graph.labels import CleanLabels
from graphfcl.graph.tables.columns import ReadColumns

STEP = 1 << 18  # edges or numbers in a block


@dataclass(frozen=True, eq=False)
class EdgeBlock:
    """A block of edges between positions of nodes in the source; ``first`` is the number of edges before it."""

    first: int
    source: np.ndarray
    target: np.ndarray
    weights: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class TextBlock:
    """A block of ids in text form: their UTF-8 bytes, and (m + 1,) the positions where ids begin."""

    content: np.ndarray
    starts: np.ndarray


TextIds: TypeAlias = Callable[[], Iterator[TextBlock]]


@dataclass(frozen=True)
class Spool:
    """Folder for temporary files of a source, and bytes of memory that it may use."""

    folder: Path
    memory: int


@dataclass(frozen=True, eq=False)
class GraphSource:
    """A graph with small data in memory and large data in blocks. Functions may be called several times.

    Args:
        name: Name of the graph.
        made_of: What the graph is read from.
        nodes_where: Name of the source of nodes in messages.
        edges_where: Name of the source of edges in messages.
        node_count: Number of nodes.
        labels: Labels of all nodes and names of the classes.
        features: Yields (rows, d) blocks of all nodes in order, all dense or all sparse.
        edges: Yields edges in any order, or in order if ``repeated`` is ``last``.
        fingerprint: Returns a text that identifies nodes, edges and their order. It determines the order of rows in
            the folder, and learners never see it.
        ids: (n,) int64, or a function that yields different texts in blocks. None if ids are 0 to n - 1.
        feature_count: Number of feature columns.
        sparse_features: Whether feature blocks are CSR matrices.
        weighted: Whether edges have weights.
        repeated: How weights of duplicate edges are combined, a key of :data:`REPEATED`.
        mirrored: Whether each edge is listed once and means both directions.
        feature_names: (d,) Names of the feature columns.
        text: Set if features are word counts.
        notes: Notes that come before notes on edges and labels.
        edge_notes: Returns notes that are known after the edges were read.
        cleaned: Number of ids and class names that were cleaned.
        node_bytes: Bytes per node that the source itself needs.
        columns: Column names of the tables that the graph is read from.
        column_min_nodes: As in :class:`Graph`.
        edge_place: Name of a single edge in messages.
    """

    name: str
    made_of: str
    nodes_where: str
    edges_where: str
    node_count: int
    labels: CleanLabels
    features: Callable[[], Iterator[Features]]
    edges: Callable[[Spool], Iterator[EdgeBlock]]
    fingerprint: Callable[[], str]
    ids: np.ndarray | TextIds | None = None
    feature_count: int = 0
    sparse_features: bool = False
    weighted: bool = False
    repeated: str = "max"
    mirrored: bool = False
    feature_names: np.ndarray | None = None
    text: TextSettings | None = None
    notes: tuple[str, ...] = ()
    edge_notes: Callable[[], Sequence[str]] = tuple
    cleaned: int = 0
    node_bytes: int = 4
    columns: ReadColumns | None = None
    column_min_nodes: int = 1
    edge_place: Callable[[int], str] = field(default=lambda number: f"edge {number}")


Source: TypeAlias = GraphSource | Callable[[Spool], GraphSource]  # or a function that opens one


def of_graph(graph: Graph, made_of: str | None = None) -> GraphSource:
    """Make a source of a graph in memory."""
    return GraphSource(
        name=graph.name,
        made_of=made_of or graph.name,
        nodes_where=graph.name,
        edges_where=graph.name,
        node_count=graph.node_count,
        labels=CleanLabels(graph.labels, graph.class_names, integers=graph.integer_classes),
        features=lambda: _features(graph),
        edges=lambda _: _edges(graph),
        fingerprint=lambda: graph.sha256,
        ids=ids_in_memory(graph.node_ids),
        feature_count=graph.feature_count,
        sparse_features=graph.sparse_features,
        weighted=graph.weighted,
        mirrored=True,
        feature_names=graph.feature_names,
        text=graph.text,
        notes=graph.notes,
        cleaned=graph.cleaned,
        node_bytes=0,
        columns=graph.columns,
        column_min_nodes=graph.column_min_nodes,
    )


def of_files(*paths: Path) -> Callable[[], str]:
    """Return the fingerprint function of a source that consists of files, which may be missing."""

    def fingerprint() -> str:
        digest = hashlib.sha256()
        for path in paths:
            digest.update(_file_digest(path))
        return digest.hexdigest()

    return fingerprint


def _file_digest(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except FileNotFoundError:
        return b"missing"
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): check the file.") from error


def ids_in_memory(ids: np.ndarray) -> np.ndarray | TextIds | None:
    """Convert ids of :func:`graphfcl.graph.ids.make_ids` to the form of :class:`GraphSource`."""
    if ids.dtype.kind != "i":
        return lambda: (TextBlock(*pack_texts(ids[at : at + STEP].tolist())) for at in range(0, ids.size, STEP))
    return None if np.array_equal(ids, np.arange(ids.size)) else ids


def _features(graph: Graph) -> Iterator[Features]:
    width = 64 if graph.sparse_features else graph.feature_count
    step = max(1, min(1 << 16, (1 << 22) // max(1, width)))
    for start in range(0, graph.node_count, step):
        yield graph.features[start : start + step]


def _edges(graph: Graph) -> Iterator[EdgeBlock]:
    """Yield each edge once, from the smaller node to the larger."""
    indptr, first = graph.adjacency.indptr, 0
    for start in range(0, graph.adjacency.nnz, STEP):
        stop = min(start + STEP, graph.adjacency.nnz)
        rows = np.searchsorted(indptr, np.arange(start, stop), side="right") - 1
        columns = graph.adjacency.indices[start:stop]
        upper = rows < columns
        weights = graph.adjacency.data[start:stop][upper] if graph.weighted else None
        yield EdgeBlock(first, rows[upper], columns[upper].astype(np.int64), weights)
        first += int(upper.sum())
