"""A table of any size, read in parts."""

from collections.abc import Iterator
from typing import Any

from graphfcl.graph.table import Table

BYTES = 1 << 22  # of a CSV file at a time
NUMBERS = 1 << 21  # of a Parquet file at a time


def table_blocks(table: Table, columns: list[str]) -> Iterator[Table]:
    """The table in parts, with some of its columns; messages on a part speak of lines of the whole file."""
    import pyarrow as pa

    first = 0
    batches = _csv(table, columns) if table.is_csv else _parquet(table, columns)
    while True:
        try:
            batch = next(batches, None)
        except table.failures as error:
            raise table.unreadable(error) from error
        if batch is None:
            return
        yield table.part(pa.Table.from_batches([batch]), first)
        first += batch.num_rows


def _parquet(table: Table, columns: list[str]) -> Iterator[Any]:
    from pyarrow import parquet

    rows = max(1, min(1 << 18, NUMBERS // max(1, len(columns))))
    with parquet.ParquetFile(table.path, pre_buffer=False, buffer_size=1 << 20) as file:
        yield from file.iter_batches(batch_size=rows, columns=table.written(columns), use_threads=False)


def _csv(table: Table, columns: list[str]) -> Iterator[Any]:
    from pyarrow import csv

    yield from csv.open_csv(
        table.path,
        read_options=csv.ReadOptions(block_size=BYTES, use_threads=False),
        parse_options=table.parse_options,
        convert_options=table.convert_options(columns),
    )
