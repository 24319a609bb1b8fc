"""Read tables of new nodes. Columns have the same meaning as in the tables from which the model was fitted.

Three parameters mean the same in all functions:

- ``table``: The table of new nodes.
- ``columns``: The columns of the tables of the fit. None if the graph of the fit was not read from tables.
- ``tell``: The function that receives notes for the user.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from graphfcl.errors import InputError, counted, quoted
from graphfcl.graph import Features
from graphfcl.graph.ids import make_ids, normal
from graphfcl.graph.tables.columns import TEXT_NAMES, ReadColumns, label_key
from graphfcl.graph.tables.frames import is_frame
from graphfcl.graph.tables.gaps import filled, mark_name, shown_value
from graphfcl.graph.tables.node_table import open_vectors
from graphfcl.graph.tables.values import days_of, numbers_of, vectors_of, without_gaps
from graphfcl.production.changes.user_tables import TextTable, id_names, warn
from graphfcl.production.graph import ModelGraph


def read_nodes(
    source: Any,
    graph: ModelGraph,
    columns: ReadColumns | None = None,
    tell: Callable[[str], None] = warn,
) -> tuple[list[str], Features, list[str] | None]:
    """Read new nodes from a table with the column ``node`` and texts or feature columns.

    If the model was fitted to tables, columns that the fit did not use are ignored, and missing numbers and dates are
    filled with the medians of the fit.

    Args:
        source: Path of a file, or a DataFrame.
        graph: Graph of the model, which defines the feature columns. If its features are sparse, features without a
            column are 0. If they are dense, every column is needed.
        columns: Columns of the tables of the fit. Vectors may also be in a file ``NAME.npy`` beside the table.
        tell: Receives notes on labels, which are not learned, on categories that the fit did not have, and on missing
            values that were filled. By default, notes become warnings.

    Returns:
        Ids, (n, d) features, and texts. Features are None if all of them come from the text, and texts are None if none
        does.

    Raises:
        InputError: If a needed column is missing, if two columns give the same feature, or if a value cannot be read;
            if the graph of the fit was not read from tables, also if a column is no feature of the graph.
    """
    table = TextTable.read(source, of_fit=columns)
    names = id_names(columns)
    if columns is not None:
        _note_labels(table, columns, tell)
    ids = make_ids(table.need(names, "the ids of nodes"), table.place)[0].tolist()
    features = graph.columns
    texts = None if features.text_weights is None else _texts(table, columns)
    if features.text_weights is not None and features.text_weights.beside is None:
        return ids, None, texts  # all features come from the text
    place_of = features.places(features.word_count)
    values = _feature_values(table, str(table.find(names)), place_of, columns, tell)
    vectors = () if columns is None else columns.vectors
    folder = None if is_frame(source) else table.path.parent
    for name in vectors:
        if f"{name}_0" in place_of and f"{name}_0" not in values:
            values |= _vector_file(table, name, folder, _width(name, place_of))
    needs_all = texts is not None or features.dense
    if needs_all and len(values) < len(place_of):
        missing = next(name for name in place_of if name not in values)
        raise InputError(f"{table.path} lacks the feature column {missing!r}: give all {len(place_of)} of them.")
    matrix = np.zeros((len(ids), len(values)), dtype=np.float32)
    for position, column in enumerate(values.values()):
        matrix[:, position] = column
    places = np.array([place_of[name] for name in values], dtype=np.int64)
    if needs_all:
        return ids, matrix[:, np.argsort(places)], texts
    rows, positions = np.nonzero(matrix)
    entries: Any = (matrix[rows, positions], (rows, places[positions]))
    return ids, sparse.csr_array(sparse.coo_array(entries, shape=(len(ids), features.width))), None


def _note_labels(table: TextTable, columns: ReadColumns, tell: Callable[[str], None]) -> None:
    """Tell the user that labels in the table are not learned."""
    unknown = columns.unknown_keys
    labels = [text for text in table.columns.get(columns.label, ()) if label_key(text) not in unknown]
    if labels:
        tell(
            f"{table.path} has labels of {counted(len(labels), 'node')} in the column {columns.label!r}: grow does not "
            "learn them; use learn."
        )


def _texts(table: TextTable, columns: ReadColumns | None) -> list[str]:
    """Return the text of each row. Several text columns are joined in the same way as at the fit."""
    own = () if columns is None else columns.text
    if len(own) > 1 and any(name in table.columns for name in own):
        return [" ".join(row) for row in zip(*(table.need((name,), "a text") for name in own), strict=True)]
    return table.need((*own, *(name for name in TEXT_NAMES if name not in own)), "the text its features come from")


def _feature_values(
    table: TextTable, id_name: str, place_of: dict[str, int], columns: ReadColumns | None, tell: Callable[[str], None]
) -> dict[str, np.ndarray]:
    """Return the values of each feature that the table has, shape (rows,), by name of the feature.

    ``place_of`` maps the names of the model's features to their columns in the feature matrix.
    """
    values: dict[str, np.ndarray] = {}
    for name in table.columns:
        if name == id_name or (columns is not None and name in columns.unused):
            continue
        new: dict[str, np.ndarray] = {}
        if columns is not None and name in columns.categories:
            new = _one_hot(table, name, place_of, columns.gap_keys, tell)
        elif name in place_of:
            new = _numbers(table, name, columns, tell)
        elif columns is None:
            raise InputError(f"{table.path}: the graph has no feature {name!r}: leave the column out.")
        if twice := new.keys() & values.keys():
            raise InputError(f"{table.path}: two columns give the feature {min(twice)!r}: rename one of them.")
        values |= new
    for name in table.lists:
        if columns is not None and name in columns.vectors:
            matrix = vectors_of(table.table, name, _width(name, place_of))
            values |= {f"{name}_{place}": column for place, column in enumerate(matrix.T)}
    return values


def _numbers(
    table: TextTable, name: str, columns: ReadColumns | None, tell: Callable[[str], None]
) -> dict[str, np.ndarray]:
    """Return a column of numbers or dates, with missing values filled by the median of the fit.

    If the fit had a feature that marks missing values of this column, the result contains that feature, too.
    """
    if columns is None or name not in columns.medians:
        return {name: without_gaps(table.table, numbers_of(table.table, name), name)}
    is_date, median = name in columns.dates, columns.medians[name]
    numbers = (days_of if is_date else numbers_of)(table.table, name)
    is_gap, marked = np.isnan(numbers), name in columns.marked
    if is_gap.any():
        unmarked = "the fit had no missing values here, so no feature marks them"
        reason = f"{mark_name(name)!r} marks them" if marked else unmarked
        tell(
            f"{table.path}: {counted(int(is_gap.sum()), 'missing value')} of {name} filled with the median of the fit, "
            f"{shown_value(median, is_date)}; {reason}."
        )
    marks = {mark_name(name): is_gap.astype(np.float32)} if marked else {}
    return {name: filled(numbers, median), **marks}


def _one_hot(
    table: TextTable, name: str, place_of: dict[str, int], gap_keys: frozenset[str], tell: Callable[[str], None]
) -> dict[str, np.ndarray]:
    """Return a column of 0 and 1 for each category of the fit.

    ``gap_keys`` are the keys (:func:`label_key`) of texts that mean a missing value.
    """
    texts = map(normal, table.columns[name])
    values = np.array(["" if label_key(text) in gap_keys else text for text in texts], dtype=object)
    features = [feature for feature in place_of if feature.startswith(f"{name}=")]
    one_hot = {feature: (values == feature[len(name) + 1 :]).astype(np.float32) for feature in features}
    unknown = values[(values != "") & (sum(one_hot.values(), np.zeros(values.size)) == 0)]
    if unknown.size:
        tell(
            f"{table.path} has {counted(unknown.size, 'node')} whose {name} is none of the {len(features)} of the fit, "
            f"such as {quoted(unknown[0])}: all features of this column are 0 for them."
        )
    return one_hot


def _vector_file(table: TextTable, name: str, folder: Path | None, width: int) -> dict[str, np.ndarray]:
    """Read vectors of ``width`` dimensions from ``NAME.npy`` in ``folder``.

    ``folder`` is the folder of the table. It is None for a DataFrame.
    """
    if folder is None or not (folder / f"{name}.npy").is_file():
        file = "" if folder is None else f"put {name}.npy beside it, or "
        raise InputError(
            f"{table.path} lacks the vectors {name!r}: {file}give a column {name!r} of lists of {width} numbers."
        )
    path = folder / f"{name}.npy"
    matrix = open_vectors(path, table.row_count, table.path)
    if matrix.shape[1] != width:
        raise InputError(f"{path} has {matrix.shape[1]} columns, but the vectors of the graph have {width}.")
    return {f"{name}_{place}": np.asarray(matrix[:, place], dtype=np.float32) for place in range(width)}


def _width(name: str, place_of: dict[str, int]) -> int:
    """Return the number of dimensions of the vectors ``name`` in the graph."""
    return sum(feature.removeprefix(f"{name}_").isdigit() for feature in place_of if feature.startswith(f"{name}_"))
