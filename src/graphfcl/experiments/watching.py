"""How far a grid is, as its folder tells."""

import time
from collections.abc import Callable

from graphfcl.experiments.grid import Grid, GridStatus
from graphfcl.experiments.store import CellStore


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
