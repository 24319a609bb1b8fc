"""Features, hops and class sums of a graph folder, on the disk: seconds of each phase and the peak memory.

python -m scripts.hops_and_sums FOLDER WORK [COLUMNS [MEMORY [WORKERS]]]: COLUMNS of a random basis (128), MEMORY
(4GB), WORKERS (2). The peak is the sum over all processes of what each holds (Pss), read every 0.3 seconds.
"""

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from graphfcl.graph.folder import GraphFolder
from graphfcl.graph.folder.visible import VisibleFolder
from graphfcl.methods.anchor.class_sums import Anchors
from graphfcl.methods.blocks.folder_tables import FolderTables
from graphfcl.runtime.memory import parse_bytes
from graphfcl.runtime.resources import Resources
from graphfcl.runtime.tasks import Tasks

TICKS = os.sysconf("SC_CLK_TCK")


class Watch:
    """CPU seconds and the largest memory of this process and all below it."""

    def __init__(self) -> None:
        self.peak = 0
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        while True:
            self.peak = max(self.peak, sum(_memory(each) for each in _processes(os.getpid())))
            time.sleep(0.3)

    def phase(self, name: str, compute: Callable[[], object]) -> None:
        """Compute, and print what it took."""
        before, start = _cpu(), time.perf_counter()
        compute()
        seconds, cpu = time.perf_counter() - start, _cpu() - before
        print(f"{name:28} {seconds:8.1f} s {cpu:8.1f} CPU s, peak so far {self.peak / 1e9:.2f} GB", flush=True)


def _processes(first: int) -> list[int]:
    found = [first]
    try:
        for thread in os.listdir(f"/proc/{first}/task"):
            for child in Path(f"/proc/{first}/task/{thread}/children").read_text().split():
                found += _processes(int(child))
    except OSError:  # it has ended meanwhile
        pass
    return found


def _memory(process: int) -> int:
    try:
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return 1024 * int(line.split()[1])
    except OSError:
        pass
    return 0


def _cpu() -> float:
    """User and system seconds of this process and those below it, ended ones included."""
    total = 0.0
    for process in _processes(os.getpid()):
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(int(each) for each in fields[11:15]) / TICKS
    return total


def main(folder: Path, work: Path, columns: int, memory: int, workers: int) -> None:
    """Print a line for each phase."""
    watch = Watch()
    with Resources(work, memory, Tasks(workers=workers)).at_work() as resources:
        opened = GraphFolder.open(folder)
        print(repr(opened), flush=True)
        inputs = FolderTables(VisibleFolder.of(opened.rows, None, None, resources), 0, unit=True)
        basis = torch.randn(inputs.feature_count, columns, generator=torch.Generator().manual_seed(0))
        watch.phase("degrees", lambda: inputs.by_row.scales)
        watch.phase("XB", lambda: inputs.own(basis).readable())
        own = inputs.own(basis)
        watch.phase("two hops", lambda: inputs.hops(own, (2,))[0].readable())
        (around,) = inputs.hops(own, (2,))
        labelled = np.flatnonzero(opened.labels >= 0)
        labels = opened.labels[labelled].astype(np.int64)
        watch.phase("class sums", lambda: Anchors.of(inputs, around, (labelled, labels), len(opened.class_names)))


if __name__ == "__main__":
    given = [*sys.argv[3:], *("128", "4GB", "2")[len(sys.argv) - 3 :]]
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(given[0]), parse_bytes(given[1], "MEMORY"), int(given[2]))
