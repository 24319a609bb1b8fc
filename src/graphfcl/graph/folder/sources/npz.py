"""An ``.npz`` file of any size in the sparse graph layout (see :mod:`graphfcl.graph.npz`) as a source."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

from graphfcl.errors import InputError
from graphfcl.graph.build import clean_feature_names, clean_ids, cleaned_note, no_features_note
from graphfcl.graph.folder.source import STEP, EdgeBlock, GraphSource, ids_in_memory, of_files
from graphfcl.graph.folder.sources.array_stream import ArrayStream, array_names
from graphfcl.graph.graph import Features
from graphfcl.graph.labels import clean_labels
from graphfcl.graph.npz import read_arrays, read_column_min_nodes, read_text_settings, read_texts

LARGE = ("adj_indices", "adj_data", "attr_indices", "attr_data", "attr_matrix")
NODE_BYTES = 48  # memory for each node: both indptr, labels as they are read
TEXT_BYTES = 160  # besides, if ids are texts


@dataclass(frozen=True, eq=False)
class _Csr:
    """A CSR matrix whose indices and values stay in the file."""

    path: Path
    prefix: str
    indptr: np.ndarray
    shape: tuple[int, int]
    indices: ArrayStream
    values: ArrayStream | None

    def entries(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
        """Rows, columns and values of the entries, in blocks."""
        values = iter(()) if self.values is None else self.values.blocks(STEP)
        start = 0
        for columns in self.indices.blocks(STEP):
            rows = np.searchsorted(self.indptr, np.arange(start, start + columns.size), side="right") - 1
            yield rows, columns.astype(np.int64), next(values, None)
            start += columns.size

    def rows(self) -> Iterator[sparse.csr_array]:
        """The rows, in blocks of about as many entries."""
        start = 0
        columns, values = _Reader(self.indices), None if self.values is None else _Reader(self.values)
        while start < self.shape[0]:
            stop = int(np.searchsorted(self.indptr, self.indptr[start] + STEP, side="right")) - 1
            stop = min(max(start + 1, stop), start + STEP, self.shape[0])
            count = int(self.indptr[stop] - self.indptr[start])
            found = columns.take(count)
            if found.size and not 0 <= int(found.min()) <= int(found.max()) < self.shape[1]:
                bad = int(found.max()) if int(found.max()) >= self.shape[1] else int(found.min())
                raise InputError(
                    f"{self.path}: a feature has column {bad}, but '{self.prefix}_shape' says there are "
                    f"{self.shape[1]}: save the file again."
                )
            data = np.ones(count, dtype=np.float32) if values is None else values.take(count)
            indptr = self.indptr[start : stop + 1] - self.indptr[start]
            yield sparse.csr_array((data, found.astype(np.int64), indptr), shape=(stop - start, self.shape[1]))
            start = stop


class _Reader:
    """Hands out the numbers of a stream in pieces of any size."""

    def __init__(self, stream: ArrayStream) -> None:
        self._blocks, self._left = stream.blocks(STEP), np.zeros(0, stream.dtype)

    def take(self, count: int) -> np.ndarray:
        parts = [self._left]
        while sum(part.size for part in parts) < count:
            parts.append(next(self._blocks))
        joined = np.concatenate(parts)
        self._left = joined[count:]
        return joined[:count]


def npz_source(path: str | Path, *, name: str | None = None) -> GraphSource:
    """The graph of the file. Edges and features stay there until they are asked for."""
    path = Path(path)
    found = array_names(path)
    small = read_arrays(path, but=LARGE)
    text = read_text_settings(small, path)
    adjacency = _csr(path, "adj", small, found)
    count = adjacency.shape[0]
    if adjacency.shape[1] != count:
        raise InputError(f"{path}: the adjacency has shape {adjacency.shape}, it must be square (nodes × nodes).")
    where, mirrored = str(path), "adj_undirected" in found
    names = small["class_names"].ravel().tolist() if "class_names" in small else None
    known = clean_labels(small.pop("labels"), names, count, where, lambda row: f"{where}, node {row}")
    given = read_texts(small, "node_names", path)
    ids, ids_changed = clean_ids(given, count, where, lambda row: f"{where}, node {row}", False)
    cleaned = known.changed + ids_changed
    dense = ArrayStream(path, "attr_matrix") if "attr_matrix" in found else None
    matrix = None if dense is not None else _csr(path, "attr", small, found)
    shape = dense.shape if dense is not None else matrix.shape if matrix is not None else ()
    if len(shape) != 2 or shape[0] != count:
        raise InputError(
            f"{where}: the features have shape {shape}, but the graph has {count} nodes; give one row per node."
        )

    def features() -> Iterator[Features]:
        return iter(()) if matrix is None and dense is None else matrix.rows() if matrix else dense.rows(1 << 22)  # type: ignore[union-attr]

    return GraphSource(
        name=name or path.stem,
        made_of=str(path),
        nodes_where=where,
        edges_where=where,
        node_count=count,
        labels=known.numbers.astype(np.int32),
        class_names=known.names,
        integer_classes=known.integers,
        features=features,
        edges=lambda _: _edges(adjacency, mirrored),
        fingerprint=of_files(path),
        ids=ids_in_memory(ids),
        feature_count=int(shape[1]),
        sparse_features=dense is None,
        weighted=adjacency.values is not None,
        mirrored=mirrored,
        feature_names=clean_feature_names(read_texts(small, "attr_names", path), int(shape[1]), where),
        text=text,
        later_notes=(*known.notes, *no_features_note(shape), *cleaned_note(cleaned)),
        cleaned=cleaned,
        node_bytes=NODE_BYTES + (TEXT_BYTES if ids.dtype == object else 0),
        column_min_nodes=read_column_min_nodes(small, path),
    )


def _edges(adjacency: _Csr, mirrored: bool) -> Iterator[EdgeBlock]:
    first = 0
    for rows, columns, values in adjacency.entries():
        if mirrored and (rows > columns).any():
            wrong = int(np.flatnonzero(rows > columns)[0])
            raise InputError(
                f"{adjacency.path}: 'adj_undirected' says that each edge stands once, from the smaller node to the "
                f"larger, but edge {first + wrong} leads from {rows[wrong]} to {columns[wrong]}: save the file again."
            )
        yield EdgeBlock(first, rows, columns, values)
        first += rows.size


def _csr(path: Path, prefix: str, small: dict[str, np.ndarray], found: set[str]) -> _Csr:
    """As :func:`graphfcl.graph.npz.read_csr`; whether columns fit is looked at when they are read."""
    missing = [part for part in ("indices", "indptr", "shape") if f"{prefix}_{part}" not in found]
    if missing:
        raise InputError(f"{path} has no array '{prefix}_{missing[0]}': it is not in the sparse graph layout.")
    indptr, shape = small.pop(f"{prefix}_indptr"), tuple(small[f"{prefix}_shape"].ravel().tolist())
    indices = ArrayStream(path, f"{prefix}_indices")
    values = ArrayStream(path, f"{prefix}_data") if f"{prefix}_data" in found else None
    fits = (
        len(shape) == 2
        and all(isinstance(size, int) and size >= 0 for size in shape)
        and indptr.dtype.kind in "iu"
        and indices.dtype.kind in "iu"
        and indptr.shape == (shape[0] + 1,)
        and indptr[0] == 0
        and indices.shape == (indptr[-1],)
        and (values is None or values.shape == indices.shape)
        and bool((np.diff(indptr.astype(np.int64)) >= 0).all())
    )
    if not fits:
        raise InputError(f"{path}: the parts '{prefix}_*' do not fit together as a CSR matrix: save the file again.")
    return _Csr(path, prefix, indptr.astype(np.int64), (shape[0], shape[1]), indices, values)
