"""Read small tables of users, as files or DataFrames: supports, ids, classes and edges."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.errors import GraphfclWarning, InputError, counted, quoted, shown
from graphfcl.graph.ids import ClassLabel, is_nothing, is_whole, list_of_nodes, listed, normal
from graphfcl.graph.tables.columns import (
    ID_NAMES,
    SOURCE_NAMES,
    TARGET_NAMES,
    USUAL,
    WEIGHT_NAMES,
    ReadColumns,
    label_key,
    unknown_keys,
)
from graphfcl.graph.tables.frames import arrow_table, is_frame, is_table
from graphfcl.graph.tables.table import Table, missing_value
from graphfcl.graph.tables.text_files import lines_of_rows
from graphfcl.graph.tables.values import is_list, weights_of
from graphfcl.production.graph import ModelGraph
from graphfcl.production.labels.label_store import LabelStore
from graphfcl.production.labels.statements import KEPT, MOST_COLUMNS, Statement, Support, as_one_line

CLASS_NAMES = ("class", "label")
GUESS = "guess"  # a table with this column is a table of suggestions, in which classes may be blank
OWN_COLUMNS = ("by", "when", "part")  # columns of a table of labels; the model sets ``part`` itself


class PlacedIds(list[str]):
    """Ids of nodes, with their places in a table."""

    def __init__(self, ids: Sequence[str], place: Callable[[int], str]) -> None:
        super().__init__(ids)
        self.place = place


@dataclass(frozen=True)
class TextTable:
    """A whole table as text.

    Attributes:
        table: The table.
        columns: Columns of single values.
        lists: Columns of lists, as Arrow arrays.
    """

    table: Table
    columns: dict[str, list[str]]
    lists: dict[str, Any]

    @classmethod
    def read(cls, source: Any, called: str = "nodes", of_fit: ReadColumns | None = None) -> "TextTable":
        """Read a CSV or Parquet file, or a DataFrame, which is named ``called`` in messages.

        ``of_fit``: columns of the tables of the fit.
        """
        path, rows = (Path(called), arrow_table(source, called)) if is_frame(source) else (Path(source), None)
        table = Table(path, rows, USUAL if of_fit is None else of_fit.notation)
        table.read()
        table = table.without_empty_rows()
        lists = {name: table.column(name) for name in table.columns if is_list(table.column(name).type)}
        columns = {name: table.texts(name, None).tolist() for name in table.columns if name not in lists}
        return cls(table, columns, lists)

    @property
    def path(self) -> Path:
        """Path of the file; for a DataFrame, its name in messages."""
        return self.table.path

    @property
    def row_count(self) -> int:
        return self.table.row_count

    def find(self, names: Sequence[str]) -> str | None:
        """Return the first of these names that is a column."""
        return next((name for name in names if name in self.columns), None)

    def need(self, names: Sequence[str], what: str) -> list[str]:
        """Return the column with one of these names, or raise an error that says ``what`` the column contains."""
        name = self.find(names)
        if name is None:
            raise InputError(
                f"{self.path} has no column {names[0]!r} ({what}); it has {', '.join(self.columns) or 'none'}: "
                "rename one."
            )
        return self.columns[name]

    def need_ids(self, names: Sequence[str], what: str = "the ids of nodes") -> PlacedIds:
        """Return the column of ids with one of these names, or raise an error if it or an id is missing."""
        ids = self.need(names, what)
        missing = next((row for row, text in enumerate(ids) if not text.strip()), None)
        if missing is not None:
            raise self.missing_id(missing, names)
        return PlacedIds(ids, self.place)

    def missing_id(self, row: int, names: Sequence[str]) -> InputError:
        """Make the error for a row without an id."""
        return missing_value(self.place(row), "a node id", str(self.find(names)))

    @cached_property
    def _lines(self) -> list[int]:
        """Lines on which rows of a CSV file start; fewer if a value is too long for the reader."""
        return list(lines_of_rows(self.path, self.table.separator))

    def line(self, row: int) -> str:
        """Name a row within the table, for messages."""
        if not self.table.is_csv:
            return self.table.line(row)
        row = row if self.table.kept is None else int(self.table.kept[row])
        return f"line {self._lines[row] if row < len(self._lines) else row + 2}"

    def place(self, row: int) -> str:
        """Name a row and its table, for messages."""
        return f"{self.path.name}, {self.line(row)}"


def warn(note: str) -> None:
    """Warn a caller in Python."""
    warnings.warn(note, GraphfclWarning, stacklevel=4)


def id_names(columns: ReadColumns | None) -> tuple[str, ...]:
    """Return accepted names of the column of ids; the name in the tables of the fit comes first."""
    return _own_first(None if columns is None else columns.id, ("node", *ID_NAMES))


def class_names(columns: ReadColumns | None) -> tuple[str, ...]:
    """Return accepted names of the column of classes."""
    return _own_first(None if columns is None else columns.label, CLASS_NAMES)


def _own_first(own: str | None, usual: tuple[str, ...]) -> tuple[str, ...]:
    return usual if own is None or own in usual else (own, *usual)


def read_supports(
    source: Any,
    columns: ReadColumns | None = None,
    *,
    graph: ModelGraph | None = None,
    by: str = "",
    when: Any = "",
    classes: Sequence[ClassLabel] = (),
    tell: Callable[[str], None] = warn,
) -> list[Support]:
    """Read a table with the columns ``node`` and ``class``; further columns are stored with the labels.

    Rows whose class means unknown in the tables of the fit are skipped. Blank classes are skipped in the label column
    of the fit and in a table of suggestions; in other tables the model refuses them. Columns that the tables of the fit
    had are not stored.

    Args:
        source: Path of a file, or a DataFrame.
        columns: Columns of the tables of the fit.
        graph: Graph of the model, which knows the numeric columns of the fit.
        by: Who gave the labels, for rows without their own ``by``.
        when: When the labels were given, for rows without their own ``when``.
        classes: Classes of the model; their names never mean unknown.
        tell: Receives a note on long values, which are cut; by default a warning.

    Returns:
        The supports.
    """
    table, ids = TextTable.read(source, "supports"), id_names(columns)
    labels = class_names(columns)
    nodes, names = table.need(ids, "the ids of nodes"), table.need(labels, "their classes")
    used = {str(table.find(ids)), str(table.find(labels)), *OWN_COLUMNS, *_columns_of_fit(columns, graph)}
    kept = _kept(table, [name for name in table.columns if name not in used], tell)
    unknown = unknown_keys(None) if columns is None else columns.unknown_keys
    unknown -= {label_key(str(label)) for label in classes}
    if GUESS not in table.columns and (columns is None or table.find(labels) != columns.label):
        unknown -= {""}
    nothing = [""] * len(nodes)
    by_column, when_column = (table.columns.get(name, nothing) for name in ("by", "when"))
    supports = []
    for row, (node, name) in enumerate(zip(nodes, names, strict=True)):
        if label_key(name) in unknown:
            continue
        if not node.strip():
            raise table.missing_id(row, ids)
        place = table.place(row)
        values = {column: texts[row] for column, texts in kept.items()}
        statement = Statement.of(by_column[row] or by, when_column[row] or when, values, place)
        supports.append(Support(node, name, place, statement))
    return supports


def _columns_of_fit(columns: ReadColumns | None, graph: ModelGraph | None) -> set[str]:
    """Return names of the node columns of the fit, without ids and labels."""
    if columns is None:
        return set()
    numbers = set() if graph is None else set(graph.columns.places(graph.columns.word_count))
    return {*columns.of_nodes, *numbers}


def _kept(table: TextTable, names: Sequence[str], tell: Callable[[str], None]) -> dict[str, list[str]]:
    """Return columns as they are stored with labels, with long values cut."""
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
    """Read a table with the column ``node``."""
    return TextTable.read(source).need_ids(id_names(columns))


def read_edges(source: Any, columns: ReadColumns | None = None) -> tuple[PlacedIds, PlacedIds, np.ndarray | None]:
    """Read a table with the columns ``source`` and ``target``, and optionally ``weight``."""
    table = TextTable.read(source, "edges", columns)
    own = (None, None, None) if columns is None else (columns.source, columns.target, columns.weight)
    first = table.need_ids(_own_first(own[0], SOURCE_NAMES), "an end of each edge")
    second = table.need_ids(_own_first(own[1], TARGET_NAMES), "an end of each edge")
    counted_rows = columns is not None and columns.repeated == "count"
    weight = None if counted_rows else table.find(_own_first(own[2], WEIGHT_NAMES))
    return first, second, None if weight is None else weights_of(table.table, weight)


def true_classes(
    nodes: Any, classes: Any, columns: ReadColumns | None, labels: LabelStore
) -> tuple[list[Any], np.ndarray]:
    """Return ids of the nodes that have a class, and (n,) their classes as the model predicts them.

    ``nodes`` are ids, or a DataFrame that may hold the classes, too. ``columns`` are the columns of the tables of the
    fit, which say what means unknown. A warning is given if no class is a class of the model.
    """
    from graphfcl.graph.labels import means_unknown  # imports scipy, which reading ids does not need

    ids, names = _nodes_and_classes(nodes, classes, columns, labels)
    own_names = {name: labels.find(name) for name in set(names)}
    is_unknown = means_unknown if columns is None else columns.means_unknown
    skipped = {name for name, own in own_names.items() if own is None and is_unknown(name)}
    used = [place for place, name in enumerate(names) if name not in skipped]
    if not used:
        raise InputError("there is no node with a class to score: give at least one.")
    if not any(own_names.values()):
        warnings.warn(
            f"none of the classes that were given, such as {quoted(names[used[0]])}, is one of the model's: the score "
            "is 0; check how they are written.",
            GraphfclWarning,
            stacklevel=3,
        )
    true = np.empty(len(used), dtype=object)
    true[:] = [labels.label(own_names[names[place]] or normal(names[place])) for place in used]
    return [ids[place] for place in used], true


def _nodes_and_classes(
    nodes: Any, classes: Any, columns: ReadColumns | None, labels: LabelStore
) -> tuple[list[Any], list[str]]:
    if classes is None:
        if not is_table(nodes):
            raise InputError("score needs the true class of each node: give score(nodes, classes).")
        table = TextTable.read(nodes)
        return table.need_ids(id_names(columns)), table.need(class_names(columns), "their classes")
    if isinstance(classes, str):
        raise InputError(f"the classes are {shown(classes)}: give a list, a class for each node.")
    ids = read_ids(nodes, columns) if is_table(nodes) else listed(list_of_nodes(nodes))
    # A gap or a negative number means no class, as in the labels of a graph.
    names = [
        "" if is_nothing(label) or (is_whole(label) and label < 0) else labels.text(label) for label in listed(classes)
    ]
    if len(ids) != len(names):
        raise InputError(f"there are {len(ids)} nodes and {len(names)} classes: give a class for each node.")
    return ids, names
