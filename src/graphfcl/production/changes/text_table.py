"""A small table that a user hands in, as a file or a DataFrame, read as text.

A message names the line of a file, or the row of a frame.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.graph.column_values import is_list, numbers_of
from graphfcl.graph.frames import arrow_table, is_frame
from graphfcl.graph.table import Table, missing_value
from graphfcl.graph.text_files import lines_of_rows


class PlacedIds(list[str]):
    """Ids of nodes that know where they stand in a table."""

    def __init__(self, ids: Sequence[str], place: Callable[[int], str]) -> None:
        super().__init__(ids)
        self.place = place


@dataclass(frozen=True)
class TextTable:
    """A whole table as text. columns: those of single values. lists: columns of lists, as Arrow holds them."""

    table: Table
    columns: dict[str, list[str]]
    lists: dict[str, Any]

    @classmethod
    def read(cls, source: Any, called: str = "nodes") -> "TextTable":
        """A CSV or Parquet file, or a DataFrame. called: what messages call a frame."""
        table = Table.of(arrow_table(source, called), called) if is_frame(source) else Table(Path(source))
        table.read()
        table = table.without_empty_rows()
        lists = {name: table.column(name) for name in table.columns if is_list(table.column(name).type)}
        columns = {name: table.texts(name, None).tolist() for name in table.columns if name not in lists}
        return cls(table, columns, lists)

    @property
    def path(self) -> Path:
        """Of a DataFrame, what messages call it."""
        return self.table.path

    @property
    def row_count(self) -> int:
        return self.table.row_count

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
            raise self.missing_id(missing, names)
        return PlacedIds(ids, self.place)

    def missing_id(self, row: int, names: Sequence[str]) -> InputError:
        """A row has no id. names: those that the column of ids may have."""
        return missing_value(self.place(row), "a node id", str(self.find(names)))

    @cached_property
    def _lines(self) -> list[int]:
        """The lines of a CSV file in which rows begin; a value that is too long for the reader ends them early."""
        return list(lines_of_rows(self.path, self.table.separator))

    def line(self, row: int) -> str:
        """What a message calls a row within the table."""
        if not self.table.is_csv:
            return self.table.line(row)
        row = row if self.table.kept is None else int(self.table.kept[row])
        return f"line {self._lines[row] if row < len(self._lines) else row + 2}"

    def place(self, row: int) -> str:
        """What a message calls a row."""
        return f"{self.path.name}, {self.line(row)}"

    def numbers(self, name: str) -> np.ndarray:
        """(rows,) float32, a column read as a fit reads it: truth values are 1 and 0."""
        return numbers_of(self.table, [name])[:, 0]
