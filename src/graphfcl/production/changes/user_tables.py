"""Small tables that a user hands in or gets, as files or DataFrames: supports, nodes, edges, answers."""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphfcl.errors import GraphfclWarning, InputError, counted
from graphfcl.graph.column_names import (
    ID_NAMES,
    SOURCE_NAMES,
    TARGET_NAMES,
    WEIGHT_NAMES,
    ReadColumns,
    label_key,
    unknown_keys,
)
from graphfcl.graph.frames import set_column
from graphfcl.graph.ids import ClassLabel, as_arrow
from graphfcl.production.changes.plain_csv import is_plain, plain_csv
from graphfcl.production.changes.text_table import PlacedIds, TextTable
from graphfcl.production.labels.supports import KEPT, MOST_COLUMNS, Statement, Support, as_one_line

if TYPE_CHECKING:
    from graphfcl.production.graph import ModelGraph

CLASS_NAMES = ("class", "label")
GUESS = "guess"  # a table of suggestions has it beside the class that somebody is to fill in
OWN_COLUMNS = ("by", "when", "part")  # of a table of labels; what a label is for is the model's business


def warn(note: str) -> None:
    """Tell a caller in Python."""
    warnings.warn(note, GraphfclWarning, stacklevel=4)


def id_names(columns: ReadColumns | None) -> tuple[str, ...]:
    """What a column of ids may be called. columns: of the tables of the fit, whose own name comes first."""
    return _own_first(None if columns is None else columns.id, ("node", *ID_NAMES))


def class_names(columns: ReadColumns | None) -> tuple[str, ...]:
    """The same of a column of classes."""
    return _own_first(None if columns is None else columns.label, CLASS_NAMES)


def _own_first(own: str | None, usual: tuple[str, ...]) -> tuple[str, ...]:
    return usual if own is None or own in usual else (own, *usual)


def read_supports(
    source: Any,
    columns: ReadColumns | None = None,
    *,
    graph: "ModelGraph | None" = None,
    by: str = "",
    when: Any = "",
    known: Sequence[ClassLabel] = (),
    tell: Callable[[str], None] = warn,
) -> list[Support]:
    """A table with the columns ``node`` and ``class``; ``by``, ``when`` and others are kept with the label.

    Of a table of suggestions, rows whose class nobody has filled in are left out. In the label column of the fit a
    blank and the names that meant an unknown class there do so here: such rows are left out too. Columns that the
    table of the fit had say nothing of a label and are not kept.
    source: a file or a DataFrame. columns, graph: the columns of the tables of the fit, which may be called so here
    too, and the graph, which knows those of numbers. by, when: of rows that do not say it. known: classes of the
    model; such a name is always a class. tell: is told of long values, which are cut; by default by a warning.
    """
    table, ids = TextTable.read(source, "supports"), id_names(columns)
    labels = class_names(columns)
    nodes, classes = table.need(ids, "the ids of nodes"), table.need(labels, "their classes")
    used = {str(table.find(ids)), str(table.find(labels)), *OWN_COLUMNS, *_columns_of_fit(columns, graph)}
    kept = _kept(table, [name for name in table.columns if name not in used], tell)
    unknown = {""} if GUESS in table.columns else set()
    if columns is not None and table.find(labels) == columns.label:
        unknown |= unknown_keys(columns.missing) - {str(label).casefold() for label in known}
    nothing = [""] * len(nodes)
    said_by, said_when = (table.columns.get(name, nothing) for name in ("by", "when"))
    supports = []
    for row, (node, name) in enumerate(zip(nodes, classes, strict=True)):
        if label_key(name) in unknown:
            continue
        if not node.strip():
            raise table.missing_id(row, ids)
        place = table.place(row)
        values = {column: texts[row] for column, texts in kept.items()}
        supports.append(
            Support(node, name, place, Statement.of(said_by[row] or by, said_when[row] or when, values, place))
        )
    return supports


def _columns_of_fit(columns: ReadColumns | None, graph: "ModelGraph | None") -> set[str]:
    """What the columns of the nodes of the fit were called, besides ids and labels."""
    if columns is None:
        return set()
    numbers = set() if graph is None else set(graph.columns.places(graph.columns.word_count))
    return {*columns.of_nodes, *numbers}


def _kept(table: TextTable, names: Sequence[str], tell: Callable[[str], None]) -> dict[str, list[str]]:
    """Some columns as they are kept with labels: no value is too long."""
    if len(names) > MOST_COLUMNS:
        raise InputError(f"{table.path} has {len(names)} further columns, at most {MOST_COLUMNS} are kept: drop some.")
    kept = {name: [as_one_line(text) for text in table.columns[name]] for name in names}
    long = [(row, name) for name, texts in kept.items() for row, text in enumerate(texts) if len(text) > KEPT.longest]
    for row, name in long:
        kept[name][row] = kept[name][row][: KEPT.longest]
    if long:
        row, name = min(long)
        are, were = ("is", "it was") if len(long) == 1 else ("are", "they were")
        tell(
            f"{table.path}: {counted(len(long), 'value')} of further columns {are} longer than {KEPT.longest:,} "
            f"characters, such as {name!r} in {table.line(row)}: {were} cut."
        )
    return kept


def read_ids(source: Any, columns: ReadColumns | None = None) -> PlacedIds:
    """A table with the column ``node``."""
    return TextTable.read(source).need_ids(id_names(columns))


def read_labels(source: Any, columns: ReadColumns | None = None) -> tuple[list[str], list[str]]:
    """Ids and classes of a table that has both."""
    table = TextTable.read(source)
    return table.need_ids(id_names(columns)), table.need(class_names(columns), "their classes")


def read_edges(source: Any, columns: ReadColumns | None = None) -> tuple[PlacedIds, PlacedIds, np.ndarray | None]:
    """A table with the columns ``source`` and ``target``, and optionally ``weight``."""
    table = TextTable.read(source, "edges")
    own = (None, None, None) if columns is None else (columns.source, columns.target, columns.weight)
    first = table.need_ids(_own_first(own[0], SOURCE_NAMES), "an end of each edge")
    second = table.need_ids(_own_first(own[1], TARGET_NAMES), "an end of each edge")
    weight = table.find(_own_first(own[2], WEIGHT_NAMES))
    return first, second, None if weight is None else table.numbers(weight)


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
    from graphfcl.runtime.files import write_bytes, write_durably

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

    def column(name: str, values: Any) -> Any:
        if name != "set":
            return as_arrow(values)
        as_text = Path(path).suffix == ".csv"
        return pa.array([json.dumps(each, ensure_ascii=False) for each in values]) if as_text else set_column(values)

    return pa.table({name: column(name, values) for name, values in columns.items()})


def write_blocks(path: str | Path, blocks: Iterator[Mapping[str, Any]], what: str, counted: str) -> tuple[int, int]:
    """A table like :func:`write_table`, of which one block of rows is in memory at a time.

    Returns how many rows there are, and in how many of them the column ``counted`` is true.
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
