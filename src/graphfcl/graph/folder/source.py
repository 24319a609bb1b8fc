"""What a graph folder is built from: a graph that is read in blocks."""

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

STEP = 1 << 18  # edges or numbers at a time


@dataclass(frozen=True, eq=False)
class EdgeBlock:
    """Edges between positions of nodes in the source. first: how many stood before this block. weights: or None."""

    first: int
    source: np.ndarray
    target: np.ndarray
    weights: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class TextBlock:
    """Some ids as texts. content: UTF-8, one after the other. starts: (m + 1,) where each begins."""

    content: np.ndarray
    starts: np.ndarray


TextIds: TypeAlias = Callable[[], Iterator[TextBlock]]


@dataclass(frozen=True)
class Spool:
    """Where a source may keep files while it is read, and how many bytes of memory it may use then."""

    folder: Path
    memory: int


@dataclass(frozen=True, eq=False)
class GraphSource:
    """A graph of which small things are in memory and large ones come in blocks, each time they are asked for.

    nodes_where, edges_where: what messages call the places they were read from; edge_place: a single edge.
    labels: of all nodes, with the names of the classes.
    ids: (n,) int64; or a function that gives texts in blocks, each text once; or None, if ids are 0 to n-1.
    features: gives (rows, d) blocks, dense or all sparse, of all nodes in order.
    edges: gives the edges, in any order. mirrored: each is listed once and means both directions.
    weighted: edges come with weights. repeated: what becomes of several weights of an edge; for ``last`` edges come in
    order.
    notes: those before what is said of edges and labels. edge_notes: those known once the edges were read.
    columns: those of the tables that it is read from. column_min_nodes: that of :class:`Graph`.
    fingerprint: a text that differs whenever nodes or edges do, the order of nodes included; the rows of a folder are
    ordered by it, and learners never learn it. node_bytes: memory for each node that the source holds itself.
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
    """A graph that is in memory."""
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
    """The fingerprint of a source whose content is that of some files; one that does not exist counts as such."""

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
    """Ids as :func:`graphfcl.graph.ids.make_ids` gives them, for :class:`GraphSource`."""
    if ids.dtype.kind != "i":
        return lambda: (TextBlock(*pack_texts(ids[at : at + STEP].tolist())) for at in range(0, ids.size, STEP))
    return None if np.array_equal(ids, np.arange(ids.size)) else ids


def _features(graph: Graph) -> Iterator[Features]:
    width = 64 if graph.sparse_features else graph.feature_count
    step = max(1, min(1 << 16, (1 << 22) // max(1, width)))
    for start in range(0, graph.node_count, step):
        yield graph.features[start : start + step]


def _edges(graph: Graph) -> Iterator[EdgeBlock]:
    """Each edge once, from the smaller node to the larger."""
    indptr, first = graph.adjacency.indptr, 0
    for start in range(0, graph.adjacency.nnz, STEP):
        stop = min(start + STEP, graph.adjacency.nnz)
        rows = np.searchsorted(indptr, np.arange(start, stop), side="right") - 1
        columns = graph.adjacency.indices[start:stop]
        upper = rows < columns
        weights = graph.adjacency.data[start:stop][upper] if graph.weighted else None
        yield EdgeBlock(first, rows[upper], columns[upper].astype(np.int64), weights)
        first += int(upper.sum())
