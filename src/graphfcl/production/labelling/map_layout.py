"""Positions of nodes in two dimensions: similar nodes lie together, and positions change little between versions.

A neighbour embedding with the kernel of t-SNE (van der Maaten and Hinton, JMLR 2008). With
w_ij = 1 / (1 + |y_i − y_j|²), each step moves y_i along

    ρ Σ_j p_ij w_ij (y_j − y_i) − Σ_j w_ij² (y_j − y_i) / Z,    Z = Σ_{i≠j} w_ij

p is uniform on the links of the symmetric graph of nearest neighbours. The second sum is a convolution on a grid
(Linderman et al., Nature Methods 2019). The layout uses no random numbers that depend on a seed.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import fft, sparse

from graphfcl.active.clusters import principal_components, unit_rows

COMPONENTS = 32  # principal components by which nodes are compared
NEIGHBOURS = 12
EARLY, LATE = 12.0, 1.0  # ρ until the clusters have formed, and ρ after that
STEPS = (60, 120)
MOMENTUM = 0.8
CELL = 0.25  # side of a cell of the grid; the kernel has width 1
MOST_CELLS = 512  # most cells along a side
ROUNDED = 16  # the number of cells along a side is a multiple of this
BLOCK = 1_024  # nodes that are compared with all others at once
BETWEEN = 3  # a new node is placed at the mean of this many neighbours
SAMPLE = 4_000  # rows from which the components are computed
SKETCH = 16  # dimensions of the sketch of a vector that is compared with the sketch of another version
SAME = 0.1  # two vectors of unit length are the same if their distance is smaller
KEPT = 0.5  # if at least this share of nodes has the same vector as before, these nodes do not move


Vectors = Callable[[np.ndarray], np.ndarray]  # (k,) places → (k, d) float32


@dataclass(frozen=True, eq=False)
class MapLayout:
    """Positions of nodes on the map.

    Attributes:
        numbers: (m,) node numbers, ascending.
        sketches: (m, 16) sketches of the vectors from which the positions were computed.
        positions: (m, 2) positions from 0 to 1.
        extent: Length of the longer side of the map, in units of the kernel.
    """

    numbers: np.ndarray
    sketches: np.ndarray
    positions: np.ndarray
    extent: float

    @classmethod
    def framed(cls, numbers: np.ndarray, sketches: np.ndarray, positions: np.ndarray) -> "MapLayout":
        """Make a layout from positions in units of the kernel, with their centre in the middle."""
        low, high = positions.min(axis=0), positions.max(axis=0)
        extent = max(float((high - low).max()), 1e-9)
        return cls(numbers, sketches, (positions - (low + high) / 2) / extent + 0.5, extent)

    def places_of(self, numbers: np.ndarray) -> np.ndarray:
        """Return (k,) places of node numbers; −1 for others."""
        if self.numbers.size == 0:
            return np.full(numbers.size, -1, dtype=np.int64)
        places = np.searchsorted(self.numbers, numbers).clip(max=self.numbers.size - 1)
        return np.where(self.numbers[places] == numbers, places, -1)


def lay_out(numbers: np.ndarray, vectors: Vectors, before: MapLayout | None = None) -> MapLayout:
    """Compute positions of nodes, aligned with the positions that they had before.

    A node whose vector has hardly changed stays exactly where it was; any other is placed between its nearest
    neighbours that stay. If fewer than half of the nodes stay, all positions are optimised again, starting from the old
    ones.

    ``numbers``: (m,) ascending. ``vectors``: vectors by which nodes are compared, for places in ``numbers``.
    """
    if numbers.size == 0:
        return MapLayout(numbers, np.zeros((0, SKETCH), dtype=np.float32), np.zeros((0, 2)), 1.0)
    sketches = np.concatenate([sketches_of(vectors(block)) for block in _blocks(numbers.size)])
    places = np.full(numbers.size, -1) if before is None else before.places_of(numbers)
    there = places >= 0
    if before is None or not there.any():
        values = compressed(vectors, numbers.size)
        return MapLayout.framed(numbers, sketches, optimised(values, spread_start(values), early=True))
    old = before.sketches[places]
    stays = there & (np.linalg.norm(sketches - old, axis=1) < SAME)
    positions = before.positions[places]
    if not stays.all():
        values, enough = compressed(vectors, numbers.size), stays.mean() >= KEPT
        known = stays if enough else there
        positions = between_neighbours(values, known, positions)
        if not enough:
            return MapLayout.framed(numbers, sketches, optimised(values, positions * before.extent, early=False))
    return MapLayout(numbers, np.where(stays[:, None], old, sketches), positions, before.extent)


def _blocks(count: int) -> list[np.ndarray]:
    return np.split(np.arange(count), range(BLOCK, count, BLOCK))


def sketches_of(vectors: np.ndarray) -> np.ndarray:
    """Return (k, 16) projections of the rows, of unit length, onto fixed directions; distances hardly change."""
    directions = np.random.default_rng(0).standard_normal((vectors.shape[1], SKETCH), dtype=np.float32)
    return unit_rows(vectors) @ (directions / np.float32(SKETCH**0.5))


def compressed(vectors: Vectors, count: int) -> np.ndarray:
    """Return (count, at most ``COMPONENTS``) principal components from a sample; rows have unit length."""
    sample = vectors(np.unique(np.linspace(0, count - 1, min(SAMPLE, count)).astype(np.int64)))
    mean = sample.mean(axis=0)
    directions = np.eye(sample.shape[1], dtype=np.float32)
    if sample.shape[1] > COMPONENTS:
        from sklearn.utils.extmath import randomized_svd

        directions = randomized_svd(sample - mean, n_components=COMPONENTS, random_state=0)[2].T
    return unit_rows(np.concatenate([(vectors(block) - mean) @ directions for block in _blocks(count)]))


def spread_start(values: np.ndarray) -> np.ndarray:
    """Return (m, 2) the two leading principal components with standard deviation 1."""
    start = principal_components(values, 2)
    start = np.pad(start, ((0, 0), (0, max(0, 2 - start.shape[1]))))[:, :2]
    return start / max(float(start.std(axis=0).max(initial=0.0)), 1e-9)


def between_neighbours(values: np.ndarray, known: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Return (m, 2) positions: known nodes keep theirs, others get the mean position of the most similar known nodes.

    ``values``: (m, d), rows of unit length. ``known``: (m,) bool, at least one is True.
    """
    positions, sought, anchors = positions.copy(), np.flatnonzero(~known), np.flatnonzero(known)
    count = min(BETWEEN, anchors.size)
    for block in np.split(sought, range(BLOCK, sought.size, BLOCK)):
        nearest = np.argpartition(-(values[block] @ values[anchors].T), count - 1, axis=1)[:, :count]
        positions[block] = positions[anchors[nearest]].mean(axis=1)
    return positions


def optimised(values: np.ndarray, positions: np.ndarray, *, early: bool) -> np.ndarray:
    """Return (m, 2) positions after all steps. ``early``: include the steps in which clusters form."""
    count = len(values)
    if count < 3:
        return positions
    links, repulsion = Links.of(values), Repulsion()
    places = positions.T.astype(np.float32)
    velocity = np.zeros_like(places)
    phases = list(zip((EARLY, LATE), STEPS, strict=True))
    for strength, steps in phases if early else phases[1:]:
        for _ in range(steps):
            step = strength * links.attraction(places) + repulsion.at(places)
            velocity = MOMENTUM * velocity + (count / strength) * step
            places = places + velocity
            places -= places.mean(axis=1, keepdims=True)
    return places.T


@dataclass(frozen=True, eq=False)
class Links:
    """Symmetric graph of nearest neighbours, row by row: (l,) ``rows`` and ``others`` of its links, (m,) ``starts`` of
    rows.
    """

    rows: np.ndarray
    others: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray) -> "Links":
        """Link each node to its nearest neighbours. ``values``: (m, d), rows of unit length, m > 1."""
        count = len(values)
        near = most_alike(values, min(NEIGHBOURS, count - 1))
        ends = np.repeat(np.arange(count), near.shape[1]), near.ravel()
        links = sparse.csr_array((np.ones(near.size, dtype=np.float32), ends), shape=(count, count))
        links = (links + links.T).tocsr()
        return cls(np.repeat(np.arange(count), np.diff(links.indptr)), links.indices, links.indptr[:-1])

    def attraction(self, places: np.ndarray) -> np.ndarray:
        """Return (2, m) Σ_j p_ij w_ij (y_j − y_i) at (2, m) places."""
        apart = [row[self.others] - row[self.rows] for row in places]
        weights = 1 / (1 + apart[0] ** 2 + apart[1] ** 2) / self.rows.size
        return np.stack([np.add.reduceat(weights * part, self.starts) for part in apart])


def most_alike(values: np.ndarray, count: int) -> np.ndarray:
    """Return (m, count) the other rows that each row is most similar to, in any order.

    Only the ``count`` groups of columns with the largest maxima can hold the ``count`` largest cosines of a row.
    """
    size = len(values)
    groups = max(count, int(size**0.5) // 2)
    length = -(-size // groups)
    near = np.empty((size, count), dtype=np.int64)
    for start in range(0, size, BLOCK):
        rows = np.arange(start, min(start + BLOCK, size))
        alike = np.full((rows.size, length * groups), -np.inf, dtype=np.float32)
        alike[:, :size] = values[rows] @ values.T
        alike[np.arange(rows.size), rows] = -np.inf
        highest = alike.reshape(rows.size, length, groups).max(axis=1)
        best = np.argpartition(-highest, count - 1, axis=1)[:, :count]
        columns = (best[:, None, :] + groups * np.arange(length)[None, :, None]).reshape(rows.size, -1)
        first = np.argpartition(-np.take_along_axis(alike, columns, axis=1), count - 1, axis=1)[:, :count]
        near[rows] = np.take_along_axis(columns, first, axis=1)
    return near


class Repulsion:
    """Computes Σ_j w_ij² (y_i − y_j) / Z on a grid with bilinear weights; caches the kernels of the last grid."""

    def __init__(self) -> None:
        self._grid = (0, 0.0)  # its size and the side of a cell
        self._kernels: list[np.ndarray] = []

    def at(self, places: np.ndarray) -> np.ndarray:
        """Return (2, m) values at (2, m) places."""
        low = places.min(axis=1, keepdims=True)
        extent = float((places - low).max())
        cell = max(CELL, extent / MOST_CELLS)
        side = (int(extent / cell) // ROUNDED + 1) * ROUNDED + 1
        size = fft.next_fast_len(2 * side, real=True)
        self._prepare(size, cell)
        scaled = (places - low) / np.float32(cell)
        corner = scaled.astype(np.int64)
        part = scaled - corner
        (left, right), (above, below) = zip(1 - part, part, strict=True)
        first = corner[0] * size + corner[1]
        cells = np.stack([first, first + 1, first + size, first + size + 1])
        weights = np.stack([left * above, left * below, right * above, right * below])
        mass = np.bincount(cells.ravel(), weights.ravel(), size * size).reshape(size, size)
        spectrum = fft.rfft2(mass.astype(np.float32))
        fields = [fft.irfft2(spectrum * kernel, (size, size)).ravel() for kernel in self._kernels]
        total, across, down = ((weights * field[cells]).sum(axis=0) for field in fields)
        return np.stack([across, down]) / max(float((total - 1).sum(dtype=np.float64)), 1e-9)

    def _prepare(self, size: int, cell: float) -> None:
        """Compute the spectra of w, and of w² times the distance across and down."""
        if self._grid == (size, cell):
            return
        away = (fft.fftfreq(size) * size * cell).astype(np.float32)
        kernel = 1 / (1 + away[:, None] ** 2 + away[None] ** 2)
        kernels = kernel, kernel**2 * away[:, None], kernel**2 * away[None]
        self._grid, self._kernels = (size, cell), [fft.rfft2(each) for each in kernels]
