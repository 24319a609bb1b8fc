"""Column phases: hops and smoothing, computed for slices of columns independently.

A hop is Y = l∘(A(r∘X) + r∘X), where chunks of rows of A are read from the folder. For Â, both l and r are
(d + 1)^(−1/2), and 0 for hidden rows, which removes their edges. Only the positions of edges are stored, 4 bytes each.
A column of Y has the same bits however many columns are computed at a time, because its entries are always summed in
the same order.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy.sparse._sparsetools import csr_matvecs

from graphfcl.graph.folder.visible import VisibleFolder
from graphfcl.methods.blocks.source import EDGES_AT_A_TIME, Source
from graphfcl.methods.blocks.stored_table import StoredTable, slices_of
from graphfcl.methods.blocks.tile_files import SLICE
from graphfcl.methods.blocks.work_folder import WorkFolder, key_of
from graphfcl.methods.learner import SILENT, Progress
from graphfcl.runtime.cores import limited_threads
from graphfcl.runtime.resources import Need, Resources
from graphfcl.runtime.tasks import run_tasks

ROWS = 4096  # rows that are multiplied and scaled at a time, so that they stay in the CPU cache
MOST_SLICES = 4  # maximum number of slices per task; more are not faster
FACTOR_COLUMNS = {"degrees": 1, "ones": 1, "visible": 2, "scales": 2, "link-scales": 2, "link-roots": 1}
STREAMED = 24 * EDGES_AT_A_TIME + (64 << 20)  # bytes for rows of A, and for blocks that are being written


@dataclass(frozen=True)
class Operator:
    """The operator X ↦ l∘(A(r∘X) + loop · r∘X), where ``scales`` is the (n, 2) table of l and r."""

    scales: StoredTable
    loop: bool = True


@dataclass(frozen=True, eq=False)
class ColumnTask:
    """Slices of a table to which an operator is applied.

    Args:
        source: The graph.
        operator: The operator.
        start: The table that is multiplied.
        targets: (hops, table) for each number of hops that is stored.
        smoothing: (s, steps) of P ← s Â P + (1 − s) P₀ instead of hops. ``targets`` then has one table, and its number
            is ignored.
        slices: Numbers of the column slices.
    """

    source: Source
    operator: Operator
    start: StoredTable
    targets: tuple[tuple[int, StoredTable], ...]
    smoothing: tuple[float, int] | None = None
    slices: tuple[int, ...] = ()


def run_columns(
    phase: str, task: ColumnTask, resources: Resources, progress: Progress = SILENT, *, leading: int | None = None
) -> None:
    """Compute all missing slices of the tables in ``task.targets``, or only those of the ``leading`` first columns."""
    end = slices_of(task.start.columns if leading is None else min(leading, task.start.columns))
    missing = sorted({number for _, table in task.targets for number in table.missing(end)})
    if not missing:
        return
    count = slices_at_a_time(task.source.rows, 3 if task.smoothing else 2, resources)
    count = min(count, -(-len(missing) // resources.workers))
    groups = [tuple(missing[start : start + count]) for start in range(0, len(missing), count)]
    items = [replace(task, slices=some) for some in groups]
    run_tasks(compute_columns, items, resources.tasks, progress=lambda done, total: progress.step(phase, done, total))


def slices_at_a_time(rows: int, buffers: int, resources: Resources) -> int:
    """Return how many slices fit into a task's memory; raise an error if not even one does."""
    around, one = STREAMED + 8 * rows, rows * SLICE * 4 * buffers
    resources.require(rows, need_of_slice(rows, buffers))
    return min(MOST_SLICES, (resources.bytes_of_task(rows) - around) // one)


def need_of_slice(rows: int, buffers: int) -> Need:
    """State the memory of a task with one slice. ``buffers`` is its number of copies: 3 for smoothing, 2 for hops."""
    held = STREAMED + 8 * rows + rows * SLICE * 4 * buffers
    return Need(held, f"a slice of {SLICE} columns of {rows:,} nodes")


def compute_columns(task: ColumnTask) -> None:
    """Run a task: read its slices, apply the operator, and write a file for each missing slice."""
    with limited_threads(1):
        left, right = _scales(task.operator.scales)
        if task.smoothing is None:
            _hops(task, _read_slices(task.start, task.slices, right), left, right)
        else:
            _smoothed(task, _read_slices(task.start, task.slices), left, right)


def _hops(task: ColumnTask, values: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
    """Compute hops from ``values``, r∘X, and write those that are stored."""
    other, last = np.empty_like(values), max(hops for hops, _ in task.targets)
    kept = dict(task.targets)
    for hop in range(1, last + 1):
        # Always scale by l and then by r, so that a hop has the same bits whether earlier hops are stored or not.
        _multiply(task, values, other, (left, right) if hop < last and hop not in kept else (left,))
        if hop in kept:
            _write_slices(kept[hop], task.slices, other)
            if hop < last:
                _scale(other, right)
        values, other = other, values


def _smoothed(task: ColumnTask, first: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
    assert task.smoothing is not None
    share, steps = task.smoothing
    values, other = first.copy(), np.empty_like(first)
    for _ in range(steps):
        _scale(values, right)
        _multiply(task, values, other, (left,))
        for start in range(0, len(first), ROWS):
            part = slice(start, start + ROWS)
            values[part] = np.float32(share) * other[part] + np.float32(1 - share) * first[part]
    _write_slices(task.targets[0][1], task.slices, values)


def _multiply(task: ColumnTask, values: np.ndarray, out: np.ndarray, scales: tuple[np.ndarray, ...]) -> None:
    """Compute out ← A·values, plus the values if the operator has loops, and multiply rows by each of the scales."""
    flat = values.ravel()
    for start, stop, indptr, indices, weights in task.source.adjacency():
        for first in range(start, stop, ROWS):
            last = min(first + ROWS, stop)
            rows, pointers = out[first:last], indptr[first - start : last - start + 1]
            rows[...] = values[first:last] if task.operator.loop else 0
            # The function behind `matrix @ values`. It adds to existing rows, so no array for the product is needed.
            csr_matvecs(last - first, *values.shape, pointers, indices, weights, flat, rows.ravel())
            for by in scales:
                rows *= by[first:last, None]


def _scale(values: np.ndarray, by: np.ndarray) -> None:
    for start in range(0, len(values), ROWS):
        values[start : start + ROWS] *= by[start : start + ROWS, None]


def _scales(table: StoredTable) -> tuple[np.ndarray, np.ndarray]:
    left, right = (np.empty(table.rows, dtype=np.float32) for _ in range(2))
    for start, stop in table.blocks:
        rows = table.block(start)
        left[start:stop], right[start:stop] = rows[:, 0], rows[:, 1]
    return left, right


def _read_slices(table: StoredTable, numbers: tuple[int, ...], by: np.ndarray | None = None) -> np.ndarray:
    """Read slices side by side in 32 bits, with rows multiplied by (n,) ``by``."""
    width = sum(min(SLICE, table.columns - number * SLICE) for number in numbers)
    values = np.empty((table.rows, width), dtype=np.float32)
    for start, stop in table.blocks:
        table.slices_of_block(start, numbers, values[start:stop])
        if by is not None:
            values[start:stop] *= by[start:stop, None]
    return values


def _write_slices(table: StoredTable, numbers: tuple[int, ...], values: np.ndarray) -> None:
    column = 0
    for number in numbers:
        file = table.files[number]
        columns = slice(column, column + file.width)
        column = columns.stop
        if not file.is_whole():
            file.write(values[start:stop, columns] for start, stop in file.blocks)


class RowFactors:
    """Per-row factors of a visible graph on disk: degrees, and the factors of hops and links.

    Each table has one or two columns. Hidden rows have no edges and the factor 0.
    """

    def __init__(
        self, visible: VisibleFolder, source: Source, work: WorkFolder, progress: Callable[[], Progress]
    ) -> None:
        self._visible, self._source, self._work, self._progress = visible, source, work, progress

    @cached_property
    def degrees(self) -> StoredTable:
        """(n, 1) sum of edge weights to visible neighbours."""
        mask = self._visible.mask
        if mask is None:
            return self._written("degrees", lambda start, stop: self._folder_degrees[start:stop, None])
        ones = self._written("ones", lambda start, stop: np.ones((stop - start, 1), dtype=np.float32))
        shown = self._written(
            "visible", lambda start, stop: np.stack([np.ones(stop - start), mask[start:stop]], axis=1)
        )
        degrees = self._planned("degrees")
        task = ColumnTask(self._source, Operator(shown, loop=False), ones, ((1, degrees),))
        run_columns("degrees", task, self._visible.resources, self._progress())
        return degrees

    @cached_property
    def _folder_degrees(self) -> np.ndarray:
        return self._visible.reader.degrees()

    @cached_property
    def scales(self) -> StoredTable:
        """(n, 2) factors l and r of Â, (d + 1)^(−1/2); 0 for a hidden row."""

        def rows(start: int, stop: int) -> np.ndarray:
            return np.repeat(self._shown(start, stop) / np.sqrt(self.degrees.block(start) + 1), 2, axis=1)

        return self._written("scales", rows)

    @property
    def adjacency(self) -> Operator:
        """The operator Â."""
        return Operator(self.scales)

    @cached_property
    def link_roots(self) -> StoredTable:
        """(n, 1) d^(1/2) with edge weights of mean 1; 1 for an isolated node, 0 for a hidden row."""
        return self._written("link-roots", lambda start, stop: self._shown(start, stop) * self._roots(start))

    @cached_property
    def link_scales(self) -> StoredTable:
        """(n, 2) factors of d^(−1/2) A with edge weights of mean 1; 0 for a hidden row."""

        def rows(start: int, stop: int) -> np.ndarray:
            left = self._shown(start, stop) / self._roots(start)
            return np.concatenate([left, self._shown(start, stop) / np.float32(self.mean_weight)], axis=1)

        return self._written("link-scales", rows)

    def _roots(self, start: int) -> np.ndarray:
        return np.sqrt(np.maximum(self.degrees.block(start) / np.float32(self.mean_weight), 1))

    def _shown(self, start: int, stop: int) -> np.ndarray:
        """Return (rows, 1) 1 for visible rows and 0 for hidden ones."""
        mask = self._visible.mask
        return np.ones((stop - start, 1), np.float32) if mask is None else mask[start:stop, None].astype(np.float32)

    @cached_property
    def mean_weight(self) -> float:
        """Mean weight of a visible edge; 1 if there is no edge."""
        if not self._visible.reader.weighted:
            return 1.0
        total, count, mask = 0.0, 0, self._visible.mask
        for start, stop, indptr, indices, weights in self._source.adjacency():
            if mask is not None:
                weights = weights[np.repeat(mask[start:stop], np.diff(indptr)) & mask[indices]]
            total, count = total + float(weights.sum(dtype=np.float64)), count + weights.size
        return total / count if count else 1.0

    def folders(self) -> list[Path]:
        """List the folders of all factors."""
        return [self._planned(name).folder for name in FACTOR_COLUMNS]

    def _written(self, name: str, rows: Callable[[int, int], np.ndarray]) -> StoredTable:
        table = self._planned(name)
        for number in table.missing():
            file = table.files[number]
            file.write(rows(start, stop) for start, stop in file.blocks)
        return table

    def _planned(self, name: str) -> StoredTable:
        masked = name == "degrees" and self._visible.mask is not None  # computed by a pass over the edges
        key = key_of(**{name: self._source.graph_key})
        by = "slices" if masked else "parts"
        return self._work.table(name, key, self._source.rows, FACTOR_COLUMNS[name], by=by)  # type: ignore[arg-type]
