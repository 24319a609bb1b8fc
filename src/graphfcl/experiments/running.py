"""Run the cells of a grid on a pool of workers."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphfcl.active import outside_strategies
from graphfcl.datasets import load_dataset, outside_datasets, split_options
from graphfcl.errors import GraphfclWarning, InputError
from graphfcl.evaluation import find_chooser
from graphfcl.experiments.cells import Cell
from graphfcl.experiments.grid import Grid, GridStatus, load_grids
from graphfcl.experiments.store import CellStore
from graphfcl.experiments.workers import GridWatch, Outside, Workshop, work_on
from graphfcl.methods import find_method, outside_methods
from graphfcl.metrics import outside_metrics
from graphfcl.runtime.cores import usable_cores
from graphfcl.runtime.source_code import reference_of
from graphfcl.runtime.tasks import Tasks


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
    looking = GridWatch(grid, store, watch)
    if looking.status.settled:
        return looking.status
    for cell in grid.cells:
        if not store.settled(cell):
            find_method(cell.method, cell.source)  # one that is missing is said now, not once for every cell
            if cell.strategy:
                find_chooser(cell.strategy, cell.strategy_source)
    work_on(looking, Workshop(Path(folder).absolute(), device, data_dir, _outside(grid)), tasks)
    return looking.status


def _threads_of_each(threads: int | None, jobs: int) -> int:
    if threads is None:
        return max(1, usable_cores() // jobs)
    if threads < 1:
        raise InputError(f"a process cannot work with {threads} threads: give it at least 1.")
    return threads


def _outside(grid: Grid) -> Outside:
    """What was registered in this process and a grid needs: what its cells name, and all metrics."""
    names, strategies = {cell.method for cell in grid.cells}, {cell.strategy for cell in grid.cells}
    graphs = {split_options(cell.dataset)[0] for cell in grid.cells}
    found = Outside(
        methods=tuple(method.learner for method in outside_methods() if method.name in names),
        strategies=tuple(each.strategy for each in outside_strategies() if each.name in strategies),
        datasets=tuple(dataset for dataset in outside_datasets() if dataset.name in graphs),
        metrics=outside_metrics(),
    )
    code: list[Any] = [*found.methods, *found.strategies, *(each.load for each in found.datasets)]
    for each in (*code, *(metric.of for metric in found.metrics)):
        place = reference_of(each)
        if "<locals>" in place or "<lambda>" in place:
            raise InputError(
                f"{place.partition(':')[2]} is defined inside a function or as a lambda, where processes cannot find "
                "it: define it at the top of a module."
            )
    return found


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
