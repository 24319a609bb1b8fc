"""Edges and features of a graph folder by row, which is all that computations need."""

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
from graphfcl.graph.views import Features, stacked
from graphfcl.runtime.files import sha256_of

ROW_FILES = (INDPTR, INDICES, WEIGHTS, ROWS, FEATURE_INDPTR, FEATURE_INDICES, FEATURE_VALUES)
STEP = 1 << 22  # neighbours in a block when all rows are read
LARGEST_GAP = 64  # rows that are at most this far apart are read together


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Rows of the adjacency in CSR form. The neighbours of row i are ``indices[indptr[i]:indptr[i + 1]]``, ascending.

    Args:
        indptr: (rows + 1,) int64 Pointers, from 0.
        indices: (e,) int32 or int64 Neighbours.
        weights: (e,) float32 Weights. None if all are 1.
    """

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray | None

    def matrix(self, width: int) -> sparse.csr_array:
        """Return a (rows, width) float32 CSR matrix."""
        weights = np.ones(self.indices.size, dtype=np.float32) if self.weights is None else self.weights
        return sparse.csr_array((weights, self.indices, self.indptr), shape=(self.indptr.size - 1, width))


@dataclass(frozen=True, eq=False)
class FolderRows:
    """Edges and features of a graph folder, without labels, ids, class names and the key of the row order.

    Learners receive this and never a :class:`~graphfcl.graph.folder.reader.GraphFolder`. Each block of a file is
    compared with its checksum when it is first read.

    Args:
        path: The folder.
        key: Fingerprint of the content.
        node_count: Number of rows.
        edge_count: Number of undirected edges.
        feature_count: Number of feature columns.
        weighted: Whether any edge has a weight other than 1.
        sparse_features: Whether features are CSR matrices.
        files: Reader of each file, by name.
        mask: (node_count,) bool, True for visible rows. None if all are visible. A hidden row keeps its position and
            has no edges and no features.
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
        """Make the rows of a folder from its manifest and files."""
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
        """Return the same rows, of which those are also hidden for which the mask is false."""
        if mask is None:
            return self
        return replace(self, mask=mask if self.mask is None else mask & self.mask)

    def neighbours(self, start: int, stop: int) -> Neighbours:
        """Read the neighbours of rows ``start`` to ``stop`` - 1 into new arrays."""
        part = self._all_neighbours(start, stop)
        if self.mask is None:
            return part
        shown = self.mask[part.indices] & np.repeat(self.mask[start:stop], np.diff(part.indptr))
        ends = np.concatenate([[0], np.cumsum(shown)])
        return Neighbours(ends[part.indptr], part.indices[shown], None if part.weights is None else part.weights[shown])

    def _all_neighbours(self, start: int, stop: int) -> Neighbours:
        """Read neighbours, including hidden rows."""
        indptr = self._pointers(INDPTR, start, stop)
        low, high = int(indptr[0]), int(indptr[-1])
        indices = self.files[INDICES].read(low, high)
        if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < self.node_count:
            raise misfit(self.path / INDICES)
        weights = self.files[WEIGHTS].read(low, high) if self.weighted else None
        if weights is not None and not ((weights > 0) & (weights < np.inf)).all():
            raise misfit(self.path / WEIGHTS)
        return Neighbours(indptr - low, indices, weights)

    def neighbours_at(self, rows: np.ndarray) -> sparse.csr_array:
        """Return (m, n) float32 rows of the adjacency in any order."""
        ordered, places = _ascending(rows)
        parts, chosen = [], []
        for start, stop, low, high in _runs(ordered):
            parts.append(self.neighbours(start, stop))
            wanted = np.zeros(stop - start, dtype=bool)
            wanted[ordered[low:high] - start] = True
            chosen.append(wanted)
        matrix = _chosen_rows(parts, chosen, self.node_count)
        return matrix if places is None else sparse.csr_array(matrix[places])

    def neighbour_ranges(self, neighbours: int = STEP) -> list[tuple[int, int]]:
        """Split all rows into ranges with about this many neighbours (more if a single row has more)."""
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
        """Return (n,) float32 sums of the edge weights of each row."""
        sums = np.empty(self.node_count, dtype=np.float32)
        for start, stop in self.neighbour_ranges():
            sums[start:stop] = self._degrees(start, stop)
        return sums

    def _degrees(self, start: int, stop: int) -> np.ndarray:
        if not self.weighted and self.mask is None:
            return np.diff(self._pointers(INDPTR, start, stop))
        return self._weight_sums(start, stop)

    def _weight_sums(self, start: int, stop: int) -> np.ndarray:
        part = self.neighbours(start, stop)
        rows = np.repeat(np.arange(stop - start), np.diff(part.indptr))
        return np.bincount(rows, weights=part.weights, minlength=stop - start)

    def features(self, start: int, stop: int) -> Features:
        """Return (stop - start, d) float32 features, a CSR matrix if the folder has sparse features."""
        if not 0 <= start <= stop <= self.node_count:
            raise InputError(f"{self.path} has no rows {start} to {stop}: it has {self.node_count:,} nodes.")
        rows = self._all_features(start, stop)
        hidden = np.zeros(0, dtype=np.int64) if self.mask is None else np.flatnonzero(~self.mask[start:stop])
        return _emptied(rows, hidden) if hidden.size else rows

    def _all_features(self, start: int, stop: int) -> Features:
        """Read features, including hidden rows."""
        width = self.feature_count
        if not self.sparse_features:
            rows = self.files[ROWS].read(start * width, stop * width).reshape(stop - start, width)
            if not np.isfinite(rows).all():
                raise misfit(self.path / ROWS)
            return rows
        indptr = self._pointers(FEATURE_INDPTR, start, stop)
        low, high = int(indptr[0]), int(indptr[-1])
        columns = self.files[FEATURE_INDICES].read(low, high)
        if columns.size and not 0 <= int(columns.min()) <= int(columns.max()) < width:
            raise misfit(self.path / FEATURE_INDICES)
        values = self.files[FEATURE_VALUES].read(low, high)
        if not np.isfinite(values).all():
            raise misfit(self.path / FEATURE_VALUES)
        return sparse.csr_array((values, columns, indptr - low), shape=(stop - start, width))

    def features_at(self, rows: np.ndarray) -> Features:
        """Return (m, d) float32 features of rows in any order."""
        ordered, places = _ascending(rows)
        parts = [self.features(start, stop)[ordered[low:high] - start] for start, stop, low, high in _runs(ordered)]
        together = stacked(parts) if parts else self.features(0, 0)
        return together if places is None else together[places]

    def _pointers(self, name: str, start: int, stop: int) -> np.ndarray:
        """Read (stop - start + 1,) CSR pointers and check them, because scipy does not."""
        pointers = self.files[name].read(start, stop + 1)
        if (np.diff(pointers) < 0).any():
            raise misfit(self.path / name)
        return pointers


def misfit(path: Path) -> InputError:
    """Make the error for a file with invalid numbers."""
    return InputError(f"{path} holds invalid numbers: copy it again or import the graph again.")


def _emptied(rows: Features, places: np.ndarray) -> Features:
    """Set some rows to 0; ``rows`` may be changed in place."""
    if isinstance(rows, np.ndarray):
        rows[places] = 0
        return rows
    kept = np.ones(rows.shape[0], dtype=bool)
    kept[places] = False
    lengths = np.diff(rows.indptr)
    inside = np.repeat(kept, lengths)
    ends = np.concatenate([[0], np.cumsum(np.where(kept, lengths, 0))])
    return sparse.csr_array((rows.data[inside], rows.indices[inside], ends), shape=rows.shape)


def _ascending(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return rows in ascending order without duplicates, and the position of each row in them.

    Positions are None if the rows are ascending already.
    """
    if rows.size < 2 or (np.diff(rows) > 0).all():
        return rows, None
    ordered, places = np.unique(rows, return_inverse=True)
    return ordered, places


def _runs(rows: np.ndarray) -> list[tuple[int, int, int, int]]:
    """Group ascending rows that are read together; return (first row, end, first position, end) of each group."""
    if not rows.size:
        return []
    cuts = np.flatnonzero(np.diff(rows) > LARGEST_GAP) + 1
    lows, highs = np.concatenate([[0], cuts]), np.concatenate([cuts, [rows.size]])
    return [
        (int(rows[low]), int(rows[high - 1]) + 1, int(low), int(high)) for low, high in zip(lows, highs, strict=True)
    ]


def _chosen_rows(reads: list[Neighbours], chosen: list[np.ndarray], width: int) -> sparse.csr_array:
    """Join chosen rows of several reads into an (m, n) matrix. There may be thousands of reads with a few rows each."""
    if not reads:
        return sparse.csr_array((0, width), dtype=np.float32)
    lengths = np.concatenate([np.diff(read.indptr) for read in reads])
    wanted = np.concatenate(chosen)
    kept = np.repeat(wanted, lengths)
    indices = np.concatenate([read.indices for read in reads])[kept]
    if reads[0].weights is None:
        weights = np.ones(indices.size, dtype=np.float32)
    else:
        weights = np.concatenate([read.weights for read in reads if read.weights is not None])[kept]
    ends = np.concatenate([[0], np.cumsum(lengths[wanted])])
    return sparse.csr_array((weights, indices, ends), shape=(ends.size - 1, width))


def _open(path: Path, mask: np.ndarray | None) -> FolderRows:
    manifest = read_manifest(path)
    files = {name: BlockReader(path / name, manifest.files[name]) for name in ROW_FILES if name in manifest.files}
    return FolderRows.of(path, manifest, files).hiding(mask)
