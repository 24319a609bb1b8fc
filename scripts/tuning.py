"""Settings that are chosen once for each method, for all graphs: try their candidates on the development graphs.

``python -m scripts.tuning run FOLDER GRAPH … [--device cuda] [--jobs N] [--study NAME]`` runs the cells that FOLDER
does not have. ``python -m scripts.tuning write FOLDER GRAPH …`` writes ``results/tuning.csv`` from them, one row a run,
and prints what the rule chooses. A GRAPH is the name of a dataset or an ``.npz`` file; no table may report it.

The rule is the same for all methods and studies: the candidate with the largest balanced accuracy, averaged over
sessions, then seeds, then graphs; of equal ones the first. ``tests/scripts/test_tuning.py`` compares the defaults of
the methods with what it chooses.
"""

import argparse
import csv
import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.experiments import Cell, CellStore, Grid, run_grid

SEEDS = 3
TUNING = Path(__file__).parents[1] / "results" / "tuning.csv"
COLUMNS = ("study", "method", "candidate", "graph", "seed", "average", "last", "seconds")
Candidate = dict[str, Any]

WIDTHS: tuple[Candidate, ...] = ({"hidden": 32, "size": 16}, {"hidden": 64, "size": 64}, {"hidden": 256, "size": 128})
ENCODERS = (
    *("hag-meta", "proto-gcn", "proto-gat", "meta-gnn", "gpn", "er-gnn", "icarl", "cec", "finetune"),
    *("tap", "geometer", "mecoin", "lpmc", "anchor"),
)
RANKS: tuple[Candidate, ...] = ({"rank": 128}, {"rank": 512}, {"rank": 1024})
CLOSED_FORMS = ("sgc-ridge", "ranpac", "teen", "tem")  # FeCAM has a matrix for each class, at most 128 wide
PROJECTIONS: tuple[Candidate, ...] = tuple({"width": width, "rank": 1024} for width in (2000, 5000, 10000))
SMOOTHINGS: tuple[Candidate, ...] = tuple(
    {"validation_window": window, "validation_draws": draws}
    for window, draws in ((1, 10), (3, 10), (5, 10), (10, 10), (5, 3))
)
STUDIES: dict[str, dict[str, tuple[Candidate, ...]]] = {
    "width": dict.fromkeys(ENCODERS, WIDTHS),
    "rank": dict.fromkeys(CLOSED_FORMS, RANKS),
    "projection": {"ranpac": PROJECTIONS},
    "smoothing": {"hag-meta": SMOOTHINGS},
}


@dataclass(frozen=True)
class Trial:
    """One candidate of a method in a study, with its mean over graphs of the mean over seeds, in %."""

    study: str
    method: str
    candidate: Candidate
    accuracy: float
    runs: int
    hours: float


def grid_of(study: str, graphs: Iterable[str]) -> Grid:
    """Every candidate of every method on every graph; whole seeds come first."""
    trials = [(method, candidate) for method, candidates in STUDIES[study].items() for candidate in candidates]
    cells = [
        Cell(graph, method, seed, variant=f"{method}, {name_of(candidate)}", settings=candidate)
        for seed, (method, candidate), graph in product(range(SEEDS), trials, graphs)
    ]
    return Grid(f"tuning-{study}", "grid", tuple(cells))


def name_of(candidate: Candidate) -> str:
    return json.dumps(candidate, separators=(",", ":"))


def rows_of(folder: Path, study: str, graphs: Iterable[str]) -> list[dict[str, Any]]:
    """The runs of a study that are done."""
    store, rows = CellStore(folder), []
    for cell in grid_of(study, graphs).cells:
        result = store.read(cell) if store.done(cell) else None
        if result is None:
            continue
        accuracies = [session["balanced_accuracy"] for session in result["sessions"]]
        values = (
            *(study, cell.method, name_of(cell.settings), Path(cell.dataset).stem.replace("_", "-"), cell.seed),
            *(f"{100 * np.mean(accuracies):.3f}", f"{100 * accuracies[-1]:.3f}", f"{result['total_seconds']:.1f}"),
        )
        rows.append(dict(zip(COLUMNS, values, strict=True)))
    return rows


def read_trials(path: Path = TUNING) -> list[Trial]:
    """What ``results/tuning.csv`` says of each candidate, in the order of the studies."""
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    trials = []
    for study, methods in STUDIES.items():
        for method, candidate in ((method, each) for method, candidates in methods.items() for each in candidates):
            key = (study, method, name_of(candidate))
            runs = [row for row in rows if (row["study"], row["method"], row["candidate"]) == key]
            graphs = sorted({row["graph"] for row in runs})
            means = [np.mean([float(row["average"]) for row in runs if row["graph"] == graph]) for graph in graphs]
            hours = sum(float(row["seconds"]) for row in runs) / 3600
            trials.append(Trial(study, method, candidate, float(np.mean(means)), len(runs), hours))
    return trials


def chosen(trials: Iterable[Trial]) -> dict[tuple[str, str], Candidate]:
    """By study and method, the candidate with the best accuracy; of equal ones the first."""
    best: dict[tuple[str, str], Trial] = {}
    for trial in trials:
        place = (trial.study, trial.method)
        if place not in best or trial.accuracy > best[place].accuracy:
            best[place] = trial
    return {place: trial.candidate for place, trial in best.items()}


def write(folder: Path, graphs: list[str]) -> None:
    rows = [row for study in STUDIES for row in rows_of(folder, study, graphs)]
    with open(TUNING, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    trials = read_trials()
    best = chosen(trials)
    for trial in trials:
        mark = "*" if best[trial.study, trial.method] == trial.candidate else " "
        runs = f"{trial.runs} runs, {trial.hours:.2f} h"
        print(f"{mark} {trial.study:10} {trial.method:10} {trial.accuracy:6.2f} {name_of(trial.candidate)} ({runs})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("run", "write"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("graphs", nargs="+", metavar="GRAPH")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--study", choices=tuple(STUDIES), action="append")
    options = parser.parse_args()
    if options.action == "write":
        write(options.folder, options.graphs)
        return
    for study in options.study or STUDIES:
        grid = grid_of(study, options.graphs)
        status = run_grid(grid, options.folder, jobs=options.jobs, device=options.device)
        print(f"{study}: {status.done} of {status.total} done, {status.failed} failed", flush=True)


if __name__ == "__main__":
    main()
