"""What a run shows while it works and when it is done."""

import sys
import time
from itertools import groupby
from typing import Any

from graphfcl.cli.show import print_table
from graphfcl.measures import ASKED_MEASURES, SESSION_MEASURES, STREAM_MEASURES
from graphfcl.methods import Progress

BRIEF = 1.0  # seconds


class RunDisplay(Progress):
    """One live line on a terminal: stage, step, loss, validation accuracy, time left. Elsewhere a line per stage."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        self.terminal = sys.stderr.isatty()
        self.bars = Bars(
            TextColumn("{task.description:<22}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[figures]}"),
            TimeElapsedColumn(),
            TextColumn("left at most"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=not self.terminal,
            refresh_per_second=2,  # drawing takes time from a machine with two cores
        )
        self.stage = ""
        self.task: Any = None
        self.begun = time.perf_counter()
        self.last, self.told = "", False

    def __enter__(self) -> "RunDisplay":
        self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end_stage()
        self.bars.stop()

    def step(self, stage: str, step: int, total: int, *, loss: float | None = None, score: float | None = None) -> None:
        if stage != self.stage:
            self._end_stage()
            self.stage, self.begun = stage, time.perf_counter()
            self.task = self.bars.add_task(stage, total=total, figures="")
        figures = " ".join(
            part
            for part in (
                f"loss {loss:.3f}" if loss is not None else "",
                f"{'accuracy' if stage == 'sessions' else 'validation'} {100 * score:.1f} %"
                if score is not None
                else "",
            )
            if part
        )
        self.last = ", ".join(part for part in (f"{step} of at most {total}", figures) if part)
        self.told = bool(figures)
        self.bars.update(self.task, completed=step, figures=figures)

    def _end_stage(self) -> None:
        seconds = time.perf_counter() - self.begun
        # The phases of a graph folder are many; those without figures that take no time are not worth a line.
        if self.stage and not self.terminal and (self.told or seconds >= BRIEF):
            print(f"{self.stage}: {self.last}, {seconds:.1f} s", file=sys.stderr, flush=True)
        if self.task is not None:
            self.bars.stop_task(self.task)


def print_result(result: dict[str, Any]) -> None:
    """The table of sessions and what it comes to."""
    if result["trained_on_query_labels"]:
        print("\nTRAINED ON QUERY LABELS (protocol 'paper'): compare only with results under the same mark.")
    if result["uses_pool_labels"]:
        print("\nUSES POOL LABELS: an upper reference, trained on labels that no other method receives.")
    if result.get("needs_oracle"):
        print("\nNEEDS AN ORACLE: nodes are named by their class, which nobody knows before they are labelled.")
    measures = [measure for measure in SESSION_MEASURES if "print" in measure.places]
    asked = ("labels", "novel_classes_found") if "strategy" in result else ()
    titles = tuple(name.replace("_", " ") for name in asked)
    columns = ("session", "classes", *titles, *(measure.title for measure in measures), "seconds")
    rows = [
        (
            s["session"],
            s["classes"],
            *(s[name] for name in asked),
            *(measure.text(s[measure.name]) for measure in measures),
            f"{s['seconds']:.2f}",
        )
        for s in result["sessions"]
    ]
    print_table(columns, rows, numbers=columns)
    for line in _stream_lines(result):
        print(line)
    chosen = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in result["chosen"].items())
    print(f"Settled on: {chosen or 'nothing'}.")
    pretraining = result["pretraining"]
    reused = (
        f" besides {pretraining['seconds']:.1f} s for the encoder, which was there" if pretraining["reused"] else ""
    )
    on_gpu = result["peak_gpu_memory_mb"]
    memory = f"{result['peak_memory_mb']:.0f} MB" + ("" if on_gpu is None else f", on the GPU {on_gpu:.0f} MB")
    print(f"{result['total_seconds']:.1f} s in all{reused}; peak memory {memory}.")
    kept = ", ".join(f"{kind} {size:,}" for kind, size in result["stored"].items() if size)
    print(f"Kept between sessions: {result['stored_bytes']:,} bytes ({kept}).")


def _stream_lines(result: dict[str, Any]) -> list[str]:
    """The figures of the whole stream; those with the same note stand in one line."""
    lines = []
    shown = [measure for measure in STREAM_MEASURES if "print" in measure.places]
    for note, group in groupby(shown, key=lambda measure: measure.note):
        figures = "  ".join(f"{measure.title} {measure.text(result[measure.name])}" for measure in group)
        lines.append(f"{figures}  ({note})" if note else figures)
    if "strategy" in result:
        lines.append("  ".join(f"{measure.title} {measure.text(result[measure.name])}" for measure in ASKED_MEASURES))
    return lines
