"""Grids of independent cells, and the processes that work on them."""

import contextlib
import json
import multiprocessing
import os
import queue
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphfcl.errors import GraphfclError, GraphfclWarning, InputError
from graphfcl.experiments.cells import Cell, run_cell
from graphfcl.experiments.store import CellStore
from graphfcl.files import read_bytes, write_durably

ATTEMPTS = 3  # a cell whose process died so often is given up
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
        """Beside the cells, so that a report knows what they are for."""
        values = {
            "name": self.name,
            "kind": self.kind,
            "command": self.command,
            "cells": [cell.as_json() for cell in self.cells],
        }
        text = json.dumps(values, indent=1)
        write_durably(Path(folder) / "grids" / f"{self.name}.json", lambda file: file.write(text.encode()))


def load_grids(folder: str | Path) -> list[Grid]:
    """All grids whose cells are in a folder."""
    paths = sorted((Path(folder) / "grids").glob("*.json"))
    if not paths:
        raise InputError(f"{folder} holds no grid: give a folder that `graphfcl bench --out` has written.")
    grids = []
    for path in paths:
        try:
            values = json.loads(read_bytes(path, "the grid"))
            cells = tuple(Cell.from_json(cell) for cell in values["cells"])
            grids.append(Grid(values["name"], values["kind"], cells, values["command"]))
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path} is damaged: run its `graphfcl bench` command again.") from error
    return grids


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
) -> GridStatus:
    """Run all cells that are neither done nor failed, in ``jobs`` processes that share the threads of the machine.

    Other processes may work on the same folder: nobody runs a cell that somebody else is running, and each call returns
    when all cells are settled. A cell that fails is recorded and does not stop the others.
    """
    store = CellStore(folder)
    grid.save(folder)
    for cell in grid.cells:
        store.read(cell)  # a damaged file is set aside now
    threads = max(1, (os.cpu_count() or 1) // jobs)
    workshop = Workshop(Path(folder), device, data_dir, threads, os.getpid())
    status = _look(store, grid, GridStatus(len(grid.cells)))
    if status.done + status.failed == status.total:
        return status
    context = multiprocessing.get_context("spawn")
    events: Any = context.Queue()
    processes: list[Any] = []
    begun, at_start = time.monotonic(), status.done

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
                status.running.pop(process.pid, None)
                if process.exitcode:  # it was killed: another takes its place
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

    def stop(*_: object) -> None:
        if current:
            store.end_attempt(current[0])  # told to stop is not died
        os._exit(0)

    current: list[Cell] = []
    signal.signal(signal.SIGTERM, stop)
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
                    current.append(cell)
                    _settle(store, cell, workshop)
                    current.clear()
                    events.put((os.getpid(), None))
        if not waiting:
            return
        time.sleep(LOOK_EVERY)


def _settle(store: CellStore, cell: Cell, workshop: Workshop) -> None:
    """Run a cell and store what came out, be it an error."""
    if store.attempt(cell) > ATTEMPTS:
        store.fail(cell, f"its process died {ATTEMPTS} times (killed, or out of memory)")
        return
    try:
        result = run_cell(
            cell,
            device=workshop.device,
            encoders=workshop.folder / "encoders",
            data_dir=workshop.data_dir,
        )
    except GraphfclError as error:
        store.fail(cell, str(error), traceback.format_exc())
    except Exception as error:  # whatever it is, the other cells go on
        store.fail(cell, f"{type(error).__name__}: {error}", traceback.format_exc())
    else:
        store.save(cell, result)
    store.end_attempt(cell)
    sys.stdout.flush()
