"""From raw parts to a clean :class:`Graph`: checks, symmetry, duplicates, self loops, labels."""

from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from graphfcl.errors import InputError
from graphfcl.graph.graph import UNKNOWN, Features, Graph, TextSettings


def build_graph(
    adjacency: Any,
    features: Any,
    labels: Any,
    *,
    class_names: Sequence[str] | None = None,
    node_ids: Any = None,
    feature_names: Any = None,
    text: TextSettings | None = None,
    name: str = "graph",
    where: str = "the graph",
    notes: Iterable[str] = (),
) -> Graph:
    """Check the parts of a graph and put them into one form.

    adjacency: (n, n) scipy sparse matrix or dense array. Directed edges are made symmetric, duplicates merged (the
        largest weight stays), self loops dropped; each of these leaves a note on the graph.
    features: (n, d) sparse or dense, or None for none (d = 0). Sparse stays sparse, dense stays dense.
    labels: (n,) class numbers (-1 or NaN: unknown) or class names (None or "": unknown).
    class_names: names of the class numbers; without them the numbers are the names.
    where: what to call the source in a message.
    """
    adjacency, edge_notes = clean_adjacency(adjacency, where)
    count = adjacency.shape[0]
    checked = clean_features(features, count, where)
    numbers, names = clean_labels(labels, class_names, count, where)
    return Graph(
        adjacency=adjacency,
        features=checked,
        labels=numbers,
        class_names=names,
        node_ids=clean_ids(node_ids, count, where),
        feature_names=clean_feature_names(feature_names, checked.shape[1], where),
        text=text,
        name=name,
        notes=(*notes, *edge_notes),
    )


def clean_adjacency(adjacency: Any, where: str) -> tuple[sparse.csr_array, list[str]]:
    """Symmetric float32 CSR without self loops, and notes on what was changed."""
    if not sparse.issparse(adjacency):
        adjacency = np.asarray(adjacency)
    if adjacency.ndim != 2 or adjacency.shape[0] != adjacency.shape[1]:
        raise InputError(f"{where}: the adjacency has shape {adjacency.shape}, it must be square (nodes × nodes).")
    if adjacency.dtype.kind not in "biuf":
        raise InputError(f"{where}: the adjacency holds {adjacency.dtype}, not numbers; give edge weights or 0 and 1.")
    coo = sparse.coo_array(adjacency)
    return adjacency_from_edges(coo.row, coo.col, coo.data, coo.shape[0], where)


def adjacency_from_edges(
    source: np.ndarray, target: np.ndarray, weights: np.ndarray | None, count: int, where: str
) -> tuple[sparse.csr_array, list[str]]:
    """The same from two arrays of node numbers and optional weights."""
    if source.size and not (min(source.min(), target.min()) >= 0 and max(source.max(), target.max()) < count):
        outside = (source < 0) | (source >= count) | (target < 0) | (target >= count)
        first = int(np.flatnonzero(outside)[0])
        raise InputError(
            f"{where}: edge {first} joins nodes {source[first]} and {target[first]}, but nodes are numbered 0 to "
            f"{count - 1}: add the missing nodes or drop the edge."
        )
    try:
        values = np.ones(source.size, dtype=np.float32) if weights is None else np.asarray(weights, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{where}: an edge weight is not a number; weights must be finite and not negative."
        ) from error
    if weights is not None and not (np.isfinite(values).all() and (values >= 0).all()):
        first = int(np.flatnonzero(~np.isfinite(values) | (values < 0))[0])
        raise InputError(f"{where}: edge {first} has weight {values[first]}; weights must be finite and not negative.")
    notes = []
    loops = (source == target) & (values > 0)
    kept = (source != target) & (values > 0)
    if not kept.all():
        if loops.any():
            notes.append(f"{int(loops.sum()):,} self loops were dropped.")
        source, target, values = source[kept], target[kept], values[kept]
    directed = _merge_duplicates(source, target, values, count)
    merged = source.size - directed.nnz
    reverse = directed.T.tocsr()
    if _same(directed, reverse):
        adjacency = directed
    else:
        adjacency = directed.maximum(reverse).tocsr()
        notes.append("Edges listed in one direction count in both (of two weights the larger stays).")
    if merged:
        notes.append(f"{merged:,} duplicate edges were merged (the largest weight stays).")
    adjacency.sort_indices()
    return adjacency, notes


def _merge_duplicates(source: np.ndarray, target: np.ndarray, values: np.ndarray, count: int) -> sparse.csr_array:
    matrix = sparse.coo_array((values, (source, target)), shape=(count, count))
    if values.size and (values == values[0]).all():
        matrix = matrix.tocsr()
        matrix.data[:] = values[0]
    else:
        # Conversion to CSR adds duplicates up, so all but the largest of each pair go first.
        order = np.lexsort((-values, target, source))
        source, target, values = source[order], target[order], values[order]
        first = np.ones(values.size, dtype=bool)
        first[1:] = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
        matrix = sparse.coo_array((values[first], (source[first], target[first])), shape=(count, count)).tocsr()
    matrix.sort_indices()
    return matrix


def _same(first: sparse.csr_array, second: sparse.csr_array) -> bool:
    second.sort_indices()
    return (
        np.array_equal(first.indptr, second.indptr)
        and np.array_equal(first.indices, second.indices)
        and np.array_equal(first.data, second.data)
    )


def clean_features(features: Any, count: int, where: str) -> Features:
    """float32, sparse if it came sparse, finite."""
    if features is None:
        return np.zeros((count, 0), dtype=np.float32)
    if sparse.issparse(features):
        checked: Features = sparse.csr_array(features, dtype=np.float32, copy=True)
        checked.sum_duplicates()
        checked.eliminate_zeros()
        values = checked.data
    else:
        try:
            values = checked = np.array(features, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise InputError(f"{where}: the features are not numbers ({error}); give a numeric matrix.") from error
    if checked.ndim != 2 or checked.shape[0] != count:
        raise InputError(
            f"{where}: the features have shape {checked.shape}, but the graph has {count} nodes; give one row per node."
        )
    if not np.isfinite(values).all():
        place = int(np.flatnonzero(~np.isfinite(values))[0])
        if isinstance(checked, np.ndarray):
            row, column = divmod(place, checked.shape[1])
        else:
            row = int(np.searchsorted(checked.indptr, place, side="right")) - 1
            column = int(checked.indices[place])
        raise InputError(
            f"{where}: the feature of node {row}, column {column} is NaN or infinite; fill it in or drop the column."
        )
    return checked


def clean_labels(
    labels: Any, class_names: Sequence[str] | None, count: int, where: str
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Class numbers 0..C-1 (-1: unknown) and the names they stand for."""
    if sparse.issparse(labels):
        raise InputError(f"{where}: the labels are a matrix, that is several a node; choose one class a node.")
    labels = _label_array(labels, where)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim == 0:
        raise InputError(f"{where}: there is no list of labels; give one label a node (-1 where unknown).")
    if labels.ndim != 1:
        raise InputError(
            f"{where}: the labels have shape {labels.shape}, that is several a node (multi-label); choose one class "
            "a node."
        )
    if labels.size != count:
        raise InputError(f"{where}: {labels.size} labels for {count} nodes; give one a node (-1 where unknown).")
    names = None if class_names is None else tuple(str(name) for name in class_names)
    if names is not None and len(set(names)) != len(names):
        raise InputError(f"{where}: a class name stands twice among the class names; give each class one name.")
    if labels.dtype.kind in "OU":
        return _labels_from_names(labels, names, where)
    numbers = _whole_numbers(labels, where)
    if names is None:
        present = np.unique(numbers[numbers >= 0])
        dense = np.searchsorted(present, numbers).astype(np.int64)
        return np.where(numbers < 0, UNKNOWN, dense), tuple(str(number) for number in present.tolist())
    if numbers.size and numbers.max() >= len(names):
        raise InputError(f"{where}: label {numbers.max()} has no name, there are {len(names)} class names.")
    return np.where(numbers < 0, UNKNOWN, numbers), names


def _label_array(labels: Any, where: str) -> np.ndarray:
    """Numbers, or texts among which None and NaN may stand (numpy alone would make the text "nan" of a NaN)."""
    named = isinstance(labels, list | tuple) and any(isinstance(label, str) for label in labels)
    try:
        array = np.asarray(labels, dtype=object if named else None)
    except ValueError as error:
        raise InputError(f"{where}: the nodes differ in their number of labels; choose one class a node.") from error
    if array.dtype.kind == "S":
        return as_text(array)
    if array.dtype.kind == "O" and array.ndim == 1:
        known = [label for label in array.tolist() if label is not None]
        if known and all(isinstance(label, Real) for label in known):
            return np.array([UNKNOWN if label is None or label != label else label for label in array.tolist()])
    return array


def as_text(array: np.ndarray) -> np.ndarray:
    """Text of anything; bytes are read as UTF-8."""
    return np.char.decode(array, "utf-8", "replace") if array.dtype.kind == "S" else array.astype(str)


def _whole_numbers(labels: np.ndarray, where: str) -> np.ndarray:
    if labels.dtype.kind == "f":
        labels = np.where(np.isnan(labels), UNKNOWN, labels)
        if not (np.isfinite(labels).all() and (labels == np.round(labels)).all()):
            raise InputError(f"{where}: the labels are not whole numbers; give class numbers or names.")
    elif labels.dtype.kind not in "iub":
        raise InputError(f"{where}: labels of type {labels.dtype} cannot be read; give class numbers or names.")
    return labels.astype(np.int64)


def _labels_from_names(
    labels: np.ndarray, class_names: tuple[str, ...] | None, where: str
) -> tuple[np.ndarray, tuple[str, ...]]:
    listed = labels.tolist()
    if any(isinstance(label, list | tuple | set | dict | np.ndarray) for label in listed):
        raise InputError(f"{where}: a node has several labels (multi-label); choose one class a node.")
    texts = np.array(["" if label is None or label != label else str(label) for label in listed])
    present, numbers = np.unique(texts, return_inverse=True)
    names = class_names
    if names is None:
        names = tuple(sorted((str(name) for name in present if name), key=natural_order))
    position = {name: number for number, name in enumerate(names)}
    strange = [str(name) for name in present if name and name not in position]
    if strange:
        raise InputError(f"{where}: label {strange[0]!r} is not among the class names; add it there.")
    table = np.array([position.get(str(name), UNKNOWN) for name in present], dtype=np.int64)
    return table[numbers] if texts.size else np.zeros(0, dtype=np.int64), names


def natural_order(name: str) -> tuple[int, int, str]:
    """Sorts whole numbers by value, before words."""
    return (0, int(name), "") if name.isascii() and name.isdigit() else (1, 0, name)


def clean_ids(node_ids: Any, count: int, where: str) -> np.ndarray:
    """(n,) int64 or text, each once; 0..n-1 if there are none."""
    if node_ids is None:
        return np.arange(count, dtype=np.int64)
    ids = np.asarray(node_ids)
    if ids.shape != (count,):
        raise InputError(f"{where}: {ids.size} node ids for {count} nodes; give one a node.")
    ids = ids.astype(np.int64) if ids.dtype.kind in "iu" else as_text(ids)
    ordered = np.sort(ids)
    twice = np.flatnonzero(ordered[1:] == ordered[:-1])
    if twice.size:
        raise InputError(
            f"{where}: node id {ordered[twice[0]].item()!r} stands twice; each node needs an id of its own."
        )
    return ids


def clean_feature_names(feature_names: Any, width: int, where: str) -> np.ndarray | None:
    if feature_names is None:
        return None
    names = np.array(feature_names, dtype=str)
    if names.shape != (width,):
        raise InputError(f"{where}: {names.size} feature names for {width} features; give one a column.")
    return names
