"""A grid on an engine: each of its workers takes cell after cell, as the processes of this machine do.

Claims and results are in the folder of the grid, so engines, processes and other calls may work on it at the same time.
Nobody here sees which cell a worker runs: it leaves a note, and the next one that claims the cell finds it.
"""

import secrets
import time
import warnings
from dataclasses import replace
from functools import partial

from graphfcl.errors import GraphfclWarning, InputError
from graphfcl.experiments.cells import Cell
from graphfcl.experiments.store import CellStore
from graphfcl.experiments.watching import GridWatch
from graphfcl.experiments.working import DEATHS, Workshop, register_outside, settle
from graphfcl.tasks import Tasks, WorkerLost, run_tasks

LOOK_EVERY = 2.0  # seconds; the folder may be on another machine


def run_elsewhere(watch: GridWatch, workshop: Workshop, tasks: Tasks) -> None:
    """Run the cells of a grid on the workers of an engine until all are settled."""
    workshop = replace(workshop, folder=workshop.folder.absolute())
    crew = _Crew(watch, workshop)
    work = partial(take_cells, workshop, watch.grid.cells, crew.call)
    run_tasks(work, range(min(tasks.workers, watch.status.total)), tasks, progress=crew.look, lost=crew.lost)
    watch.look()


def take_cells(workshop: Workshop, cells: tuple[Cell, ...], call: str, number: int) -> int:  # noqa: ARG001
    """One worker: take cells until all are settled; how many it ran.

    call: the call of ``run_grid`` that it belongs to. number: which of its workers it is.
    """
    warnings.simplefilter("ignore", GraphfclWarning)  # whoever started the grid has said them once
    register_outside(workshop)
    store, count = CellStore(workshop.folder), 0
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
        time.sleep(LOOK_EVERY)


def _give_up_deadly(store: CellStore, cell: Cell, call: str) -> bool:
    """Let a claimed cell fail if its workers of this call died too often; whether it did."""
    if store.starts(cell, call) < DEATHS:
        return False
    store.fail(cell, f"its worker died {DEATHS} times (killed, out of memory, or out of time)")
    store.forget_start(cell)
    return True


class _Crew:
    """The workers of one call as seen from here: what they run, and whether their deaths are those of cells."""

    def __init__(self, watch: GridWatch, workshop: Workshop) -> None:
        self.watch, self.folder = watch, workshop.folder
        self.call = secrets.token_hex(8)
        self.looked = float("-inf")
        self.seen, self.idle_deaths = (0, 0), 0

    def look(self, *_: int) -> None:
        """Look at the folder now and then."""
        if time.monotonic() - self.looked < LOOK_EVERY:
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
                f"workers die before they begin a cell of {self.folder} ({str(error).rstrip('.')}): check that every "
                "node sees the folder, and the memory of workers."
            ) from error

    def _started(self) -> list[tuple[Cell, int]]:
        """The cells that workers of this call have begun, and how often."""
        store = self.watch.store
        found = ((cell, store.starts(cell, self.call)) for cell in self.watch.grid.cells)
        return [(cell, times) for cell, times in found if times]
