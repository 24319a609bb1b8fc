"""A folder of tables of any size (see :mod:`graphfcl.graph.tables`) as a source of a graph folder."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from graphfcl.graph.column_names import (
    ID_NAMES,
    LABEL_NAMES,
    SOURCE_NAMES,
    TARGET_NAMES,
    TEXT_NAMES,
    WEIGHT_NAMES,
)
from graphfcl.graph.folder.source import EdgeBlock, GraphSource
from graphfcl.graph.folder.sources.label_coder import LabelCoder
from graphfcl.graph.folder.sources.table_blocks import table_blocks
from graphfcl.graph.folder.sources.table_ids import TableIds
from graphfcl.graph.graph import Features, TextSettings
from graphfcl.graph.ids import normal, text_array
from graphfcl.graph.table import TYPE_NAMES, Table, not_used, several_types
from graphfcl.graph.tables import TableColumns
from graphfcl.graph.text import count_known_words, count_words


def tables_source(folder: str | Path, columns: TableColumns | None = None, *, name: str | None = None) -> GraphSource:
    """The graph of a folder of tables. Ids and labels are read here, features and edges when they are asked for."""
    columns = columns or TableColumns()
    nodes, edges = Table(Path(folder), "nodes"), Table(Path(folder), "edges")
    id_column = nodes.choose(columns.id, ID_NAMES, "node ids")
    label_column = nodes.choose(columns.label, LABEL_NAMES, "labels")
    text_column = nodes.find(columns.text, TEXT_NAMES, "text")
    ends = _Ends(
        edges.choose(columns.source, SOURCE_NAMES, "edge sources"),
        edges.choose(columns.target, TARGET_NAMES, "edge targets"),
        edges.find(columns.weight, WEIGHT_NAMES, "weights"),
    )
    ids = TableIds.read(nodes, id_column)
    labels, class_names, names_changed = _labels(nodes, label_column)
    numeric = [column for column in nodes.columns if column not in (id_column, label_column)]
    words = None if text_column is None else _words(nodes, text_column)
    cleaned = ids.cleaned + names_changed
    said = (f"{cleaned:,} ids or class names were cleaned (spaces at the ends, Unicode NFC).",) if cleaned else ()
    return GraphSource(
        name=name or Path(folder).resolve().name,
        made_of=str(folder),
        nodes_where=str(nodes.path),
        edges_where=str(edges.path),
        node_count=ids.count,
        labels=labels,
        class_names=class_names,
        features=lambda: _numbers(nodes, numeric) if words is None else _counts(nodes, str(text_column), words),
        edges=lambda _: _edges(edges, ends, ids),
        ids=None if ids.is_range else ids.numbers if ids.numbers is not None else ids.texts,
        keys=None if ids.keys is None else (ids.keys, ids.seed),
        feature_count=len(numeric) if words is None else words.size,
        sparse_features=words is not None,
        weighted=ends.weight is not None,
        feature_names=text_array(numeric) if words is None else words,
        text=None if words is None else TextSettings(columns.min_nodes),
        notes=tuple(not_used(edges, ends.others(edges))),
        later_notes=said,
        cleaned=cleaned,
        node_bytes=4 if ids.is_range else 28,
    )


@dataclass(frozen=True)
class _Ends:
    """The columns of a table of edges that are read."""

    source: str
    target: str
    weight: str | None

    def others(self, edges: Table) -> list[str]:
        return [column for column in edges.columns if column not in (self.source, self.target, self.weight)]


def _labels(nodes: Table, column: str) -> tuple[np.ndarray, tuple[str, ...], int]:
    coder = LabelCoder()
    for block in table_blocks(nodes, [column], [column]):
        found = block.different_labels(column)
        if isinstance(found, np.ndarray):
            coder.add_numbers(found)
            continue
        different, numbers = found
        coder.add(["" if normal(text) == "-1" else text for text in different], numbers)
    return coder.finish(str(nodes.path), lambda row: f"{nodes.path}, {nodes.line(row)}")


def _numbers(nodes: Table, columns: list[str]) -> Iterator[Features]:
    for block in table_blocks(nodes, columns, []):
        yield block.numbers(columns)


def _words(nodes: Table, column: str) -> np.ndarray:
    """(words,) every word of a column of text, in alphabetical order."""
    words: set[str] = set()
    for block in table_blocks(nodes, [column], [column]):
        words.update(count_words(block.text(column, None).to_pylist())[1].tolist())
    return text_array(sorted(words))


def _counts(nodes: Table, column: str, words: np.ndarray) -> Iterator[Features]:
    for block in table_blocks(nodes, [column], [column]):
        texts = block.text(column, None).to_pylist()
        if words.size:
            yield count_known_words(texts, words)
        else:
            yield sparse.csr_array((len(texts), 0), dtype=np.float32)


def _edges(edges: Table, ends: _Ends, ids: TableIds) -> Iterator[EdgeBlock]:
    kinds: dict[str, set[Any]] = {column: set() for column in ends.others(edges) if column.lower() in TYPE_NAMES}
    texts = [ends.source, ends.target, *kinds]
    columns = [*texts, *([] if ends.weight is None else [ends.weight])]
    for block in table_blocks(edges, columns, texts):
        for column, kind in kinds.items():
            kind.update(block.text(column, None).unique().to_pylist())
            if len(kind) > 1:
                raise several_types(edges.path, column)
        weights = None if ends.weight is None else block.numbers([ends.weight])[:, 0]
        yield EdgeBlock(block.first, ids.rows(block, ends.source), ids.rows(block, ends.target), weights)
