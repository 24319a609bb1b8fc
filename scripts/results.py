"""Compute the results of README and the docs: ``python -m scripts.results [NAME…] [--device cuda --jobs 15]``.

Runs the grids below in ``runs/results``, where each continues if it was interrupted, and puts the seeds that are
complete into ``results/bench``, with a report. Then ``python -m scripts.figures`` writes the tables and pictures of the
docs. Without names all grids run, in this order; with ``--install`` none does. With ``--continue`` a new
``runs/results`` starts with the cells of ``results/bench``, which are then not computed again.
"""

import argparse
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from graphfcl.experiments import Cell, CellStore, Grid, load_grids
from graphfcl.report import dataset_rows, write_dataset_table, write_page

ROOT = Path(__file__).parents[1]
RUNS, RESULTS = ROOT / "runs" / "results", ROOT / "results" / "bench"
FIVE = "debian,wordnet,amazon-clothing-20,cora-topics,coauthor-cs"
TWO = "amazon-clothing-20,cora-topics"
PAPER = "hag-meta,proto-gcn,proto-gat,meta-gnn,gpn,er-gnn,icarl,cec,anchor"  # the paper's Table 2, and ours
GRIDS = {  # name → words after `graphfcl bench`
    "table2": f"table2 --protocol strict --graph {FIVE} --seeds 10",
    "table3": f"table3 --graph {FIVE} --seeds 5",
    "table3-paper": f"table3 --protocol paper --graph {TWO} --seeds 5",
    "shots": f"shots --graph {FIVE} --seeds 5",
    "shots-others": "results/grids/shots-others.toml",
    "table2-paper": f"table2 --protocol paper --graph {FIVE} --methods {PAPER} --seeds 5",
    "tracks": "results/grids/tracks.toml",
    "sweep": f"sweep --graph {TWO} --seeds 5",
    "embed": f"embed --graph {TWO}",
    "forty": "results/grids/anchor-forty.toml",
    "anchor-parts": "results/grids/anchor-parts.toml",
    "active": f"active --graph {FIVE} --seeds 5",
}


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(GRIDS)}")
    parser.add_argument("--install", action="store_true", help="run nothing, install what is complete")
    parser.add_argument(
        "--continue", dest="goes_on", action="store_true", help="do not compute the cells of results/bench again"
    )
    parser.add_argument("--device", default="auto")
    parser.add_argument("--jobs", default="1")
    options = parser.parse_args(words)
    unknown = [name for name in options.names if name not in GRIDS]
    if unknown:
        parser.error(f"there is no grid {unknown[0]!r}: name some of {', '.join(GRIDS)}.")
    if options.goes_on and not RUNS.exists():
        shutil.copytree(RESULTS / "grids", RUNS / "grids")
        CellStore(RUNS).unpack()
    failed = []
    for name in () if options.install else options.names or GRIDS:
        place = ("--device", options.device, "--jobs", options.jobs, "--out", str(RUNS.relative_to(ROOT)))
        command = [sys.executable, "-m", "graphfcl", "bench", *GRIDS[name].split(), *place]
        failed += [name] if subprocess.run(command, cwd=ROOT, check=False).returncode else []
    print(f"installed {install(RUNS, RESULTS)} cells in {RESULTS.relative_to(ROOT)}")
    if failed:
        print(f"cells failed in {', '.join(failed)}: run these grids again.", file=sys.stderr)
    return 1 if failed else 0


def install(runs: Path, results: Path) -> int:
    """Put complete seeds of a folder of runs into a folder of results; the number of cells that it has then.

    Grids of the results that the runs do not have stay. Results are never replaced by fewer.
    """
    store, new, old = CellStore(runs), CellStore(_beside(results, "new")), _beside(results, "old")
    for folder in (new.folder, old):
        shutil.rmtree(folder, ignore_errors=True)
    kept = {grid.name: complete(grid, store) for grid in load_grids(runs)}
    stored = {grid.name: grid for grid in load_grids(results)} if (results / "grids").is_dir() else {}
    for name, grid in stored.items():
        if name in kept and len(kept[name].cells) < len(grid.cells):
            sys.exit(
                f"{results} has {len(grid.cells)} cells of {name}, {runs} only {len(kept[name].cells)}: run it on."
            )
    grids = [*kept.values(), *(grid for name, grid in stored.items() if name not in kept)]
    # Read the graphs first: without their files nothing is written.
    table = dataset_rows(list(dict.fromkeys(cell.dataset for grid in grids for cell in grid.cells)), None)
    (new.folder / "grids").mkdir(parents=True)
    new.cells.mkdir()
    for name in stored.keys() - kept.keys():
        for path in (results / "grids").glob(f"{name}.*"):
            shutil.copy(path, new.folder / "grids")
    for grid in kept.values():
        if grid.cells:
            grid.save(new.folder)
            for cell in grid.cells:
                shutil.copy(store.path(cell), new.path(cell))
    new.pack()
    write_dataset_table(table, new.folder)
    write_page(new.folder)
    for unneeded in (new.cells, new.notes):
        shutil.rmtree(unneeded)
    if results.exists():
        results.rename(old)
    new.folder.rename(results)
    shutil.rmtree(old, ignore_errors=True)
    return sum(len(grid.cells) for grid in grids)


def complete(grid: Grid, store: CellStore) -> Grid:
    """The cells of seeds that all methods have on a graph under the same rules."""

    def place(cell: Cell) -> str:
        return f"{cell.dataset} {cell.seed} {sorted(cell.rules.items())}"

    left = {place(cell) for cell in grid.cells if not store.done(cell)}
    return replace(grid, cells=tuple(cell for cell in grid.cells if place(cell) not in left))


def _beside(folder: Path, word: str) -> Path:
    return folder.with_name(f"{folder.name}.{word}")


if __name__ == "__main__":
    sys.exit(main())
