"""Progress reports of a run or a fit, as bars on a terminal or lines in a log."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from graphfcl.errors import InputError
from graphfcl.methods.learner import SILENT, Progress

BRIEF = 1.0  # seconds; shorter stages without figures get no line in a log
EVERY = 30.0  # seconds after which a line is repeated in a log
HELD_OUT = "calibration run, "  # prefix of the stage names of a calibration run
CALIBRATION_NOTE = (
    "Calibration run: the method is trained again without some classes, to measure how scores of later classes are "
    "distributed. This does not change the model."
)


class ProgressBars(Progress):
    """A progress display with a bar per stage that shows steps, loss, validation accuracy and remaining time.

    Without a terminal, it prints a line to stderr for each stage that lasts ``BRIEF`` seconds or reports a loss or a
    score. It repeats the latest line every ``every`` seconds.
    """

    def __init__(self, every: float = EVERY) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        self.terminal = sys.stderr.isatty()
        self.bars = Bars(
            TextColumn("{task.description:<22}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[figures]}", markup=False),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}", markup=False),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=not self.terminal,
            refresh_per_second=2,  # drawing takes CPU time from the training
        )
        self.task: Any = None
        self.stage, self.last, self.has_figures = "", "", False
        self.total = 0  # largest total that the stage reported
        self.in_calibration = False
        self.begun = self.started = self.printed = time.perf_counter()
        self._every, self._ended, self._lock = every, threading.Event(), threading.RLock()
        self._reminder = threading.Thread(target=self._remind, name="progress", daemon=True)

    def __enter__(self) -> "ProgressBars":
        self.started = self.printed = time.perf_counter()
        if self.terminal:
            self.bars.start()
        else:
            self._reminder.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        with self._lock:
            self._end_stage()
        if self.terminal:
            self.bars.stop()

    def step(self, stage: str, step: int, total: int, *, loss: float | None = None, score: float | None = None) -> None:
        with self._lock:
            if stage != self.stage:
                self._end_stage()
                self._begin(stage, total)
            # A stage that stops early reports a smaller total, equal to its step.
            early = step == total and total < self.total
            self.total = max(self.total, total)
            figures = [f"loss {loss:.3f}"] if loss is not None else []
            if score is not None:
                figures.append(f"{'accuracy' if stage == 'sessions' else 'validation'} {100 * score:.1f} %")
            self.has_figures = bool(figures)
            figures += ["stopped early"] if early else []
            self.last = ", ".join([f"{step} of at most {self.total}", *figures])
            left = "" if step >= total else "left at most"
            self.bars.update(self.task, completed=step, total=total, figures=" ".join(figures), left=left)

    def _begin(self, stage: str, total: int) -> None:
        if stage.startswith(HELD_OUT) and not self.in_calibration:
            self.in_calibration = True
            self._print(CALIBRATION_NOTE)
        self.stage, self.begun, self.total = stage, time.perf_counter(), total
        self.task = self.bars.add_task(stage, total=total, figures="", left="left at most")

    def _end_stage(self) -> None:
        seconds = time.perf_counter() - self.begun
        # A graph folder has many short phases, which are not printed.
        if self.stage and not self.terminal and (self.has_figures or seconds >= BRIEF):
            self._print(f"{self.stage}: {self.last}, {seconds:.1f} s")
        if self.task is not None:
            self.bars.stop_task(self.task)

    def _print(self, line: str) -> None:
        self.printed = time.perf_counter()
        if self.terminal:
            self.bars.console.print(line, markup=False, highlight=False)
        else:
            print(line, file=sys.stderr, flush=True)

    def _remind(self) -> None:
        """Print the current stage whenever nothing was printed for some time. Runs in a thread."""
        while not self._ended.wait(max(0.01, self.printed + self._every - time.perf_counter())):
            with self._lock:
                if time.perf_counter() - self.printed >= self._every and not self._ended.is_set():
                    where = f"{self.stage}: {self.last}" if self.stage else "preparing"
                    self._print(f"{where}; at work for {time.perf_counter() - self.started:.0f} s")


@contextmanager
def progress_of(value: bool | Progress | None) -> Iterator[Progress]:
    """Resolve the argument ``progress`` of a function: True for bars, False or None for no output, or an object."""
    if value is True:
        with ProgressBars() as bars:
            yield bars
    elif value is False or value is None:
        yield SILENT
    elif all(callable(getattr(value, name, None)) for name in ("step", "checkpoint")):
        yield value
    else:
        raise InputError(f"progress is {value!r}: give True, False, or an object that derives from graphfcl.Progress.")
