"""A graph on the disk against the same graph in memory: two hops of 128 columns.

``GRAPHFCL_LARGE`` names a graph folder (for the docs: 2,000,000 nodes and 20,000,000 edges); without it a
synthetic graph of ``GRAPHFCL_LARGE_NODES`` nodes (200,000) and ten times as many edges is made. Each way runs in a
process of its own, on one thread, and tells its CPU seconds and its peak memory.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.timing import report

COLUMNS = 128
MEMORY = 2_000_000_000


def peak() -> int:
    """Bytes that this process has had in memory at most."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def on_disk(folder: Path, work: Path) -> dict[str, float]:
    """XB is there; what counts are the hops, with all reading and writing."""
    import torch

    from graphfcl.graph.folder import GraphFolder
    from graphfcl.graph.folder.visible import VisibleFolder
    from graphfcl.methods.blocks.folder_tables import FolderTables
    from graphfcl.runtime.resources import Resources

    visible = VisibleFolder.of(GraphFolder.open(folder).rows, None, None, Resources(work, MEMORY))
    inputs = FolderTables(visible, 0, unit=True)
    basis = torch.randn(inputs.feature_count, COLUMNS, generator=torch.Generator().manual_seed(0))
    own = inputs.own(basis)
    own.readable()
    _ = inputs.by_row.scales
    (around,) = inputs.hops(own, (2,))
    around.remove()
    start, processor = time.perf_counter(), time.process_time()
    around.readable()
    return {"cpu": time.process_time() - processor, "seconds": time.perf_counter() - start, "peak": peak()}


def in_memory(folder: Path, work: Path) -> dict[str, float]:
    """The same product as methods in memory compute it."""
    import numpy as np
    import torch
    from scipy import sparse

    from graphfcl.graph import VisibleGraph
    from graphfcl.graph.folder import GraphFolder
    from graphfcl.nn import GraphInputs

    _ = work
    opened = GraphFolder.open(folder)
    count = opened.node_count
    part = opened.neighbours(0, count)
    ones = np.ones(part.indices.size, dtype=np.float32)
    adjacency = sparse.csr_array((ones, part.indices, part.indptr), shape=(count, count))
    del part
    visible = VisibleGraph(np.arange(count), adjacency, np.zeros((count, 1), dtype=np.float32))
    inputs = GraphInputs(visible, torch.device("cpu"))
    _ = inputs.adjacency.tensor
    values = torch.randn(count, COLUMNS, generator=torch.Generator().manual_seed(0))
    start, processor = time.perf_counter(), time.process_time()
    _ = inputs.adjacency @ (inputs.adjacency @ values)
    return {"cpu": time.process_time() - processor, "seconds": time.perf_counter() - start, "peak": peak()}


def measured(name: str, folder: Path, work: Path) -> dict[str, float]:
    """One way in a process of its own, on one thread."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "benchmarks.large", name, str(folder), str(work)]
    found = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return json.loads(found.stdout)


def folder_to_use(place: Path) -> Path:
    """The folder that was named, or one that is made."""
    named = os.environ.get("GRAPHFCL_LARGE")
    if named:
        return Path(named)
    from graphfcl.datasets.importing import import_graph

    nodes = int(os.environ.get("GRAPHFCL_LARGE_NODES", "200000"))
    import_graph(f"synthetic:nodes={nodes},edges={10 * nodes},features=64,classes=20", place / "graph")
    return place / "graph"


def main() -> None:
    with tempfile.TemporaryDirectory(dir=os.environ.get("GRAPHFCL_LARGE_WORK")) as place:
        folder = folder_to_use(Path(place))
        there = measured("on_disk", folder, Path(place) / "work")
        here = measured("in_memory", folder, Path(place) / "work")
    report("hops in memory, CPU", here["cpu"], "s", "-", True)
    report("hops on disk, CPU", there["cpu"], "s", "-", True)
    report("hops on disk, wall clock", there["seconds"], "s", "-", True)
    report("hops in memory, peak memory", here["peak"] / 1e9, "GB", "-", True)
    ratio, memory = here["cpu"] / there["cpu"], there["peak"] / 1e9
    report("speed of hops on disk / in memory", ratio, "x", ">= 0.8", ratio >= 0.8)
    report("hops on disk, peak memory", memory, "GB", "< 2", memory < 2)


if __name__ == "__main__":
    ways = {"on_disk": on_disk, "in_memory": in_memory}
    print(json.dumps(ways[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))))
