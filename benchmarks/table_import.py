"""Import of large tables with two source trees, in turn: ``python -m benchmarks table_import --before PATH``.

PATH holds the ``graphfcl`` package of another commit, as for ``two_trees``. Tables of ``--nodes`` nodes with eight
features and ``--edges`` random edges are written once; each tree imports them in a process of its own.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.timing import report

BAR, MOST_BYTES = 1.0, 2_000_000_000
FEATURES, STEP = 8, 1 << 20
IMPORT = """
import json, resource, sys, time
from graphfcl import import_graph
start = time.perf_counter()
folder = import_graph(sys.argv[1], sys.argv[2], memory="2GB")
used = resource.getrusage(resource.RUSAGE_SELF)
figures = {"seconds": time.perf_counter() - start, "cpu": used.ru_utime + used.ru_stime, "peak": 1024 * used.ru_maxrss}
print(json.dumps({**figures, "edges": folder.edge_count}))
"""


def write_random_tables(folder: Path, nodes: int, edges: int, *, texts: bool, suffix: str) -> None:
    """Tables of nodes in no order and of edges between any of them."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import csv, parquet

    random = np.random.default_rng(0)
    numbers = random.permutation(10 * nodes)[:nodes]
    ids = pa.array([f"node-{number}" for number in numbers.tolist()]) if texts else pa.array(numbers)

    def node_block(start: int, stop: int) -> pa.Table:
        columns = {f"f{place}": random.standard_normal(stop - start, dtype=np.float32) for place in range(FEATURES)}
        return pa.table({"id": ids[start:stop], "label": random.integers(0, 40, stop - start), **columns})

    def edge_block(start: int, stop: int) -> pa.Table:
        ends = [ids.take(pa.array(random.integers(0, nodes, stop - start))) for _ in range(2)]
        return pa.table({"source": ends[0], "target": ends[1]})

    open_writer = csv.CSVWriter if suffix == "csv" else parquet.ParquetWriter
    for stem, count, block in (("nodes", nodes, node_block), ("edges", edges, edge_block)):
        with open_writer(folder / f"{stem}.{suffix}", block(0, 0).schema) as writer:
            for start in range(0, count, STEP):
                writer.write_table(block(start, min(start + STEP, count)))


def figures_of(tree: Path, tables: Path) -> dict[str, float]:
    """What an import takes with one source tree."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-W", "ignore", "-c", IMPORT, str(tables), f"{folder}/out"]
        ran = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if ran.returncode:
        sys.exit(f"{tree}: {ran.stderr}")
    return json.loads(ran.stdout)


def main(options: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks table_import", description=__doc__)
    parser.add_argument("--before", type=Path, help="the folder that holds the other graphfcl package")
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--edges", type=int, default=2_000_000)
    parser.add_argument("--ids", choices=("texts", "numbers"), default="texts")
    parser.add_argument("--suffix", choices=("csv", "parquet"), default="csv")
    chosen = parser.parse_args(options or [])
    trees = {"now": Path(__file__).resolve().parents[1] / "src"}
    if chosen.before is not None:
        trees = {"before": chosen.before.absolute(), **trees}
    with tempfile.TemporaryDirectory() as folder:
        write_random_tables(Path(folder), chosen.nodes, chosen.edges, texts=chosen.ids == "texts", suffix=chosen.suffix)
        figures = {name: figures_of(tree, Path(folder)) for name, tree in trees.items()}
    for name, found in figures.items():
        what = f"import of {chosen.nodes:,} nodes and {chosen.edges:,} edges, {name}"
        report(f"{what}: CPU seconds", found["cpu"], "s", "none", True)
        report(f"{what}: wall seconds", found["seconds"], "s", "none", True)
        report(
            f"{what}: peak memory", found["peak"] / 1e6, "MB", f"≤ {MOST_BYTES / 1e6:.0f}", found["peak"] <= MOST_BYTES
        )
    if "before" in figures:
        ratio = figures["now"]["cpu"] / figures["before"]["cpu"]
        report("import of tables against the other tree, CPU", ratio, "×", f"≤ {BAR}", ratio <= BAR)
