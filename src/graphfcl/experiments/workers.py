"""The workers of a grid: each takes cell after cell until all are settled.

Claims and results are in the folder of the grid, so workers of several calls, backends and machines may work on it at
the same time. A worker notes which cell it begins; if it dies, whoever claims the cell next finds the note.
"""

import secrets
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from graphfcl.active import Strategy, register_strategy
from graphfcl.datasets import Dataset, register_dataset
from graphfcl.errors import GraphfclError, GraphfclWarning, InputError, in_one_line
from graphfcl.experiments.cells import Cell, run_cell
from graphfcl.experiments.grid import Grid, GridStatus
from graphfcl.experiments.peak_memory import release_gpu_memory
from graphfcl.experiments.store import CellStore
from graphfcl.methods import Learner, register_method
from graphfcl.metrics import register_metric
from graphfcl.runtime.tasks import Tasks, WorkerLost, run_tasks

DEATHS = 3  # a cell whose worker died so often is given up
SECONDS_HERE, SECONDS_ELSEWHERE = 0.25, 2.0  # between two looks at the folder, which may be on another machine


@dataclass(frozen=True)
class Outside:
    """What was registered in a process and its workers must know before they start."""

    methods: tuple[type[Learner], ...] = ()
    strategies: tuple[type[Strategy], ...] = ()
    datasets: tuple[Dataset, ...] = ()
    metrics: tuple[Any, ...] = ()

    def register(self) -> None:
        for learner in self.methods:
            register_method(learner)
        for strategy in self.strategies:
            register_strategy(strategy)
        for dataset in self.datasets:
            register_dataset(dataset)
        for metric in self.metrics:
            register_metric(metric)


@dataclass(frozen=True)
class Workshop:
    """Where and with what cells are run.

    pause: seconds between two looks at cells that others have claimed.
    """

    folder: Path
    device: str
    data_dir: Path | None
    outside: Outside = Outside()  # it is frozen
    pause: float = SECONDS_HERE


class GridWatch:
    """Looks at the cells of a grid, and tells whoever watches."""

    def __init__(self, grid: Grid, store: CellStore, tell: Callable[[GridStatus], None] | None) -> None:
        self.grid, self.store, self.tell = grid, store, tell
        self.status = GridStatus(len(grid.cells))
        self.count()
        self.begun, self.at_start = time.monotonic(), self.status.done

    def count(self) -> None:
        """Count what is settled."""
        self.status.done = sum(self.store.done(cell) for cell in self.grid.cells)
        self.status.failed = sum(self.store.error(cell) is not None for cell in self.grid.cells)

    def look(self) -> None:
        """Count, estimate the time that is left, and tell."""
        self.count()
        new = self.status.done - self.at_start
        if new:
            left = self.status.total - self.status.done - self.status.failed
            self.status.seconds_left = (time.monotonic() - self.begun) / new * left
        if self.tell is not None:
            self.tell(self.status)


def work_on(watch: GridWatch, workshop: Workshop, tasks: Tasks) -> None:
    """Run the cells of a grid until all are settled."""
    pause = SECONDS_HERE if tasks.on_this_machine else SECONDS_ELSEWHERE
    workshop = replace(workshop, pause=pause)
    pool = _Pool(watch, workshop)
    work = partial(take_cells, workshop, watch.grid.cells, pool.call)
    run_tasks(work, range(min(tasks.workers, watch.status.total)), tasks, progress=pool.look, lost=pool.lost)
    watch.status.running = {}
    watch.look()


def take_cells(workshop: Workshop, cells: tuple[Cell, ...], call: str, number: int) -> int:  # noqa: ARG001
    """One worker: take cells until all are settled; how many it ran.

    call: the call of ``run_grid`` that it belongs to. number: which of its workers it is.
    """
    warnings.simplefilter("ignore", GraphfclWarning)  # whoever started the grid has said them once
    workshop.outside.register()
    try:
        return _take_cells(CellStore(workshop.folder), workshop, cells, call)
    except OSError as error:
        raise InputError(
            f"a worker cannot work in {workshop.folder} ({in_one_line(error)}): check its rights and the free space "
            "there."
        ) from error


def _take_cells(store: CellStore, workshop: Workshop, cells: tuple[Cell, ...], call: str) -> int:
    count = 0
    while True:
        waiting = 0
        for cell in cells:
            if store.settled(cell):
                continue
            with store.claim(cell) as ours:
                if not ours:
                    waiting += 1
                elif not store.settled(cell) and not _give_up_deadly(store, cell, call):
                    store.note_start(cell, call)
                    settle(store, cell, workshop)
                    store.forget_start(cell)
                    count += 1
        if not waiting:
            return count
        time.sleep(workshop.pause)


def settle(store: CellStore, cell: Cell, workshop: Workshop) -> None:
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
    finally:
        release_gpu_memory(workshop.device)


def _give_up_deadly(store: CellStore, cell: Cell, call: str) -> bool:
    """Let a claimed cell fail if its workers of this call died too often; whether it did."""
    if store.starts(cell, call) < DEATHS:
        return False
    store.fail(cell, f"its worker died {DEATHS} times (killed, out of memory, or out of time)")
    store.forget_start(cell)
    return True


class _Pool:
    """The workers of one call as seen from here: what they run, and whether their deaths are those of cells."""

    def __init__(self, watch: GridWatch, workshop: Workshop) -> None:
        self.watch, self.workshop = watch, workshop
        self.call = secrets.token_hex(8)
        self.looked = float("-inf")
        self.seen, self.idle_deaths = (0, 0), 0

    def look(self, *_: int) -> None:
        """Look at the folder now and then."""
        if time.monotonic() - self.looked < self.workshop.pause:
            return
        self.watch.status.running = {number: cell for number, (cell, _) in enumerate(self._started())}
        self.watch.look()
        self.looked = time.monotonic()

    def lost(self, task: int, error: WorkerLost) -> None:  # noqa: ARG002
        """Another worker is started for one that died, unless they die without having begun a cell."""
        store, started = self.watch.store, self._started()
        for cell, _ in started:
            with store.claim(cell) as ours:
                if ours:
                    _give_up_deadly(store, cell, self.call)
        self.watch.count()
        status = self.watch.status
        seen = (sum(times for _, times in started), status.done + status.failed)
        self.idle_deaths = self.idle_deaths + 1 if seen == self.seen else 0
        self.seen = seen
        if self.idle_deaths >= DEATHS:
            raise InputError(
                f"workers die before they begin a cell of {self.workshop.folder} ({str(error).rstrip('.')}): check "
                "that every node sees the folder, and the memory of workers."
            ) from error

    def _started(self) -> list[tuple[Cell, int]]:
        """The cells that workers of this call have begun, and how often."""
        store = self.watch.store
        found = ((cell, store.starts(cell, self.call)) for cell in self.watch.grid.cells)
        return [(cell, times) for cell, times in found if times]
