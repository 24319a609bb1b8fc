"""From raw parts to a clean :class:`Graph`: checks, symmetry, duplicates, self loops, labels."""

import math
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from graphfcl.errors import InputError
from graphfcl.graph.graph import UNKNOWN, Features, Graph, TextSettings
from graphfcl.graph.ids import CLASS_NAME, Place, class_names_of, listed, make_ids, normal, text_array, text_of
from graphfcl.printing import quoted


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
    place: Place | None = None,
    read_numbers: bool = False,
) -> Graph:
    """Check the parts of a graph and put them into one form.

    adjacency: (n, n) scipy sparse matrix or dense array. Directed edges are made symmetric, duplicates merged (the
        largest weight stays), self loops dropped; each of these leaves a note on the graph.
    features: (n, d) sparse or dense, or None for none (d = 0). Sparse stays sparse, dense stays dense.
    labels: (n,) class numbers (-1 or NaN: unknown) or class names (None or "": unknown).
    class_names: names of the class numbers; without them the numbers are the names.
    node_ids: (n,) numbers or texts; without them, 0 to n-1. Ids and class names are cleaned: see :mod:`.ids`.
    read_numbers: ids that are texts become numbers if all of them are whole numbers.
    where, place: what to call the source, and a row of it, in a message.
    """
    place = place or (lambda row: f"{where}, node {row}")
    adjacency, edge_notes = clean_adjacency(adjacency, where)
    count = adjacency.shape[0]
    checked = clean_features(features, count, where)
    numbers, names, names_changed = clean_labels(labels, class_names, count, where, place)
    ids, ids_changed = clean_ids(node_ids, count, where, place, read_numbers)
    cleaned = names_changed + ids_changed
    said = [f"{cleaned:,} ids or class names were cleaned (spaces at the ends, Unicode NFC)."] if cleaned else []
    return Graph(
        adjacency=adjacency,
        features=checked,
        labels=numbers,
        class_names=names,
        node_ids=ids,
        feature_names=clean_feature_names(feature_names, checked.shape[1], where),
        text=text,
        name=name,
        notes=(*notes, *edge_notes, *said),
        cleaned=cleaned,
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
    labels: Any, class_names: Sequence[str] | None, count: int, where: str, place: Place
) -> tuple[np.ndarray, tuple[str, ...], int]:
    """Class numbers 0..C-1 (-1: unknown), the names they stand for, and how many names cleaning changed."""
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
    names, changed = None, 0
    if class_names is not None:
        names, changed = class_names_of(class_names, where)
    if labels.dtype.kind in "OU":
        return _labels_from_names(labels, names, changed, where, place)
    numbers = _whole_numbers(labels, where)
    if names is None:
        present = np.unique(numbers[numbers >= 0])
        dense = np.searchsorted(present, numbers).astype(np.int64)
        return np.where(numbers < 0, UNKNOWN, dense), tuple(str(number) for number in present.tolist()), 0
    if numbers.size and numbers.max() >= len(names):
        raise InputError(f"{where}: label {numbers.max()} has no name, there are {len(names)} class names.")
    return np.where(numbers < 0, UNKNOWN, numbers), tuple(names), changed


def _label_array(labels: Any, where: str) -> np.ndarray:
    """Numbers, or texts among which None and NaN may stand (numpy alone would make the text "nan" of a NaN)."""
    named = isinstance(labels, list | tuple) and any(isinstance(label, str) for label in labels)
    try:
        array = np.asarray(labels, dtype=object if named else None)
    except ValueError as error:
        raise InputError(f"{where}: the nodes differ in their number of labels; choose one class a node.") from error
    if array.dtype.kind == "S":
        return text_array([text_of(each, where) for each in array.tolist()]) if array.ndim == 1 else array
    if array.dtype.kind == "O" and array.ndim == 1:
        known = [label for label in array.tolist() if label is not None]
        if known and all(isinstance(label, Real) for label in known):
            return np.array([UNKNOWN if label is None or label != label else label for label in array.tolist()])
    return array


def _whole_numbers(labels: np.ndarray, where: str) -> np.ndarray:
    if labels.dtype.kind == "f":
        labels = np.where(np.isnan(labels), UNKNOWN, labels)
        if not (np.isfinite(labels).all() and (labels == np.round(labels)).all()):
            raise InputError(f"{where}: the labels are not whole numbers; give class numbers or names.")
    elif labels.dtype.kind not in "iub":
        raise InputError(f"{where}: labels of type {labels.dtype} cannot be read; give class numbers or names.")
    return labels.astype(np.int64)


def _labels_from_names(
    labels: np.ndarray, class_names: Sequence[str] | None, changed: int, where: str, place: Place
) -> tuple[np.ndarray, tuple[str, ...], int]:
    """As :func:`clean_labels`; spellings that are one once cleaned are one class."""
    values = labels.tolist()
    if any(isinstance(label, list | tuple | set | dict | np.ndarray) for label in values):
        raise InputError(f"{where}: a node has several labels (multi-label); choose one class a node.")
    texts = ["" if label is None or label != label else str(label) for label in values]
    spelled = [text for text in dict.fromkeys(texts) if normal(text)]
    cleaned = CLASS_NAME.clean_all(spelled, lambda at: place(texts.index(spelled[at])))
    name_of = dict(zip(spelled, cleaned, strict=True))
    names = class_names
    if names is None:
        names = sorted(set(cleaned), key=natural_order)
    position = {name: number for number, name in enumerate(names)}
    strange = [name for name in cleaned if name not in position]
    if strange:
        raise InputError(f"{where}: label {quoted(strange[0])} is not among the class names; add it there.")
    numbers = [position[name_of[text]] if text in name_of else UNKNOWN for text in texts]
    changed += sum(spelling != name for spelling, name in name_of.items())
    return np.array(numbers, dtype=np.int64), tuple(names), changed


def natural_order(name: str) -> tuple[int, int, str]:
    """Sorts whole numbers by value, before words."""
    return (0, int(name), "") if name.isascii() and name.isdigit() else (1, 0, name)


def clean_ids(node_ids: Any, count: int, where: str, place: Place, read_numbers: bool) -> tuple[np.ndarray, int]:
    """(n,) int64 or text, each once, 0..n-1 if there are none; and how many cleaning changed."""
    if node_ids is None:
        return np.arange(count, dtype=np.int64), 0
    shape = node_ids.shape if hasattr(node_ids, "shape") else (len(node_ids),)
    if tuple(shape) != (count,):
        raise InputError(f"{where}: {math.prod(shape)} node ids for {count} nodes; give one a node.")
    return make_ids(node_ids, place, read_numbers=read_numbers)


def clean_feature_names(feature_names: Any, width: int, where: str) -> np.ndarray | None:
    if feature_names is None:
        return None
    names = text_array([text_of(name, where) for name in listed(feature_names)])
    if names.shape != (width,):
        raise InputError(f"{where}: {names.size} feature names for {width} features; give one a column.")
    return names
