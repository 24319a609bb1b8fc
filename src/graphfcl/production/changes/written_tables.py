"""Write tables for users as CSV or Parquet files."""

import os
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.graph.ids import as_arrow
from graphfcl.graph.tables.frames import set_column


def refuse_unwritable(path: str | Path | None, what: str) -> None:
    """Refuse a path that cannot be written, before anything is computed. None: no table is wanted."""
    if path is None:
        return
    path = Path(path)
    if path.suffix not in (".csv", ".parquet"):
        raise InputError(f"{path}: {what} are written as .parquet or .csv; choose one of these names.")
    folder = next(each for each in path.absolute().parents if each.exists())
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        reason = "it is a folder" if path.is_dir() else f"{folder} is no folder that you may write to"
        raise InputError(f"{path} cannot be written ({reason}): choose another place; nothing was computed.")


def write_table(path: str | Path, columns: Mapping[str, Any], what: str) -> None:
    """Write a Parquet table, or CSV if the path ends in ``.csv``. ``what`` names its contents in messages.

    A column ``set``, of sets of classes, becomes a column of lists, in CSV a column of JSON texts.
    """
    from graphfcl.runtime.files import write_bytes, write_durably

    refuse_unwritable(path, what)
    if Path(path).suffix == ".csv":
        write_bytes(path, csv_bytes(columns))
        return
    from pyarrow import parquet

    table = _arrow_table(path, columns)
    write_durably(path, lambda file: parquet.write_table(table, file))


def csv_bytes(columns: Mapping[str, Any]) -> bytes:
    """Return a table as CSV with a header."""
    if all(is_plain(values) for values in columns.values()):
        return plain_csv(columns)
    import pyarrow as pa
    from pyarrow import csv

    sink = pa.BufferOutputStream()
    csv.write_csv(_arrow_table("table.csv", columns), sink)
    return sink.getvalue().to_pybytes()


def _arrow_table(path: str | Path, columns: Mapping[str, Any]) -> Any:
    import json

    import pyarrow as pa

    def column(name: str, values: Any) -> Any:
        if name != "set":
            return as_arrow(values)
        as_text = Path(path).suffix == ".csv"
        return pa.array([json.dumps(each, ensure_ascii=False) for each in values]) if as_text else set_column(values)

    return pa.table({name: column(name, values) for name, values in columns.items()})


def write_blocks(path: str | Path, blocks: Iterator[Mapping[str, Any]], what: str, counted: str) -> tuple[int, int]:
    """Write a table like :func:`write_table`, with one block of rows in memory at a time.

    Returns the number of rows, and the number of rows in which the column ``counted`` is true.
    """
    from graphfcl.runtime.files import write_durably

    refuse_unwritable(path, what)
    first = next(blocks)
    second = next(blocks, None)
    counts = [len(first[counted]), int(first[counted].sum())]
    if second is None:
        write_table(path, first, what)
        return counts[0], counts[1]
    from pyarrow import csv, parquet

    writer_of = csv.CSVWriter if Path(path).suffix == ".csv" else parquet.ParquetWriter

    def fill(file: Any) -> None:
        table = _arrow_table(path, first)
        with writer_of(file, table.schema) as writer:
            writer.write_table(table)
            for block in chain([second], blocks):
                counts[0] += len(block[counted])
                counts[1] += int(block[counted].sum())
                writer.write_table(_arrow_table(path, block).cast(table.schema))

    write_durably(path, fill)
    return counts[0], counts[1]


def is_plain(column: object) -> bool:
    """Return whether a column has only texts or integers, which :func:`plain_csv` writes as Arrow does."""
    if not isinstance(column, np.ndarray) or column.dtype.kind not in "iO":
        return False
    return column.dtype.kind == "i" or all(isinstance(value, str) for value in column.tolist())


def plain_csv(columns: Mapping[str, np.ndarray]) -> bytes:
    """Return a CSV file, written without importing Arrow. Texts are quoted; surrogates are escaped."""

    def cells(values: list[Any]) -> list[str]:
        return ['"' + each.replace('"', '""') + '"' if isinstance(each, str) else str(each) for each in values]

    rows = zip(*(cells(values.tolist()) for values in columns.values()), strict=True)
    lines = [",".join(cells(list(columns))), *(",".join(row) for row in rows), ""]
    return "\n".join(lines).encode("utf-8", "backslashreplace")
