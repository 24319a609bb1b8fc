"""Row phases: row-wise functions of tables on disk, whose result is another table or sums in a fixed order.

Each task computes a part of the rows. The parts depend only on the number of rows, and sums are taken over blocks
within a part and then over parts. Results therefore have the same bytes for any number of workers and any memory.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from graphfcl.methods.blocks.interface import RowBlock, Table
from graphfcl.methods.blocks.source import Source
from graphfcl.methods.blocks.stored_table import StoredTable, parts_of, slices_of
from graphfcl.methods.blocks.tile_files import BLOCK
from graphfcl.methods.blocks.work_folder import Arrays, StoredArrays, WorkFolder, key_of, read_arrays, write_arrays
from graphfcl.methods.learner import Progress
from graphfcl.runtime.cores import limited_threads
from graphfcl.runtime.resources import Need, Resources
from graphfcl.runtime.tasks import run_tasks

BYTES_A_COLUMN = 24  # memory of a task per row and column


@dataclass(frozen=True, eq=False)
class FolderTable:
    """The leading columns of a stored table, which are computed when they are read.

    Args:
        stored: The files.
        columns: Number of leading columns.
        make: Computes a number of leading columns; None for a table that always exists.
        behind: The tables that it is computed from.
        shared: Whether other visible graphs of the folder use it too.
    """

    stored: StoredTable
    columns: int
    make: Callable[[int], None] | None = None
    behind: tuple["FolderTable | JoinedTables", ...] = ()
    shared: bool = False

    random_access: ClassVar[bool] = False

    def __reduce__(self) -> tuple[type["FolderTable"], tuple[StoredTable, int]]:
        """Pickle without ``make``: worker tasks only read tables."""
        return FolderTable, (self.stored, self.columns)

    @property
    def key(self) -> Any:
        """Identifies the inputs of the computation."""
        return [self.stored.key, self.columns]

    def part(self, start: int, stop: int) -> torch.Tensor:  # noqa: ARG002
        """Read the (rows, D) block that begins at row ``start``."""
        return torch.from_numpy(self.stored.block(start, self.columns))

    @property
    def is_made(self) -> bool:
        end = slices_of(self.columns) if self.stored.by == "slices" else None
        return not self.stored.missing(end)

    def made(self) -> StoredTable:
        """Return the files, and compute them if they are missing."""
        if self.make is not None and not self.is_made:
            self.make(self.columns)
        return self.stored

    def leading(self, columns: int) -> "FolderTable":
        return replace(self, columns=min(columns, self.columns))

    def rows_at(self, rows: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(self.made().rows_at(rows, leading=self.columns))

    def readable(self) -> StoredTable:
        return self.made()

    def kept(self) -> "FolderTable":
        return self

    def remove(self, *, unless: Table | None = None) -> None:
        if unless is None or as_single(unless).stored.folder != self.stored.folder:
            self.stored.remove()

    def folders(self) -> list[Path]:
        """List its folder and those of the tables behind it, without shared ones."""
        own = [] if self.shared else [self.stored.folder]
        return own + [folder for table in self.behind for folder in table.folders()]


@dataclass(frozen=True, eq=False)
class JoinedTables:
    """Tables side by side, all of the same number type."""

    parts: tuple[FolderTable, ...]
    random_access: ClassVar[bool] = False

    @property
    def columns(self) -> int:
        return sum(part.columns for part in self.parts)

    @property
    def key(self) -> Any:
        return [part.key for part in self.parts]

    def part(self, start: int, stop: int) -> torch.Tensor:
        return torch.cat([part.part(start, stop) for part in self.parts], dim=1)

    def made(self) -> None:
        for part in self.parts:
            part.made()

    def leading(self, columns: int) -> "JoinedTables":
        raise NotImplementedError("take the leading columns of the parts")

    def rows_at(self, rows: np.ndarray) -> torch.Tensor:
        values = torch.empty(rows.size, self.columns)
        for place, part in zip(values.split([part.columns for part in self.parts], dim=1), self.parts, strict=True):
            place[:] = part.rows_at(rows)
        return values

    def readable(self) -> Any:
        raise NotImplementedError("read the parts")

    def kept(self) -> "JoinedTables":
        return self

    def remove(self, *, unless: Table | None = None) -> None:
        """Do nothing: other tables depend on the parts."""

    def folders(self) -> list[Path]:
        return [folder for part in self.parts for folder in part.folders()]


AnyTable = FolderTable | JoinedTables


def as_stored(table: Table) -> AnyTable:
    assert isinstance(table, FolderTable | JoinedTables), "a table of another graph"
    return table


def as_single(table: Table) -> FolderTable:
    assert isinstance(table, FolderTable), "a table of another graph, or several tables"
    return table


@dataclass(frozen=True, eq=False)
class RowTask:
    """A row-wise function for a part of the rows.

    Args:
        source: The graph.
        function: The function of a :class:`RowBlock`.
        tables: Tables that it reads, by name.
        shown: (n, 1) table that is positive for visible rows; None if all rows are visible.
        tensors: Tensors that all blocks share.
        values: Plain values that all blocks share.
        part: Number of the part.
        target: Table for the result, if the function returns rows.
        sums: File for the result, if the function returns sums.
    """

    source: Source
    function: Callable[[RowBlock], Any]
    tables: Mapping[str, AnyTable]
    shown: FolderTable | None
    tensors: StoredArrays
    values: Mapping[str, Any]
    part: int = 0
    target: StoredTable | None = None
    sums: StoredArrays | None = None

    def key(self, phase: str) -> str:
        """Return the key that identifies the inputs of the computation."""
        name = f"{self.function.__module__}.{self.function.__qualname__}"
        tables, tensors = {each: table.key for each, table in self.tables.items()}, self.tensors.key
        read = {"source": self.source.key, "tables": tables, "tensors": tensors, "values": self.values}
        return key_of(phase=phase, function=name, **read)

    def write(self, phase: str, target: StoredTable, resources: Resources, progress: Progress) -> None:
        """Compute the missing parts of a table."""
        _run(phase, [replace(self, part=part, target=target) for part in target.missing()], resources, progress)

    def add(
        self, phase: str, before: Callable[[], "RowTask"], work: WorkFolder, resources: Resources, progress: Progress
    ) -> Arrays:
        """Sum over all blocks in 64 bits, or read the sums if they were computed before.

        If something must be computed, ``before`` is called first. It computes the tables that the task reads, and
        returns the task with them.
        """
        key = self.key(phase)
        parts = [work.path_of(f"{phase}-part-{part:04d}", key) for part in range(len(parts_of(self.source.rows)))]

        def compute() -> Arrays:
            ready = before()
            missing = [part for part, path in enumerate(parts) if read_arrays(path, key) is None]
            items = [replace(ready, part=part, sums=StoredArrays(parts[part], key)) for part in missing]
            _run(phase, items, resources, progress)
            return _added(StoredArrays(path, key).read() for path in parts)

        total = work.arrays(phase, key, compute)
        for path in parts:
            path.unlink(missing_ok=True)
        return total


def _run(phase: str, items: list[RowTask], resources: Resources, progress: Progress) -> None:
    if items:
        rows = items[0].source.rows
        columns = sum(table.columns for table in items[0].tables.values()) or items[0].source.feature_count
        resources.require(rows, need_of_rows(rows, columns))
    run_tasks(compute_rows, items, resources.tasks, progress=lambda done, total: progress.step(phase, done, total))


def need_of_rows(rows: int, columns: int) -> Need:
    """State the memory of a task: a block of rows, and sums as large as the square of its columns."""
    held = BYTES_A_COLUMN * columns * (min(BLOCK, rows) + columns)
    return Need(held, f"a block of {BLOCK:,} rows of {columns:,} columns")


def compute_rows(task: RowTask) -> None:
    """Run a task, block by block."""
    first, end = parts_of(task.source.rows)[task.part]
    with limited_threads(1), torch.no_grad():
        tensors = {name: torch.from_numpy(array) for name, array in task.tensors.read().items()}
        same = (task.source.features, task.tables, task.shown, tensors, task.values)
        blocks = (RowBlock(start, min(start + BLOCK, end), *same) for start in range(first, end, BLOCK))
        if task.target is not None:
            task.target.files[task.part].write(task.function(block).numpy() for block in blocks)
        if task.sums is not None:
            sums = ({name: each.double().numpy() for name, each in task.function(block).items()} for block in blocks)
            write_arrays(task.sums.path, task.sums.key, _added(sums))


def _added(terms: Iterable[Arrays]) -> Arrays:
    total: Arrays = {}
    for term in terms:
        for name, values in term.items():
            if name in total:
                total[name] += values
            else:
                total[name] = values.copy()
    return total
