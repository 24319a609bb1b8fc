"""Convert DataFrames of pandas, polars, pyarrow and other libraries through Arrow.

graphfcl does not need pandas or polars: a caller that passes a frame has its library installed.
"""

import datetime
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.graph.ids import ClassLabel, as_arrow, is_nothing, text_of

SINGLE = (str, bytes, Number, np.generic, datetime.date)  # types of values that a CSV file can hold
MIXED = {"graphfcl": "mixed"}  # metadata of a text column made of numbers and texts; it is read like a CSV column
WITHOUT_NAME = re.compile(r"__index_level_\d+__")  # Arrow's name for a pandas index without a name


def is_frame(value: Any) -> bool:
    """Tell whether a value is a table with columns: a frame of pandas or polars, an Arrow table or similar."""
    if library_of(value) == "polars" and type(value).__name__ == "LazyFrame":
        return True
    offers = hasattr(value, "__arrow_c_stream__") or hasattr(value, "__dataframe__")
    return offers and (hasattr(value, "columns") or hasattr(value, "schema"))


def is_table(value: Any) -> bool:
    """Tell whether a value is a frame or the path of a table."""
    return isinstance(value, Path) or is_frame(value)


def library_of(value: Any) -> str:
    """Return the name of the package that defines the type of a value."""
    return type(value).__module__.partition(".")[0]


def arrow_table(frame: Any, called: str) -> Any:
    """Convert a frame to an Arrow table with plain text columns; ``called`` is its name in messages.

    A pandas index becomes a column if it has a name.
    """
    import pyarrow as pa
    from pyarrow import interchange

    if type(frame).__name__ == "LazyFrame":
        raise InputError(f"{called} is a LazyFrame, which holds no rows yet: give {called}.collect().")
    try:
        if library_of(frame) == "pandas":
            table = _from_pandas(frame)
        elif hasattr(frame, "__arrow_c_stream__"):
            table = pa.table(frame)
        else:
            table = interchange.from_dataframe(frame)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise _unreadable(called, error) from error
    kept = [place for place, name in enumerate(table.column_names) if not WITHOUT_NAME.fullmatch(name)]
    columns = [_plain(table.column(place)) for place in kept]
    fields = [
        pa.field(table.schema.field(at).name, column.type, metadata=table.schema.field(at).metadata)
        for at, column in zip(kept, columns, strict=True)
    ]
    return pa.table(columns, schema=pa.schema(fields)) if columns else table.select([])


def _from_pandas(frame: Any) -> Any:
    """Convert a pandas frame. Columns with numbers and texts, which Arrow refuses, become text marked as ``MIXED``."""
    import pyarrow as pa

    named = any(name is not None for name in frame.index.names)
    try:
        return pa.Table.from_pandas(frame, preserve_index=named)
    except (pa.ArrowException, TypeError, ValueError):
        plain = frame.reset_index() if named else frame.copy(deep=False)
    mixed = []
    for place, kind in enumerate(plain.dtypes):
        if kind.kind == "O" and (texts := _texts_of_mixed(plain.iloc[:, place].tolist())) is not None:
            plain.isetitem(place, texts)
            mixed.append(place)
    if not mixed:
        return pa.Table.from_pandas(frame, preserve_index=named)  # raise the error for the original frame
    table = pa.Table.from_pandas(plain, preserve_index=False)
    for at in mixed:
        column = pa.field(table.schema.field(at).name, pa.string(), metadata=MIXED)
        table = table.set_column(at, column, table.column(at).cast(pa.string()))
    return table


def _texts_of_mixed(values: list[Any]) -> list[str | None] | None:
    """Return values as they would be in a CSV file, None where missing.

    Return None for the whole column if all values have one type, or some cannot be written to a CSV file.
    """
    present = [value for value in values if not is_nothing(value)]
    if len({type(value) for value in present}) < 2 or not all(isinstance(value, SINGLE) for value in present):
        return None
    return [None if is_nothing(value) else text_of(value) for value in values]


def _unreadable(called: str, error: Exception) -> InputError:
    """Turn an error of Arrow into an InputError that names the column where possible."""
    reason = str(error.args[0] if error.args else error).splitlines()[0].rstrip(".")
    place = re.search(r"column (\S+) with type", " ".join(map(str, error.args[1:])))
    where = f"{called}: column {place[1]!r}" if place else called
    return InputError(f"{where} cannot be read as a table ({reason}): let each column hold values of one kind.")


def _plain(values: Any) -> Any:
    """Convert space-saving columns to plain ones: categories to their values, text views to texts."""
    import pyarrow as pa

    kind = values.type
    if pa.types.is_dictionary(kind):
        return pa.chunked_array([_looked_up(chunk) for chunk in values.chunks], _plain_type(kind.value_type))
    plain = _plain_type(kind)
    return values if plain == kind else values.cast(plain)


def _looked_up(chunk: Any) -> Any:
    """Return the values of a chunk of categories."""
    return chunk.dictionary.cast(_plain_type(chunk.type.value_type)).take(chunk.indices)


def _plain_type(kind: Any) -> Any:
    import pyarrow as pa

    # Large texts, because a chunk of views may hold more bytes than a chunk of plain texts can.
    views = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    return views.get(kind, kind)


def table_like(like: Any, columns: Mapping[str, Any], rows: Any = None) -> Any:
    """Make a table in the library of ``like``, or in pyarrow if that library has no tables.

    Args:
        like: A frame, a series, or any other value. If it is of pandas, the table gets its index.
        columns: Columns by name.
        rows: (m,) Row of ``like`` for each row of the table. None means the same rows in order.
    """
    import pyarrow as pa

    table = pa.table({n: set_column(values) if n == "set" else as_arrow(values) for n, values in columns.items()})
    library = library_of(like)
    if library == "pandas":
        frame = table.to_pandas()
        if hasattr(like, "index"):
            frame.index = like.index if rows is None else like.index.take(rows)
        return frame
    if library == "polars":
        return sys.modules["polars"].from_arrow(table)  # a caller that has a frame has imported it
    return table


def set_column(sets: Iterable[Sequence[ClassLabel]]) -> Any:
    """Convert sets of classes to a list column, of integers if all classes are integers, else of texts."""
    import pyarrow as pa

    rows = [list(each) for each in sets]
    if any(rows) and all(isinstance(label, int) for row in rows for label in row):
        return pa.array(rows, pa.list_(pa.int64()))
    return pa.array([list(map(str, row)) for row in rows], pa.list_(pa.string()))
