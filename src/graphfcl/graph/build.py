"""Build a :class:`Graph` from raw arrays: check them, make edges symmetric, merge duplicates, drop self loops."""

import math
import sys
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from graphfcl.errors import GraphNote, InputError
from graphfcl.graph.graph import Features, Graph, TextSettings
from graphfcl.graph.ids import ClassLabel, Place, listed, make_ids, text_array, text_of
from graphfcl.graph.labels import clean_labels
from graphfcl.graph.tables.columns import REPEATED

NO_FEATURES = "The graph has no features: only its edges tell its nodes apart."


def build_graph(
    adjacency: Any,
    features: Any,
    labels: Any,
    *,
    class_names: Sequence[ClassLabel] | None = None,
    node_ids: Any = None,
    feature_names: Any = None,
    text: TextSettings | None = None,
    name: str = "graph",
    where: str = "the graph",
    notes: Iterable[str] = (),
    missing: Iterable[str] | None = None,
    cleaned: int = 0,
) -> Graph:
    """Build a graph from arrays, which are checked and cleaned.

    Directed edges are made symmetric, duplicate edges are merged (the largest weight stays), and self loops are
    dropped. Spaces around ids and class names are removed. Each change leaves a sentence in ``notes`` of the graph.

    Args:
        adjacency: (n, n) scipy sparse matrix or dense array of edge weights, or of 0 and 1.
        features: (n, d) sparse or dense matrix; it stays sparse or dense. None if there are no features (d = 0).
        labels: (n,) Class numbers (-1 or NaN where unknown) or class names (None or blank where unknown).
        class_names: Names of the class numbers, texts or integers. By default the numbers themselves are the classes.
        node_ids: (n,) Integers or texts, all different. Default: 0 to n - 1.
        feature_names: (d,) Names of the feature columns.
        text: Set if the features are word counts.
        name: Name of the graph.
        where: Name of the source in error messages.
        notes: Sentences to put before the notes of this function.
        missing: Labels that mean that the class is not known, in addition to the usual ones such as ``NA`` and
            ``unknown``. A name in ``class_names`` is always a class.
        cleaned: Number of ids and names that the caller cleaned already.

    Returns:
        The graph.

    Raises:
        InputError: If shapes do not match, or values are not finite numbers, or an id occurs twice.

    Examples:
        >>> import numpy as np
        >>> from graphfcl import build_graph
        >>> path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
        >>> graph = build_graph(path, np.eye(3), ["tea", "cup", None], node_ids=["p1", "p2", "p3"])
        >>> graph.class_names, graph.labels.tolist()
        (('cup', 'tea'), [1, 0, -1])
    """

    def place(row: int) -> str:
        return f"{where}, node {row}"

    adjacency, edge_notes = clean_adjacency(adjacency, where)
    count = adjacency.shape[0]
    checked = clean_features(features, count, where)
    clean = clean_labels(labels, class_names, count, where, place, missing=missing)
    ids, ids_changed = clean_ids(node_ids, count, where, place, False)
    cleaned += clean.changed + ids_changed
    notes = (*notes, *edge_notes, *clean.notes, *no_features_note(checked.shape), *cleaned_note(cleaned))
    warn_of_serious(notes)
    return Graph(
        adjacency=adjacency,
        features=checked,
        labels=clean.numbers,
        class_names=clean.names,
        integer_classes=clean.integers,
        node_ids=ids,
        feature_names=clean_feature_names(feature_names, checked.shape[1], where),
        text=text,
        name=name,
        notes=notes,
        cleaned=cleaned,
    )


def cleaned_note(cleaned: int) -> list[str]:
    """Return a note if ids or class names were cleaned."""
    return [f"{cleaned:,} ids or class names were cleaned (spaces at the ends, Unicode NFC)."] if cleaned else []


def no_features_note(shape: tuple[int, ...]) -> list[str]:
    """Return a note if a graph with nodes has no features; ``shape`` is (nodes, features)."""
    return [] if shape[0] == 0 or shape[1] else [NO_FEATURES]


def clean_adjacency(adjacency: Any, where: str) -> tuple[sparse.csr_array, list[str]]:
    """Return the adjacency as symmetric float32 CSR without self loops, and notes on the changes."""
    if not sparse.issparse(adjacency):
        adjacency = np.asarray(adjacency)
    if adjacency.ndim != 2 or adjacency.shape[0] != adjacency.shape[1]:
        raise InputError(f"{where}: the adjacency has shape {adjacency.shape}, it must be square (nodes × nodes).")
    if adjacency.dtype.kind not in "biuf":
        raise InputError(f"{where}: the adjacency holds {adjacency.dtype}, not numbers; give edge weights or 0 and 1.")
    coo = sparse.coo_array(adjacency)
    return adjacency_from_edges(coo.row, coo.col, coo.data, coo.shape[0], where)


def adjacency_from_edges(
    source: np.ndarray,
    target: np.ndarray,
    weights: np.ndarray | None,
    count: int,
    where: str,
    repeated: str = "max",
) -> tuple[sparse.csr_array, list[str]]:
    """Make an adjacency as :func:`clean_adjacency` does, from the ends of edges and optional weights.

    ``repeated`` says how weights of duplicate edges are combined; it is a key of :data:`REPEATED`.
    """
    values = check_edges(source, target, weights, count, where)
    kept, loops = edges_to_keep(source, target, values, repeated)
    if values is None:
        values = np.ones(source.size, dtype=np.float32)
    if not kept.all():
        source, target, values = source[kept], target[kept], values[kept]
    directed = _merge_duplicates(source, target, values, count, repeated, where)
    merged = source.size - directed.nnz
    directed.eliminate_zeros()
    reverse = directed.T.tocsr()
    one_way = not _same(directed, reverse)
    adjacency = directed.maximum(reverse).tocsr() if one_way else directed
    adjacency.sort_indices()
    return adjacency, edge_notes(loops, one_way, merged, repeated)


def check_edges(
    source: np.ndarray,
    target: np.ndarray,
    weights: np.ndarray | None,
    count: int,
    where: str,
    place: Place = lambda number: f"edge {number}",
) -> np.ndarray | None:
    """Check that edges join existing nodes and have valid weights; return the weights as float32.

    ``place`` gives the name of an edge in messages.
    """
    if source.size and not (min(source.min(), target.min()) >= 0 and max(source.max(), target.max()) < count):
        outside = (source < 0) | (source >= count) | (target < 0) | (target >= count)
        first = int(np.flatnonzero(outside)[0])
        raise InputError(
            f"{where}: {place(first)} joins nodes {source[first]} and {target[first]}, but nodes are numbered 0 to "
            f"{count - 1}: add the missing nodes or drop the edge."
        )
    if weights is None:
        return None
    try:
        values = np.asarray(weights, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{where}: an edge weight is not a number; weights must be finite and not negative."
        ) from error
    if values.shape != source.shape:
        raise InputError(f"{where}: {values.size:,} edge weights for {source.size:,} edges; give one per edge.")
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if wrong.size:
        first = int(wrong[0])
        raise InputError(
            f"{where}: {place(first)} has weight {values[first]}; weights must be finite and not negative."
        )
    return values


def edges_to_keep(
    source: np.ndarray, target: np.ndarray, weights: np.ndarray | None, repeated: str = "max"
) -> tuple[np.ndarray, int]:
    """Return (e,) bool, True for edges that are no self loops and have a positive weight, and the number of self loops.

    With ``repeated="last"`` a weight of 0 is kept, because it removes an earlier edge.
    """
    kept = source != target
    if weights is None:
        return kept, kept.size - int(kept.sum())
    loops = int((~kept & (weights > 0)).sum())
    return kept if repeated == "last" else kept & (weights > 0), loops


def combined(values: np.ndarray, starts: np.ndarray, repeated: str) -> np.ndarray:
    """Combine each run of values into one (a sum as float64); ``starts`` are the positions where runs begin."""
    if repeated == "last":
        return values[np.append(starts[1:], values.size) - 1]
    if repeated == "max":
        return np.maximum.reduceat(values, starts)
    return np.add.reduceat(values, starts, dtype=np.float64)  # for "count", rows of tables weigh 1


def as_weights(values: np.ndarray, where: str) -> np.ndarray:
    """Convert combined weights to float32, or raise an InputError if a sum is too large for it."""
    if values.size and values.max() > np.finfo(np.float32).max:
        raise InputError(
            f"{where}: the weights of one edge add up to {values.max():g}, beyond 3.4e38: make them smaller, "
            "or leave repeated=sum out."
        )
    return values.astype(np.float32)


def edge_notes(loops: int, one_way: bool, merged: int, repeated: str = "max") -> list[str]:
    """Return a sentence for each change; ``one_way`` means that some edges were listed in one direction only."""
    notes = [f"{loops:,} self loops were dropped."] if loops else []
    if one_way:
        notes.append("Edges listed in one direction count in both (of two weights the larger stays).")
    if merged:
        notes.append(f"{merged:,} duplicate edges were merged ({REPEATED[repeated]}).")
    return notes


def _merge_duplicates(
    source: np.ndarray, target: np.ndarray, values: np.ndarray, count: int, repeated: str, where: str
) -> sparse.csr_array:
    matrix = sparse.coo_array((values, (source, target)), shape=(count, count))
    if values.size and repeated in ("max", "last") and (values == values[0]).all():
        matrix = matrix.tocsr()
        matrix.data[:] = values[0]
    elif values.size:
        order = np.lexsort((target, source))  # stable, so rows of a pair stay in their order
        source, target, values = source[order], target[order], values[order]
        starts = np.flatnonzero(np.append(True, (source[1:] != source[:-1]) | (target[1:] != target[:-1])))
        values = as_weights(combined(values, starts, repeated), where)
        matrix = sparse.coo_array((values, (source[starts], target[starts])), shape=(count, count))
    matrix = matrix.tocsr()
    matrix.sort_indices()
    return matrix


def _same(first: sparse.csr_array, second: sparse.csr_array) -> bool:
    second.sort_indices()
    return (
        np.array_equal(first.indptr, second.indptr)
        and np.array_equal(first.indices, second.indices)
        and np.array_equal(first.data, second.data)
    )


def clean_features(features: Any, count: int, where: str, first: int = 0) -> Features:
    """Check features and return them as float32, sparse or dense as before; ``first`` is the node of the first row."""
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
            f"{where}: the feature of node {first + row}, column {column} is NaN or infinite; fill it in or drop the "
            "column."
        )
    return checked


def clean_ids(node_ids: Any, count: int, where: str, place: Place, read_numbers: bool) -> tuple[np.ndarray, int]:
    """Return (n,) valid ids, 0 to n - 1 by default, and how many of them were cleaned."""
    if node_ids is None:
        return np.arange(count, dtype=np.int64), 0
    shape = node_ids.shape if hasattr(node_ids, "shape") else (len(node_ids),)
    if tuple(shape) != (count,):
        raise InputError(f"{where}: {math.prod(shape)} node ids for {count} nodes; give one per node.")
    return make_ids(node_ids, place, read_numbers=read_numbers)


def clean_feature_names(feature_names: Any, width: int, where: str) -> np.ndarray | None:
    if feature_names is None:
        return None
    names = text_array([text_of(name, where) for name in listed(feature_names)])
    if names.shape != (width,):
        raise InputError(f"{where}: {names.size} feature names for {width} features; give one per column.")
    return names


def is_serious(note: str) -> bool:
    """Tell whether a note reports a problem that may make a model of the graph useless."""
    return note.startswith("Warning") or note == NO_FEATURES


def warn_of_serious(notes: Iterable[str]) -> None:
    """Emit warnings for the serious notes of a new graph."""
    _warn(note for note in notes if is_serious(note))


def warn_of_others(notes: Iterable[str]) -> None:
    """Emit warnings for all other notes, for callers who never see the graph and its notes."""
    _warn(note for note in notes if not is_serious(note))


def unused_note(where: str, names: list[str], more: str = "") -> list[str]:
    """Return a note on attributes of the source that are not used."""
    return [f"Not used of {where}: {', '.join(names)}{more}."] if names else []


def _warn(notes: Iterable[str]) -> None:
    for note in notes:
        warnings.warn(note, GraphNote, stacklevel=_frames_of_this_package())


def _frames_of_this_package() -> int:
    """Return the ``stacklevel`` with which a warning names the user's line that led to it."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "graphfcl":
        level, frame = level + 1, frame.f_back
    return level
