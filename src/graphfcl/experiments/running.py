"""Run the cells of a grid on a pool of workers: each takes cell after cell until all are settled.

Claims and results are in the folder of the grid, so workers of several calls, backends and machines may work on it at
the same time. A worker notes which cell it begins; if it dies, the worker that claims the cell next reads the note.
"""

import secrets
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from graphfcl.active import outside_strategies, register_strategy
from graphfcl.datasets import load_dataset, outside_datasets, register_dataset, split_options
from graphfcl.errors import GraphfclError, GraphfclWarning, InputError, in_one_line
from graphfcl.evaluation import find_chooser
from graphfcl.experiments.cells import Cell, run_cell
from graphfcl.experiments.grid import Grid, GridStatus, load_grids
from graphfcl.experiments.runs import release_gpu_memory
from graphfcl.experiments.store import CellStore
from graphfcl.methods import find_method, outside_methods, register_method
from graphfcl.metrics import outside_metrics, register_metric
from graphfcl.runtime.cores import usable_cores
from graphfcl.runtime.source_code import reference_of
from graphfcl.runtime.tasks import Tasks, WorkerLost, run_tasks

DEATHS = 3  # a cell whose worker died so often is given up
SECONDS_HERE, SECONDS_ELSEWHERE = 0.25, 2.0  # between two looks at the folder, which may be on another machine


Registration = tuple[Callable[[Any], object], Any]  # a function that registers, and what it registers


def registrations(grid: Grid) -> tuple[Registration, ...]:
    """Methods, strategies and datasets of a grid, and all metrics, that were registered here and workers need."""
    names = {name for cell in grid.cells for name in (cell.method, cell.strategy)}
    graphs = {split_options(cell.dataset)[0] for cell in grid.cells}
    methods = [method.learner for method in outside_methods() if method.name in names]
    strategies = [each.strategy for each in outside_strategies() if each.name in names]
    datasets = [dataset for dataset in outside_datasets() if dataset.name in graphs]
    metrics = outside_metrics()
    for code in (*methods, *strategies, *(each.load for each in datasets), *(metric.of for metric in metrics)):
        place = reference_of(code)
        if "<locals>" in place or "<lambda>" in place:
            raise InputError(
                f"{place.partition(':')[2]} is defined inside a function or as a lambda, where processes cannot "
                "find it: define it at the top of a module."
            )
    return (
        *((register_method, learner) for learner in methods),
        *((register_strategy, strategy) for strategy in strategies),
        *((register_dataset, dataset) for dataset in datasets),
        *((register_metric, metric) for metric in metrics),
    )


@dataclass(frozen=True)
class WorkerPlan:
    """What each worker of a call of ``run_grid`` needs.

    call: names the call. outside: what a worker registers first. pause: seconds between two looks at cells that others
    have claimed.
    """

    folder: Path
    cells: tuple[Cell, ...]
    call: str
    device: str
    data_dir: Path | None
    outside: tuple[Registration, ...] = ()
    pause: float = SECONDS_HERE


def run_grid(
    grid: Grid,
    folder: str | Path,
    *,
    jobs: int = 1,
    device: str = "cpu",
    data_dir: Path | None = None,
    watch: Callable[[GridStatus], None] | None = None,
    retry_failed: bool = False,
    graphs: Mapping[str, str] | None = None,
    start_method: str = "spawn",
    threads: int | None = None,
    tasks: Tasks | None = None,
) -> GridStatus:
    """Run all cells that are neither done nor failed, in ``jobs`` processes that share the cores this one may use.

    Other processes may work on the same folder: no cell runs twice at a time, and each call returns when all cells are
    settled. A cell that fails is recorded and does not stop the others; it runs again only with ``retry_failed``. A
    cell whose file is damaged, or whose graph has changed since, runs again.

    graphs: the SHA-256 of datasets' graphs as they are now; a dataset that is not among them is loaded if cells of it
        are done.
    start_method: how processes are started: spawn, forkserver or fork. fork is quick, but only safe on a CPU and in a
        program that has not computed with several threads yet. With forkserver all processes together import torch
        once; they have the environment of the program when it started the first of them.
    threads: how many torch, BLAS and OpenMP may each start in a process, at most as many as the environment allows
        them; an equal share of the cores where it is None.
    tasks: an engine to run on instead of processes of this machine, with ``jobs`` workers of ``threads`` threads.
    """
    if start_method == "fork" and device.startswith("cuda"):
        raise InputError("a forked process cannot use a GPU: start processes with spawn or forkserver.")
    if tasks is None or tasks.backend == "local":
        tasks = Tasks(workers=jobs, threads=_threads_of_each(threads, jobs), start_method=start_method)
    else:
        tasks = replace(tasks, workers=jobs, threads=threads)
    store = CellStore(folder)
    grid.save(folder)
    store.unpack()
    _set_aside(store, grid, graphs or {}, data_dir)
    if retry_failed:
        store.forget_failures(grid.cells)
    pause = SECONDS_HERE if tasks.on_this_machine else SECONDS_ELSEWHERE
    pool = _Pool(grid, store, pause, watch)
    if pool.status.settled:
        return pool.status
    for cell in grid.cells:
        if not store.settled(cell):
            find_method(cell.method, cell.source)  # a missing one is an error now, not once for every cell
            if cell.strategy:
                find_chooser(cell.strategy, cell.strategy_source)
    plan = WorkerPlan(Path(folder).absolute(), grid.cells, pool.call, device, data_dir, registrations(grid), pause)
    run_tasks(
        partial(take_cells, plan),
        range(min(tasks.workers, pool.status.total)),
        tasks,
        progress=pool.look,
        lost=pool.lost,
    )
    pool.finish()
    return pool.status


def _threads_of_each(threads: int | None, jobs: int) -> int:
    if threads is None:
        return max(1, usable_cores() // jobs)
    if threads < 1:
        raise InputError(f"a process cannot work with {threads} threads: give it at least 1.")
    return threads


def _set_aside(store: CellStore, grid: Grid, graphs: Mapping[str, str], data_dir: Path | None) -> None:
    """Set damaged files aside, and results on graphs that have changed since.

    Cells of the folder's other grids on the same datasets too, or a report would mix two graphs in one row.
    """
    datasets = {cell.dataset for cell in grid.cells}
    cells = {cell.key: cell for one in load_grids(store.folder) for cell in one.cells if cell.dataset in datasets}
    stored: dict[str, list[tuple[Cell, str]]] = {}
    for cell in cells.values():
        result = store.read(cell)
        if result is not None:
            stored.setdefault(cell.dataset, []).append((cell, result["graph_sha256"]))
    for dataset, results in stored.items():
        try:
            now = graphs[dataset] if dataset in graphs else load_dataset(dataset, data_dir=data_dir)[0].sha256
        except InputError:  # without the graph it is unknown whether it has changed
            continue
        count = sum(store.set_outdated_aside(cell, now) for cell, then in results if then != now)
        if count:
            warnings.warn(
                f"{dataset} has changed: the results of cells that ran on it before ({count}) were set aside, and the "
                "cells run again.",
                GraphfclWarning,
                2,
            )


def take_cells(plan: WorkerPlan, number: int) -> int:  # noqa: ARG001
    """One worker: take cells until all are settled; how many it ran. number: which of the workers it is."""
    warnings.simplefilter("ignore", GraphfclWarning)  # the process that started the grid has shown them once
    for register, thing in plan.outside:
        register(thing)
    count = 0
    try:
        store = CellStore(plan.folder)
        while True:
            results = [_take_cell(store, cell, plan) for cell in plan.cells]
            count += results.count(True)
            if None not in results:
                return count
            time.sleep(plan.pause)
    except OSError as error:
        raise InputError(
            f"a worker cannot work in {plan.folder} ({in_one_line(error)}): check its rights and the free space there."
        ) from error


def _take_cell(store: CellStore, cell: Cell, plan: WorkerPlan) -> bool | None:
    """Run a cell if it is not settled; whether it was run here, and None if another worker has claimed it."""
    if store.settled(cell):
        return False
    with store.claim(cell) as ours:
        if not ours:
            return None
        if store.settled(cell) or _give_up_deadly(store, cell, plan.call):
            return False
        store.note_start(cell, plan.call)
        run_and_store(store, cell, plan)
        store.forget_start(cell)
        return True


def run_and_store(store: CellStore, cell: Cell, plan: WorkerPlan) -> None:
    """Run a cell and store its result or its error."""
    try:
        encoders = plan.folder / "encoders"
        store.save(cell, run_cell(cell, device=plan.device, encoders=encoders, data_dir=plan.data_dir))
    except Exception as error:  # whatever it is, the other cells go on
        kind = "" if isinstance(error, GraphfclError) else f"{type(error).__name__}: "
        store.fail(cell, f"{kind}{error}", traceback.format_exc())
    finally:
        release_gpu_memory(plan.device)


def _give_up_deadly(store: CellStore, cell: Cell, call: str) -> bool:
    """Let a claimed cell fail if its workers of this call died too often; whether it did."""
    if store.starts(cell, call) < DEATHS:
        return False
    store.fail(cell, f"its worker died {DEATHS} times (killed, out of memory, or out of time)")
    store.forget_start(cell)
    return True


class _Pool:
    """The workers of one call of ``run_grid``, as the process that started them sees them.

    watch: called with the status whenever the folder was looked at.
    """

    def __init__(self, grid: Grid, store: CellStore, pause: float, watch: Callable[[GridStatus], None] | None) -> None:
        self.grid, self.store, self.pause, self.watch = grid, store, pause, watch
        self.call = secrets.token_hex(8)
        self.status = GridStatus(len(grid.cells))
        self._count()
        self.begun, self.at_start = time.monotonic(), self.status.done
        self.looked = float("-inf")
        self.seen, self.idle_deaths = (0, 0), 0

    def look(self, *_: int) -> None:
        """Count, estimate the time that is left, and report, once in ``pause`` seconds."""
        if time.monotonic() - self.looked < self.pause:
            return
        self.status.running = {number: cell for number, (cell, _) in enumerate(self._started())}
        self._report()
        self.looked = time.monotonic()

    def finish(self) -> None:
        """Report for the last time."""
        self.status.running = {}
        self._report()

    def lost(self, task: int, error: WorkerLost) -> None:  # noqa: ARG002
        """Start another worker for one that died, unless they die without having begun a cell."""
        started = self._started()
        for cell, _ in started:
            with self.store.claim(cell) as ours:
                if ours:
                    _give_up_deadly(self.store, cell, self.call)
        self._count()
        seen = (sum(times for _, times in started), self.status.done + self.status.failed)
        self.idle_deaths = self.idle_deaths + 1 if seen == self.seen else 0
        self.seen = seen
        if self.idle_deaths >= DEATHS:
            raise InputError(
                f"workers die before they begin a cell of {self.store.folder.absolute()} ({str(error).rstrip('.')}): "
                "check that every node sees the folder, and the memory of workers."
            ) from error

    def _count(self) -> None:
        self.status.done = sum(self.store.done(cell) for cell in self.grid.cells)
        self.status.failed = sum(self.store.error(cell) is not None for cell in self.grid.cells)

    def _report(self) -> None:
        self._count()
        new = self.status.done - self.at_start
        if new:
            left = self.status.total - self.status.done - self.status.failed
            self.status.seconds_left = (time.monotonic() - self.begun) / new * left
        if self.watch is not None:
            self.watch(self.status)

    def _started(self) -> list[tuple[Cell, int]]:
        """The cells that workers of this call have begun, and how often."""
        starts = ((cell, self.store.starts(cell, self.call)) for cell in self.grid.cells)
        return [(cell, times) for cell, times in starts if times]
