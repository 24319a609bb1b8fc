"""How long a new process takes to load ``debian``, imports included."""

import subprocess
import sys

from benchmarks.timing import best_seconds, report

COMMAND = [sys.executable, "-c", "from graphfcl import load_dataset; load_dataset('debian')"]


def main() -> None:
    seconds = best_seconds(lambda: subprocess.run(COMMAND, check=True), repeats=3)
    report("load debian in a new process", seconds, "s", "< 2", seconds < 2)
