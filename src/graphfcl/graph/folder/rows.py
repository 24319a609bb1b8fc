"""Edges and features of a graph folder by row: all that computing on it takes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy import sparse

from graphfcl.errors import InputError
from graphfcl.graph.folder.blocks import BlockReader
from graphfcl.graph.folder.manifest import (
    FEATURE_INDICES,
    FEATURE_INDPTR,
    FEATURE_VALUES,
    INDICES,
    INDPTR,
    ROWS,
    WEIGHTS,
    Manifest,
    read_manifest,
)
from graphfcl.graph.graph import Features
from graphfcl.runtime.files import sha256_of

ROW_FILES = (INDPTR, INDICES, WEIGHTS, ROWS, FEATURE_INDPTR, FEATURE_INDICES, FEATURE_VALUES)
STEP = 1 << 22  # neighbours at a time where all rows are read


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Rows of the adjacency: row i has ``indices[indptr[i]:indptr[i + 1]]``, ascending, without itself.

    indptr: (rows + 1,) int64, from 0. indices: int32 or int64. weights: float32, None if all are 1.
    """

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray | None


@dataclass(frozen=True, eq=False)
class FolderRows:
    """The rows of a graph folder without labels, ids, names of classes and the key of its order.

    Learners are handed this and never a :class:`~graphfcl.graph.folder.reader.GraphFolder`. Every block of a file is
    compared with its checksum when it is first read.

    key: identifies the content. mask: (node_count,) bool, the rows that are shown; None shows all. A hidden row keeps
    its place, has no edges, and its features are 0.
    """

    path: Path
    key: str
    node_count: int
    edge_count: int
    feature_count: int
    weighted: bool
    sparse_features: bool
    files: Mapping[str, BlockReader]
    mask: np.ndarray | None = None

    @classmethod
    def of(cls, path: Path, manifest: Manifest, files: Mapping[str, BlockReader]) -> "FolderRows":
        """Those of a folder. files: may hold others as well."""
        return cls(
            path=path,
            key=sha256_of(f"rows {manifest.digest}".encode()),
            node_count=manifest.nodes,
            edge_count=manifest.edges,
            feature_count=manifest.features,
            weighted=manifest.weighted,
            sparse_features=manifest.sparse_features,
            files=MappingProxyType({name: files[name] for name in ROW_FILES if name in files}),
        )

    def __reduce__(self) -> tuple[Any, tuple[Path, np.ndarray | None]]:
        return _open, (self.path, self.mask)

    def hiding(self, mask: np.ndarray | None) -> "FolderRows":
        """With the rows hidden where the mask is false, and those that are hidden already."""
        if mask is None:
            return self
        return replace(self, mask=mask if self.mask is None else mask & self.mask)

    def neighbours(self, start: int, stop: int) -> Neighbours:
        """The neighbours of rows ``start`` to ``stop`` - 1, read into fresh arrays."""
        indptr = self._pointers(INDPTR, start, stop)
        low, high = int(indptr[0]), int(indptr[-1])
        indices = self.files[INDICES].read(low, high)
        if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < self.node_count:
            raise misfit(self.path / INDICES)
        weights = self.files[WEIGHTS].read(low, high) if self.weighted else None
        if weights is not None and not ((weights > 0) & (weights < np.inf)).all():
            raise misfit(self.path / WEIGHTS)
        indptr = indptr - low
        if self.mask is None:
            return Neighbours(indptr, indices, weights)
        shown = self.mask[indices] & np.repeat(self.mask[start:stop], np.diff(indptr))
        ends = np.concatenate([[0], np.cumsum(shown)])
        return Neighbours(ends[indptr], indices[shown], None if weights is None else weights[shown])

    def neighbour_ranges(self, neighbours: int = STEP) -> list[tuple[int, int]]:
        """Ranges of rows that cover the graph, each with about so many neighbours (more if a single row has more)."""
        ranges, start = [], 0
        for begin in range(0, self.node_count, STEP):
            ends = self._pointers(INDPTR, begin, min(begin + STEP, self.node_count))
            while start < begin + ends.size - 1:
                low = ends[start - begin]
                stop = begin + int(np.searchsorted(ends, low + neighbours, side="right")) - 1
                stop = max(start + 1, stop)
                ranges.append((start, stop))
                start = stop
        return ranges

    def degrees(self) -> np.ndarray:
        """(n,) float32 sums of the weights of a row's edges."""
        found = np.empty(self.node_count, dtype=np.float32)
        for start, stop in self.neighbour_ranges():
            if not self.weighted and self.mask is None:
                found[start:stop] = np.diff(self._pointers(INDPTR, start, stop))
                continue
            part = self.neighbours(start, stop)
            rows = np.repeat(np.arange(stop - start), np.diff(part.indptr))
            found[start:stop] = np.bincount(rows, weights=part.weights, minlength=stop - start)
        return found

    def features(self, start: int, stop: int) -> Features:
        """(stop - start, d) float32, a CSR matrix if the folder has sparse features."""
        if not 0 <= start <= stop <= self.node_count:
            raise InputError(f"{self.path} has no rows {start} to {stop}: it has {self.node_count:,} nodes.")
        width, hidden = self.feature_count, None if self.mask is None else ~self.mask[start:stop]
        if not self.sparse_features:
            rows = self.files[ROWS].read(start * width, stop * width).reshape(stop - start, width)
            if not np.isfinite(rows).all():
                raise misfit(self.path / ROWS)
            if hidden is not None:
                rows[hidden] = 0
            return rows
        indptr = self._pointers(FEATURE_INDPTR, start, stop)
        low, high = int(indptr[0]), int(indptr[-1])
        columns = self.files[FEATURE_INDICES].read(low, high)
        if columns.size and not 0 <= int(columns.min()) <= int(columns.max()) < width:
            raise misfit(self.path / FEATURE_INDICES)
        values = self.files[FEATURE_VALUES].read(low, high)
        if not np.isfinite(values).all():
            raise misfit(self.path / FEATURE_VALUES)
        found = sparse.csr_array((values, columns, indptr - low), shape=(stop - start, width))
        if hidden is not None:
            found.data[np.repeat(hidden, np.diff(found.indptr))] = 0
            found.eliminate_zeros()
        return found

    def _pointers(self, name: str, start: int, stop: int) -> np.ndarray:
        """(stop - start + 1,) where the entries of some rows begin; checked, because scipy trusts them."""
        pointers = self.files[name].read(start, stop + 1)
        if (np.diff(pointers) < 0).any():
            raise misfit(self.path / name)
        return pointers


def misfit(path: Path) -> InputError:
    """A file whose numbers cannot be right."""
    return InputError(f"{path} holds numbers that cannot be right: copy it again or import the graph again.")


def _open(path: Path, mask: np.ndarray | None) -> FolderRows:
    manifest = read_manifest(path)
    files = {name: BlockReader(path / name, manifest.files[name]) for name in ROW_FILES if name in manifest.files}
    return FolderRows.of(path, manifest, files).hiding(mask)
