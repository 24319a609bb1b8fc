"""``graphfcl bench`` and ``graphfcl report``."""

import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import graphfcl.cli.options as opts
import graphfcl.datasets as datasets
import graphfcl.experiments as experiments
import graphfcl.methods as methods
import graphfcl.report as report
from graphfcl.cli.completion import choices, graph_names, listed, method_names
from graphfcl.cli.options import argument, option
from graphfcl.cli.output import Output, print_line, print_table, with_json
from graphfcl.defaults import ACTIVE_METHODS
from graphfcl.errors import InputError, did_you_mean
from graphfcl.runtime.cores import usable_cores

KINDS = choices("table1", "table2", "table3", "sweep", "shots", "embed", "active")
UNUSED = {"table3": ("--methods", "--method"), "embed": ("--seeds",), "active": ("--protocol", "--track")}
FAILURES_SHOWN = 3
SECONDS_BETWEEN_LINES = 30.0  # of progress without a terminal, at most


def names(text: str, complete: Callable[[str], list[str]]) -> Any:
    """An option that takes names separated by commas."""
    return option(text, listed(complete), metavar="NAMES")


@dataclass(frozen=True)
class GridOptions(opts.OptionGroup):
    """Which cells to run; None for an option that was left out."""

    panel: ClassVar[str] = "Grid"
    graph: Annotated[
        list[str] | None,
        names(
            "Graphs, separated by commas; repeatable (default: debian; for shots and active, the benchmark's five).",
            graph_names,
        ),
    ] = None
    methods: Annotated[str | None, names("Methods, separated by commas (default: all).", method_names)] = None
    method: Annotated[
        list[str] | None, option("Add a method of your own; a TOML file can then use its name.", metavar="MODULE:CLASS")
    ] = None
    strategies: Annotated[str | None, option("For active: strategies, separated by commas (default: all).")] = None
    seeds: Annotated[
        int | None, option("Number of seeds, counted from 0 (default: 10; for shots and active, 5).", min=1)
    ] = None
    protocol: Annotated[
        str | None, option("Evaluation protocol: strict or paper (default: strict; for table2, both).", opts.PROTOCOLS)
    ] = None
    track: opts.TrackOption = None
    way: Annotated[
        str | None, option("New classes per session (N); for sweep a list such as 1,2,3 (default: set by the graph).")
    ] = None
    shot: Annotated[
        str | None,
        option(
            "Labels per new class (K); for sweep and shots a list such as 1,5 or 1,5,all (default: set by the graph)."
        ),
    ] = None
    sessions: Annotated[int | None, option("Number of sessions (T) (default: all; for embed, 2).")] = None
    standardise: opts.StandardiseOption = None

    def graphs(self) -> list[str]:
        """The graphs that the user named."""
        return [name for text in self.graph or () for name in _listed(text)]

    def rules(self, *, with_protocol: bool = False) -> dict[str, Any]:
        """The rules that all cells share."""
        named = {"track": self.track, "sessions": self.sessions, "standardise": self.standardise}
        named["name"] = self.protocol if with_protocol else None
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True)
class WorkOptions:
    """Where cells run, with how many processes, and where results are written."""

    panel: ClassVar[str] = "Resources"
    device: opts.Device = "auto"
    jobs: Annotated[int | None, option("Number of cells to run at once (default: 1; 8 on a GPU).", min=1)] = None
    threads: Annotated[int | None, option("Threads per process (default: usable cores divided by --jobs).", min=1)] = (
        None
    )
    gpus_per_job: Annotated[
        float, option("With --backend ray: GPUs per job; with 0.25, four jobs share one.", min=0.0)
    ] = 1.0
    out: Annotated[Path, option("Folder for results; it can hold several grids.")] = Path("runs/bench")
    retry_failed: Annotated[bool, option("Run failed cells again.", flag="--retry-failed")] = False
    data_dir: opts.DataDir = None


@with_json
def bench(
    what: Annotated[
        str, argument("What to run: table1, table2, table3, sweep, shots, embed, active, or a TOML file.", KINDS)
    ],
    options: GridOptions,
    work: WorkOptions,
    engine: opts.BackendOptions,
) -> Output:
    """Run the paper's evaluation or a grid of your own.

    The same command continues an interrupted grid.
    """
    _refuse_unused(what, options.used_flags())
    opts.refuse_file(work.out, "--out")
    if what == "table1":
        return _table1(options.graphs(), work.data_dir, work.out)
    tasks = engine.tasks(work.jobs or 1, folder=work.out / "state" / "submitit")
    grid = replace(_grid(what, options), command=shlex.join(["graphfcl", *sys.argv[1:]]))
    folder = datasets.data_folder(work.data_dir)
    graphs = _check(grid, folder)
    here = tasks.backend == "local"
    on = opts.usable_device(work.device) if here or work.device == "auto" else work.device
    count = work.jobs or (min(8, usable_cores()) if on.startswith("cuda") and here else 1)
    place = on if here else f"{on} of {tasks.backend}"
    print(f"{grid.name}: {len(grid.cells)} cells, {count} at a time on {place}, in {work.out}")
    display = GridDisplay(len(grid.cells))
    with display.bars:
        status = experiments.run_grid(
            grid,
            work.out,
            jobs=count,
            device=on,
            data_dir=folder,
            watch=display.show,
            retry_failed=work.retry_failed,
            graphs=graphs,
            threads=work.threads,
            tasks=replace(tasks, gpus=work.gpus_per_job if on.startswith("cuda") else 0),
        )
    print_line(f"{status.done} cells done, {status.failed} failed.")
    failures = _failures(grid, work.out) if status.failed else []
    counts = {"grid": grid.name, "cells": len(grid.cells), "done": status.done, "failed": status.failed}
    written = _report(work.out)
    values = {**counts, "failures": failures, "folder": str(work.out), **written.values}
    return replace(written, values=values, code=1 if status.failed else 0)


def _failures(grid: "experiments.Grid", out: Path) -> list[dict[str, str]]:
    """Collect the cells that failed and their errors, and print the first of them."""
    store = experiments.CellStore(out)
    errors = ((cell, store.error(cell)) for cell in grid.cells)
    failures = [{"cell": _title(cell), "error": error} for cell, error in errors if error is not None]
    for failure in failures[:FAILURES_SHOWN]:
        print_line(f"failed: {failure['cell']}: {failure['error']}")
    further = f"All {len(failures)} are in the report. " if len(failures) > FAILURES_SHOWN else ""
    print_line(f"{further}Fix the cause, then run failed cells again with --retry-failed.")
    return failures


def _title(cell: Any) -> str:
    return f"{cell.dataset} {cell.row} seed {cell.seed}"


@with_json
def write_report(
    folder: Annotated[Path, argument("Folder written by `bench --out`.")],
    out: Annotated[Path | None, option("Folder for the report (default: the folder of the results).")] = None,
    against: Annotated[
        Path | None, option("Other folder of results: compare with it instead of writing a report.")
    ] = None,
) -> Output:
    """Write a report of results, or compare two folders of results.

    The report is report.html (one self-contained page), tables.md and tables.tex.
    """
    if against is None:
        return _report(folder, out)
    if out is not None:
        raise InputError("--against prints a comparison and writes no file: leave --out out.")
    differences = report.folder_differences(against, folder)
    table = differences.table()

    def show() -> None:
        print_line(table.title)
        if table.rows:
            print_table(table.columns, table.rows, numbers=table.columns[3:8])
        else:
            print_line("No row differs.")
        for note in table.notes:
            print_line(note)

    rows = [row.values() for row in differences.rows]
    return Output({"code": differences.code, "machine": differences.machine, "rows": rows}, show)


def _report(folder: Path, out: Path | None = None) -> Output:
    opts.refuse_file(out, "--out")
    files = [str(path) for path in report.write_page(folder, out)]

    def show() -> None:
        for path in files:
            print_line(f"Wrote {path}.")

    return Output({"files": files}, show)


def _refuse_unused(what: str, flags: list[str]) -> None:
    """Refuse an option that a benchmark does not use."""
    described = [flag for flag in flags if flag != "--method"]
    if what.endswith(".toml") and described:
        raise InputError(f"a TOML file describes its whole grid: leave {described[0]} out.")
    unused = [flag for flag in flags if flag in UNUSED.get(what, ()) or (what == "table1" and flag != "--graph")]
    unused += ["--strategies"] if "--strategies" in flags and what != "active" else []
    if unused:
        raise InputError(f"{what} does not use {unused[0]}: leave it out.")


def _listed(text: str | None) -> list[str]:
    """Split names at commas, except at those inside the options of a dataset (name:a=1,b=2)."""
    names: list[str] = []
    for part in (text or "").split(","):
        if names and ":" in names[-1] and "=" in part and ":" not in part:
            names[-1] += f",{part}"
        elif part.strip():
            names.append(part.strip())
    return names


def _numbers(text: str | None, option: str) -> list[int]:
    try:
        return [int(part) for part in (text or "").split(",") if part.strip()]
    except ValueError as error:
        raise InputError(
            f"{option} is {text!r}: give a number, or for sweep and shots several, such as 1,2,5."
        ) from error


def _grid(what: str, options: GridOptions) -> "experiments.Grid":
    """Build the grid of a benchmark from the options."""
    from graphfcl.experiments import grid_file, paper_grids

    own = [methods.method_from(name).name for name in options.method or []]
    if what.endswith(".toml"):
        grid = grid_file.grid_from_toml(Path(what))
        unnamed = [name for name in own if name not in {cell.method for cell in grid.cells}]
        if unnamed:
            raise InputError(f"{what} does not name {unnamed[0]!r}: add it to `methods`, or leave --method out.")
        return grid
    graphs = options.graphs() or ["debian"]
    named = [methods.method_from(name).name for name in _listed(options.methods)]
    seeds = options.seeds or 10
    every = [paper_grids.ALL] if what == "shots" and paper_grids.ALL in _listed(options.shot) else []
    numbers = ",".join(text for text in _listed(options.shot) if text not in every)
    ways, shots = _numbers(options.way, "--way"), _numbers(numbers, "--shot")
    if what == "sweep":
        ways, shots = ways or list(paper_grids.SWEPT_WAYS), shots or list(paper_grids.SWEPT_SHOTS)
        rules = options.rules(with_protocol=True)
        return paper_grids.sweep(graphs, _joined(named or paper_grids.COMPARED, own), seeds, rules, ways, shots)
    if what == "shots" and len(ways) < 2:
        rules = options.rules(with_protocol=True) | ({"way": ways[0]} if ways else {})
        named = _joined(named or (paper_grids.SHOTS_METHODS if own else ()), own)
        return paper_grids.shots(options.graphs(), named, options.seeds, rules, [*shots, *every])
    if len(ways) > 1 or len(shots) > 1:
        raise InputError("only sweep takes several values of --way or --shot: give one, or run `graphfcl bench sweep`.")
    counts = {name: values[0] for name, values in (("way", ways), ("shot", shots)) if values}
    rules = {**options.rules(with_protocol=what == "embed"), **counts}
    if what == "table2":
        protocols = [options.protocol] if options.protocol else ["strict", "paper"]
        rows = _joined(named or paper_grids.all_methods(), own)
        forms = {} if named else paper_grids.OTHER_FORMS
        return paper_grids.table2(graphs, rows, seeds, protocols, rules, forms)
    if what == "table3":
        return paper_grids.table3(graphs, seeds, [options.protocol or "strict"], rules)
    if what == "embed":
        return paper_grids.embed(graphs, _joined(named or paper_grids.COMPARED, own), rules)
    if what == "active":
        strategies = [opts.strategy_name(name, f"--strategies {name}") for name in _listed(options.strategies)]
        named = _joined(named or (ACTIVE_METHODS if own else ()), own)
        return paper_grids.active(options.graphs(), named, strategies, options.seeds, rules)
    kinds = paper_grids.KINDS
    hint = did_you_mean(what, kinds, f"there are {', '.join(kinds)}; the name of a grid file ends in .toml.")
    raise InputError(f"there is no benchmark {what!r}: {hint}")


def _joined(first: Iterable[str], second: Iterable[str]) -> list[str]:
    """Concatenate names without repetitions."""
    return list(dict.fromkeys([*first, *second]))


def _check(grid: "experiments.Grid", data_dir: Path | None) -> dict[str, str]:
    """Draw a stream for every dataset and rules before anything runs; return the SHA-256 of each dataset's graph."""
    from graphfcl.experiments.cells import cell_stream

    different: dict[tuple[str, str], Any] = {}
    for cell in grid.cells:
        if cell.seed == grid.cells[0].seed:
            different.setdefault((cell.dataset, str(sorted(cell.rules.items()))), cell)
    with warnings.catch_warnings(record=True) as caught:
        graphs = {cell.dataset: cell_stream(cell, data_dir).graph.sha256 for cell in different.values()}
    for note in {str(each.message): each.message for each in caught}.values():  # several rules may give the same note
        warnings.warn(note, stacklevel=2)
    return graphs


def _table1(names: list[str], data_dir: Path | None, out: Path) -> Output:
    """List the available datasets with their counts and splits, and write the table."""
    from graphfcl.report.table1 import DATASET_COLUMNS, dataset_rows, write_dataset_table

    rows = dataset_rows(names, data_dir)
    path = write_dataset_table(rows, out)

    def show() -> None:
        print_table(DATASET_COLUMNS, rows, numbers=DATASET_COLUMNS[1:])
        print_line(f"Wrote {path}.")

    listed = [dict(zip(DATASET_COLUMNS, row, strict=True)) for row in rows]
    return Output({"graphs": listed, "files": [str(path)]}, show)


class GridDisplay:
    """A live line with the numbers of finished, running and failed cells and the remaining time.

    Without a terminal, it prints a line for every tenth of the grid, and at least one every ``every`` seconds.
    """

    def __init__(self, total: int, every: float = SECONDS_BETWEEN_LINES) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bars

        self.terminal, self.total, self.tenths = sys.stderr.isatty(), total, 0
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

    def show(self, status: "experiments.GridStatus") -> None:
        left = "" if status.seconds_left is None else f", about {_duration(status.seconds_left)} left"
        running = ", ".join(_title(cell) for cell in list(status.running.values())[:3])
        more = len(status.running) - 3
        running += f" and {more} more" if more > 0 else ""
        figures = f"failed {status.failed}, running {len(status.running)}{f' ({running})' if running else ''}{left}"
        finished = status.done + status.failed
        self.bars.update(self.task, completed=finished, figures=figures)
        overdue = time.monotonic() - self.printed >= self.every
        if not self.terminal and (overdue or finished * 10 // self.total > self.tenths):
            self.tenths, self.printed = finished * 10 // self.total, time.monotonic()
            print(f"{status.done} of {status.total} done, {figures}", file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
