"""A table of any size, read in parts."""

from collections.abc import Iterator
from typing import Any

from graphfcl.graph.table import Table

BYTES = 1 << 22  # of a CSV file at a time
NUMBERS = 1 << 21  # of a Parquet file at a time


def table_blocks(table: Table, columns: list[str], as_text: list[str]) -> Iterator[Table]:
    """The table in parts, with some of its columns; messages on a part speak of lines of the whole file."""
    import pyarrow as pa

    first = 0
    batches = _csv(table, columns, as_text) if table.is_csv else _parquet(table, columns)
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
        yield from file.iter_batches(batch_size=rows, columns=columns, use_threads=False)


def _csv(table: Table, columns: list[str], as_text: list[str]) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import csv

    def open_with(types: dict[str, Any]) -> Any:
        return csv.open_csv(
            table.path,
            read_options=csv.ReadOptions(block_size=BYTES, use_threads=False),
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                include_columns=columns,
                column_types=types,
                null_values=[""],  # "NA" and "null" are words
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            ),
        )

    types = {column: pa.string() for column in as_text if column in columns}
    # What looks like whole numbers in the first block may have decimals in a later one.
    for field in open_with(types).schema:
        if pa.types.is_integer(field.type) or pa.types.is_null(field.type):
            types[field.name] = pa.float64()
    yield from open_with(types)
