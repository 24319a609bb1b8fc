"""A small table that a user hands in, as a file or a DataFrame, read as text.

A message names the line of a file, or the row of a frame.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.graph.column_values import as_floats, is_list
from graphfcl.graph.csv_format import separator_of
from graphfcl.graph.frames import arrow_table, is_frame
from graphfcl.graph.table import stripped_names, wrong_row
from graphfcl.graph.utf8 import first_not_utf8, where_not_utf8

LINE_BREAK = re.compile("\r\n|\r|\n")


class PlacedIds(list[str]):
    """Ids of nodes that know where they stand in a table."""

    def __init__(self, ids: Sequence[str], place: Callable[[int], str]) -> None:
        super().__init__(ids)
        self.place = place


@dataclass(frozen=True)
class TextTable:
    """Columns of text. lines: of each row, its line in a CSV file or its number from 1 elsewhere.

    path: of a DataFrame, what messages call it. lists: columns of lists, as Arrow holds them. of_rows: rows have
    numbers and no lines.
    """

    path: Path
    columns: dict[str, list[str]]
    lines: list[int]
    lists: dict[str, Any] = field(default_factory=dict)
    of_rows: bool = False

    @classmethod
    def read(cls, source: Any, called: str = "nodes") -> "TextTable":
        """A CSV or Parquet file, or a DataFrame. called: what messages call a frame."""
        if is_frame(source):
            return cls._of(arrow_table(source, called), Path(called), of_rows=True)
        path = Path(source)
        if not path.is_file():
            raise InputError(f"{path} does not exist: check the path.")
        return cls._of(_read_arrow(path), path, of_rows=path.suffix == ".parquet")

    @classmethod
    def _of(cls, table: Any, path: Path, *, of_rows: bool) -> "TextTable":
        table = stripped_names(table)
        if len(set(table.column_names)) != len(table.column_names):
            raise InputError(f"{path} has two columns of one name: give each a name of its own.")
        lists = {name: table[name] for name in table.column_names if is_list(table[name].type)}
        columns = {name: _texts(table[name], name, path) for name in table.column_names if name not in lists}
        # Blank lines of a text file are left out but counted: a message names the line. A frame has no such rows.
        kept = [row for row in range(table.num_rows) if of_rows or any(values[row] for values in columns.values())]
        first = 1 if of_rows else 2
        before = [0] * table.num_rows if of_rows else _breaks_before(columns, table.num_rows)
        columns = {name: [values[row] for row in kept] for name, values in columns.items()}
        return cls(path, columns, [row + first + before[row] for row in kept], lists, of_rows)

    def find(self, names: Sequence[str]) -> str | None:
        """The first of these names that is a column."""
        return next((name for name in names if name in self.columns), None)

    def need(self, names: Sequence[str], what: str) -> list[str]:
        """The column with one of these names; an error if there is none. what: what it holds, for the message."""
        name = self.find(names)
        if name is None:
            raise InputError(
                f"{self.path} has no column {names[0]!r} ({what}); it has {', '.join(self.columns) or 'none'}: "
                "rename one."
            )
        return self.columns[name]

    def need_ids(self, names: Sequence[str], what: str = "the ids of nodes") -> PlacedIds:
        """The same of ids; an error if one is missing."""
        ids = self.need(names, what)
        missing = next((row for row, text in enumerate(ids) if not text.strip()), None)
        if missing is not None:
            raise self.missing_id(missing)
        return PlacedIds(ids, self.place)

    def missing_id(self, row: int) -> InputError:
        """A row has no id."""
        return InputError(f"{self.place(row)}: the node id is missing: give it one, or drop the row.")

    def line(self, row: int) -> str:
        """What a message calls a row within the table."""
        return f"{'row' if self.of_rows else 'line'} {self.lines[row]}"

    def place(self, row: int) -> str:
        """What a message calls a row."""
        return f"{self.path.name}, {self.line(row)}"

    def numbers(self, name: str) -> np.ndarray:
        """A column as numbers, read as a fit reads it: truth values are 1 and 0."""
        texts = self.columns[name]
        found = _floats(texts)
        if found is None:
            row = next((row for row, text in enumerate(texts) if _floats([text]) is None), None)
            # Each is a number or a truth value by itself: it is the truth values that do not fit.
            row = next(row for row, text in enumerate(texts) if _is_flag(text)) if row is None else row
            raise InputError(f"{self.place(row)}: {name} is {texts[row]!r}, which is no number: mend it.")
        if found.null_count:
            row = next(row for row, text in enumerate(texts) if not text.strip())
            raise InputError(f"{self.place(row)}: {name} is empty: fill it in.")
        return np.asarray(found.to_numpy()).astype(np.float32)


def _breaks_before(columns: Mapping[str, list[str]], rows: int) -> list[int]:
    """Of each row, the line breaks within values of the rows above it."""
    breaks = np.zeros(rows + 1, dtype=np.int64)
    for name, values in columns.items():
        breaks[0] += len(LINE_BREAK.findall(name))
        for row, text in enumerate(values):
            if "\n" in text or "\r" in text:
                breaks[row + 1] += len(LINE_BREAK.findall(text))
    return breaks.cumsum()[:-1].tolist()


def _floats(texts: list[str]) -> Any | None:
    """Texts as Arrow's numbers; None if one is none."""
    import pyarrow as pa

    return as_floats(pa.chunked_array([texts], pa.string()))


def _is_flag(text: str) -> bool:
    return text.strip().casefold() in ("true", "false")


def _read_arrow(path: Path) -> Any:
    """The table as Arrow reads it, all columns of a CSV file as text."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    try:
        if path.suffix == ".parquet":
            return parquet.read_table(path)
        cut = csv.ParseOptions(delimiter=separator_of(path), ignore_empty_lines=False)
        with csv.open_csv(path, parse_options=cut) as reader:
            names = reader.schema.names
        texts = csv.ConvertOptions(column_types={name: pa.string() for name in names}, strings_can_be_null=False)
        return csv.read_csv(path, convert_options=texts, parse_options=cut)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        wrong = None if path.suffix == ".parquet" else wrong_row(path, error, separator_of(path))
        if wrong is not None:
            raise wrong from error
        place = None if path.suffix == ".parquet" else where_not_utf8(path)
        if place is not None:
            raise InputError(f"{path} cannot be read as a table ({place} is not UTF-8): write it as UTF-8.") from error
        raise InputError(
            f"{path} cannot be read as a table ({str(error).splitlines()[0]}): write it as CSV with a header, or as "
            "Parquet."
        ) from error


def _texts(values: Any, name: str, path: Path) -> list[str]:
    """A column as texts; "" where there is nothing."""
    import pyarrow as pa

    try:
        return values.cast(pa.string()).fill_null("").to_pylist()
    except UnicodeDecodeError as error:
        row = first_not_utf8(values) + 1
        raise InputError(f"{path.name}, row {row}: column {name!r} is not UTF-8: write it again.") from error
    except pa.ArrowException as error:
        raise InputError(f"{path}: column {name!r} cannot be read as text: write it as UTF-8 text.") from error
