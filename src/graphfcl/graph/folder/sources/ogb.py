"""Source of a graph folder from the raw layout of node data sets of the Open Graph Benchmark (OGB).

The text form has ``raw/edge.csv.gz``, ``raw/num-node-list.csv.gz``, ``raw/node-label.csv.gz`` and optionally
``raw/node-feat.csv.gz``, all without a header. The binary form has ``raw/data.npz`` (``edge_index``,
``num_nodes_list``, optionally ``node_feat``) and ``raw/node-label.npz`` (``node_label``). Nodes are numbered from 0.
Splits are not used.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from graphfcl.errors import InputError
from graphfcl.graph.folder.source import STEP, EdgeBlock, GraphSource, of_files
from graphfcl.graph.folder.sources.array_stream import ArrayStream, array_names
from graphfcl.graph.ids import Place
from graphfcl.graph.labels import CleanLabels, LabelCoder
from graphfcl.graph.tables.table import FAILURES
from graphfcl.graph.tables.text_files import wrong_row

EDGES, COUNTS, LABELS, FEATURES = "edge.csv.gz", "num-node-list.csv.gz", "node-label.csv.gz", "node-feat.csv.gz"
DATA, LABEL_DATA = "data.npz", "node-label.npz"
SEVERAL = ("triplet-type-list.csv.gz", "num-node-dict.csv.gz")
BYTES = 1 << 22  # bytes of a table in a block


def raw_folder(path: str | Path) -> Path | None:
    """Return the folder of the raw files if ``path`` is an OGB data set or that folder, else None."""
    for folder in (Path(path) / "raw", Path(path)):
        if any((folder / name).exists() for name in (EDGES, DATA, *SEVERAL)):
            return folder
    return None


def ogb_source(path: str | Path, *, name: str | None = None) -> GraphSource:
    """Open the graph in an OGB folder."""
    raw = raw_folder(path)
    if raw is None:
        raise InputError(f"{path} has neither raw/{EDGES} nor raw/{DATA}: it is not in the raw layout of OGB.")
    if any((raw / several).exists() for several in SEVERAL):
        raise InputError(f"{raw} holds several types of nodes or edges; heterogeneous graphs are not supported.")
    parts = _binary(raw) if (raw / DATA).exists() else _tables(raw)
    root = raw.parent if raw.name == "raw" else raw
    notes = ["The splits in the folder were not used."] if (root / "split").is_dir() else []
    return GraphSource(
        name=name or root.resolve().name,
        made_of=str(path),
        notes=(*notes, *parts.pop("unused")),
        node_bytes=12,
        **parts,
    )


def _tables(raw: Path) -> dict[str, Any]:
    counts = np.concatenate([rows[:, 0] for _, rows in _rows(raw / COUNTS, "int64")])
    count = _one_graph(counts, raw / COUNTS)
    coder = LabelCoder()
    for _, rows in _rows(raw / LABELS, "float64", may_be_empty=True):
        _refuse_several(rows.shape, raw / LABELS)
        coder.add_numbers(rows[:, 0])
    has_features = (raw / FEATURES).exists()
    return {
        "labels": _labels(coder, count, raw / LABELS, lambda row: f"{raw / LABELS}, line {row + 1}"),
        "nodes_where": str(raw / FEATURES),
        "edges_where": str(raw / EDGES),
        "edge_place": lambda number: f"line {number + 1}",
        "node_count": count,
        "features": lambda: (rows for _, rows in _rows(raw / FEATURES, "float32")),
        "feature_count": next(_rows(raw / FEATURES, "float32"))[1].shape[1] if has_features else 0,
        "edges": lambda _: _edges(raw / EDGES),
        "fingerprint": of_files(*(raw / each for each in (COUNTS, LABELS, FEATURES, EDGES))),
        "unused": _unused(sorted(each.name for each in raw.glob("*.csv.gz")), raw),
    }


def _edges(path: Path) -> Iterator[EdgeBlock]:
    for first, rows in _rows(path, "int64"):
        if rows.shape[1] != 2:
            raise InputError(f"{path} has {rows.shape[1]} columns in place of 2: both ends of an edge.")
        yield EdgeBlock(first, np.ascontiguousarray(rows[:, 0]), np.ascontiguousarray(rows[:, 1]))


def _binary(raw: Path) -> dict[str, Any]:
    path, names = raw / DATA, array_names(raw / DATA)
    counts = np.concatenate(list(ArrayStream(path, "num_nodes_list").blocks(STEP)))
    count = _one_graph(counts, path)
    edges = ArrayStream(path, "edge_index")
    if len(edges.shape) != 2 or edges.shape[0] != 2 or edges.dtype.kind not in "iu":
        raise InputError(f"{path}: 'edge_index' has shape {edges.shape}, it must be 2 × edges of whole numbers.")
    labels = ArrayStream(raw / LABEL_DATA, "node_label")
    _refuse_several(labels.shape, raw / LABEL_DATA)
    coder = LabelCoder()
    for block in labels.blocks(STEP):
        coder.add_numbers(block)
    features = ArrayStream(path, "node_feat") if "node_feat" in names else None
    unused = names - {"edge_index", "node_feat", "num_nodes_list", "num_edges_list"}
    return {
        "labels": _labels(coder, count, raw / LABEL_DATA, lambda row: f"{raw / LABEL_DATA}, node {row}"),
        "nodes_where": str(path),
        "edges_where": str(path),
        "node_count": count,
        "features": lambda: iter(()) if features is None else features.rows(1 << 21),
        "feature_count": 0 if features is None else int(features.shape[-1]),
        "edges": lambda _: _index_edges(edges),
        "fingerprint": of_files(path, raw / LABEL_DATA),
        "unused": [f"{DATA}: {', '.join(sorted(unused))} were not used."] if unused else [],
    }


def _index_edges(edges: ArrayStream) -> Iterator[EdgeBlock]:
    """Yield edges of a (2, edges) array: ends alternate if it is stored by columns; else they are in two halves."""
    if edges.by_columns:
        for number, block in enumerate(edges.blocks(2 * STEP)):
            yield EdgeBlock(number * STEP, block[0::2].astype(np.int64), block[1::2].astype(np.int64))
        return
    count = edges.shape[1]
    pairs = zip(edges.blocks(STEP, 0, count), edges.blocks(STEP, count, 2 * count), strict=True)
    for number, (source, target) in enumerate(pairs):
        yield EdgeBlock(number * STEP, source.astype(np.int64), target.astype(np.int64))


def _labels(coder: LabelCoder, count: int, path: Path, place: Place) -> CleanLabels:
    labels = coder.finish(str(path), place)
    if labels.numbers.size != count:
        raise InputError(f"{path}: {labels.numbers.size} labels for {count} nodes; give one per node.")
    return labels


def _one_graph(counts: np.ndarray, path: Path) -> int:
    if counts.size != 1 or counts[0] < 0:
        raise InputError(f"{path} lists {counts.size} graphs; a graph folder holds one: take out one of them.")
    return int(counts[0])


def _refuse_several(shape: tuple[int, ...], path: Path) -> None:
    if len(shape) > 1 and shape[1] != 1:
        raise InputError(f"{path} has {shape[1]} labels per node (multi-label); choose one class per node.")


def _unused(names: list[str], raw: Path) -> list[str]:
    used = {EDGES, COUNTS, LABELS, FEATURES, "num-edge-list.csv.gz"}
    other = [name for name in names if name not in used]
    return [f"{raw.name}: {', '.join(other)} were not used."] if other else []


def _rows(path: Path, kind: str, *, may_be_empty: bool = False) -> Iterator[tuple[int, np.ndarray]]:
    """Yield blocks of rows of a table without a header, each with the number of rows before it.

    With ``may_be_empty``, empty values become NaN and an empty line is a row.
    """
    options = {
        "read_options": csv.ReadOptions(block_size=BYTES, use_threads=False, autogenerate_column_names=True),
        "parse_options": csv.ParseOptions(ignore_empty_lines=not may_be_empty),
    }
    first = 0
    try:
        types = dict.fromkeys(csv.open_csv(path, **options).schema.names, getattr(pa, kind)())
        convert = csv.ConvertOptions(column_types=types, null_values=["", "nan", "NaN"])
        for batch in csv.open_csv(path, **options, convert_options=convert):
            for column in () if may_be_empty else batch.columns:
                if column.null_count:
                    row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
                    raise InputError(
                        f"{path}, line {first + row + 1}: a number is missing: fill it in or drop the row."
                    )
            rows = np.empty((batch.num_rows, batch.num_columns), dtype=kind)
            for number, column in enumerate(batch.columns):
                rows[:, number] = column.to_numpy(zero_copy_only=False)
            yield first, rows
            first += batch.num_rows
    except FAILURES as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise wrong_row(path, error) or InputError(
            f"{path} cannot be read as a table ({reason}): copy it again."
        ) from error
