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
from graphfcl.graph.ids import as_arrow
from graphfcl.graph.table import TYPE_NAMES, Table, id_stands_twice, not_used, several_types, unknown_end
from graphfcl.graph.text import count_words


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
    nodes, edges = Table(Path(folder), "nodes"), Table(Path(folder), "edges")

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


def _refuse_edge_types(edges: Table, other: list[str]) -> list[str]:
    for column in other:
        if column.lower() in TYPE_NAMES and len(set(edges.texts(column, None).tolist())) > 1:
            raise several_types(edges.path, column)
    return not_used(edges, other)


def _refuse_duplicates(ids: np.ndarray, path: Path) -> None:
    twice = [node for node, count in Counter(ids.tolist()).items() if count > 1]
    if twice:
        first, second = np.flatnonzero(ids == twice[0])[:2]
        raise id_stands_twice(path, twice[0], int(first), int(second))


def _find_nodes(edges: Table, column: str, index: IdIndex) -> np.ndarray:
    wanted = edges.texts(column, "a node id")
    nodes = index.rows(wanted)
    if (nodes < 0).any():
        row = int(np.flatnonzero(nodes < 0)[0])
        raise unknown_end(edges, row, wanted[row])
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
