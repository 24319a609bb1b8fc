"""Read a table (CSV, Parquet or in memory) whole or in blocks, with errors that name the line."""

from collections import Counter
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from graphfcl.errors import InputError, did_you_mean
from graphfcl.graph.ids import text_array
from graphfcl.graph.tables import SUFFIXES
from graphfcl.graph.tables.columns import USUAL, Notation, TableColumns
from graphfcl.graph.tables.text_files import (
    first_not_utf8,
    lines_at,
    separator_of,
    where_not_utf8,
    wrong_row,
)

BYTES = 1 << 22  # bytes of a CSV file in a block
NUMBERS = 1 << 21  # numbers of a Parquet file in a block
FAILURES = (pa.ArrowException, OSError, UnicodeDecodeError)


class Table:
    """A table in CSV, in Parquet or in memory. Ids and labels keep their spelling ("007" is not 7).

    Args:
        path: File of the table, or the name of a table in memory in messages.
        rows: Arrow table, if the table is in memory.
        notation: How numbers in texts are written.
        content: Parquet file of the table, if messages should name ``path`` instead.

    Attributes:
        is_csv: Whether it is a CSV file. All its columns are then read as text.
        separator: Column separator of a CSV file.
        first: Number of rows of the file before the rows that were read.
        kept: (rows,) Positions of the rows in the file, if some rows were left out.
    """

    first = 0
    kept: np.ndarray | None = None
    _table: Any = None

    def __init__(
        self, path: Path, rows: Any = None, notation: Notation = USUAL, *, content: Path | None = None
    ) -> None:
        if rows is None and content is None and not path.is_file():
            raise InputError(f"{path} does not exist: check the path.")
        self.path, self.content, self.notation = path, content or path, notation
        self.is_csv = rows is None and self.content.suffix != ".parquet"
        self.separator = separator_of(path) if self.is_csv else ""
        try:
            if self.is_csv:
                self._name_columns(csv.open_csv(path, parse_options=self.parse_options).schema)
            else:
                self._name_columns(parquet.read_schema(self.content) if rows is None else rows.schema)
        except FAILURES as error:
            raise self.unreadable(error) from error
        if rows is not None:
            self._table = stripped_names(rows)

    def _name_columns(self, schema: Any) -> None:
        """Read the column names, without spaces at their ends."""
        self.schema = pa.schema([field.with_name(field.name.strip()) for field in schema])
        self.columns: list[str] = self.schema.names
        twice = [column for column, count in Counter(self.columns).items() if count > 1]
        if twice:
            spaces = "" if schema.names.count(twice[0]) > 1 else " (spaces around it do not count)"
            raise InputError(f"{self.path} has two columns {twice[0]!r}{spaces}: give each column a name of its own.")
        self._written = dict(zip(self.columns, schema.names, strict=True))

    def written(self, columns: Sequence[str]) -> list[str]:
        """Return the names of columns as they are written in the file."""
        return [self._written[column] for column in columns]

    @property
    def parse_options(self) -> Any:
        """Options by which Arrow splits a CSV file into values."""
        return csv.ParseOptions(delimiter=self.separator, newlines_in_values=True)

    def convert_options(self, columns: Sequence[str]) -> Any:
        """Return options by which Arrow reads columns of a CSV file as text."""
        import pyarrow as pa

        written = self.written(columns)
        return csv.ConvertOptions(
            include_columns=written,
            column_types={column: pa.string() for column in written},
            null_values=[""],  # "NA" and "null" stay texts
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
        )

    def read(self) -> None:
        """Read all rows, unless the table is in memory."""
        if self._table is not None:
            return
        try:
            if self.is_csv:
                options = self.convert_options(self.columns)
                rows = csv.read_csv(self.path, parse_options=self.parse_options, convert_options=options)
            else:
                rows = parquet.read_table(self.content)
        except FAILURES as error:
            raise self.unreadable(error) from error
        self._table = stripped_names(rows)

    def blocks(self, columns: Sequence[str]) -> Iterator["Table"]:
        """Yield blocks of rows with some columns. Messages about a block name lines of the whole file."""
        first = 0
        try:
            for batch in self._csv_batches(columns) if self.is_csv else self._parquet_batches(columns):
                yield self.part(pa.Table.from_batches([batch]), first)
                first += batch.num_rows
        except FAILURES as error:
            raise self.unreadable(error) from error

    def _parquet_batches(self, columns: Sequence[str]) -> Iterator[Any]:
        rows = max(1, min(1 << 18, NUMBERS // max(1, len(columns))))
        with parquet.ParquetFile(self.content, pre_buffer=False, buffer_size=1 << 20) as file:
            yield from file.iter_batches(batch_size=rows, columns=self.written(columns), use_threads=False)

    def _csv_batches(self, columns: Sequence[str]) -> Iterator[Any]:
        yield from csv.open_csv(
            self.path,
            read_options=csv.ReadOptions(block_size=BYTES, use_threads=False),
            parse_options=self.parse_options,
            convert_options=self.convert_options(columns),
        )

    def without_empty_rows(self) -> "Table":
        """Return the table without rows of a CSV file in which all values are empty."""
        # Arrow imports pandas, if installed, to handle nulls, which is slow: skip tables without nulls.
        if not self.is_csv or not self.columns or not all(self._table[name].null_count for name in self.columns):
            return self
        empty = np.logical_and.reduce(
            [self._table[name].is_null().to_numpy(zero_copy_only=False) for name in self.columns]
        )
        if not empty.any():
            return self
        part = self.part(self._table.filter(~empty), self.first)
        part.kept = np.flatnonzero(~empty)
        return part

    def pieces(self, rows: int) -> Iterator["Table"]:
        """Yield parts with this many of the rows that were read, which share their memory."""
        for first in range(0, self.row_count, rows):
            yield self.part(self._table.slice(first, rows), self.first + first)

    def part(self, rows: Any, first: int) -> "Table":
        """Return a part of the table with these rows (an Arrow table); ``first`` is the number of rows before them."""
        part = copy(self)
        part._table, part.first = stripped_names(rows), first
        return part

    def unreadable(self, error: Exception) -> InputError:
        """Turn an error of Arrow into an InputError that names the line where possible."""
        wrong = wrong_row(self.path, error, self.separator)
        if wrong is not None:
            return wrong
        place = where_not_utf8(self.path) if self.is_csv else None
        if place is not None:
            return InputError(f"{self.path} cannot be read as a table ({place} is not UTF-8): write it as UTF-8.")
        reason = str(error).splitlines()[0].rstrip(".")
        return InputError(
            f"{self.path} cannot be read as a table ({reason}): write it as CSV with a header, or as Parquet."
        )

    def find(self, wanted: str | None, usual: tuple[str, ...], what: str) -> str | None:
        """Return the wanted column, else the first of the usual names, else None.

        An InputError, which names the use of the column (``what``), if there is no wanted column in the table.
        """
        if wanted is not None and wanted not in self.columns:
            hint = did_you_mean(wanted, self.columns, f"it has {', '.join(self.columns)}.")
            raise InputError(f"{self.path} has no column {wanted!r} for the {what}: {hint}")
        return wanted or next((column for column in usual if column in self.columns), None)

    def choose(self, wanted: str | None, usual: tuple[str, ...], what: str) -> str:
        """Return a column as :meth:`find` does; an InputError if there is none."""
        column = self.find(wanted, usual, what)
        if column is None:
            listed = " or ".join(repr(column) for column in usual)
            raise InputError(
                f"{self.path} has no column for the {what}: call it {listed}, or say which one it is, as {usual[0]}="
                f"{_same_letters(self.columns, usual)}; it has {', '.join(self.columns)}."
            )
        return column

    def line(self, row: int) -> str:
        """Return the name of a row in messages: its line in a CSV file, or its number from 1."""
        return self.lines([row])[0]

    def lines(self, rows: Sequence[int]) -> list[str]:
        """Return the names of several rows, in ascending order, in messages."""
        rows = [self.first + (row if self.kept is None else int(self.kept[row])) for row in rows]
        if not self.is_csv:
            return [f"row {row + 1}" for row in rows]
        return [f"line {line}" for line in lines_at(self.path, self.separator, rows)]

    def place(self, row: int) -> str:
        """Return file and name of a row in messages."""
        return f"{self.path}, {self.line(row)}"

    @property
    def row_count(self) -> int:
        """Number of rows that were read."""
        return self._table.num_rows

    def whole_numbers(self, column: str) -> np.ndarray | None:
        """Return (rows,) int64 if the column has an integer type and no nulls, else None (always for CSV)."""
        values = self._table[column]
        if self.is_csv or not pa.types.is_integer(values.type) or values.null_count:
            return None
        try:
            return values.cast(pa.int64()).to_numpy()
        except pa.ArrowInvalid:
            return None

    def texts(self, column: str, what: str | None) -> np.ndarray:
        """Return (rows,) a column as Python texts; for ``what`` see :meth:`text`."""
        try:
            return text_array(self.text(column, what).to_pylist())
        except UnicodeDecodeError as error:
            row = first_not_utf8(self._table[column])
            raise InputError(
                f"{self.place(row)}: column {column!r} is not UTF-8: write the table again as UTF-8."
            ) from error

    def text(self, column: str, what: str | None) -> Any:
        """Return a column as Arrow text; with ``what``, the name of the value, a null raises an InputError."""
        values = self._table[column]
        if pa.types.is_nested(values.type):
            raise InputError(f"{self.path}: column {column!r} holds lists; it must hold one value a row.")
        if what is not None and values.null_count:
            row = int(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))[0])
            raise missing_value(self.place(row), what, column)
        try:
            texts = values.cast(pa.string())
            return texts.fill_null("") if texts.null_count else texts
        except pa.ArrowException as error:
            raise InputError(f"{self.path}: column {column!r} cannot be read as text: write it as UTF-8.") from error

    def has_type(self, column: str) -> bool:
        """Tell whether the type of a column is known: not in a CSV file or if a frame mixes numbers and texts."""
        return not self.is_csv and b"graphfcl" not in (self.schema.field(column).metadata or {})

    def says_text(self, column: str) -> bool:
        """Tell whether a column has a text type (never in a CSV file)."""
        kind = self._table[column].type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        return self.has_type(column) and not pa.types.is_integer(kind) and not pa.types.is_floating(kind)

    def different_labels(self, column: str) -> np.ndarray | tuple[list[str], np.ndarray]:
        """Return (rows,) numeric labels, or each different text once and (rows,) the position of each row's text."""
        numbers = self._label_numbers(column)
        if numbers is not None:
            return numbers
        texts = self.text(column, None)
        encoded = pa.chunked_array(texts).combine_chunks().dictionary_encode()
        try:
            return encoded.dictionary.to_pylist(), encoded.indices.to_numpy(zero_copy_only=False)
        except UnicodeDecodeError:
            return self.texts(column, None).tolist(), np.arange(self.row_count)  # raises an error that names the line

    def _label_numbers(self, column: str) -> np.ndarray | None:
        values = self._table[column]
        if pa.types.is_nested(values.type):
            raise InputError(f"{self.path}: column {column!r} holds several labels per node (multi-label); choose one.")
        values = values.cast(pa.float64()) if pa.types.is_boolean(values.type) else values  # 0 and 1, as in an array
        return np.array(values.fill_null(np.nan).to_numpy()) if pa.types.is_floating(values.type) else None

    def column(self, name: str) -> Any:
        """Return a column as a chunked Arrow array."""
        return self._table[name]


@dataclass(frozen=True)
class TableFiles:
    """Files of the tables of nodes and edges.

    Args:
        nodes: Table of nodes, or its name in messages.
        edges: Table of edges, or its name in messages.
        name: Name of the graph.
        made_of: Source of the graph.
        contents: Files of tables that have another name in messages.
        columns: Default for which columns are ids, labels and so on.
    """

    nodes: Path
    edges: Path
    name: str
    made_of: str
    contents: dict[Path, Path] = field(default_factory=dict)
    columns: TableColumns = field(default_factory=TableColumns)

    @classmethod
    def of(cls, source: "str | Path | TableFiles") -> "TableFiles":
        """Find the tables in a folder."""
        if isinstance(source, TableFiles):
            return source
        nodes, edges = (_file_of(Path(source), stem) for stem in ("nodes", "edges"))
        return cls(nodes, edges, Path(source).resolve().name, str(source))

    @property
    def files(self) -> tuple[Path, Path]:
        """Files with the contents of both tables."""
        return self.contents.get(self.nodes, self.nodes), self.contents.get(self.edges, self.edges)

    def open(self, notation: Notation) -> tuple[Table, Table]:
        """Open the tables of nodes and of edges."""
        nodes, edges = (
            Table(path, notation=notation, content=self.contents.get(path)) for path in (self.nodes, self.edges)
        )
        return nodes, edges


def _file_of(folder: Path, stem: str) -> Path:
    """Return the table with this name in a folder of tables."""
    paths = [folder / f"{stem}.{suffix}" for suffix in SUFFIXES]
    path = next((each for each in paths if each.exists()), None)
    if path is None:
        listed = ", ".join(each.name for each in paths[:-1])
        raise InputError(f"{folder} has no {listed} or {paths[-1].name}: a folder of tables needs nodes and edges.")
    return path


def stripped_names(rows: Any) -> Any:
    """Strip spaces at the ends of the column names of an Arrow table."""
    return rows.rename_columns([name.strip() for name in rows.column_names])


def _same_letters(columns: Sequence[str], usual: Sequence[str]) -> str:
    """Return a column that equals a usual name except for case, else the word NAME."""
    return next((column for column in columns if column.casefold() in usual), "NAME")


def missing_value(place: str, what: str, column: str) -> InputError:
    """Make the error for a row without a required value ``what``."""
    return InputError(f"{place}: {what} is missing in column {column!r}: fill it in, or drop the row.")
