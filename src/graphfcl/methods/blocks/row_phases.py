"""Row phases: what is computed of blocks of rows, as a table, or as sums that are added up in a fixed order.

A task is a part of the rows, and the parts follow from the number of rows alone; a sum is one over blocks within a
part, and then over parts. So neither the number of workers nor the memory changes a byte of it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch

from graphfcl.cores import limited_threads
from graphfcl.graph import Features
from graphfcl.graph.visible_folder import Means, Need
from graphfcl.methods.blocks.source import Source
from graphfcl.methods.blocks.stored_table import StoredTable, parts_of
from graphfcl.methods.blocks.tile_files import BLOCK
from graphfcl.methods.blocks.work_folder import Arrays, StoredArrays, WorkFolder, key_of, read_arrays, write_arrays
from graphfcl.methods.learner import SILENT, Progress
from graphfcl.tasks import run_tasks

Tensors = dict[str, torch.Tensor]
BYTES_A_COLUMN = 24  # of a row, in all steps of a task together


@dataclass(frozen=True, eq=False)
class RowBlock:
    """A block of rows as a function of it sees it.

    tables: by name, of which the block's rows are read when they are asked for. given: arrays that hold for all rows,
    and values.
    """

    source: Source
    start: int
    stop: int
    tables: Mapping[str, StoredTable]
    visible_rows: StoredTable | None
    given: Tensors
    values: Mapping[str, Any]

    def rows(self, name: str, leading: int | None = None) -> torch.Tensor:
        """(rows, columns) of a table, of all columns or of the leading ones."""
        return torch.from_numpy(self.tables[name].block(self.start, leading))

    def features(self) -> Features:
        """(rows, d) of X."""
        return self.source.features(self.start, self.stop)

    @cached_property
    def visible(self) -> torch.Tensor | None:
        """(rows,) bool; None if all are."""
        return None if self.visible_rows is None else torch.from_numpy(self.visible_rows.block(self.start)[:, 0] > 0)

    def only_visible(self, values: torch.Tensor) -> torch.Tensor:
        """The values of its visible rows."""
        return values if self.visible is None else values[self.visible]


RowMap = Callable[[RowBlock], torch.Tensor]
RowSums = Callable[[RowBlock], Tensors]


@dataclass(frozen=True, eq=False)
class RowTask:
    """A part of the rows, a function of its blocks, and where that goes: a table, or a file of sums."""

    source: Source
    function: Callable[[RowBlock], Any]
    tables: Mapping[str, StoredTable]
    visible_rows: StoredTable | None
    given: StoredArrays
    values: Mapping[str, Any]
    part: int
    found: StoredTable | None = None
    sums: StoredArrays | None = None


@dataclass(frozen=True, eq=False)
class RowPhases:
    """Runs row phases of one source. visible_rows: (n, 1) above 0 where a row is visible; None if all are."""

    source: Source
    work: WorkFolder
    means: Means
    visible_rows: StoredTable | None = None
    progress: Progress = field(default=SILENT)

    def table(
        self,
        phase: str,
        function: RowMap,
        columns: int,
        *,
        kind: str = "<f4",
        tables: Mapping[str, StoredTable] | None = None,
        given: Arrays | None = None,
        before: Callable[[], object] | None = None,
        planned: bool = False,
        **values: Any,
    ) -> StoredTable:
        """(n, columns) the function's rows of every block.

        before: called if something of it is to be computed, to make the tables that it reads. planned: compute nothing.
        """
        task, key = self._task(phase, function, tables or {}, given or {}, values)
        found = self.work.table(phase, key, self.source.rows, columns, kind=kind, by="parts")
        missing = [] if planned else found.missing()
        if missing and before is not None:
            before()
        self._run(phase, [RowTask(**{**task, "part": part, "found": found}) for part in missing])
        return found

    def fill(self, phase: str, found: StoredTable, function: RowMap, *, given: Arrays) -> None:
        """Compute what is missing of a table whose key the caller knows."""
        task, _ = self._task(phase, function, {}, given, {})
        self._run(phase, [RowTask(**{**task, "part": part, "found": found}) for part in found.missing()])

    def sums(
        self,
        phase: str,
        function: RowSums,
        *,
        tables: Mapping[str, StoredTable] | None = None,
        given: Arrays | None = None,
        before: Callable[[], object] | None = None,
        **values: Any,
    ) -> Arrays:
        """The function's sums over all blocks, in 64 bits. before: as for a table."""
        task, key = self._task(phase, function, tables or {}, given or {}, values)

        def compute() -> Arrays:
            if before is not None:
                before()
            stored = [
                StoredArrays(self.work.path_of(f"{phase}-part-{part:04d}", key), key)
                for part in range(len(parts_of(self.source.rows)))
            ]
            missing = [part for part, each in enumerate(stored) if read_arrays(each.path, key) is None]
            self._run(phase, [RowTask(**{**task, "part": part, "sums": stored[part]}) for part in missing])
            total: Arrays = {}
            for each in stored:
                _add(total, each.read())
            return total

        found = self.work.arrays(phase, key, compute)
        for part in range(len(parts_of(self.source.rows))):
            self.work.path_of(f"{phase}-part-{part:04d}", key).unlink(missing_ok=True)
        return found

    def _task(
        self,
        phase: str,
        function: Callable[[RowBlock], Any],
        tables: Mapping[str, StoredTable],
        given: Arrays,
        values: dict[str, Any],
    ) -> tuple[dict[str, Any], str]:
        stored = self.work.put("given", given)
        keys = {name: (table.key, table.columns) for name, table in tables.items()}
        name = f"{function.__module__}.{function.__qualname__}"
        key = key_of(phase=phase, function=name, source=self.source.key, tables=keys, given=stored.key, values=values)
        task = {
            "source": self.source,
            "function": function,
            "tables": dict(tables),
            "visible_rows": self.visible_rows,
            "given": stored,
            "values": values,
        }
        return task, key

    def _run(self, phase: str, items: list[RowTask]) -> None:
        if items:
            columns = sum(table.columns for table in items[0].tables.values()) or self.source.feature_count
            self.means.require(self.source.rows, need_of_rows(self.source.rows, columns))
        step = self.progress.step
        run_tasks(compute_rows, items, self.means.tasks, progress=lambda done, total: step(phase, done, total))


def need_of_rows(rows: int, columns: int) -> Need:
    """What a task holds: a block of rows, and sums as large as the square of its columns."""
    held = BYTES_A_COLUMN * columns * (min(BLOCK, rows) + columns)
    return Need(held, f"a block of {BLOCK:,} rows of {columns:,} columns")


def compute_rows(task: RowTask) -> None:
    """One task: its blocks one after the other."""
    first, end = parts_of(task.source.rows)[task.part]
    with limited_threads(1), torch.no_grad():
        given = {name: torch.from_numpy(array) for name, array in task.given.read().items()}
        blocks = (
            RowBlock(task.source, start, min(start + BLOCK, end), task.tables, task.visible_rows, given, task.values)
            for start in range(first, end, BLOCK)
        )
        if task.found is not None:
            task.found.files[task.part].write(task.function(block).numpy() for block in blocks)
        if task.sums is not None:
            total: Arrays = {}
            for block in blocks:
                _add(total, {name: each.double().numpy() for name, each in task.function(block).items()})
            write_arrays(task.sums.path, task.sums.key, total)


def _add(total: Arrays, more: Arrays) -> None:
    for name, values in more.items():
        if name in total:
            total[name] += values
        else:
            total[name] = values.copy()
