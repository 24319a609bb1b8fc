"""A growing graph as trees of arrays, and back.

Blocks end at multiples of node numbers, and an edge stands with the later of its two nodes, by number. Numbers never
change: a node that comes changes the last blocks, one that leaves changes its own and those of its later neighbours.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from graphfcl.graph.ids import text_array
from graphfcl.production.graph.contract import NodeNames
from graphfcl.production.graph.view_codec import decode_views, encode_views
from graphfcl.production.store.block_arrays import BLOCK, BlockArrays, checked
from graphfcl.production.store.damage import need
from graphfcl.production.store.ids import read_ids, write_ids
from graphfcl.production.store.strict_json import whole_number
from graphfcl.production.store.trees import Tree, TreeName, read_tree, remember_tree, write_once

if TYPE_CHECKING:  # ids and labels are read without scipy
    from scipy import sparse

    from graphfcl.graph import Features
    from graphfcl.production.answers.answers import ModelAnswers
    from graphfcl.production.answers.version_cache import CacheKeys
    from graphfcl.production.graph.contract import ModelGraph, NodeIndex

WIDE, MIDDLE, NARROW = 1 << 16, 1 << 14, 1 << 12  # numbers of nodes in one block: of a few bytes a node, or of many
TAIL = 16
WIDEST = 1 << 24  # columns of features


def encode_graph(graph: Any, arrays: BlockArrays) -> dict[str, TreeName]:
    """The trees ``nodes``, ``edges`` and ``features``; arrays that lie there already are not written again."""
    return {
        "nodes": write_once(arrays, graph.numbers, (graph.ids,), lambda: encode_nodes(graph, arrays)),
        "edges": write_once(arrays, graph.adjacency, (graph.numbers,), lambda: encode_edges(graph, arrays)),
        "features": write_once(arrays, graph.features, _shown(graph), lambda: encode_features(graph, arrays)),
    }


def _shown(graph: Any) -> tuple[Any, ...]:
    """What its tree of features depends on besides the features."""
    return graph.numbers, graph.feature_names, graph.text_weights, graph.standardisation


class StoredGrowingGraph:
    """See :class:`StoredGraph`. nodes: its tree of nodes. make: a graph of its fields."""

    passes: ClassVar[bool] = False

    def __init__(
        self,
        trees: Mapping[str, TreeName],
        arrays: BlockArrays,
        nodes: Tree,
        make: "Callable[..., ModelGraph]",
    ) -> None:
        self._trees, self._arrays, self._nodes, self._make = trees, arrays, nodes, make
        self._read: ModelGraph | None = None

    def read(self) -> "ModelGraph":
        if self._read is None:
            trees, arrays, nodes = self._trees, self._arrays, self._nodes
            edges, features = (read_tree(arrays.objects, trees.get(name)) for name in ("edges", "features"))
            numbers, next_number, ids = decode_nodes(nodes, arrays)
            fields = decode_features(features, arrays, numbers.size)
            graph: Any = self._make(numbers, ids, next_number, decode_edges(edges, arrays, numbers), **fields)
            remember_tree(arrays, graph.numbers, (graph.ids,), trees["nodes"], nodes)
            remember_tree(arrays, graph.adjacency, (graph.numbers,), trees["edges"], edges)
            remember_tree(arrays, graph.features, _shown(graph), trees["features"], features)
            self._read = graph
        return self._read

    def index(self) -> "NodeIndex":
        return self._index if self._read is None else self._read

    @cached_property
    def _index(self) -> NodeNames:
        numbers, _, ids = decode_nodes(self._nodes, self._arrays)
        return NodeNames(numbers, ids)

    def counts(self) -> tuple[int, int]:
        return _length(self._nodes, "numbers"), _length(
            read_tree(self._arrays.objects, self._trees.get("edges")), "others"
        )

    def contains(self, numbers: np.ndarray) -> np.ndarray:
        if self._read is not None:
            return self._read.contains(numbers)
        return np.isin(numbers, self._arrays.read(self._nodes.index("numbers")))

    def origin(self) -> dict[str, Any]:
        return {}

    def device(self, wanted: str) -> str:
        return wanted

    def find_answers(self, keys: "CacheKeys", columns: int) -> "ModelAnswers | None":  # noqa: ARG002
        """The cache of the model folder has all of them."""
        return None


def _length(tree: Tree, array: str) -> int:
    _, shape, _ = checked(tree.index(array))
    need(len(shape) == 1, f"its {array} are no row of numbers")
    return int(shape[0])


# Nodes


def encode_nodes(graph: Any, arrays: BlockArrays) -> Tree:
    """Numbers and ids."""
    ids = write_ids(arrays, graph.ids, _cuts(graph, MIDDLE))
    numbers = arrays.write(graph.numbers, _cuts(graph, WIDE))
    return Tree({"numbers": numbers, **ids}, {"next_number": graph.next_number})


def decode_nodes(tree: Tree, arrays: BlockArrays) -> tuple[np.ndarray, int, np.ndarray]:
    """Numbers, the next number, and ids."""
    numbers = arrays.read(tree.index("numbers"))
    next_number = whole_number(tree.value("next_number"), "the next number of a node")
    return numbers, next_number, checked_nodes(numbers, next_number, decode_ids(tree, arrays))


def decode_ids(tree: Tree, arrays: BlockArrays) -> np.ndarray:
    """(n,) the user's ids."""
    return ids_in_memory(read_ids(arrays, tree.arrays))


def ids_in_memory(ids: np.ndarray | list[str]) -> np.ndarray:
    """Ids as a graph holds them."""
    return ids if isinstance(ids, np.ndarray) else text_array(ids)


def checked_nodes(numbers: np.ndarray, next_number: int, ids: np.ndarray) -> np.ndarray:
    """The ids; numbers ascend below the next one, and no id stands twice."""
    need(numbers.dtype == np.int64 and numbers.ndim == 1, "the numbers of its nodes are none")
    need(numbers.size == 0 or (numbers[0] >= 0 and numbers[-1] < next_number), "a number of a node was never given")
    need(bool((np.diff(numbers) > 0).all()), "the numbers of its nodes do not ascend")
    need(ids.shape == numbers.shape, "its nodes and their ids differ in number")
    need(np.unique(ids).size == ids.size, "an id stands twice")
    return ids


# Edges


def encode_edges(graph: Any, arrays: BlockArrays) -> Tree:
    """Each edge once, in the row of its later node, by the number of the other."""
    from scipy import sparse

    lower = sparse.csr_array(sparse.tril(graph.adjacency, k=-1, format="csr"))
    lower.sort_indices()
    cuts = lower.indptr[_cuts(graph, MIDDLE)]
    small = graph.next_number < 2**31
    others = graph.numbers[lower.indices].astype(np.int32 if small else np.int64)
    found = {
        "counts": arrays.write(np.diff(lower.indptr).astype(np.int32), _cuts(graph, WIDE)),
        "others": arrays.write(others, cuts),
    }
    if not (lower.data == 1).all():
        found["weights"] = arrays.write(lower.data.astype(np.float32), cuts)
    return Tree(found)


def decode_edges(tree: Tree, arrays: BlockArrays, numbers: np.ndarray) -> "sparse.csr_array":
    """(n, n) adjacency."""
    counts, others = arrays.read(tree.index("counts")), arrays.read(tree.index("others"))
    need(others.dtype.kind == "i" and others.ndim == 1, "its edges name no nodes")
    places = np.searchsorted(numbers, others)
    need(others.size == 0 or numbers.size > 0, "its edges name nodes that are not there")
    found = places.clip(max=max(0, numbers.size - 1))
    need(np.array_equal(numbers[found], others), "its edges name nodes that are not there")
    weights = np.ones(others.size, np.float32)
    if "weights" in tree.arrays:
        weights = arrays.read(tree.index("weights"))
    return adjacency_of(csr_of(counts, found, weights, (numbers.size, numbers.size), "edges"))


def adjacency_of(half: "sparse.csr_array") -> "sparse.csr_array":
    """(n, n) symmetric, of a matrix that has each edge once."""
    from scipy import sparse

    rows = np.repeat(np.arange(half.shape[0]), np.diff(half.indptr))
    lower, upper = half.indices < rows, half.indices > rows
    need(bool(lower.all() or upper.all()), "an edge stands twice, or leads to its own node")
    need(bool((half.data > 0).all()), "an edge has no weight above 0")
    adjacency = sparse.csr_array(half + half.T)
    adjacency.sort_indices()
    return adjacency


def csr_of(counts: Any, columns: Any, values: Any, shape: tuple[int, int], what: str) -> "sparse.csr_array":
    """A CSR matrix, after everything is checked that the code behind it relies on."""
    from scipy import sparse

    need(counts.shape == (shape[0],) and counts.dtype.kind == "i", f"its {what} do not fit its nodes")
    need(bool((counts >= 0).all()), f"a row of its {what} has a negative length")
    ends = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    need(columns.ndim == values.ndim == 1 and ends[-1] == columns.size == values.size, f"its {what} differ in number")
    need(columns.dtype.kind == "i" and values.dtype.kind in "fiu", f"its {what} are of an unknown type")
    if columns.size:
        need(bool(columns.min() >= 0) and bool(columns.max() < shape[1]), f"its {what} lead out of their matrix")
    inside = np.ones(max(0, columns.size - 1), dtype=bool)  # whether two entries that follow are of one row
    inside[(ends[1:-1] - 1)[(ends[1:-1] > 0) & (ends[1:-1] < columns.size)]] = False
    need(bool((np.diff(columns)[inside] > 0).all()), f"its {what} are not in order")
    need(bool(np.isfinite(values).all()), f"its {what} hold a number that is not finite")
    kind = np.int32 if max(ends[-1], *shape, 0) < 2**31 else np.int64
    parts = (values.astype(np.float32, copy=False), columns.astype(kind), ends.astype(kind))
    return sparse.csr_array(parts, shape=shape)


# Features


def encode_features(graph: Any, arrays: BlockArrays) -> Tree:
    """Features as they are, and what turns them into those that a learner sees."""
    features = graph.features
    found: dict[str, Any] = {}
    if isinstance(features, np.ndarray):
        row = max(1, features.shape[1] * features.itemsize)
        found["dense"] = arrays.write(features, _cuts(graph, 1 << max(0, (BLOCK // row).bit_length() - 1)))
    else:
        ordered = features if features.has_sorted_indices else features.sorted_indices()
        cuts = ordered.indptr[_cuts(graph, NARROW)]
        found["counts"] = arrays.write(np.diff(ordered.indptr).astype(np.int32), _cuts(graph, WIDE))
        found["columns"] = arrays.write(ordered.indices.astype(np.int32), cuts)
        if not (ordered.data == 1).all():
            found["data"] = arrays.write(ordered.data.astype(np.float32), cuts)
    if graph.feature_names is not None:
        names = write_ids(arrays, [str(name) for name in graph.feature_names], np.zeros(0, np.int64))
        found |= {f"names.{key}": index for key, index in names.items()}
    views = encode_views(graph.text_weights, graph.standardisation, arrays)
    return Tree(found | views.arrays, {"width": graph.features.shape[1], **views.values})


def decode_features(tree: Tree, arrays: BlockArrays, count: int) -> dict[str, Any]:
    """The fields of a graph that speak of features. count: of nodes."""
    width = whole_number(tree.value("width"), "the number of features", 0, WIDEST)
    if "dense" in tree.arrays:
        rows: Any = arrays.read(tree.index("dense"))
    else:
        columns = arrays.read(tree.index("columns"))
        data = arrays.read(tree.index("data")) if "data" in tree.arrays else np.ones(columns.size, np.float32)
        rows = csr_of(arrays.read(tree.index("counts")), columns, data, (count, width), "features")
    named = {key.removeprefix("names."): index for key, index in tree.arrays.items() if key.startswith("names.")}
    names = ids_in_memory(read_ids(arrays, named)) if named else None
    check_features(rows, (count, width), names)
    text, standardisation = decode_views(tree, arrays, width, dense=isinstance(rows, np.ndarray))
    return {"features": rows, "feature_names": names, "text_weights": text, "standardisation": standardisation}


def check_features(rows: "Features", shape: tuple[int, int], names: np.ndarray | None) -> None:
    """Features are those of the nodes, and have names or none."""
    need(rows.shape == shape, "its nodes and their features differ in number")
    if isinstance(rows, np.ndarray):
        need(rows.dtype.kind == "f" and bool(np.isfinite(rows).all()), "its features are not all finite numbers")
    need(names is None or names.shape == (shape[1],), "its features and their names differ in number")


def _cuts(graph: Any, width: int) -> np.ndarray:
    """Rows at which blocks of so many node numbers end; the last ones, to which nodes are added, are a part as wide."""
    full, part = graph.next_number // width * width, max(1, width // TAIL)
    ends = np.concatenate([np.arange(width, full + 1, width), np.arange(full + part, graph.next_number, part)])
    return np.searchsorted(graph.numbers, ends)
