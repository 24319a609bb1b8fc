"""Compute the results of README and the docs: ``python -m scripts.results [NAME…] [--device cuda --jobs 15]``.

Runs the grids below in ``runs/results``, where each continues if it was interrupted, and installs in ``results/bench``
what is complete so far, with its report. Then ``python -m scripts.figures`` writes the tables and pictures of the docs.
Without names all grids run, in this order; with ``--install`` none does.
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
    "table2-paper": f"table2 --protocol paper --graph {FIVE} --methods {PAPER} --seeds 5",
    "tracks": "results/grids/tracks.toml",
    "sweep": f"sweep --graph {TWO} --seeds 3",
    "embed": f"embed --graph {TWO}",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(GRIDS)}")
    parser.add_argument("--install", action="store_true", help="run nothing, install what is complete")
    options, of_bench = parser.parse_known_args()
    unknown = [name for name in options.names if name not in GRIDS]
    if unknown:
        parser.error(f"there is no grid {unknown[0]!r}: name some of {', '.join(GRIDS)}.")
    for name in () if options.install else options.names or GRIDS:
        words = [*GRIDS[name].split(), *of_bench, "--out", str(RUNS.relative_to(ROOT))]
        subprocess.run([sys.executable, "-m", "graphfcl", "bench", *words], cwd=ROOT, check=True)
    print(f"installed {install(RUNS, RESULTS)} cells in {RESULTS.relative_to(ROOT)}")


def install(runs: Path, results: Path) -> int:
    """Replace a folder of results by the cells of complete seeds, packed, with a report; how many cells it has."""
    store, new = CellStore(runs), CellStore(results.with_name(f"{results.name}.new"))
    shutil.rmtree(new.folder, ignore_errors=True)
    new.cells.mkdir(parents=True)
    kept = [grid for grid in (complete(each, store) for each in load_grids(runs)) if grid.cells]
    for grid in kept:
        grid.save(new.folder)
        for cell in grid.cells:
            shutil.copy(store.path(cell), new.path(cell))
    new.pack()
    datasets = dict.fromkeys(cell.dataset for grid in kept for cell in grid.cells)
    write_dataset_table(dataset_rows(list(datasets), None), new.folder)
    write_page(new.folder)
    new.cells.rmdir()
    shutil.rmtree(results, ignore_errors=True)
    new.folder.rename(results)
    return sum(len(grid.cells) for grid in kept)


def complete(grid: Grid, store: CellStore) -> Grid:
    """The cells of seeds that all methods have on a graph under the same rules."""

    def place(cell: Cell) -> str:
        return f"{cell.dataset} {cell.seed} {sorted(cell.rules.items())}"

    left = {place(cell) for cell in grid.cells if not store.done(cell)}
    return replace(grid, cells=tuple(cell for cell in grid.cells if place(cell) not in left))


if __name__ == "__main__":
    main()
