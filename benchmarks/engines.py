"""Tasks on Ray with two workers against one process: CPU seconds inside tasks, and whether the files are the same.

A task is like two hops of a slice of columns: the edges are streamed from a file in blocks of rows, the slice is read
from a file, and the product is written to one. Both sides use one thread in each worker.
"""

import tempfile
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import torch

from benchmarks.timing import report
from graphfcl.runtime.files import sha256_of, write_bytes
from graphfcl.runtime.tasks import Tasks, Workers, run_tasks, start_workers

NODES, DEGREE = 300_000, 20
SLICES, COLUMNS = 4, 16
ROWS = 50_000  # in a block
ROUNDS = 3
BAR = 1.15


def make_files(folder: Path) -> None:
    """Neighbours, (nodes, degree) as 32-bit numbers, and slices of columns."""
    random = np.random.default_rng(0)
    write_bytes(folder / "neighbours", random.integers(NODES, size=(NODES, DEGREE), dtype=np.int32).tobytes())
    for number in range(SLICES):
        columns = random.normal(size=(NODES, COLUMNS)).astype(np.float32)
        write_bytes(folder / f"slice-{number}", columns.tobytes())


def two_hops(folder: Path, out: Path, number: int) -> float:
    """Two hops of a slice; CPU seconds of this process meanwhile."""
    begun = time.process_time()
    values = torch.from_numpy(np.fromfile(folder / f"slice-{number}", np.float32).reshape(NODES, COLUMNS))
    for _ in range(2):
        result = torch.empty_like(values)
        with open(folder / "neighbours", "rb", buffering=0) as file:
            for start in range(0, NODES, ROWS):
                result[start : start + ROWS] = _block(file.read(ROWS * DEGREE * 4)) @ values
        values = result / DEGREE
    write_bytes(out / f"slice-{number}", values.numpy().tobytes())
    return time.process_time() - begun


def _block(content: bytes) -> torch.Tensor:
    """Some rows of the adjacency, (rows, nodes), from the numbers of their neighbours."""
    warnings.filterwarnings("ignore", message="Sparse")  # torch tells that it checks nothing
    indices = torch.frombuffer(bytearray(content), dtype=torch.int32)
    starts = torch.arange(0, indices.numel() + 1, DEGREE, dtype=torch.int32)
    return torch.sparse_csr_tensor(starts, indices, torch.ones(indices.numel()), size=(len(starts) - 1, NODES))


def measure(folder: Path, name: str, workers: Workers) -> tuple[float, float, list[str]]:
    """CPU seconds inside tasks and seconds on the clock, and the checksums of what was written."""
    out = folder / name
    out.mkdir(exist_ok=True)
    begun = time.perf_counter()
    inside = sum(run_tasks(partial(two_hops, folder, out), range(SLICES), workers))
    seconds = time.perf_counter() - begun
    return inside, seconds, [sha256_of((out / f"slice-{number}").read_bytes()) for number in range(SLICES)]


def main() -> None:
    one_thread = Tasks(threads=1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_files(folder)
        begun = time.perf_counter()
        with start_workers(one_thread) as alone, start_workers(Tasks("ray", 2, threads=1)) as on_ray:
            run_tasks(abs, range(4), on_ray)
            started = time.perf_counter() - begun
            here = [measure(folder, "here", alone)]
            there = [measure(folder, "ray", on_ray)]
            for _ in range(ROUNDS - 1):  # taken in turns: other work on the machine meets both
                here.append(measure(folder, "here", alone))
                there.append(measure(folder, "ray", on_ray))
    ratio = min(inside for inside, _, _ in there) / min(inside for inside, _, _ in here)
    print(f"two hops of {SLICES} slices of {COLUMNS} columns, {NODES:,} nodes, {NODES * DEGREE:,} edges")
    report("  start of Ray and its workers", started, "s", "-", True)
    report("  one process, CPU inside tasks", min(inside for inside, _, _ in here), "s", "-", True)
    report("  Ray, two workers, CPU inside tasks", min(inside for inside, _, _ in there), "s", "-", True)
    report("  one process, on the clock", min(seconds for _, seconds, _ in here), "s", "-", True)
    report("  Ray, two workers, on the clock", min(seconds for _, seconds, _ in there), "s", "-", True)
    report("  Ray / one process, CPU inside tasks", ratio, "x", f"<= {BAR}", ratio <= BAR)
    same = all(sums == here[0][2] for _, _, sums in (*here, *there))
    report("  files of both are the same, byte for byte", float(same), "", "1", same)
