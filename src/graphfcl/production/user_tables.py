"""Small tables that a user hands in: supports, nodes, edges. Every value is text; a message names the line."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.graph.column_names import ID_NAMES, SOURCE_NAMES, TARGET_NAMES, TEXT_NAMES, WEIGHT_NAMES
from graphfcl.graph.ids import as_arrow, make_ids
from graphfcl.graph.utf8 import first_not_utf8, where_not_utf8
from graphfcl.production.plain_csv import is_plain, plain_csv
from graphfcl.production.supports import MOST_COLUMNS, Statement, Support

if TYPE_CHECKING:
    from graphfcl.graph import Features
    from graphfcl.production.growing_graph import GrowingGraph

CLASS_NAMES = ("class", "label")
GUESS = "guess"  # a table of suggestions has it beside the class that somebody is to fill in
OWN_COLUMNS = ("by", "when", "part")  # of a table of labels; what a label is for is the model's business


@dataclass(frozen=True)
class TextTable:
    """Columns of text. lines: of each row, its line in a CSV file or its number in a Parquet file."""

    path: Path
    columns: dict[str, list[str]]
    lines: list[int]

    @classmethod
    def read(cls, path: str | Path) -> "TextTable":
        """A CSV or Parquet file."""
        import pyarrow as pa
        from pyarrow import csv, parquet

        path = Path(path)
        if not path.is_file():
            raise InputError(f"{path} does not exist: check the path.")
        try:
            if path.suffix == ".parquet":
                table = parquet.read_table(path)
            else:
                with csv.open_csv(path) as reader:
                    names = reader.schema.names
                texts = csv.ConvertOptions(
                    column_types={name: pa.string() for name in names}, strings_can_be_null=False
                )
                table = csv.read_csv(
                    path, convert_options=texts, parse_options=csv.ParseOptions(ignore_empty_lines=False)
                )
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            place = None if path.suffix == ".parquet" else where_not_utf8(path)
            reason = str(error).splitlines()[0] if place is None else f"{place} is not UTF-8"
            raise InputError(
                f"{path} cannot be read as a table ({reason}): write it as CSV with a header, or as Parquet."
            ) from error
        if len(set(table.column_names)) != len(table.column_names):
            raise InputError(f"{path} has two columns of one name: give each a name of its own.")
        columns = {name: _texts(table[name], name, path) for name in table.column_names}
        # Empty rows are left out but counted: a message names the line of the file.
        kept = [row for row in range(table.num_rows) if any(values[row] for values in columns.values())]
        first = 1 if path.suffix == ".parquet" else 2
        columns = {name: [values[row] for row in kept] for name, values in columns.items()}
        return cls(path, columns, [row + first for row in kept])

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
        return f"{self.path.name}, {'row' if self.path.suffix == '.parquet' else 'line'} {self.lines[row]}"

    def numbers(self, name: str) -> np.ndarray:
        """A column as numbers."""
        values = np.empty(len(self.columns[name]), dtype=np.float32)
        for row, text in enumerate(self.columns[name]):
            try:
                values[row] = float(text)
            except ValueError as error:
                raise InputError(f"{self.place(row)}: {name} is {text!r}, which is no number: mend it.") from error
        return values


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


def read_supports(path: str | Path) -> list[Support]:
    """A table with the columns ``node`` and ``class``; ``by``, ``when`` and all others are kept with the label.

    Of a table of suggestions, rows whose class nobody has filled in are left out.
    """
    table = TextTable.read(path)
    nodes, classes = table.need(("node", *ID_NAMES), "the ids of nodes"), table.need(CLASS_NAMES, "their classes")
    used = (table.find(("node", *ID_NAMES)), table.find(CLASS_NAMES), *OWN_COLUMNS)
    kept = [name for name in table.columns if name not in used]
    if len(kept) > MOST_COLUMNS:
        raise InputError(f"{table.path} has {len(kept)} further columns, at most {MOST_COLUMNS} are kept: drop some.")
    nothing = [""] * len(nodes)
    by, when = (table.columns.get(name, nothing) for name in ("by", "when"))
    supports = []
    for row, (node, name) in enumerate(zip(nodes, classes, strict=True)):
        if GUESS in table.columns and not name.strip():
            continue
        place = table.place(row)
        values = {column: table.columns[column][row] for column in kept}
        supports.append(Support(node, name, place, Statement.of(by[row], when[row], values, place)))
    return supports


def read_ids(path: str | Path) -> list[str]:
    """A table with the column ``node``."""
    return TextTable.read(path).need(("node", *ID_NAMES), "the ids of nodes")


def read_nodes(path: str | Path, graph: "GrowingGraph") -> tuple[list[str], "Features", list[str] | None]:
    """New nodes: ``node``, and ``text`` or the graph's feature columns (of a sparse graph, absent ones are 0)."""
    table = TextTable.read(path)
    ids = make_ids(table.need(("node", *ID_NAMES), "the ids of nodes"), table.place)[0].tolist()
    columns_of_graph = graph.columns
    if columns_of_graph.text_weights is not None:
        return ids, None, table.need(TEXT_NAMES, "the text its features come from")
    id_name = table.find(("node", *ID_NAMES))
    width, known = columns_of_graph.width, columns_of_graph.places()
    given = [name for name in table.columns if name != id_name]
    strange = [name for name in given if name not in known]
    if strange:
        raise InputError(f"{table.path}: the graph has no feature {strange[0]!r}: leave the column out.")
    dense = columns_of_graph.dense
    if dense and len(given) < width:
        missing = next(name for name in known if name not in table.columns)
        raise InputError(f"{table.path} lacks the feature column {missing!r}: give all {width} of them.")
    matrix = np.zeros((len(ids), len(given)), dtype=np.float32)
    for position, name in enumerate(given):
        matrix[:, position] = table.numbers(name)
    columns = np.array([known[name] for name in given], dtype=np.int64)
    if dense:
        return ids, matrix[:, np.argsort(columns)], None
    from scipy import sparse

    rows, positions = np.nonzero(matrix)
    values: Any = (matrix[rows, positions], (rows, columns[positions]))
    return ids, sparse.csr_array(sparse.coo_array(values, shape=(len(ids), width))), None


def read_edges(path: str | Path) -> tuple[list[str], list[str], np.ndarray | None]:
    """A table with the columns ``source`` and ``target``, and optionally ``weight``."""
    table = TextTable.read(path)
    source, target = (table.need(names, "an end of each edge") for names in (SOURCE_NAMES, TARGET_NAMES))
    weight = table.find(WEIGHT_NAMES)
    return source, target, None if weight is None else table.numbers(weight)


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
