"""Small tables that a user hands in, as files or DataFrames: supports, nodes, edges.

Every value is text; a message names the line of a file, or the row of a frame.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.graph.column_names import ID_NAMES, MISSING, SOURCE_NAMES, TARGET_NAMES, WEIGHT_NAMES, ReadColumns
from graphfcl.graph.column_values import is_list
from graphfcl.graph.csv_format import separator_of
from graphfcl.graph.frames import arrow_table, is_frame
from graphfcl.graph.ids import as_arrow, normal
from graphfcl.graph.table import stripped_names, wrong_row
from graphfcl.graph.utf8 import first_not_utf8, where_not_utf8
from graphfcl.production.plain_csv import is_plain, plain_csv
from graphfcl.production.supports import MOST_COLUMNS, Statement, Support

CLASS_NAMES = ("class", "label")
LINE_BREAK = re.compile("\r\n|\r|\n")
GUESS = "guess"  # a table of suggestions has it beside the class that somebody is to fill in
OWN_COLUMNS = ("by", "when", "part")  # of a table of labels; what a label is for is the model's business


@dataclass(frozen=True)
class TextTable:
    """Columns of text. lines: of each row, its line in a CSV file or its number from 1 elsewhere.

    path: of a DataFrame, what messages call it. lists: columns of lists, as Arrow holds them; a table that has some has
    all of its rows. of_rows: rows have numbers and no lines.
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
        # Empty rows are left out but counted: a message names the line of the file.
        kept = [row for row in range(table.num_rows) if lists or any(values[row] for values in columns.values())]
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

    def place(self, row: int) -> str:
        """What a message calls a row."""
        return f"{self.path.name}, {'row' if self.of_rows else 'line'} {self.lines[row]}"

    def numbers(self, name: str) -> np.ndarray:
        """A column as numbers."""
        values = np.empty(len(self.columns[name]), dtype=np.float32)
        for row, text in enumerate(self.columns[name]):
            try:
                values[row] = float(text)
            except ValueError as error:
                raise InputError(f"{self.place(row)}: {name} is {text!r}, which is no number: mend it.") from error
        return values


class PlacedIds(list[str]):
    """Ids of nodes that know where they stand in a table."""

    def __init__(self, ids: Sequence[str], table: TextTable) -> None:
        super().__init__(ids)
        self.place = table.place


def _breaks_before(columns: Mapping[str, list[str]], rows: int) -> list[int]:
    """Of each row, the line breaks within values of the rows above it."""
    breaks = np.zeros(rows + 1, dtype=np.int64)
    for name, values in columns.items():
        breaks[0] += len(LINE_BREAK.findall(name))
        for row, text in enumerate(values):
            if "\n" in text or "\r" in text:
                breaks[row + 1] += len(LINE_BREAK.findall(text))
    return breaks.cumsum()[:-1].tolist()


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


def id_names(columns: ReadColumns | None) -> tuple[str, ...]:
    """What a column of ids may be called. columns: of the tables of the fit, whose own name comes first."""
    return _own_first(None if columns is None else columns.id, ("node", *ID_NAMES))


def class_names(columns: ReadColumns | None) -> tuple[str, ...]:
    """The same of a column of classes."""
    return _own_first(None if columns is None else columns.label, CLASS_NAMES)


def _own_first(own: str | None, usual: tuple[str, ...]) -> tuple[str, ...]:
    return usual if own is None or own in usual else (own, *usual)


def read_supports(
    source: Any, columns: ReadColumns | None = None, *, by: str = "", when: Any = "", known: Sequence[str] = ()
) -> list[Support]:
    """A table with the columns ``node`` and ``class``; ``by``, ``when`` and all others are kept with the label.

    Of a table of suggestions, rows whose class nobody has filled in are left out. In the label column of the fit the
    usual names of an unknown class (``NA`` …) and a blank mean what they meant there: such rows are left out too.
    source: a file or a DataFrame. columns: of the tables of the fit, which may be called so here too. by, when: of rows
    that do not say it. known: classes of the model; such a name is always a class.
    """
    table, ids = TextTable.read(source, "supports"), id_names(columns)
    labels = class_names(columns)
    nodes, classes = table.need(ids, "the ids of nodes"), table.need(labels, "their classes")
    used = (table.find(ids), table.find(labels), *OWN_COLUMNS)
    kept = [name for name in table.columns if name not in used]
    if len(kept) > MOST_COLUMNS:
        raise InputError(f"{table.path} has {len(kept)} further columns, at most {MOST_COLUMNS} are kept: drop some.")
    of_fit = columns is not None and table.find(labels) == columns.label
    unknown = {""} if GUESS in table.columns else set()
    unknown |= {"", *(name.casefold() for name in MISSING)} - {name.casefold() for name in known} if of_fit else set()
    nothing = [""] * len(nodes)
    said_by, said_when = (table.columns.get(name, nothing) for name in ("by", "when"))
    supports = []
    for row, (node, name) in enumerate(zip(nodes, classes, strict=True)):
        if normal(name).casefold() in unknown:
            continue
        place = table.place(row)
        values = {column: table.columns[column][row] for column in kept}
        supports.append(
            Support(node, name, place, Statement.of(said_by[row] or by, said_when[row] or when, values, place))
        )
    return supports


def read_ids(source: Any, columns: ReadColumns | None = None) -> PlacedIds:
    """A table with the column ``node``."""
    table = TextTable.read(source)
    return PlacedIds(table.need(id_names(columns), "the ids of nodes"), table)


def read_labels(source: Any, columns: ReadColumns | None = None) -> tuple[list[str], list[str]]:
    """Ids and classes of a table that has both."""
    table = TextTable.read(source)
    return table.need(id_names(columns), "the ids of nodes"), table.need(class_names(columns), "their classes")


def read_edges(source: Any, columns: ReadColumns | None = None) -> tuple[PlacedIds, PlacedIds, np.ndarray | None]:
    """A table with the columns ``source`` and ``target``, and optionally ``weight``."""
    table = TextTable.read(source, "edges")
    own = (None, None, None) if columns is None else (columns.source, columns.target, columns.weight)
    first = table.need(_own_first(own[0], SOURCE_NAMES), "an end of each edge")
    second = table.need(_own_first(own[1], TARGET_NAMES), "an end of each edge")
    weight = table.find(_own_first(own[2], WEIGHT_NAMES))
    ends = PlacedIds(first, table), PlacedIds(second, table)
    return *ends, None if weight is None else table.numbers(weight)


def refuse_unwritable(path: str | Path | None, what: str) -> None:
    """Refuse a table that could not be written, before anything is computed for it. None: no table is asked for."""
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
    """A Parquet table, or CSV if the name says so. what: what it holds, for the message.

    A column ``set``, of sets of classes, is one of lists, in CSV written as JSON.
    """
    from graphfcl.files import write_bytes, write_durably

    refuse_unwritable(path, what)
    if Path(path).suffix == ".csv" and all(is_plain(values) for values in columns.values()):
        write_bytes(path, plain_csv(columns))
        return
    from pyarrow import csv, parquet

    table = _arrow_table(path, columns)
    if Path(path).suffix == ".csv":
        write_durably(path, lambda file: csv.write_csv(table, file))
    else:
        write_durably(path, lambda file: parquet.write_table(table, file))


def csv_texts(columns: Mapping[str, Any]) -> str:
    """A table as CSV, with a header, as :func:`write_table` writes it."""
    if all(is_plain(values) for values in columns.values()):
        return plain_csv(columns).decode()
    import pyarrow as pa
    from pyarrow import csv

    sink = pa.BufferOutputStream()
    csv.write_csv(_arrow_table("table.csv", columns), sink)
    return sink.getvalue().to_pybytes().decode()


def _arrow_table(path: str | Path, columns: Mapping[str, Any]) -> Any:
    import json

    import pyarrow as pa

    if "set" in columns:
        sets = [list(names) for names in columns["set"]]
        as_text = Path(path).suffix == ".csv"
        columns = {**columns, "set": [json.dumps(names, ensure_ascii=False) for names in sets] if as_text else sets}
    return pa.table({name: pa.array(v) if name == "set" else as_arrow(v) for name, v in columns.items()})


def write_blocks(path: str | Path, blocks: Iterator[Mapping[str, Any]], what: str, counted: str) -> tuple[int, int]:
    """A table like :func:`write_table`, of which one block of rows is in memory at a time.

    Returns how many rows there are, and in how many of them the column ``counted`` is true.
    """
    from graphfcl.files import write_durably

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
