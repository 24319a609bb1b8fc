"""Tables of a graph on disk, stored as files of a work folder under keys that identify their inputs.

A table is a plan until something reads it. If files with its key exist, they are read, and neither the table nor its
inputs are computed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from graphfcl.graph.folder.visible import VisibleFolder
from graphfcl.graph.visible import VisibleGraph
from graphfcl.methods.blocks.column_phases import ColumnTask, Operator, RowFactors, need_of_slice, run_columns
from graphfcl.methods.blocks.interface import UNLABELLED, MemoryNeed, NodeTables, RowBlock, RowPhase, Table, Tensors
from graphfcl.methods.blocks.row_tasks import (
    AnyTable,
    FolderTable,
    JoinedTables,
    RowTask,
    as_single,
    as_stored,
    need_of_rows,
)
from graphfcl.methods.blocks.source import Source
from graphfcl.methods.blocks.stored_table import StoredTable
from graphfcl.methods.blocks.work_folder import Arrays, WorkFolder, arrays_key, key_of
from graphfcl.methods.learner import SILENT, Progress
from graphfcl.methods.shared.untrained_features import WIDEST, leading_vectors_from, prepare
from graphfcl.methods.state import Labelled
from graphfcl.nn import GraphInputs
from graphfcl.runtime.resources import Need

Make = Callable[[int], None]  # computes the given number of leading columns of a table
Tables = tuple[AnyTable, ...]


class FolderTables(NodeTables):
    """The tables of a visible graph on disk."""

    visible: VisibleFolder

    def __init__(self, visible: VisibleFolder, seed: int, *, unit: bool, progress: Progress = SILENT) -> None:
        self.visible, self.device, self.class_count = visible, torch.device("cpu"), visible.class_count
        self.source = Source.of(visible, seed, unit=unit)
        self.work = WorkFolder(visible.resources.work)
        self.progress = progress
        self.by_row = RowFactors(visible, self.source, self.work, lambda: self.progress)

    @property
    def feature_count(self) -> int:
        return self.source.feature_count

    @property
    def has_feature_columns(self) -> bool:
        return 0 < self.source.raw_width <= WIDEST

    @property
    def mean_weight(self) -> float:
        return self.by_row.mean_weight

    def watch(self, progress: Progress) -> None:
        self.progress = progress

    def require(self, *held: MemoryNeed, columns: int = 0, slice_copies: int = 0) -> None:
        rows = self.source.rows
        needs = [Need(each.size, each.what, here=True) for each in held]
        needs += [need_of_rows(rows, columns)] * (columns > 0)
        needs += [need_of_slice(rows, buffers=slice_copies)] * (slice_copies > 0)
        if needs:
            self.visible.resources.require(rows, *needs)

    # X, its leading singular vectors, and hops of XB

    def leading_vectors(self, rank: int, seed: int, *, exact: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
        """Compute B as in memory, with Xᵀ(X S) summed over chunks of rows."""

        def total(phase: str, function: Any, span: np.ndarray) -> np.ndarray:
            return (
                self.sums(phase, function, tensors={"span": torch.from_numpy(span)})["total"].numpy().astype(span.dtype)
            )

        product, gram = partial(total, "span", _products), partial(total, "span-gram", _grams)
        return leading_vectors_from((self.node_count, self.feature_count), product, gram, rank, seed, exact=exact)

    def own(self, basis: torch.Tensor) -> FolderTable:
        """Compute (n, k) XB of all rows. Hidden rows are included, and ignored in sums."""
        array = basis.cpu().numpy()
        key = key_of(own=self.source.feature_key, basis=arrays_key({"basis": array}))
        stored = self.work.table("own", key, self.source.rows, array.shape[1], by="parts")

        def make(_: int) -> None:
            stored_basis = self.work.put("tensors", {"basis": array})
            RowTask(self.source, _projected, {}, None, stored_basis, {}).write("own", stored, *self._how)

        return FolderTable(stored, stored.columns, make, shared=True)

    @property
    def _how(self) -> tuple[Any, Progress]:
        return self.visible.resources, self.progress

    def hops(self, own: Table, counts: Sequence[int]) -> list[FolderTable]:
        first = as_single(own)
        keys = [key_of(hops=count, own=first.stored.key, graph=self.source.graph_key) for count in counts]
        made = [
            self.work.table(f"hops-{count}", key, *first.stored.shape, by="slices")
            for count, key in zip(counts, keys, strict=True)
        ]

        def make(columns: int) -> None:
            hops = tuple(zip(counts, made, strict=True))
            task = ColumnTask(self.source, self.by_row.adjacency, first.made(), hops)
            run_columns("hops", task, *self._how, leading=columns)

        return [FolderTable(stored, first.columns, make, (first,)) for stored in made]

    def side_by_side(self, tables: Sequence[Table], kind: str = "<f4") -> JoinedTables:  # noqa: ARG002
        return JoinedTables(tuple(as_single(table) for table in tables))

    # Neighbours

    def smoothed(self, table: Table, share: float, steps: int, *, last_use: bool = False) -> FolderTable:
        first = as_single(table)
        key = key_of(smoothed=first.stored.key, graph=self.source.graph_key, share=share, steps=steps)
        stored = self.work.table("smoothed", key, self.source.rows, first.columns, by="slices")

        def make(_: int) -> None:
            smoothing = (share, steps)
            task = ColumnTask(self.source, self.by_row.adjacency, first.made(), ((0, stored),), smoothing)
            run_columns("smoothing", task, *self._how)

        return self._planned(stored, make, (first,), (first,) * last_use)

    def linked(self, table: Table) -> FolderTable:
        first = as_single(table)
        key = key_of(near=first.stored.key, graph=self.source.graph_key)
        stored = self.work.table("near", key, self.source.rows, first.columns, by="slices")

        def make(_: int) -> None:
            operator = Operator(self.by_row.link_scales, loop=False)
            run_columns("links", ColumnTask(self.source, operator, first.made(), ((1, stored),)), *self._how)

        return self._planned(stored, make, (first,), ())

    def link_roots(self) -> FolderTable:
        return FolderTable(self.by_row.link_roots, 1)

    def labels(self, labelled: Labelled) -> FolderTable:
        rows, columns = self.visible.rows(labelled[0]), labelled[1]
        key = arrays_key({"nodes": rows, "columns": columns, "rows": np.array(self.source.rows)})
        stored = self.work.table("labels", key, self.source.rows, 1, kind="<i4", by="parts")
        if stored.missing():
            every = np.full((self.source.rows, 1), UNLABELLED, dtype=np.int32)
            every[rows, 0] = columns
            stored.fill(every)
        return FolderTable(stored, 1)

    def take(self, values: torch.Tensor) -> FolderTable:
        array = values.cpu().numpy()
        key = arrays_key({"values": array})
        stored = self.work.table("taken", key, *array.shape, kind=array.dtype.str, by="parts")
        stored.fill(array)
        return FolderTable(stored, stored.columns)

    def widened(self, table: Table) -> Table:
        """Return the table unchanged: every pass reads it from disk."""
        return table

    # Functions of chunks of rows

    def _table(self, phase: RowPhase, columns: int, kind: str, last_use: Sequence[str]) -> FolderTable:
        task = self._task(phase)
        stored = self.work.table(phase.name, task.key(phase.name), self.source.rows, columns, kind=kind, by="parts")

        def make(_: int) -> None:
            self._ready(task).write(phase.name, stored, *self._how)

        return self._planned(stored, make, tuple(task.tables.values()), tuple(task.tables[name] for name in last_use))

    def _sums(self, phase: RowPhase) -> Tensors:
        task = self._task(phase)
        sums = task.add(phase.name, lambda: self._ready(task), self.work, *self._how)
        return {name: torch.from_numpy(array) for name, array in sums.items()}

    def remember(
        self, phase: str, compute: Callable[[], Arrays], tables: Mapping[str, Table], arrays: Arrays, **values: Any
    ) -> Arrays:
        rows = self.visible.row_of_number
        numbers = {} if rows is None else {"row of number": rows}
        keys = {name: as_stored(table).key for name, table in tables.items()}
        content = arrays_key({**arrays, **numbers})
        key = key_of(phase=phase, source=self.source.key, tables=keys, arrays=content, values=values)
        return self.work.arrays(phase, key, compute)

    def _task(self, phase: RowPhase) -> RowTask:
        arrays = {name: each.cpu().numpy() for name, each in phase.tensors.items()}
        tables = {name: as_stored(table) for name, table in phase.tables.items()}
        return RowTask(self.source, phase.function, tables, None, self.work.put("tensors", arrays), phase.values)

    def _ready(self, task: RowTask) -> RowTask:
        """Compute the tables that a task reads, and return the task with its mask of visible rows."""
        for table in task.tables.values():
            table.made()
        return replace(task, shown=self._shown())

    def _shown(self) -> FolderTable | None:
        return None if self.visible.mask is None else FolderTable(self.by_row.scales, 1)

    def _planned(self, stored: StoredTable, make: Make, behind: Tables, last_use: Tables) -> FolderTable:
        """Plan a table after whose computation others are removed, except one with the same content."""
        done = [table for table in last_use if table.folders()[:1] != [stored.folder]]

        def make_and_remove(columns: int) -> None:
            make(columns)
            for table in done:
                table.remove()

        planned = FolderTable(stored, stored.columns, make_and_remove, behind)
        if done and planned.is_made:  # an interrupted run did not remove them
            for table in done:
                table.remove()
        return planned

    def column_means(self, table: Table) -> torch.Tensor:
        """Compute means part by part, since several joined tables share parts."""
        parts = table.parts if isinstance(table, JoinedTables) else (as_single(table),)
        return torch.cat([super(FolderTables, self).column_means(part) for part in parts])

    # A few nodes

    def neighbourhood(self, nodes: np.ndarray, hops: int) -> tuple[GraphInputs, np.ndarray]:
        rows = self.visible.rows(nodes)
        near = self.visible.around(rows, hops)
        prepared = near.with_features(prepare(near.features, self.source.seed, unit=self.source.unit))
        return GraphInputs(prepared, self.device, sparing=True), near.rows(rows)

    def numbers(self, near: VisibleGraph, rows: np.ndarray) -> np.ndarray:
        return self.visible.numbers(near.nodes[rows])

    def stored_behind(self, *tables: Table) -> list[Path]:
        return [*self.by_row.folders(), *(folder for table in tables for folder in as_stored(table).folders())]


def _projected(block: RowBlock) -> torch.Tensor:
    """Compute XB.

    If there are fewer features than the rank, B is diagonal, and columns are scaled to get the same bits as in memory.
    """
    features, basis = block.features(), block.tensors["basis"].numpy()
    if isinstance(features, np.ndarray) and basis.shape[0] == basis.shape[1]:
        diagonal = basis.diagonal()
        if np.count_nonzero(basis) == np.count_nonzero(diagonal):
            return torch.from_numpy(features * diagonal)
    return torch.from_numpy(np.asarray(features @ basis))


def _products(block: RowBlock) -> Tensors:
    """Compute Xᵀ(X S) of the visible rows."""
    features, span = _visible_features(block), block.tensors["span"].numpy()
    return {"total": torch.from_numpy(np.asarray(features.T @ (features @ span)))}


def _grams(block: RowBlock) -> Tensors:
    seen = np.asarray(_visible_features(block) @ block.tensors["span"].numpy())
    return {"total": torch.from_numpy(seen.T @ seen)}


def _visible_features(block: RowBlock) -> Any:
    features = block.features()
    return features if block.visible is None else features[block.visible.numpy()]
