"""What a grid shows while it works."""

import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphfcl.experiments import GridStatus

EVERY = 30.0  # seconds between two lines where nobody watches


class GridDisplay:
    """One live line: done, running, failed, time left.

    Where nobody watches, a line for every tenth of the grid, and one at least every so many seconds.
    """

    def __init__(self, total: int, every: float = EVERY) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bars

        self.terminal, self.total, self.said = sys.stderr.isatty(), total, 0
        self.every, self.printed = every, time.monotonic()
        self.bars = Bars(
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[figures]}", markup=False),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            disable=not self.terminal,
            refresh_per_second=2,
        )
        self.task = self.bars.add_task("grid", total=total, figures="starting")

    def __enter__(self) -> "GridDisplay":
        self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bars.stop()

    def show(self, status: "GridStatus") -> None:
        left = "" if status.seconds_left is None else f", about {_duration(status.seconds_left)} left"
        running = ", ".join(f"{c.dataset} {c.row} seed {c.seed}" for c in list(status.running.values())[:3])
        more = len(status.running) - 3
        running += f" and {more} more" if more > 0 else ""
        figures = f"failed {status.failed}, running {len(status.running)}{f' ({running})' if running else ''}{left}"
        self.bars.update(self.task, completed=status.done + status.failed, figures=figures)
        settled = status.done + status.failed
        overdue = time.monotonic() - self.printed >= self.every
        if not self.terminal and (overdue or settled * 10 // self.total > self.said):
            self.said, self.printed = settled * 10 // self.total, time.monotonic()
            print(f"{status.done} of {status.total} done, {figures}", file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
