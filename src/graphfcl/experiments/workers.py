"""The processes that work on a grid.

Each takes the next cell that nobody has claimed, until all are settled. Whatever a process needs comes to it as an
argument, so that it does not matter how processes are started.
"""

import contextlib
import multiprocessing
import os
import queue
import signal
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from graphfcl.asking import Strategy, outside_strategies
from graphfcl.cores import limit_threads, usable_cores
from graphfcl.datasets import load_dataset
from graphfcl.errors import GraphfclWarning, InputError, did_you_mean
from graphfcl.evaluation import find_chooser
from graphfcl.experiments.cells import Cell
from graphfcl.experiments.elsewhere import run_elsewhere
from graphfcl.experiments.grid import Grid, GridStatus, load_grids
from graphfcl.experiments.store import CellStore
from graphfcl.experiments.watching import GridWatch
from graphfcl.experiments.working import DEATHS, Workshop, register_outside
from graphfcl.experiments.working import settle as _settle
from graphfcl.methods import Learner, find_method, outside_methods
from graphfcl.tasks import Tasks

LOOK_EVERY = 0.25  # seconds
START_METHODS = ("spawn", "forkserver", "fork")
PRELOADED = (__name__, "graphfcl.methods", "pyarrow.parquet", "scipy.sparse", "torch")  # by a fork server, once for all


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

    Other processes may work on the same folder: nobody runs a cell that somebody else is running, and each call returns
    when all cells are settled. A cell that fails is recorded and does not stop the others; it runs again only with
    ``retry_failed``. A cell whose file is damaged, or whose graph has changed since, runs again.

    graphs: the SHA-256 of datasets' graphs as they are now; a dataset that is not among them is loaded if cells of it
        are done.
    start_method: how processes are started: spawn, forkserver or fork. fork is quick, but only safe on a CPU and in a
        program that has not computed with several threads yet. With forkserver all processes together import torch
        once; they have the environment of the program when it started the first of them.
    threads: how many torch, BLAS and OpenMP may each start in a process, at most as many as the environment allows
        them; an equal share of the cores where it is None.
    tasks: an engine to run on instead of processes of this machine, with ``jobs`` workers of ``threads`` threads.
    """
    _check_start_method(start_method, device)
    share = _threads_of_each(threads, jobs)
    store = CellStore(folder)
    grid.save(folder)
    _set_aside(store, grid, graphs or {}, data_dir)
    if retry_failed:
        store.forget_failures(grid.cells)
    looking = GridWatch(grid, store, watch)
    status = looking.status
    if status.settled:
        return status
    for cell in grid.cells:
        if not store.settled(cell):
            find_method(cell.method, cell.source)  # one that is missing is said now, not once for every cell
            if cell.strategy:
                find_chooser(cell.strategy, cell.strategy_source)
    workshop = Workshop(Path(folder), device, data_dir, share, *_outside(grid))
    if tasks is not None and tasks.backend != "local":
        run_elsewhere(looking, workshop, replace(tasks, workers=jobs, threads=threads))
        return status
    crew = _Crew(grid, store, workshop, start_method)
    try:
        for _ in range(min(jobs, status.total)):
            crew.start()
        _follow(crew, looking)
    finally:
        crew.stop()
    return status


def _threads_of_each(threads: int | None, jobs: int) -> int:
    if threads is None:
        return max(1, usable_cores() // jobs)
    if threads < 1:
        raise InputError(f"a process cannot work with {threads} threads: give it at least 1.")
    return threads


def _follow(crew: "_Crew", looking: GridWatch) -> None:
    """Look after the processes until all cells are settled."""
    status = looking.status
    while not status.settled:
        time.sleep(LOOK_EVERY)
        crew.listen(status)
        crew.replace_dead(status)
        looking.look()
        if not crew.processes and not status.settled:
            crew.start()


def _outside(grid: Grid) -> tuple[tuple[type[Learner], ...], tuple[type[Strategy], ...]]:
    """The learner and strategy classes from outside that a grid names, as far as they are known here."""
    names, asked = {cell.method for cell in grid.cells}, {cell.strategy for cell in grid.cells}
    learners = tuple(method.learner for method in outside_methods() if method.name in names)
    strategies = tuple(each.strategy for each in outside_strategies() if each.name in asked)
    for kind in (*learners, *strategies):
        if "<locals>" in kind.__qualname__:
            raise InputError(
                f"{kind.__qualname__} is defined inside a function, where processes cannot find it: define it at the "
                "top of a module."
            )
    return learners, strategies


def _check_start_method(start_method: str, device: str) -> None:
    if start_method not in START_METHODS:
        hint = did_you_mean(start_method, START_METHODS)
        raise InputError(f"processes cannot be started with {start_method!r}: {hint}")
    if start_method == "fork" and device.startswith("cuda"):
        raise InputError("a forked process cannot use a GPU: start processes with spawn or forkserver.")


@dataclass
class _Crew:
    """The processes of one call, and how often they died.

    deaths: by the key of the cell that a process was running. idle_deaths: of processes that were running none.
    """

    grid: Grid
    store: CellStore
    workshop: Workshop
    start_method: str
    processes: list[Any] = field(default_factory=list)
    deaths: dict[str, int] = field(default_factory=dict)
    idle_deaths: int = 0

    def __post_init__(self) -> None:
        self.context: Any = multiprocessing.get_context(self.start_method)
        if self.start_method == "forkserver":
            self.context.set_forkserver_preload(list(PRELOADED))
        self.events: Any = self.context.Queue()

    def start(self) -> None:
        process = self.context.Process(target=_work, args=(self.workshop, self.grid.cells, self.events), daemon=True)
        process.start()
        self.processes.append(process)

    def listen(self, status: GridStatus) -> None:
        """Hear which process runs which cell."""
        with contextlib.suppress(queue.Empty):
            while True:
                process, cell = self.events.get_nowait()
                status.running.pop(process, None)
                if cell is not None:
                    status.running[process] = cell

    def replace_dead(self, status: GridStatus) -> None:
        """Start a process for each that was killed; give a cell up that kills its processes."""
        for process in [one for one in self.processes if not one.is_alive()]:
            self.processes.remove(process)
            victim = status.running.pop(process.pid, None)
            if process.exitcode:
                self._count(victim)
                self.start()

    def _count(self, victim: Cell | None) -> None:
        if victim is None:
            self.idle_deaths += 1
        else:
            self.deaths[victim.key] = self.deaths.get(victim.key, 0) + 1
            if self.deaths[victim.key] >= DEATHS:
                self.store.fail(victim, f"its process died {DEATHS} times (killed, or out of memory)")
        if self.idle_deaths > DEATHS:
            raise InputError(
                f"processes cannot work in {self.workshop.folder}: check its rights, the free space there, and that "
                "the modules of your own methods and strategies can still be imported."
            )

    def stop(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.join(5)


def _set_aside(store: CellStore, grid: Grid, graphs: Mapping[str, str], data_dir: Path | None) -> None:
    """Set damaged files aside, and results on graphs that have changed since.

    Cells of the folder's other grids on the same datasets too, or a report would mix two graphs in one row.
    """
    datasets = {cell.dataset for cell in grid.cells}
    cells = {cell.key: cell for one in load_grids(store.folder) for cell in one.cells if cell.dataset in datasets}
    found: dict[str, list[tuple[Cell, str]]] = {}
    for cell in cells.values():
        result = store.read(cell)
        if result is not None:
            found.setdefault(cell.dataset, []).append((cell, result["graph_sha256"]))
    for dataset, results in found.items():
        try:
            now = graphs[dataset] if dataset in graphs else load_dataset(dataset, data_dir=data_dir)[0].sha256
        except InputError:  # without the graph nobody can say that it has changed
            continue
        count = sum(store.set_outdated_aside(cell, now) for cell, then in results if then != now)
        if count:
            warnings.warn(
                f"{dataset} has changed: the results of cells that ran on it before ({count}) were set aside, and the "
                "cells run again.",
                GraphfclWarning,
                2,
            )


def _work(workshop: Workshop, cells: tuple[Cell, ...], events: Any) -> None:
    """One process: take cell after cell until all are settled."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent says when to stop
    limit_threads(workshop.threads)
    warnings.simplefilter("ignore", GraphfclWarning)  # the parent has said them once
    register_outside(workshop)
    store = CellStore(workshop.folder)

    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    while True:
        waiting = 0
        for cell in cells:
            if store.settled(cell):
                continue
            if _left_alone():
                return
            with store.claim(cell) as ours:
                if not ours:
                    waiting += 1
                elif not store.settled(cell):
                    events.put((os.getpid(), cell))
                    _settle(store, cell, workshop)
                    events.put((os.getpid(), None))
        if not waiting:
            return
        time.sleep(LOOK_EVERY)


def _left_alone() -> bool:
    """Whether whoever started this process is gone; its id does not tell, because a fork server stands between them."""
    parent = multiprocessing.parent_process()
    return parent is not None and not parent.is_alive()
