"""Source of a graph folder from an ``.npz`` file in the sparse graph layout (see :mod:`graphfcl.graph.npz`)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, repeat
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from graphfcl.errors import InputError
from graphfcl.graph.build import clean_feature_names, clean_ids
from graphfcl.graph.folder.source import STEP, EdgeBlock, GraphSource, ids_in_memory, of_files
from graphfcl.graph.folder.sources.array_stream import ArrayStream, array_names
from graphfcl.graph.labels import clean_labels
from graphfcl.graph.npz import (
    csr_parts,
    read_arrays,
    read_column_min_nodes,
    read_text_settings,
    read_texts,
    refuse_columns,
)

LARGE = {"adj_indices", "adj_data", "attr_indices", "attr_data", "attr_matrix"}
DENSE_NUMBERS = 1 << 22  # numbers of a dense matrix in a block
NODE_BYTES = 48  # bytes per node, for both indptr arrays and labels
TEXT_BYTES = 160  # additional bytes per node if ids are texts


@dataclass(frozen=True, eq=False)
class _Csr:
    """A CSR matrix whose indices and values stay in the file."""

    path: Path
    prefix: str
    indices: ArrayStream
    values: ArrayStream | None
    indptr: np.ndarray
    shape: tuple[int, int]

    def entries(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
        """Yield rows, columns and values of the entries in blocks."""
        values = repeat(None) if self.values is None else self.values.blocks(STEP)
        start = 0
        for columns, some in zip(self.indices.blocks(STEP), values, strict=False):
            rows = np.searchsorted(self.indptr, np.arange(start, start + columns.size), side="right") - 1
            yield rows, columns.astype(np.int64), some
            start += columns.size

    def rows(self) -> Iterator[sparse.csr_array]:
        """Yield the rows in blocks with about the same number of entries."""
        cuts = [0]
        while cuts[-1] < self.shape[0]:
            start = cuts[-1]
            stop = int(np.searchsorted(self.indptr, self.indptr[start] + STEP, side="right")) - 1
            cuts.append(min(max(start + 1, stop), start + STEP, self.shape[0]))
        sizes = np.diff(self.indptr[cuts]).tolist()
        values = repeat(None) if self.values is None else self.values.pieces(sizes)
        for (start, stop), columns, some in zip(pairwise(cuts), self.indices.pieces(sizes), values, strict=False):
            refuse_columns(columns, self.shape[1], self.prefix, self.path)
            data = np.ones(columns.size, dtype=np.float32) if some is None else some
            indptr = self.indptr[start : stop + 1] - self.indptr[start]
            yield sparse.csr_array((data, columns.astype(np.int64), indptr), shape=(stop - start, self.shape[1]))


def npz_source(path: str | Path, *, name: str | None = None) -> GraphSource:
    """Open the graph in the file. Edges and features are read later."""
    path = Path(path)
    streams = {each: ArrayStream(path, each) for each in array_names(path) & LARGE}
    arrays: dict[str, Any] = {**read_arrays(path, but=LARGE), **streams}
    text = read_text_settings(arrays, path)
    adjacency = _Csr(path, "adj", *csr_parts(arrays, "adj", path))
    count = adjacency.shape[0]
    if adjacency.shape[1] != count:
        raise InputError(f"{path}: the adjacency has shape {adjacency.shape}, it must be square (nodes × nodes).")

    def place(row: int) -> str:
        return f"{path}, node {row}"

    class_names = arrays["class_names"].ravel().tolist() if "class_names" in arrays else None
    labels = clean_labels(arrays["labels"], class_names, count, str(path), place)
    ids, ids_changed = clean_ids(read_texts(arrays, "node_names", path), count, str(path), place, False)
    dense = streams.get("attr_matrix")
    matrix = dense or _Csr(path, "attr", *csr_parts(arrays, "attr", path))
    if len(matrix.shape) != 2 or matrix.shape[0] != count:
        raise InputError(
            f"{path}: the features have shape {matrix.shape}, but the graph has {count} nodes; give one row per node."
        )
    width, mirrored = int(matrix.shape[1]), "adj_undirected" in arrays
    return GraphSource(
        name=name or path.stem,
        made_of=str(path),
        nodes_where=str(path),
        edges_where=str(path),
        node_count=count,
        labels=replace(labels, numbers=labels.numbers.astype(np.int32)),
        features=lambda: matrix.rows(DENSE_NUMBERS) if isinstance(matrix, ArrayStream) else matrix.rows(),
        edges=lambda _: _edges(adjacency, mirrored),
        fingerprint=of_files(path),
        ids=ids_in_memory(ids),
        feature_count=width,
        sparse_features=dense is None,
        weighted=adjacency.values is not None,
        mirrored=mirrored,
        feature_names=clean_feature_names(read_texts(arrays, "attr_names", path), width, str(path)),
        text=text,
        cleaned=labels.changed + ids_changed,
        node_bytes=NODE_BYTES + (TEXT_BYTES if ids.dtype == object else 0),
        column_min_nodes=read_column_min_nodes(arrays, path),
    )


def _edges(adjacency: _Csr, mirrored: bool) -> Iterator[EdgeBlock]:
    first = 0
    for rows, columns, values in adjacency.entries():
        if mirrored and (rows > columns).any():
            wrong = int(np.flatnonzero(rows > columns)[0])
            raise InputError(
                f"{adjacency.path}: 'adj_undirected' says that each edge is stored once, from the smaller node to the "
                f"larger, but edge {first + wrong} leads from {rows[wrong]} to {columns[wrong]}: save the file again."
            )
        yield EdgeBlock(first, rows, columns, values)
        first += rows.size
