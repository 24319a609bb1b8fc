"""One table of a graph, nodes or edges, CSV or Parquet; and what is wrong with it, in a sentence."""

import re
from collections import Counter
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.graph.ids import normal, text_array
from graphfcl.graph.utf8 import first_not_utf8, where_not_utf8
from graphfcl.printing import quoted

TYPE_NAMES = ("type", "relation", "edge_type")


class Table:
    """One table, CSV or Parquet, read so that ids and labels stay the text they are ("007" is not 7).

    is_csv: or else it is Parquet. first: rows of the file before those that were read.
    """

    first = 0

    def __init__(self, folder: Path, stem: str) -> None:
        import pyarrow as pa
        from pyarrow import csv, parquet

        self._failures: tuple[type[Exception], ...] = (pa.ArrowException, OSError, UnicodeDecodeError)
        for suffix in ("parquet", "csv"):
            self.path = folder / f"{stem}.{suffix}"
            if self.path.exists():
                break
        else:
            raise InputError(f"{folder} has no {stem}.csv or {stem}.parquet: a graph folder needs nodes and edges.")
        self.is_csv = self.path.suffix == ".csv"
        try:
            self.columns: list[str] = (
                csv.open_csv(self.path).schema.names if self.is_csv else parquet.read_schema(self.path).names
            )
        except self._failures as error:
            raise self.unreadable(error) from error
        twice = [column for column, count in Counter(self.columns).items() if count > 1]
        if twice:
            raise InputError(f"{self.path} has two columns {twice[0]!r}: give each column a name of its own.")

    def read(self, as_text: list[str]) -> None:
        import pyarrow as pa
        from pyarrow import csv, parquet

        try:
            if not self.is_csv:
                self._table = parquet.read_table(self.path)
                return
            self._table = csv.read_csv(
                self.path,
                parse_options=csv.ParseOptions(newlines_in_values=True),
                convert_options=csv.ConvertOptions(
                    column_types={column: pa.string() for column in as_text},
                    null_values=[""],  # "NA" and "null" are words
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=True,
                ),
            )
        except self._failures as error:
            raise self.unreadable(error) from error

    def part(self, rows: Any, first: int) -> "Table":
        """The same table with only some of its rows: an Arrow table of them, and how many stand before."""
        part = copy(self)
        part._table, part.first = rows, first
        return part

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """What reading a damaged file may raise."""
        return self._failures

    def unreadable(self, error: Exception) -> InputError:
        """One sentence for such an error."""
        found = wrong_row(self.path, error)
        if found is not None:
            return found
        place = where_not_utf8(self.path) if self.is_csv else None
        if place is not None:
            return InputError(f"{self.path} cannot be read as a table ({place} is not UTF-8): write it as UTF-8.")
        reason = str(error).splitlines()[0].rstrip(".")
        return InputError(f"{self.path} cannot be read as a table ({reason}): write it again.")

    def find(self, wanted: str | None, usual: tuple[str, ...], what: str) -> str | None:
        """The wanted column, or the first usual one, or None."""
        if wanted is not None and wanted not in self.columns:
            raise InputError(f"{self.path} has no column {wanted!r} for the {what}; it has {', '.join(self.columns)}.")
        return wanted or next((column for column in usual if column in self.columns), None)

    def choose(self, wanted: str | None, usual: tuple[str, ...], what: str) -> str:
        column = self.find(wanted, usual, what)
        if column is None:
            listed = " or ".join(repr(column) for column in usual)
            raise InputError(
                f"{self.path} has no column for the {what}: call it {listed}, or say which one it is; it has "
                f"{', '.join(self.columns)}."
            )
        return column

    def line(self, row: int) -> str:
        return f"line {self.first + row + 2}" if self.is_csv else f"row {self.first + row}"

    @property
    def row_count(self) -> int:
        """Rows that were read."""
        return self._table.num_rows

    def whole_numbers(self, column: str) -> np.ndarray | None:
        """(rows,) int64 if the column was written as whole numbers and has no empty place; CSV does not say."""
        import pyarrow as pa

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
                f"{self.path}, {self.line(row)}: column {column!r} is not UTF-8: write the table again as UTF-8."
            ) from error

    def text(self, column: str, what: str | None) -> Any:
        """A column as text; an empty place is an error if ``what`` says what is missing there."""
        import pyarrow as pa

        values = self._table[column]
        if pa.types.is_nested(values.type):
            raise InputError(f"{self.path}: column {column!r} holds lists; it must hold one value a row.")
        if what is not None and values.null_count:
            row = int(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))[0])
            raise InputError(f"{self.path}, {self.line(row)}: {what} is missing in column {column!r}.")
        try:
            return values.cast(pa.string()).fill_null("")
        except pa.ArrowException as error:
            raise InputError(f"{self.path}: column {column!r} cannot be read as text: write it as UTF-8.") from error

    def says_text(self, column: str) -> bool:
        """Whether the column was written as text and not as numbers; CSV does not say."""
        import pyarrow as pa

        kind = self._table[column].type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        return not self.is_csv and not pa.types.is_integer(kind) and not pa.types.is_floating(kind)

    def labels(self, column: str) -> np.ndarray:
        """(rows,) numbers or texts; "" where the class is not known."""
        numbers = self._label_numbers(column)
        if numbers is not None:
            return numbers
        texts = self.texts(column, None)
        unknown = {text for text in set(texts.tolist()) if normal(text) == "-1"}  # the field's usual number for that
        return text_array(["" if text in unknown else text for text in texts.tolist()])

    def different_labels(self, column: str) -> np.ndarray | tuple[list[str], np.ndarray]:
        """(rows,) numbers; or each different text once, and (rows,) which of them a row has."""
        import pyarrow as pa

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
        import pyarrow as pa

        values = self._table[column]
        if pa.types.is_nested(values.type):
            raise InputError(f"{self.path}: column {column!r} holds several labels per node (multi-label); choose one.")
        return np.array(values.fill_null(np.nan).to_numpy()) if pa.types.is_floating(values.type) else None

    def numbers(self, columns: list[str]) -> np.ndarray:
        """(rows, columns) float32; a word or an empty place among them is an error."""
        import pyarrow as pa

        result = np.empty((self._table.num_rows, len(columns)), dtype=np.float32)
        for position, column in enumerate(columns):
            values = self._table[column]
            numeric = pa.types.is_integer(values.type) or pa.types.is_floating(values.type)
            if not (numeric or pa.types.is_boolean(values.type)) and values.null_count < len(values):
                raise InputError(
                    f"{self.path}: column {column!r} does not hold numbers: name it as the text column, or take it out."
                )
            if values.null_count:
                row = int(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))[0])
                raise InputError(f"{self.path}, {self.line(row)}: column {column!r} is empty; fill it in.")
            result[:, position] = values.cast(pa.float32(), safe=False).to_numpy()
        return result


def wrong_row(path: Path, error: Exception) -> InputError | None:
    """A row of a CSV file that has too few or too many columns, if that is what Arrow says."""
    said = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", str(error))
    if said is None:
        return None
    return InputError(
        f"{path}, line {said[1]}: the row has {said[3]} columns in place of {said[2]}: mend the row or drop it."
    )


def several_types(path: Path, column: str) -> InputError:
    """A column names more than one type of edges."""
    return InputError(
        f"{path}: column {column!r} names several types of edges; heterogeneous graphs are not supported: keep one "
        "type, or drop the column to treat all alike."
    )


def id_stands_twice(path: Path | str, node: Any, first: int, second: int) -> InputError:
    """Two rows have one id."""
    return InputError(
        f"{path}: node id {quoted(node)} stands in rows {first} and {second} (counted from 0, without the header); a "
        "node has one row and one label."
    )


def unknown_end(edges: Table, row: int, node: Any) -> InputError:
    """An edge leads to a node that has no row."""
    return InputError(
        f"{edges.path}, {edges.line(row)}: the edge leads to node {quoted(node)}, which is not among the nodes: add "
        "the node or drop the edge."
    )


def not_used(edges: Table, other: list[str]) -> list[str]:
    """A note on columns that say nothing."""
    return [f"{edges.path.name}: the columns {', '.join(other)} were not used."] if other else []
