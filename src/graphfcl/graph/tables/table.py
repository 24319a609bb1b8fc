"""One table, CSV, Parquet or in memory, read as a whole or in blocks; and what is wrong with it, in a sentence."""

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

BYTES = 1 << 22  # of a CSV file in a block
NUMBERS = 1 << 21  # of a Parquet file in a block
FAILURES = (pa.ArrowException, OSError, UnicodeDecodeError)


class Table:
    """One table, CSV, Parquet or in memory, read so that ids and labels stay the text they are ("007" is not 7).

    path: its file; of a table in memory what messages call it. is_csv: or else columns have types; all columns of a
    CSV file are read as text. separator: of its columns. notation: how numbers in texts are written.
    first: rows of the file before those that were read. kept: (rows,) the places of rows in the file, if some were left
    out.
    """

    first = 0
    kept: np.ndarray | None = None
    _table: Any = None

    def __init__(
        self, path: Path, rows: Any = None, notation: Notation = USUAL, *, content: Path | None = None
    ) -> None:
        """rows: an Arrow table, if the table is in memory. content: its Parquet file, if messages call it otherwise."""
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
        """Spaces at the ends of a name, as behind the commas of a header, do not belong to it."""
        self.schema = pa.schema([field.with_name(field.name.strip()) for field in schema])
        self.columns: list[str] = self.schema.names
        twice = [column for column, count in Counter(self.columns).items() if count > 1]
        if twice:
            spaces = "" if schema.names.count(twice[0]) > 1 else " (spaces around it do not count)"
            raise InputError(f"{self.path} has two columns {twice[0]!r}{spaces}: give each column a name of its own.")
        self._written = dict(zip(self.columns, schema.names, strict=True))

    def written(self, columns: Sequence[str]) -> list[str]:
        """What the file calls some columns."""
        return [self._written[column] for column in columns]

    @property
    def parse_options(self) -> Any:
        """How a CSV file is cut into values."""
        return csv.ParseOptions(delimiter=self.separator, newlines_in_values=True)

    def convert_options(self, columns: Sequence[str]) -> Any:
        """All columns of a CSV file as text."""
        import pyarrow as pa

        written = self.written(columns)
        return csv.ConvertOptions(
            include_columns=written,
            column_types={column: pa.string() for column in written},
            null_values=[""],  # "NA" and "null" are words
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
        )

    def read(self) -> None:
        """All rows; those of a table in memory are there."""
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
        """The file in blocks of rows, with some of its columns; messages speak of lines of the whole file."""
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
        """The same table without rows of a CSV file of which every value is empty."""
        # Where pandas is installed, Arrow imports it to fill gaps or make arrays of them: not for tables without any.
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
        """What was read in parts of so many rows, which share its memory."""
        for first in range(0, self.row_count, rows):
            yield self.part(self._table.slice(first, rows), self.first + first)

    def part(self, rows: Any, first: int) -> "Table":
        """The same table with only some of its rows: an Arrow table of them, and how many stand before."""
        part = copy(self)
        part._table, part.first = stripped_names(rows), first
        return part

    def unreadable(self, error: Exception) -> InputError:
        """One sentence for such an error."""
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
        """The wanted column, or the first usual one, or None."""
        if wanted is not None and wanted not in self.columns:
            hint = did_you_mean(wanted, self.columns, f"it has {', '.join(self.columns)}.")
            raise InputError(f"{self.path} has no column {wanted!r} for the {what}: {hint}")
        return wanted or next((column for column in usual if column in self.columns), None)

    def choose(self, wanted: str | None, usual: tuple[str, ...], what: str) -> str:
        column = self.find(wanted, usual, what)
        if column is None:
            listed = " or ".join(repr(column) for column in usual)
            raise InputError(
                f"{self.path} has no column for the {what}: call it {listed}, or say which one it is, as {usual[0]}="
                f"{_same_letters(self.columns, usual)}; it has {', '.join(self.columns)}."
            )
        return column

    def line(self, row: int) -> str:
        """What a message calls a row: its line in a CSV file, the header counted; elsewhere its number from 1."""
        return self.lines([row])[0]

    def lines(self, rows: Sequence[int]) -> list[str]:
        """The same of several rows, in ascending order."""
        rows = [self.first + (row if self.kept is None else int(self.kept[row])) for row in rows]
        if not self.is_csv:
            return [f"row {row + 1}" for row in rows]
        return [f"line {line}" for line in lines_at(self.path, self.separator, rows)]

    def place(self, row: int) -> str:
        """The file, and what a message calls a row of it."""
        return f"{self.path}, {self.line(row)}"

    @property
    def row_count(self) -> int:
        """Rows that were read."""
        return self._table.num_rows

    def whole_numbers(self, column: str) -> np.ndarray | None:
        """(rows,) int64 if the column was written as whole numbers and has no empty place; CSV does not say."""
        values = self._table[column]
        if self.is_csv or not pa.types.is_integer(values.type) or values.null_count:
            return None
        try:
            return values.cast(pa.int64()).to_numpy()
        except pa.ArrowInvalid:
            return None

    def texts(self, column: str, what: str | None) -> np.ndarray:
        """(rows,) a column as Python texts."""
        try:
            return text_array(self.text(column, what).to_pylist())
        except UnicodeDecodeError as error:
            row = first_not_utf8(self._table[column])
            raise InputError(
                f"{self.place(row)}: column {column!r} is not UTF-8: write the table again as UTF-8."
            ) from error

    def text(self, column: str, what: str | None) -> Any:
        """A column as text; an empty place is an error if ``what`` says what is missing there."""
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
        """Whether its type says what a column holds: not in a CSV file, nor where a frame mixed numbers and texts."""
        return not self.is_csv and b"graphfcl" not in (self.schema.field(column).metadata or {})

    def says_text(self, column: str) -> bool:
        """Whether the column was written as text and not as numbers; CSV does not say."""
        kind = self._table[column].type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        return self.has_type(column) and not pa.types.is_integer(kind) and not pa.types.is_floating(kind)

    def different_labels(self, column: str) -> np.ndarray | tuple[list[str], np.ndarray]:
        """(rows,) numbers; or each different text once, and (rows,) which of them a row has."""
        numbers = self._label_numbers(column)
        if numbers is not None:
            return numbers
        texts = self.text(column, None)
        encoded = pa.chunked_array(texts).combine_chunks().dictionary_encode()
        try:
            return encoded.dictionary.to_pylist(), encoded.indices.to_numpy(zero_copy_only=False)
        except UnicodeDecodeError:
            return self.texts(column, None).tolist(), np.arange(self.row_count)  # which says where

    def _label_numbers(self, column: str) -> np.ndarray | None:
        values = self._table[column]
        if pa.types.is_nested(values.type):
            raise InputError(f"{self.path}: column {column!r} holds several labels per node (multi-label); choose one.")
        values = values.cast(pa.float64()) if pa.types.is_boolean(values.type) else values  # 0 and 1, as in an array
        return np.array(values.fill_null(np.nan).to_numpy()) if pa.types.is_floating(values.type) else None

    def column(self, name: str) -> Any:
        """A column as Arrow holds it."""
        return self._table[name]


@dataclass(frozen=True)
class TableFiles:
    """The files of the tables of a graph.

    name: of the graph. made_of: where it comes from. contents: of tables that messages call otherwise than by their
    file, those files. columns: what the columns of the tables are, unless a reader is told.
    """

    nodes: Path
    edges: Path
    name: str
    made_of: str
    contents: dict[Path, Path] = field(default_factory=dict)
    columns: TableColumns = field(default_factory=TableColumns)

    @classmethod
    def of(cls, source: "str | Path | TableFiles") -> "TableFiles":
        """The tables of a folder."""
        if isinstance(source, TableFiles):
            return source
        nodes, edges = (_file_of(Path(source), stem) for stem in ("nodes", "edges"))
        return cls(nodes, edges, Path(source).resolve().name, str(source))

    @property
    def files(self) -> tuple[Path, Path]:
        """Where the contents are."""
        return self.contents.get(self.nodes, self.nodes), self.contents.get(self.edges, self.edges)

    def open(self, notation: Notation) -> tuple[Table, Table]:
        """The tables of nodes and of edges."""
        nodes, edges = (
            Table(path, notation=notation, content=self.contents.get(path)) for path in (self.nodes, self.edges)
        )
        return nodes, edges


def _file_of(folder: Path, stem: str) -> Path:
    """The table of a name in a folder of tables."""
    paths = [folder / f"{stem}.{suffix}" for suffix in SUFFIXES]
    path = next((each for each in paths if each.exists()), None)
    if path is None:
        listed = ", ".join(each.name for each in paths[:-1])
        raise InputError(f"{folder} has no {listed} or {paths[-1].name}: a folder of tables needs nodes and edges.")
    return path


def stripped_names(rows: Any) -> Any:
    """An Arrow table whose columns have names without spaces at their ends."""
    return rows.rename_columns([name.strip() for name in rows.column_names])


def _same_letters(columns: Sequence[str], usual: Sequence[str]) -> str:
    """The column that differs from a usual name by case only, as an example; else the word NAME."""
    return next((column for column in columns if column.casefold() in usual), "NAME")


def missing_value(place: str, what: str, column: str) -> InputError:
    """A row has no value where it needs one. what: what is missing."""
    return InputError(f"{place}: {what} is missing in column {column!r}: fill it in, or drop the row.")
