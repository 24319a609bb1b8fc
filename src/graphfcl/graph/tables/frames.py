"""DataFrames of other libraries, by Arrow: pandas, polars, pyarrow and whatever else offers its tables that way.

Neither pandas nor polars is needed: a caller that has a frame has its library.
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

SINGLE = (str, bytes, Number, np.generic, datetime.date)  # values that a CSV file holds, too
MIXED = {"graphfcl": "mixed"}  # of a column that held numbers and texts: its type says as little as that of a CSV file
WITHOUT_NAME = re.compile(r"__index_level_\d+__")  # what Arrow calls an index of pandas that has no name


def is_frame(value: Any) -> bool:
    """Whether a value is a table with columns: a frame of pandas or polars, a table of Arrow, or something alike."""
    if library_of(value) == "polars" and type(value).__name__ == "LazyFrame":
        return True
    offers = hasattr(value, "__arrow_c_stream__") or hasattr(value, "__dataframe__")
    return offers and (hasattr(value, "columns") or hasattr(value, "schema"))


def is_table(value: Any) -> bool:
    """Whether a value is a frame, or the path of a table."""
    return isinstance(value, Path) or is_frame(value)


def library_of(value: Any) -> str:
    """The package that a value comes from."""
    return type(value).__module__.partition(".")[0]


def arrow_table(frame: Any, called: str) -> Any:
    """A frame as an Arrow table, whose texts are plain texts. called: what messages call it.

    An index of pandas that has a name is a column; one without a name only counts rows.
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
    """A frame of pandas. A column of numbers and texts, which Arrow refuses, is one of texts, marked as ``MIXED``."""
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
        return pa.Table.from_pandas(frame, preserve_index=named)  # fails again, of the frame as it is
    table = pa.Table.from_pandas(plain, preserve_index=False)
    for at in mixed:
        column = pa.field(table.schema.field(at).name, pa.string(), metadata=MIXED)
        table = table.set_column(at, column, table.column(at).cast(pa.string()))
    return table


def _texts_of_mixed(values: list[Any]) -> list[str | None] | None:
    """The values as a CSV file has them, None where nothing is; None if they are of one kind, or none of a CSV file."""
    present = [value for value in values if not is_nothing(value)]
    if len({type(value) for value in present}) < 2 or not all(isinstance(value, SINGLE) for value in present):
        return None
    return [None if is_nothing(value) else text_of(value) for value in values]


def _unreadable(called: str, error: Exception) -> InputError:
    """One sentence for what Arrow says of a frame; it names the column where it can."""
    reason = str(error.args[0] if error.args else error).splitlines()[0].rstrip(".")
    place = re.search(r"column (\S+) with type", " ".join(map(str, error.args[1:])))
    where = f"{called}: column {place[1]!r}" if place else called
    return InputError(f"{where} cannot be read as a table ({reason}): let each column hold values of one kind.")


def _plain(values: Any) -> Any:
    """A column without what only saves room: categories become their values, views of texts become texts."""
    import pyarrow as pa

    kind = values.type
    if pa.types.is_dictionary(kind):
        return pa.chunked_array([_looked_up(chunk) for chunk in values.chunks], _plain_type(kind.value_type))
    plain = _plain_type(kind)
    return values if plain == kind else values.cast(plain)


def _looked_up(chunk: Any) -> Any:
    """The values that a chunk of categories means."""
    return chunk.dictionary.cast(_plain_type(chunk.type.value_type)).take(chunk.indices)


def _plain_type(kind: Any) -> Any:
    import pyarrow as pa

    # A chunk of large texts may hold more bytes than one of plain texts can.
    views = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    return views.get(kind, kind)


def table_like(like: Any, columns: Mapping[str, Any], rows: Any = None) -> Any:
    """Columns as a table of the library that ``like`` comes from; of pyarrow if that has no tables.

    like: a frame, a series, or anything else. Rows of pandas keep its index. rows: (m,) which row
    of that each row is about; None: one each, in order.
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
    """Sets of classes as a column of lists: of integers if all classes are, otherwise of texts."""
    import pyarrow as pa

    rows = [list(each) for each in sets]
    if any(rows) and all(isinstance(label, int) for row in rows for label in row):
        return pa.array(rows, pa.list_(pa.int64()))
    return pa.array([list(map(str, row)) for row in rows], pa.list_(pa.string()))
