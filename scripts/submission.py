"""Make and check a submission to the benchmark: the test nodes of each class that a method got right in each session.

``python -m scripts.submission make runs/mine --method mine --out mine.csv`` makes one from a grid;
``python -m scripts.submission check mine.csv`` checks one, whatever code it comes from, and prints its figures.

A submission is a CSV file with the columns ``graph``, ``seed``, ``stream`` (its hash), ``session``, ``class``,
``tested`` and ``correct``: for every stream that it covers, each session and each class seen so far, in any order.
"""

import argparse
import csv
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from graphfcl.datasets import data_folder, find_dataset
from graphfcl.errors import InputError
from graphfcl.experiments import CellStore, load_grids
from graphfcl.experiments.benchmark import GRAPHS, SEEDS, benchmark_hashes, benchmark_streams
from graphfcl.metrics import summarise_seeds
from graphfcl.stream import Stream

COLUMNS = ("graph", "seed", "stream", "session", "class", "tested", "correct")
Counts = Mapping[tuple[int, str], tuple[int, int]]  # by session and class: test nodes, and those answered correctly


def make(folder: Path, method: str) -> Iterator[tuple[object, ...]]:
    """The rows of a submission: a method's finished cells on streams of the benchmark, in a folder of grids."""
    store, hashes = CellStore(folder), benchmark_hashes()["streams"]
    cells = {cell.key: cell for grid in load_grids(folder) for cell in grid.cells if cell.row == method}
    for cell in cells.values():
        result = store.read(cell)
        if result is None or result["stream"] not in hashes.get(cell.dataset, []):
            continue
        for session, rows in enumerate(result["confusion_matrices"]):
            for place, (name, row) in enumerate(zip(result["classes"], rows, strict=False)):
                yield cell.dataset, cell.seed, result["stream"], session, name, sum(row), row[place]


def read(path: Path) -> dict[tuple[str, int], Counts]:
    """The counts of a submission by graph and seed; an error names the line that is wrong."""
    hashes = benchmark_hashes()["streams"]
    found: dict[tuple[str, int], dict[tuple[int, str], tuple[int, int]]] = defaultdict(dict)
    with open(path, newline="", encoding="utf-8") as file:
        lines = csv.DictReader(file)
        if tuple(lines.fieldnames or ()) != COLUMNS:
            raise InputError(f"{path}: the columns must be {', '.join(COLUMNS)}.")
        for line in lines:
            where, graph = f"{path}, line {lines.line_num}", line["graph"]
            try:
                seed, session, tested, correct = (int(line[key]) for key in ("seed", "session", "tested", "correct"))
            except (TypeError, ValueError):
                raise InputError(f"{where}: seed, session, tested and correct must be whole numbers.") from None
            if graph not in GRAPHS or not 0 <= seed < SEEDS:
                raise InputError(f"{where}: {graph!r} with seed {seed} is not part of the benchmark.")
            if line["stream"] != hashes[graph][seed]:
                raise InputError(f"{where}: this is not the hash of the stream of {graph} with seed {seed}.")
            if not 0 <= correct <= tested:
                raise InputError(f"{where}: {correct} of {tested} nodes cannot be correct.")
            if (session, line["class"]) in found[graph, seed]:
                raise InputError(f"{where}: class {line['class']!r} stands twice in session {session}.")
            found[graph, seed][session, line["class"]] = tested, correct
    if not found:
        raise InputError(f"{path} has no rows.")
    return dict(found)


def compare(counts: Counts, stream: Stream, where: str) -> None:
    """Every session has the classes seen so far, each with all of its test nodes."""
    expected: dict[tuple[int, str], int] = {}
    for session in range(len(stream) + 1):
        numbers = np.bincount(stream.queries(session).labels, minlength=stream.classes_seen(session))
        expected |= {(session, stream.classes[column]): int(number) for column, number in enumerate(numbers)}
    for session, name in sorted(expected.keys() ^ counts.keys()):
        what = "is missing" if (session, name) in expected else "has not arrived yet or is unknown"
        raise InputError(f"{where}, session {session}: class {name!r} {what}.")
    for (session, name), number in expected.items():
        tested, _ = counts[session, name]
        if tested != number:
            raise InputError(f"{where}, session {session}: {number} test nodes are of class {name!r}, not {tested}.")


def balanced_accuracies(counts: Counts) -> np.ndarray:
    """Mean recall over the classes of each session."""
    recalls = defaultdict(list)
    for (session, _), (tested, correct) in sorted(counts.items()):
        recalls[session].append(correct / tested)
    return np.array([np.mean(recalls[session]) for session in sorted(recalls)])


def check(path: Path, data_dir: Path | None) -> Iterator[str]:
    """A line for each graph of a submission: its figures, and against what they were checked."""
    submitted = read(path)
    for graph in GRAPHS:
        by_seed = {seed: counts for (name, seed), counts in sorted(submitted.items()) if name == graph}
        if not by_seed:
            continue
        there = not find_dataset(graph)[0].missing_files(data_folder(data_dir))
        for stream in benchmark_streams(graph, data_dir) if there else ():
            if stream.seed in by_seed:
                compare(by_seed[stream.seed], stream, f"{path}: {graph}, seed {stream.seed}")
        figures = [balanced_accuracies(counts) for counts in by_seed.values()]
        last, average = (_interval([choose(each) for each in figures]) for choose in (lambda x: x[-1], np.mean))
        checked = "checked against the streams" if there else "its files are not here: only the hashes were checked"
        missing = sorted(set(range(SEEDS)) - by_seed.keys())
        seeds = f"seeds {', '.join(map(str, missing))} are missing" if missing else f"all {SEEDS} seeds"
        yield f"{graph}: last session {last}, average {average}; {seeds}; {checked}."


def _interval(values: list[float]) -> str:
    summary = summarise_seeds(100 * np.array(values))
    return f"{summary.mean:.1f}" + (f" ± {summary.interval:.1f}" if summary.interval is not None else "") + " %"


def main(words: list[str] | None = None) -> int:
    """Carry out the command line; 2 if something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    making = verbs.add_parser("make", help="make a submission from a folder of grids")
    making.add_argument("folder", type=Path)
    making.add_argument("--method", required=True)
    making.add_argument("--out", type=Path, required=True)
    checking = verbs.add_parser("check", help="check a submission and print its figures")
    checking.add_argument("file", type=Path)
    checking.add_argument("--data-dir", type=Path, help="where the files of graphs are that are not shipped")
    given = parser.parse_args(words)
    try:
        if given.verb == "check":
            for line in check(given.file, given.data_dir):
                print(line)
            return 0
        rows = list(make(given.folder, given.method))
        if not rows:
            raise InputError(f"{given.folder} has no finished cell of {given.method} on a stream of the benchmark.")
        with open(given.out, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([COLUMNS, *rows])
        print(f"Wrote {given.out}: {len({row[:2] for row in rows})} streams.")
    except (InputError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
