"""Columns of a table as numbers; what is wrong with a value is said with its line."""

from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.graph.column_values import Kind, as_days, as_floats, declared_kind, first_word, list_lengths, says_text
from graphfcl.graph.table import Table


def numbers_of(table: Table, columns: list[str]) -> np.ndarray:
    """(rows, columns) float32; a word, an empty place or a number that is not finite is an error."""
    result = np.empty((table.row_count, len(columns)), dtype=np.float32)
    for position, column in enumerate(columns):
        found = as_floats(table.column(column))
        if found is None:
            word = first_word(table.column(column)) if says_text(table.column(column).type) else None
            if word is None:
                raise InputError(f"{table.path}: column {column!r} does not hold numbers: mend it or leave it out.")
            raise InputError(
                f"{table.path}, {table.line(word[0])}: column {column!r} does not hold a number but {word[1]!r}: mend "
                "it or leave the column out."
            )
        result[:, position] = _filled(table, found, column)
    return result


def days_of(table: Table, column: str) -> np.ndarray:
    """(rows,) float32, dates as days since 1970."""
    found = as_days(table.column(column))
    if found is None:
        raise InputError(
            f"{table.path}: column {column!r} does not hold dates as 2026-01-31 or 2026-01-31 12:00: write them so, "
            "or leave the column out of dates=."
        )
    return _filled(table, found, column)


def vectors_of(table: Table, column: str, width: int | None) -> np.ndarray:
    """(rows, width) float32 of a column of lists. width: that of the rows before, if there are any."""
    import pyarrow as pa

    values = table.column(column)
    if declared_kind(values.type) is not Kind.LIST:
        raise InputError(
            f"{table.path}: column {column!r} does not hold lists of numbers, which vectors= needs: write it as a "
            "list column of Parquet, or name an .npy file."
        )
    lengths = list_lengths(values)
    width = int(lengths[0]) if width is None and lengths.size else width or 0
    wrong = np.flatnonzero(lengths != width) if width >= 0 else np.zeros(1, np.int64)
    if lengths.size and wrong.size:
        row = int(wrong[0])
        said = "no list" if lengths[row] < 0 else f"a list of {lengths[row]} numbers"
        raise InputError(
            f"{table.path}, {table.line(row)}: column {column!r} has {said}, all others have {max(width, 0)}: make "
            "all of one length."
        )
    flat = pa.chunked_array([chunk.flatten() for chunk in values.chunks], values.type.value_type)
    numbers = np.asarray(flat.cast(pa.float32(), safe=False).to_numpy(), dtype=np.float32)
    _refuse_strange(table, numbers.reshape(lengths.size, width), column)
    return numbers.reshape(lengths.size, width)


def weights_of(table: Table, column: str) -> np.ndarray:
    """(rows,) float32 weights of edges."""
    values = numbers_of(table, [column])[:, 0]
    if values.size and values.min() < 0:
        row = int(np.flatnonzero(values < 0)[0])
        raise InputError(
            f"{table.path}, {table.line(row)}: the edge has weight {values[row]}, which is below 0: mend it."
        )
    return values


def _filled(table: Table, found: Any, column: str) -> np.ndarray:
    """Arrow's numbers as float32; an empty place is an error."""
    if found.null_count:
        row = int(np.flatnonzero(found.is_null().to_numpy(zero_copy_only=False))[0])
        raise InputError(
            f"{table.path}, {table.line(row)}: column {column!r} is empty; fill it in or leave the column out."
        )
    values = np.asarray(found.to_numpy()).astype(np.float32)
    _refuse_strange(table, values, column)
    return values


def _refuse_strange(table: Table, values: np.ndarray, column: str) -> None:
    if not np.isfinite(values).all():
        row = int(np.argwhere(~np.isfinite(values))[0][0])
        raise InputError(
            f"{table.path}, {table.line(row)}: column {column!r} is NaN or infinite; fill it in or leave it out."
        )
