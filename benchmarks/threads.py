"""A grid of ANCHOR on wide sparse features, with the usable cores shared among processes and with all for each."""

import tempfile
import time
from pathlib import Path
from statistics import mean

from benchmarks.timing import report
from graphfcl.datasets.synthetic import SyntheticSettings, make_synthetic
from graphfcl.experiments import Cell, CellStore, Grid, run_grid
from graphfcl.graph import write_npz
from graphfcl.runtime.cores import usable_cores

# about 650 of 4,973 words in each row
WIDE = SyntheticSettings(nodes=2_405, edges=12_000, features=4_973, classes=19, words=760, signal=0.1)
FEWEST, MOST = 2, 14  # cells at a time
# Nothing to choose, few sessions and a narrow basis, which numpy's BLAS still computes.
SHORT = {"rank": 256, "hop_weight": 2.0, "hops": 2, "smoothing": 0.7, "smoothing_steps": 3, "links": 0.0}


def run(graph: Path, folder: Path, jobs: int, threads: int | None) -> tuple[float, float]:
    """Seconds of a grid with one cell for each process, and of a cell in it."""
    grid = Grid("wide", "grid", tuple(_cell(graph, seed) for seed in range(jobs)))
    start = time.perf_counter()
    status = run_grid(grid, folder, jobs=jobs, threads=threads)
    seconds = time.perf_counter() - start
    store = CellStore(folder)
    results = [store.read(cell) for cell in grid.cells]
    assert status.done == jobs, [store.error(cell) for cell in grid.cells]
    return seconds, mean(result["total_seconds"] for result in results if result is not None)


def _cell(graph: Path, seed: int) -> Cell:
    return Cell(str(graph), "anchor", seed, rules={"sessions": 2}, settings=SHORT)


def main() -> None:
    cores = usable_cores()
    jobs = min(MOST, max(FEWEST, cores))
    with tempfile.TemporaryDirectory() as folder:
        graph = Path(folder) / "wide.npz"
        write_npz(make_synthetic(WIDE), graph)
        shared, shared_cell = run(graph, Path(folder) / "shared", jobs, None)
        report(f"anchor, {jobs} cells at a time on {cores} cores that they share", shared, "s", "-", True)
        report("  a cell of it", shared_cell, "s", "-", True)
        whole, whole_cell = run(graph, Path(folder) / "whole", jobs, cores)
        report(f"the same with {cores} threads in each process", whole, "s", "-", True)
        report("  a cell of it", whole_cell, "s", "-", True)
    report("all cores for each / cores shared", whole / shared, "x", "> 0.9", whole / shared > 0.9)
