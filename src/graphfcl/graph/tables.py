"""A folder of tables: ``nodes.csv|parquet`` and ``edges.csv|parquet``.

``nodes``: a column of ids, a column of labels (empty where unknown), and either numeric feature columns or one
column of text, whose words become TF-IDF features. ``edges``: the ids of both ends, and optionally a weight.
"""

from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.files import write_durably
from graphfcl.graph.build import adjacency_from_edges, build_graph
from graphfcl.graph.column_names import (
    ID_NAMES,
    LABEL_NAMES,
    SOURCE_NAMES,
    TARGET_NAMES,
    TEXT_NAMES,
    WEIGHT_NAMES,
)
from graphfcl.graph.graph import Graph, TextSettings
from graphfcl.graph.id_index import IdIndex
from graphfcl.graph.ids import as_arrow, normal, text_array
from graphfcl.graph.text import count_words
from graphfcl.graph.utf8 import first_not_utf8, where_not_utf8
from graphfcl.printing import quoted


@dataclass(frozen=True)
class TableColumns:
    """The names of the columns; None means the first of the usual names that is there.

    ``min_nodes`` is that of :class:`graphfcl.graph.TextSettings`.
    """

    id: str | None = None
    label: str | None = None
    text: str | None = None
    source: str | None = None
    target: str | None = None
    weight: str | None = None
    min_nodes: int = 2


def is_table_folder(path: str | Path) -> bool:
    """Whether ``path`` is a folder with a table of nodes."""
    return any((Path(path) / f"nodes.{suffix}").exists() for suffix in ("csv", "parquet"))


def read_tables(folder: str | Path, columns: TableColumns | None = None, *, name: str | None = None) -> Graph:
    """A graph from a folder of tables."""
    columns = columns or TableColumns()
    nodes, edges = _Table(Path(folder), "nodes"), _Table(Path(folder), "edges")

    id_column = nodes.choose(columns.id, ID_NAMES, "node ids")
    label_column = nodes.choose(columns.label, LABEL_NAMES, "labels")
    text_column = nodes.find(columns.text, TEXT_NAMES, "text")
    nodes.read([column for column in (id_column, label_column, text_column) if column is not None])
    ids = nodes.texts(id_column, "a node id")
    features: Any
    names: Any
    if text_column is None:
        names = [column for column in nodes.columns if column not in (id_column, label_column)]
        features, text = nodes.numbers(names), None
    else:
        features, names = count_words(nodes.text(text_column, None).to_pylist())
        text = TextSettings(columns.min_nodes)

    source_column = edges.choose(columns.source, SOURCE_NAMES, "edge sources")
    target_column = edges.choose(columns.target, TARGET_NAMES, "edge targets")
    weight_column = edges.find(columns.weight, WEIGHT_NAMES, "weights")
    edges.read([column for column in edges.columns if column != weight_column])
    other = [c for c in edges.columns if c not in (source_column, target_column, weight_column)]
    notes = _refuse_edge_types(edges, other)
    _refuse_duplicates(ids, nodes.path)
    index = IdIndex(ids)
    adjacency, edge_notes = adjacency_from_edges(
        _find_nodes(edges, source_column, index),
        _find_nodes(edges, target_column, index),
        None if weight_column is None else edges.numbers([weight_column])[:, 0],
        ids.size,
        str(edges.path),
    )
    return build_graph(
        adjacency,
        features,
        nodes.labels(label_column),
        node_ids=ids,
        feature_names=names,
        text=text,
        name=name or Path(folder).resolve().name,
        where=str(nodes.path),
        notes=[*notes, *edge_notes],
        place=lambda row: f"{nodes.path}, {nodes.line(row)}",
        read_numbers=not nodes.says_text(id_column),
    )


class _Table:
    """One table, CSV or Parquet, read so that ids and labels stay the text they are ("007" is not 7)."""

    def __init__(self, folder: Path, stem: str) -> None:
        import pyarrow as pa
        from pyarrow import csv, parquet

        self._failures = (pa.ArrowException, OSError, UnicodeDecodeError)
        for suffix in ("parquet", "csv"):
            self.path = folder / f"{stem}.{suffix}"
            if self.path.exists():
                break
        else:
            raise InputError(f"{folder} has no {stem}.csv or {stem}.parquet: a graph folder needs nodes and edges.")
        self._csv = self.path.suffix == ".csv"
        try:
            self.columns: list[str] = (
                csv.open_csv(self.path).schema.names if self._csv else parquet.read_schema(self.path).names
            )
        except self._failures as error:
            raise self._unreadable(error) from error
        twice = [column for column, count in Counter(self.columns).items() if count > 1]
        if twice:
            raise InputError(f"{self.path} has two columns {twice[0]!r}: give each column a name of its own.")

    def read(self, as_text: list[str]) -> None:
        import pyarrow as pa
        from pyarrow import csv, parquet

        try:
            if not self._csv:
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
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> InputError:
        place = where_not_utf8(self.path) if self._csv else None
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
        return f"line {row + 2}" if self._csv else f"row {row}"

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
        return not self._csv and not pa.types.is_integer(kind) and not pa.types.is_floating(kind)

    def labels(self, column: str) -> np.ndarray:
        import pyarrow as pa

        values = self._table[column]
        if pa.types.is_nested(values.type):
            raise InputError(f"{self.path}: column {column!r} holds several labels per node (multi-label); choose one.")
        if pa.types.is_floating(values.type):
            return np.array(values.fill_null(np.nan).to_numpy())
        texts = self.texts(column, None)
        unknown = {text for text in set(texts.tolist()) if normal(text) == "-1"}  # the field's usual number for that
        return text_array(["" if text in unknown else text for text in texts.tolist()])

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


def _refuse_edge_types(edges: _Table, other: list[str]) -> list[str]:
    for column in other:
        if column.lower() in ("type", "relation", "edge_type") and len(set(edges.texts(column, None).tolist())) > 1:
            raise InputError(
                f"{edges.path}: column {column!r} names several types of edges; heterogeneous graphs are not "
                "supported: keep one type, or drop the column to treat all alike."
            )
    return [f"{edges.path.name}: the columns {', '.join(other)} were not used."] if other else []


def _refuse_duplicates(ids: np.ndarray, path: Path) -> None:
    twice = [node for node, count in Counter(ids.tolist()).items() if count > 1]
    if twice:
        first, second = np.flatnonzero(ids == twice[0])[:2]
        raise InputError(
            f"{path}: node id {quoted(twice[0])} stands in rows {first} and {second} (counted from 0, without the "
            "header); a node has one row and one label."
        )


def _find_nodes(edges: _Table, column: str, index: IdIndex) -> np.ndarray:
    wanted = edges.texts(column, "a node id")
    nodes = index.rows(wanted)
    if (nodes < 0).any():
        row = int(np.flatnonzero(nodes < 0)[0])
        raise InputError(
            f"{edges.path}, {edges.line(row)}: the edge leads to node {quoted(wanted[row])}, which is not among the "
            "nodes: add the node or drop the edge."
        )
    return nodes


def write_tables(graph: Graph, folder: str | Path, *, suffix: str = "parquet") -> None:
    """Write ``nodes`` and ``edges`` tables that :func:`read_tables` reads back.

    Sparse features would have to be written dense, and word counts no longer have their text: such graphs are
    refused; write them with :func:`graphfcl.graph.write_npz`.
    """
    import pyarrow as pa
    from pyarrow import csv, parquet
    from scipy import sparse

    if sparse.issparse(graph.features):
        raise InputError(f"{graph.name} has sparse features, which a table would make dense: write it as .npz.")
    if "-1" in graph.class_names:
        raise InputError(f"{graph.name} has a class named '-1', which a table reads as unknown: rename it.")
    if suffix not in ("csv", "parquet"):
        raise InputError(f"tables are written as csv or parquet, not {suffix!r}.")
    feature_names = (
        [f"feature_{column}" for column in range(graph.features.shape[1])]
        if graph.feature_names is None
        else graph.feature_names.tolist()
    )
    names = np.array([*graph.class_names, None], dtype=object)
    nodes = pa.table(
        [
            as_arrow(graph.node_ids),
            pa.array(names[graph.labels], pa.string()),
            *map(pa.array, graph.features.T),
        ],
        names=["id", "label", *feature_names],
    )
    upper = sparse.triu(graph.adjacency, k=1, format="coo")
    edge_columns = {
        "source": as_arrow(graph.node_ids[upper.row]),
        "target": as_arrow(graph.node_ids[upper.col]),
    }
    if graph.weighted:
        edge_columns["weight"] = pa.array(upper.data)
    write = csv.write_csv if suffix == "csv" else parquet.write_table
    for stem, table in (("nodes", nodes), ("edges", pa.table(edge_columns))):
        write_durably(Path(folder) / f"{stem}.{suffix}", partial(write, table))
