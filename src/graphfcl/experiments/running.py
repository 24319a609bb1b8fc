"""Run the cells of a grid on a pool of workers. Each worker takes one cell after the other until all are settled.

A cell is settled when it is done or has failed. Claims and results are files in the folder of the grid, so workers of
several calls, backends and machines can share the work. A worker records that it begins a cell, so that a cell whose
workers die again and again is recorded as failed.
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
from graphfcl.errors import GraphfclError, GraphfclWarning, InputError, counted, in_one_line
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

MOST_DEATHS = 3  # a cell fails when this many of its workers have died
SECONDS_HERE = 0.25  # between two looks at the folder, with workers on this machine
SECONDS_ELSEWHERE = 2.0  # the same with workers on other machines


Registration = tuple[Callable[[Any], object], Any]  # a function that registers, and what it registers


def registrations(grid: Grid) -> tuple[Registration, ...]:
    """List what was registered in this process and workers need: methods, strategies, datasets and metrics."""
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
                f"{place.partition(':')[2]} is defined inside a function or as a lambda, so worker processes cannot "
                "import it: define it at the top level of a module."
            )
    return (
        *((register_method, learner) for learner in methods),
        *((register_strategy, strategy) for strategy in strategies),
        *((register_dataset, dataset) for dataset in datasets),
        *((register_metric, metric) for metric in metrics),
    )


@dataclass(frozen=True)
class WorkerPlan:
    """What each worker of one call of ``run_grid`` needs.

    Attributes:
        folder: Folder of results.
        cells: Cells to run.
        call: Random name of the call.
        device: Device that learners use.
        data_dir: Folder of the datasets.
        outside: Methods and other objects that a worker registers first.
        pause: Seconds between two looks at cells that other workers have claimed.
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
    """Run the cells of a grid in worker processes.

    Cells that are done are not run again, unless their file is damaged or their graph has changed since. A failure is
    recorded and does not stop the other cells; failed cells are run again only with ``retry_failed``. Several calls can
    work on the same folder at the same time: no cell runs twice at once, and each call returns when all cells are done
    or have failed.

    Args:
        grid: Cells to run.
        folder: Folder of results. It is created if it does not exist.
        jobs: Number of worker processes.
        device: Device that learners use, such as ``cpu`` or ``cuda:0``.
        data_dir: Folder of the datasets. The default is that of :func:`load_dataset`.
        watch: Function that is called with the progress, every one or two seconds.
        retry_failed: Run cells again that have failed before.
        graphs: SHA-256 of each dataset's present graph, to find outdated cells. Datasets that are not listed are loaded
            to compute it.
        start_method: How processes are started: ``spawn``, ``forkserver`` or ``fork``. ``fork`` is fast, but only safe
            on a CPU and in a program that has not computed with several threads yet. With ``forkserver`` torch is
            imported once for all processes; they get the environment variables of the moment when the first started.
        threads: Largest number of threads that torch, BLAS and OpenMP each start in a process. The default is an equal
            share of the cores.
        tasks: Backend and its options, by default processes of this machine. ``jobs``, ``threads`` and, on this
            machine, ``start_method`` replace its own.

    Returns:
        The number of cells that are done and that have failed (``total``, ``done``, ``failed``).

    Raises:
        InputError: If an argument cannot be used, a method or strategy is unknown, the folder has results of another
            protocol version, or workers die before they begin a cell.

    Examples:
        >>> from graphfcl import run_grid
        >>> from graphfcl.experiments import Cell, Grid
        >>> graph = "synthetic:nodes=200,edges=800,classes=6,features=30"
        >>> cells = [Cell(graph, "sgc-ridge", seed, rules={"way": 1, "shot": 5}) for seed in (0, 1)]
        >>> status = run_grid(Grid("first", "grid", tuple(cells)), "results")
        >>> status.done, status.failed
        (2, 0)
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
            find_method(cell.method, cell.source)  # report a missing method now, not once for every cell
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
        raise InputError(f"threads is {threads}: give each process at least 1 thread.")
    return threads


def _set_aside(store: CellStore, grid: Grid, graphs: Mapping[str, str], data_dir: Path | None) -> None:
    """Set aside damaged files, and results on graphs that have changed since.

    This includes cells of the folder's other grids on the same datasets. Otherwise a report would mix results on two
    graphs in one row.
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
        except InputError:  # the graph cannot be loaded to compare it, so its results stay
            continue
        count = sum(store.set_outdated_aside(cell, now) for cell, then in results if then != now)
        if count:
            warnings.warn(
                f"{dataset} has changed: the earlier results of {counted(count, 'cell')} were set aside, and the "
                "affected cells run again.",
                GraphfclWarning,
                2,
            )


def take_cells(plan: WorkerPlan, number: int) -> int:  # noqa: ARG001
    """Run one worker: take cells until all are settled, and return how many it ran."""
    warnings.simplefilter("ignore", GraphfclWarning)  # the main process has shown them
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
            f"a worker cannot use {plan.folder} ({in_one_line(error)}): check its permissions and the free space."
        ) from error


def _take_cell(store: CellStore, cell: Cell, plan: WorkerPlan) -> bool | None:
    """Run a cell that is not settled. Return whether it ran here, or None if another worker has claimed it."""
    if store.settled(cell):
        return False
    with store.claim(cell) as ours:
        if not ours:
            return None
        if store.settled(cell) or _fail_after_deaths(store, cell, plan.call):
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
    except Exception as error:  # no error may stop the other cells
        kind = "" if isinstance(error, GraphfclError) else f"{type(error).__name__}: "
        store.fail(cell, f"{kind}{error}", traceback.format_exc())
    finally:
        release_gpu_memory(plan.device)


def _fail_after_deaths(store: CellStore, cell: Cell, call: str) -> bool:
    """Mark a claimed cell as failed if too many workers of this call died while running it. Return whether they did."""
    if store.starts(cell, call) < MOST_DEATHS:
        return False
    store.fail(cell, f"its worker died {MOST_DEATHS} times (killed, out of memory, or out of time)")
    store.forget_start(cell)
    return True


class _Pool:
    """The workers of one call of ``run_grid``, seen from the main process. ``watch`` receives the status regularly."""

    def __init__(self, grid: Grid, store: CellStore, pause: float, watch: Callable[[GridStatus], None] | None) -> None:
        self.grid, self.store, self.pause, self.watch = grid, store, pause, watch
        self.call = secrets.token_hex(8)
        self.status = GridStatus(len(grid.cells))
        self._count()
        self.started_at, self.done_at_start = time.monotonic(), self.status.done
        self.looked_at = float("-inf")
        self.last_counts, self.idle_deaths = (0, 0), 0

    def look(self, *_: int) -> None:
        """Count cells, estimate the remaining time, and report, at most once in ``pause`` seconds."""
        if time.monotonic() - self.looked_at < self.pause:
            return
        self.status.running = {number: cell for number, (cell, _) in enumerate(self._started())}
        self._report()
        self.looked_at = time.monotonic()

    def finish(self) -> None:
        """Report the final status."""
        self.status.running = {}
        self._report()

    def lost(self, task: int, error: WorkerLost) -> None:  # noqa: ARG002
        """Handle the death of a worker: the pool replaces it, unless workers keep dying before they begin a cell."""
        started = self._started()
        for cell, _ in started:
            with self.store.claim(cell) as ours:
                if ours:
                    _fail_after_deaths(self.store, cell, self.call)
        self._count()
        counts = (sum(times for _, times in started), self.status.done + self.status.failed)
        self.idle_deaths = self.idle_deaths + 1 if counts == self.last_counts else 0
        self.last_counts = counts
        if self.idle_deaths >= MOST_DEATHS:
            raise InputError(
                f"workers die before they begin a cell of {self.store.folder.absolute()} ({str(error).rstrip('.')}): "
                "check that every machine can reach the folder, and that workers have enough memory."
            ) from error

    def _count(self) -> None:
        self.status.done = sum(self.store.done(cell) for cell in self.grid.cells)
        self.status.failed = sum(self.store.error(cell) is not None for cell in self.grid.cells)

    def _report(self) -> None:
        self._count()
        new = self.status.done - self.done_at_start
        if new:
            left = self.status.total - self.status.done - self.status.failed
            self.status.seconds_left = (time.monotonic() - self.started_at) / new * left
        if self.watch is not None:
            self.watch(self.status)

    def _started(self) -> list[tuple[Cell, int]]:
        """The cells that workers of this call have begun and not finished, and how often each was begun."""
        starts = ((cell, self.store.starts(cell, self.call)) for cell in self.grid.cells)
        return [(cell, times) for cell, times in starts if times]
