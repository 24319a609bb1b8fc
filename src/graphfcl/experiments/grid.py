"""Grids of independent cells, and the processes that work on them."""

import contextlib
import json
import multiprocessing
import os
import queue
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphfcl.datasets import load_dataset
from graphfcl.errors import GraphfclError, GraphfclWarning, InputError
from graphfcl.experiments.cells import Cell, run_cell
from graphfcl.experiments.store import CellStore
from graphfcl.files import read_bytes, write_bytes

DEATHS = 3  # a cell whose process died so often is given up
LOOK_EVERY = 0.25  # seconds


@dataclass(frozen=True)
class Grid:
    """Cells that belong together, and what they are for.

    kind: table2, table3, sweep, embed or grid: how a report shows them.
    command: what was typed.
    """

    name: str
    kind: str
    cells: tuple[Cell, ...]
    command: str = ""

    def save(self, folder: str | Path) -> None:
        """Beside the cells, so that a report knows what they are for; joined with what is there under its name."""
        path = Path(folder) / "grids" / f"{self.name}.json"
        cells, commands = {cell.key: cell for cell in self.cells}, [self.command]
        if path.exists():
            before = _read_grid(path)
            if before.kind != self.kind:
                raise InputError(
                    f"{folder} holds a grid {self.name!r} of kind {before.kind}: give this one another name."
                )
            cells = {cell.key: cell for cell in before.cells} | cells
            commands = [*before.command.splitlines(), *commands]
        values = {
            "name": self.name,
            "kind": self.kind,
            "command": "\n".join(dict.fromkeys(commands)),
            "cells": [cell.as_json() for cell in cells.values()],
        }
        write_bytes(path, json.dumps(values, indent=1).encode())


def load_grids(folder: str | Path) -> list[Grid]:
    """All grids whose cells are in a folder."""
    paths = sorted((Path(folder) / "grids").glob("*.json"))
    if not paths:
        raise InputError(f"{folder} holds no grid: give a folder that `graphfcl bench --out` has written.")
    return [_read_grid(path) for path in paths]


def _read_grid(path: Path) -> Grid:
    try:
        values = json.loads(read_bytes(path, "the grid"))
        cells = tuple(Cell.from_json(cell) for cell in values["cells"])
        return Grid(values["name"], values["kind"], cells, values["command"])
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged: delete it and run its `graphfcl bench` command again.") from error


@dataclass
class GridStatus:
    """How far a grid is; cells of other processes are counted when they are done."""

    total: int
    done: int = 0
    failed: int = 0
    running: dict[int, Cell] = field(default_factory=dict)  # by process
    seconds_left: float | None = None


@dataclass(frozen=True)
class Workshop:
    """Where and with what cells are run."""

    folder: Path
    device: str
    data_dir: Path | None
    threads: int
    parent: int


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
) -> GridStatus:
    """Run all cells that are neither done nor failed, in ``jobs`` processes that share the threads of the machine.

    Other processes may work on the same folder: nobody runs a cell that somebody else is running, and each call returns
    when all cells are settled. A cell that fails is recorded and does not stop the others; it runs again only with
    ``retry_failed``. A cell whose file is damaged, or whose graph has changed since, runs again.

    graphs: the SHA-256 of datasets' graphs as they are now; a dataset that is not among them is loaded if cells of it
        are done.
    """
    store = CellStore(folder)
    grid.save(folder)
    _set_aside(store, grid, graphs or {}, data_dir)
    if retry_failed:
        store.forget_failures(grid.cells)
    threads = max(1, (os.cpu_count() or 1) // jobs)
    workshop = Workshop(Path(folder), device, data_dir, threads, os.getpid())
    status = _look(store, grid, GridStatus(len(grid.cells)))
    if status.done + status.failed == status.total:
        return status
    context = multiprocessing.get_context("spawn")
    events: Any = context.Queue()
    processes: list[Any] = []
    begun, at_start = time.monotonic(), status.done
    deaths: dict[str, int] = {}
    idle_deaths = 0

    def start() -> None:
        process = context.Process(target=_work, args=(workshop, grid.cells, events), daemon=True)
        process.start()
        processes.append(process)

    for _ in range(min(jobs, status.total)):
        start()
    try:
        while status.done + status.failed < status.total:
            time.sleep(LOOK_EVERY)
            with contextlib.suppress(queue.Empty):
                while True:
                    process, cell = events.get_nowait()
                    status.running.pop(process, None)
                    if cell is not None:
                        status.running[process] = cell
            for process in [one for one in processes if not one.is_alive()]:
                processes.remove(process)
                victim = status.running.pop(process.pid, None)
                if process.exitcode:  # it was killed: another takes its place
                    idle_deaths += victim is None
                    if victim is not None:
                        deaths[victim.key] = deaths.get(victim.key, 0) + 1
                        if deaths[victim.key] >= DEATHS:
                            store.fail(victim, f"its process died {DEATHS} times (killed, or out of memory)")
                    if idle_deaths > DEATHS:
                        raise InputError(
                            f"processes cannot work in {folder}: check its rights and the free space there."
                        )
                    start()
            _look(store, grid, status)
            new = status.done - at_start
            if new:
                left = status.total - status.done - status.failed
                status.seconds_left = (time.monotonic() - begun) / new * left
            if watch is not None:
                watch(status)
            if not processes and status.done + status.failed < status.total:
                start()
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join(5)
    return status


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


def _look(store: CellStore, grid: Grid, status: GridStatus) -> GridStatus:
    status.done = sum(store.done(cell) for cell in grid.cells)
    status.failed = sum(store.error(cell) is not None for cell in grid.cells)
    return status


def _work(workshop: Workshop, cells: tuple[Cell, ...], events: Any) -> None:
    """One process: take cell after cell until all are settled."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent says when to stop
    import torch

    torch.set_num_threads(workshop.threads)
    warnings.simplefilter("ignore", GraphfclWarning)  # the parent has said them once
    store = CellStore(workshop.folder)

    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    while True:
        waiting = 0
        for cell in cells:
            if store.settled(cell):
                continue
            if os.getppid() != workshop.parent:
                return  # whoever started this is gone
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


def _settle(store: CellStore, cell: Cell, workshop: Workshop) -> None:
    """Run a cell and store what came out, be it an error."""
    try:
        result = run_cell(
            cell,
            device=workshop.device,
            encoders=workshop.folder / "encoders",
            data_dir=workshop.data_dir,
        )
        store.save(cell, result)
    except GraphfclError as error:
        store.fail(cell, str(error), traceback.format_exc())
    except Exception as error:  # whatever it is, the other cells go on
        store.fail(cell, f"{type(error).__name__}: {error}", traceback.format_exc())
