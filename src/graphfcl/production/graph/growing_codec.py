"""Encode and decode the parts ``nodes``, ``edges`` and ``features`` of a growing graph.

Chunks end at multiples of node numbers, and an edge is stored with the later of its two nodes, by number. Numbers never
change. So an added node changes only the last chunks, and a removed one only its own chunk and those of its later
neighbours.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from graphfcl.production.graph.contract import NodeNames, StoredGraph
from graphfcl.production.store.checks import Damaged, need, whole_number
from graphfcl.production.store.ids import id_arrays, id_cuts, read_ids
from graphfcl.production.store.parts import CHUNK, Part, PartSource

if TYPE_CHECKING:  # ids and labels are read without scipy
    from scipy import sparse

    from graphfcl.graph import Features, Standardisation, TextWeights
    from graphfcl.production.graph.growing_graph import GrowingGraph

WIDE, MIDDLE, NARROW = 1 << 16, 1 << 14, 1 << 12  # nodes in one chunk, for few, more and many bytes per node
TAIL = 16
WIDEST = 1 << 24  # columns of features
VIEW_ARRAYS = ("text.columns", "text.weights", "means", "deviations", "beside.means", "beside.deviations")


def encode_graph(graph: "GrowingGraph") -> dict[str, PartSource]:
    """Return the three parts."""
    seen = (graph.features, graph.numbers, graph.feature_names, graph.text_weights, graph.standardisation)
    return {
        "nodes": PartSource(lambda: encode_nodes(graph), (graph.numbers, graph.ids)),
        "edges": PartSource(lambda: encode_edges(graph), (graph.adjacency, graph.numbers)),
        "features": PartSource(lambda: encode_features(graph), seen),
    }


class StoredGrowingGraph(StoredGraph):
    """Graph in memory of a version. ``part`` reads a part; ``remember`` receives how the graph is stored, after it was
    read.
    """

    def __init__(
        self, part: "Callable[[str], Part]", remember: "Callable[[Mapping[str, PartSource]], None]" = lambda _: None
    ) -> None:
        self._part, self._remember = part, remember
        self._graph: GrowingGraph | None = None

    def read(self) -> "GrowingGraph":
        if self._graph is None:
            from graphfcl.production.graph.growing_graph import GrowingGraph

            numbers, next_number, ids = _decode_nodes(self._part("nodes"))
            adjacency = _decode_edges(self._part("edges"), numbers)
            fields = _decode_features(self._part("features"), numbers.size)
            self._graph = GrowingGraph(numbers, ids, next_number, adjacency, **fields)
            self._remember(encode_graph(self._graph))
        return self._graph

    def index(self) -> NodeNames:
        return self._graph or self._index

    @cached_property
    def _index(self) -> NodeNames:
        numbers, _, ids = _decode_nodes(self._part("nodes"))
        return NodeNames(numbers, ids)

    def counts(self) -> tuple[int, int]:
        return self._part("nodes").length("numbers"), self._part("edges").length("others")

    def contains(self, numbers: np.ndarray) -> np.ndarray:
        if self._graph is not None:
            return self._graph.contains(numbers)
        return np.isin(numbers, self._part("nodes").array("numbers"))


# Nodes


def encode_nodes(graph: "GrowingGraph") -> Part:
    """Encode numbers and ids."""
    ids = id_arrays(graph.ids)
    cuts = {"numbers": _cuts(graph, WIDE), **id_cuts(ids, _cuts(graph, MIDDLE))}
    return Part({"next_number": graph.next_number}, {"numbers": graph.numbers, **ids}, cuts)


def _decode_nodes(part: Part) -> tuple[np.ndarray, int, np.ndarray]:
    """Return numbers, the next number, and ids. Numbers ascend below the next one, and ids are distinct."""
    numbers, ids = part.array("numbers"), read_ids(part)
    next_number = whole_number(part.value("next_number"), "the next number of a node")
    need(numbers.dtype == np.int64 and numbers.ndim == 1, "the numbers of its nodes are invalid")
    need(numbers.size == 0 or (numbers[0] >= 0 and numbers[-1] < next_number), "a node number was never assigned")
    need(bool((np.diff(numbers) > 0).all()), "the numbers of its nodes are not ascending")
    need(ids.shape == numbers.shape, "its nodes and their ids differ in number")
    need(np.unique(ids).size == ids.size, "an id occurs twice")
    return numbers, next_number, ids


# Edges


def encode_edges(graph: "GrowingGraph") -> Part:
    """Encode each edge once, in the row of its later node, by the number of the other node."""
    from scipy import sparse

    lower = sparse.csr_array(sparse.tril(graph.adjacency, k=-1, format="csr"))
    lower.sort_indices()
    cuts = lower.indptr[_cuts(graph, MIDDLE)]
    others = graph.numbers[lower.indices].astype(np.int32 if graph.next_number < 2**31 else np.int64)
    arrays = {"counts": np.diff(lower.indptr).astype(np.int32), "others": others}
    if not (lower.data == 1).all():
        arrays["weights"] = lower.data.astype(np.float32)
    return Part({}, arrays, {"counts": _cuts(graph, WIDE), "others": cuts, "weights": cuts})


def _decode_edges(part: Part, numbers: np.ndarray) -> "sparse.csr_array":
    """Return the (n, n) adjacency matrix."""
    counts, others = part.array("counts"), part.array("others")
    need(others.dtype.kind == "i" and others.ndim == 1, "its edges name no nodes")
    need(others.size == 0 or numbers.size > 0, "its edges name nodes that are not in the graph")
    places = np.searchsorted(numbers, others).clip(max=max(0, numbers.size - 1))
    need(np.array_equal(numbers[places], others), "its edges name nodes that are not in the graph")
    weights = part.array("weights") if "weights" in part.arrays else np.ones(others.size, np.float32)
    return adjacency_of(csr_of(counts, places, weights, (numbers.size, numbers.size), "edges"))


def adjacency_of(half: "sparse.csr_array") -> "sparse.csr_array":
    """Return the (n, n) symmetric matrix of a matrix that has each edge once."""
    from scipy import sparse

    rows = np.repeat(np.arange(half.shape[0]), np.diff(half.indptr))
    lower, upper = half.indices < rows, half.indices > rows
    need(bool(lower.all() or upper.all()), "an edge occurs twice or is a self-loop")
    need(bool((half.data > 0).all()), "an edge has a weight that is not above 0")
    adjacency = sparse.csr_array(half + half.T)
    adjacency.sort_indices()
    return adjacency


def csr_of(counts: Any, columns: Any, values: Any, shape: tuple[int, int], what: str) -> "sparse.csr_array":
    """Return a CSR matrix after checking everything that SciPy relies on."""
    from scipy import sparse

    need(counts.shape == (shape[0],) and counts.dtype.kind == "i", f"its {what} do not fit its nodes")
    need(bool((counts >= 0).all()), f"a row of its {what} has a negative length")
    ends = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    need(columns.ndim == values.ndim == 1 and ends[-1] == columns.size == values.size, f"its {what} differ in number")
    need(columns.dtype.kind == "i" and values.dtype.kind in "fiu", f"its {what} are of an unknown type")
    if columns.size:
        need(bool(columns.min() >= 0) and bool(columns.max() < shape[1]), f"its {what} lie outside of their matrix")
    inside = np.ones(max(0, columns.size - 1), dtype=bool)  # whether an entry and the next one are in the same row
    inside[(ends[1:-1] - 1)[(ends[1:-1] > 0) & (ends[1:-1] < columns.size)]] = False
    need(bool((np.diff(columns)[inside] > 0).all()), f"its {what} are not in order")
    need(bool(np.isfinite(values).all()), f"its {what} hold a number that is not finite")
    kind = np.int32 if max(ends[-1], *shape, 0) < 2**31 else np.int64
    parts = (values.astype(np.float32, copy=False), columns.astype(kind), ends.astype(kind))
    return sparse.csr_array(parts, shape=shape)


# Features


def encode_features(graph: "GrowingGraph") -> Part:
    """Encode raw features, and how they become the features that a learner sees."""
    features, arrays, cuts = graph.features, {}, {}
    if isinstance(features, np.ndarray):
        row = max(1, features.shape[1] * features.itemsize)
        arrays["dense"] = features
        cuts["dense"] = _cuts(graph, 1 << max(0, (CHUNK // row).bit_length() - 1))
    else:
        ordered = features if features.has_sorted_indices else features.sorted_indices()
        arrays = sparse_arrays(ordered)
        of_entries = ordered.indptr[_cuts(graph, NARROW)]
        cuts = {"counts": _cuts(graph, WIDE), "columns": of_entries, "data": of_entries}
    if graph.feature_names is not None:
        arrays |= id_arrays([str(name) for name in graph.feature_names], "names")
    views = encode_views(graph.text_weights, graph.standardisation)
    return Part({"width": graph.features.shape[1], **views.values}, {**arrays, **views.arrays}, cuts)


def _decode_features(part: Part, count: int) -> dict[str, Any]:
    """Return the fields of a graph about features. ``count``: number of nodes."""
    width = whole_number(part.value("width"), "the number of features", 0, WIDEST)
    rows = decode_rows(part, (count, width))
    names = read_ids(part, "names") if "names.lengths" in part.arrays else None
    need(names is None or names.shape == (width,), "its features and their names differ in number")
    text, standardisation = decode_views(part, width, dense=isinstance(rows, np.ndarray))
    return {"features": rows, "feature_names": names, "text_weights": text, "standardisation": standardisation}


def sparse_arrays(rows: "sparse.csr_array") -> dict[str, np.ndarray]:
    """Return a CSR matrix with sorted indices as arrays; values are left out if all are 1."""
    arrays = {"counts": np.diff(rows.indptr).astype(np.int32), "columns": rows.indices.astype(np.int32)}
    if not (rows.data == 1).all():
        arrays["data"] = rows.data.astype(np.float32)
    return arrays


def decode_rows(part: Part, shape: tuple[int, int]) -> "Features":
    """Decode features of nodes, from the array ``dense`` or from the arrays of :func:`sparse_arrays`."""
    if "dense" in part.arrays:
        rows = part.array("dense")
        need(rows.shape == shape, "its nodes and their features differ in number")
        need(rows.dtype.kind == "f" and bool(np.isfinite(rows).all()), "its features are not all finite numbers")
        return rows
    columns = part.array("columns")
    data = part.array("data") if "data" in part.arrays else np.ones(columns.size, np.float32)
    return csr_of(part.array("counts"), columns, data, shape, "features")


def _cuts(graph: "GrowingGraph", width: int) -> np.ndarray:
    """Return rows at which chunks of ``width`` node numbers end. The last chunks, to which nodes are added, are
    narrower.
    """
    full, part = graph.next_number // width * width, max(1, width // TAIL)
    ends = np.concatenate([np.arange(width, full + 1, width), np.arange(full + part, graph.next_number, part)])
    return np.searchsorted(graph.numbers, ends)


# Views: how raw features become the features that a learner sees


def encode_views(text: "TextWeights | None", standardisation: "Standardisation | None") -> Part:
    """Encode text weights and standardisation, of which a graph has at most one."""
    arrays: dict[str, np.ndarray] = {}
    values: dict[str, Any] = {}
    if text is not None:
        arrays |= {"text.columns": text.columns, "text.weights": text.inverse_document_frequency}
        values["min_nodes"] = text.min_nodes
        if text.beside is not None:
            numbers = text.beside.standardisation
            arrays |= {"beside.means": numbers.mean, "beside.deviations": numbers.deviation}
            values["beside"] = list(text.beside.groups)
    if standardisation is not None:
        arrays |= {"means": standardisation.mean, "deviations": standardisation.deviation}
    return Part(values, arrays)


def decode_views(part: Part, width: int, *, dense: bool) -> tuple["TextWeights | None", "Standardisation | None"]:
    """Decode text weights and standardisation, checked. ``width``: number of raw features. ``dense``: they are a
    matrix.
    """
    from graphfcl.graph import TextWeights
    from graphfcl.graph.views import NumbersBesideWords

    stored = {name: part.array(name) for name in VIEW_ARRAYS if name in part.arrays}
    text = standardisation = beside = None
    for key, values in stored.items():
        need(values.ndim == 1 and values.dtype.kind in "iuf", f"its {key} are not a list of numbers")
        need(bool(np.isfinite(values).all()), f"its {key} are not all finite")
    if "beside" in part.values:
        groups = part.value("beside")
        need(isinstance(groups, list) and bool(groups), "the groups of its numbers beside words are invalid")
        widths = tuple(whole_number(each, "a group of numbers beside words", 1, width) for each in groups)
        need(sum(widths) <= width, "its numbers beside words do not fit its features")
        numbers = _standardisation(stored, "beside.", sum(widths), "numbers beside words")
        beside = NumbersBesideWords(width - sum(widths), widths, numbers)
    if "text.columns" in stored or "text.weights" in stored:
        columns, weights = stored.get("text.columns"), stored.get("text.weights")
        if columns is None or weights is None or columns.shape != weights.shape or columns.dtype.kind != "i":
            raise Damaged("its words and their weights differ in number")
        words = width if beside is None else beside.first
        need(
            columns.size == 0 or (columns.min() >= 0 and columns.max() < words),
            "a word names a column that does not exist",
        )
        need(not dense, "its words are not stored as counts")
        least = whole_number(part.value("min_nodes"), "the nodes that a word needs")
        text = TextWeights(columns, weights, min_nodes=least, beside=beside)
    need(beside is None or text is not None, "it has numbers beside words, but no words")
    if "means" in stored or "deviations" in stored:
        need(dense, "it has means and deviations of sparse features")
        standardisation = _standardisation(stored, "", width, "features")
    return text, standardisation


def _standardisation(stored: dict[str, np.ndarray], prefix: str, width: int, what: str) -> "Standardisation":
    """Return ``width`` means and standard deviations, checked. ``what`` names the columns in messages."""
    from graphfcl.graph import Standardisation

    means, deviations = stored.get(f"{prefix}means"), stored.get(f"{prefix}deviations")
    if means is None or deviations is None or not means.shape == deviations.shape == (width,):
        raise Damaged(f"its {what} and their means differ in number")
    need(bool((deviations >= 0).all()), f"the deviations of its {what} are negative")
    return Standardisation(means, deviations)
