"""A folder of tables of any size (see :mod:`graphfcl.graph.tables`) as a source of a graph folder."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graphfcl.graph.build import cleaned_note, no_features_note
from graphfcl.graph.folder.source import EdgeBlock, GraphSource, of_files
from graphfcl.graph.folder.sources.table_ids import TableIds
from graphfcl.graph.graph import Features
from graphfcl.graph.tables.columns import TableColumns
from graphfcl.graph.tables.node_columns import RequestedColumns
from graphfcl.graph.tables.node_table import TYPE_NAMES, EdgeColumns, NodeFeatures, read_node_table, several_types
from graphfcl.graph.tables.table import Table
from graphfcl.graph.tables.values import weights_of


def tables_source(folder: str | Path, columns: TableColumns | None = None, *, name: str | None = None) -> GraphSource:
    """The graph of a folder of tables. Ids and labels are read here, features and edges when they are asked for."""
    columns = columns or TableColumns()
    nodes, edges = Table.in_folder(Path(folder), "nodes"), Table.in_folder(Path(folder), "edges")
    asked, ends = RequestedColumns.check(nodes, columns), EdgeColumns.choose(edges, columns)
    ids = TableIds.read(nodes, asked.id)
    found = read_node_table(nodes, asked, columns, nodes.blocks)
    features = found.features
    names = features.names
    cleaned = ids.cleaned + found.labels.changed
    return GraphSource(
        name=name or Path(folder).resolve().name,
        made_of=str(folder),
        nodes_where=str(nodes.path),
        edges_where=str(edges.path),
        node_count=ids.count,
        labels=found.labels.numbers,
        class_names=found.labels.names,
        integer_classes=found.labels.integers,
        features=lambda: _features(nodes, features),
        edges=lambda _: _edges(edges, ends, ids),
        fingerprint=of_files(nodes.path, edges.path),
        ids=None if ids.is_range else ids.numbers if ids.numbers is not None else ids.texts,
        keys=None if ids.keys is None else (ids.keys, ids.seed),
        feature_count=names.size,
        sparse_features=features.words is not None,
        weighted=ends.weight is not None,
        feature_names=names,
        text=features.text_settings(columns.min_nodes),
        notes=(*found.notes, *ends.note(edges)),
        later_notes=(*found.labels.notes, *no_features_note((ids.count, names.size)), *cleaned_note(cleaned)),
        cleaned=cleaned,
        node_bytes=4 if ids.is_range else 28 if ids.direct is None else 28 + ids.direct.nbytes // ids.count,
        columns=found.read_columns(ends),
    )


def _features(nodes: Table, features: NodeFeatures) -> Iterator[Features]:
    # A table of which no column is read still has rows.
    for block in nodes.blocks(list(features.columns.of_table) or [features.columns.id]):
        yield features.rows(block)


def _edges(edges: Table, ends: EdgeColumns, ids: TableIds) -> Iterator[EdgeBlock]:
    kinds: dict[str, set[Any]] = {column: set() for column in ends.others(edges) if column.lower() in TYPE_NAMES}
    texts = [ends.source, ends.target, *kinds]
    columns = [*texts, *([] if ends.weight is None else [ends.weight])]
    for block in edges.blocks(columns):
        for column, kind in kinds.items():
            kind.update(block.text(column, None).unique().to_pylist())
            if len(kind) > 1:
                raise several_types(edges.path, column)
        weights = None if ends.weight is None else weights_of(block, ends.weight)
        yield EdgeBlock(block.first, ids.rows(block, ends.source), ids.rows(block, ends.target), weights)
