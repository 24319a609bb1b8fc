"""Read a graph from a table of nodes and a table of edges: files in a folder, or two DataFrames.

The table of nodes has a column of ids, a column of labels (empty where unknown), and columns that become features. The
table of edges has the ids of both ends, and optionally a weight. :class:`TableColumns` says which column is which.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet
from scipy import sparse

from graphfcl.errors import InputError, quoted
from graphfcl.graph.build import adjacency_from_edges, build_graph, clean_adjacency
from graphfcl.graph.graph import Graph
from graphfcl.graph.ids import IdIndex, as_arrow, class_label, make_ids, text_array
from graphfcl.graph.labels import means_unknown
from graphfcl.graph.tables.columns import TableColumns
from graphfcl.graph.tables.edge_table import LISTED, TYPE_NAMES, EdgeColumns, UnknownEnds, several_types
from graphfcl.graph.tables.frames import arrow_table, is_frame
from graphfcl.graph.tables.node_columns import NodeColumns
from graphfcl.graph.tables.node_table import read_node_table
from graphfcl.graph.tables.table import Table, TableFiles
from graphfcl.graph.tables.values import weights_of
from graphfcl.runtime.files import write_durably

ROW_OPTIONS = ("repeated", "unknown_ends")  # options on rows of the table of edges; an adjacency matrix has no rows


def read_tables(
    folder: str | Path | TableFiles, columns: TableColumns | None = None, *, name: str | None = None, **options: Any
) -> Graph:
    """Read a graph from tables of nodes and edges.

    Args:
        folder: Folder with ``nodes`` and ``edges``, each a ``.csv``, ``.tsv`` or ``.parquet`` file, or the result of
            :func:`open_tables`.
        columns: Which columns are ids, labels, features and so on. By default they are found by their names.
        name: Name of the graph. Default: the name of the folder.
        **options: Fields of :class:`TableColumns`, such as ``label="category"``, which replace fields of ``columns``.

    Returns:
        The graph.

    Raises:
        InputError: If a file is missing or damaged, a column is missing, or a value cannot be used. The message names
            the file and the line.

    Examples:
        >>> from pathlib import Path
        >>> from graphfcl import read_tables
        >>> _ = Path("nodes.csv").write_text("id,label,price\\na,tea,3\\nb,tea,4\\nc,,9\\n")
        >>> _ = Path("edges.csv").write_text("source,target\\na,b\\nb,c\\n")
        >>> read_tables(".", name="shop")
        Graph('shop', 3 nodes, 2 edges, 1 features, 1 classes)
    """
    files = TableFiles.of(folder)
    columns = (columns or files.columns).with_options(options)
    nodes, edges = files.open(columns.notation)
    return _graph_of(nodes, edges, columns, name or files.name)


def from_frames(
    nodes: Any, edges: Any, columns: TableColumns | None = None, *, name: str = "graph", **options: Any
) -> Graph:
    """Make a graph from two DataFrames of pandas, polars, pyarrow or another library with Arrow tables.

    Args:
        nodes: Frame with one row per node: ids, labels and columns that become features.
        edges: Frame with the ids of both ends, or (n, n) scipy matrix with rows in the order of ``nodes``.
        columns: Which columns are ids, labels, features and so on. By default they are found by their names.
        name: Name of the graph.
        **options: Fields of :class:`TableColumns`, such as ``label="category"``, which replace fields of ``columns``.

    Returns:
        The graph.

    Raises:
        InputError: If a value is not a frame, a column is missing, or a value in a column cannot be used.

    Examples:
        >>> import pandas as pd
        >>> from graphfcl import from_frames
        >>> nodes = pd.DataFrame({"id": ["a", "b", "c"], "label": ["tea", "tea", None], "price": [3.0, 4.0, 9.0]})
        >>> edges = pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"]})
        >>> from_frames(nodes, edges, name="shop")
        Graph('shop', 3 nodes, 2 edges, 1 features, 1 classes)
    """
    columns = (columns or TableColumns()).with_options(options)
    table = Table(Path("nodes"), _arrow(nodes, "nodes"), columns.notation)
    if sparse.issparse(edges):
        usual = TableColumns()
        given = [option for option in ROW_OPTIONS if getattr(columns, option) != getattr(usual, option)]
        if given:
            raise InputError(f"edges is a matrix, which has no rows for {given[0]}=: leave it out, or give a table.")
        return _graph_of(table, edges, columns, name)
    return _graph_of(table, Table(Path("edges"), _arrow(edges, "edges"), columns.notation), columns, name)


def _arrow(frame: Any, called: str) -> Any:
    if not is_frame(frame):
        or_matrix = ", or a scipy matrix" if called == "edges" else ""
        raise InputError(
            f"{called} is of type {type(frame).__name__}: give a DataFrame of pandas or polars, or a table of "
            f"pyarrow{or_matrix}."
        )
    return arrow_table(frame, called)


def _graph_of(nodes: Table, edges: Any, columns: TableColumns, name: str) -> Graph:
    """Build the graph; ``edges`` is a table, or a sparse matrix with rows in the order of the nodes."""
    requested = NodeColumns.check(nodes, columns)
    ends = EdgeColumns.choose(edges, columns) if isinstance(edges, Table) else EdgeColumns()
    nodes.read()
    texts = nodes.texts(requested.id, "a node id")
    ids, changed = make_ids(texts, nodes.place, read_numbers=not nodes.says_text(requested.id))
    table = read_node_table(nodes, requested, columns, lambda _: iter([nodes]))
    features, labels = table.features, table.labels
    rows = features.rows(nodes)
    if isinstance(edges, Table):
        adjacency, edge_notes = _read_edges(edges, ends, ids)
    else:
        adjacency, edge_notes = _read_matrix(edges, texts.size)
    graph = build_graph(
        adjacency,
        rows,
        labels.numbers,
        class_names=[class_label(name, labels.integers) for name in labels.names],
        node_ids=ids,
        feature_names=features.names,
        text=features.text_settings(columns.min_nodes),
        name=name,
        where=str(nodes.path),
        notes=[*table.notes, *edge_notes, *labels.notes],
        cleaned=changed + labels.changed,
    )
    return replace(graph, columns=table.read_columns(ends))


def _read_edges(edges: Table, ends: EdgeColumns, ids: np.ndarray) -> tuple[sparse.csr_array, list[str]]:
    """Return the adjacency of a table of edges, and notes on it; ``ids`` (n,) are the ids of the nodes."""
    edges.read()
    _refuse_edge_types(edges, ends)
    index = IdIndex(text_array([str(node) for node in ids.tolist()]))  # the ends of edges are read as texts
    texts = [edges.texts(column, "a node id") for column in (ends.source, ends.target)]
    source, target = (index.rows(wanted) for wanted in texts)
    unknown, has_unknown = UnknownEnds(), (source < 0) | (target < 0)
    rows = np.flatnonzero(has_unknown)[:LISTED]
    unknown.add(rows, [texts[0 if source[row] < 0 else 1][row] for row in rows.tolist()])
    unknown.count = int(has_unknown.sum())
    if unknown.count and ends.unknown_ends == "refuse":
        raise unknown.refuse(edges, edges.row_count)
    weights = None if ends.weight is None else weights_of(edges, ends.weight)
    if unknown.count:
        source, target = source[~has_unknown], target[~has_unknown]
        weights = None if weights is None else weights[~has_unknown]
    adjacency, notes = adjacency_from_edges(source, target, weights, ids.size, str(edges.path), ends.repeated)
    return adjacency, [ends.note(edges, edges.row_count, unknown), *notes]


def _read_matrix(matrix: Any, count: int) -> tuple[sparse.csr_array, list[str]]:
    if matrix.ndim != 2 or matrix.shape != (count, count):
        raise InputError(
            f"edges has shape {matrix.shape}, but nodes has {count} rows: give a matrix of {count} × {count} in the "
            "order of nodes."
        )
    return clean_adjacency(matrix, "edges")


def _refuse_edge_types(edges: Table, ends: EdgeColumns) -> None:
    for column in ends.others(edges):
        if column.lower() in TYPE_NAMES and len(set(edges.texts(column, None).tolist())) > 1:
            raise several_types(edges.path, column)


def write_tables(graph: Graph, folder: str | Path, *, suffix: str = "parquet") -> None:
    """Write a graph as tables of nodes and edges, which :func:`read_tables` reads back.

    Args:
        graph: Graph with dense features. Write sparse features and word counts with :func:`write_npz`.
        folder: Folder for the files ``nodes`` and ``edges``. It is created if it does not exist.
        suffix: File format, ``parquet`` or ``csv``.

    Raises:
        InputError: If features are sparse, a class has a name that means unknown (such as ``NA``), or the folder cannot
            be written.

    Examples:
        >>> from graphfcl import load_dataset, read_tables, write_tables
        >>> graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=8,kind=dense")
        >>> write_tables(graph, "tables", suffix="csv")
        >>> read_tables("tables")
        Graph('tables', 200 nodes, 800 edges, 8 features, 6 classes)
    """
    if sparse.issparse(graph.features):
        raise InputError(f"{graph.name} has sparse features, which a table would make dense: write it as .npz.")
    unknown = [name for name in graph.class_names if means_unknown(name)]
    if unknown:
        raise InputError(
            f"{graph.name} has a class named {quoted(unknown[0])}, which a table reads as unknown: rename it, or write "
            "the graph as .npz."
        )
    if suffix not in ("csv", "parquet"):
        raise InputError(f"tables are written as csv or parquet, not {suffix!r}.")
    feature_names = (
        [f"feature_{column}" for column in range(graph.features.shape[1])]
        if graph.feature_names is None
        else graph.feature_names.tolist()
    )
    classes = np.array([*graph.class_labels, None], dtype=object)
    nodes = pa.table(
        [
            as_arrow(graph.node_ids),
            pa.array(classes[graph.labels], pa.int64() if graph.integer_classes else pa.string()),
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
