"""``graphfcl run`` from start to end in a process of its own, everything included: seconds and peak memory."""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.timing import report


def run(dataset: str, method: str = "hag-meta") -> tuple[float, float]:
    """Seconds of the whole command and gigabytes of its peak; the encoder is trained again."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["run", "--graph", dataset, "--method", method, "--device", "cpu"]
        words += ["--out", f"{folder}/run", "--encoders", f"{folder}/encoders"]
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "graphfcl", *words], check=True, capture_output=True)
        seconds = time.perf_counter() - start
        result = json.loads((Path(folder) / "run" / "result.json").read_text())
    return seconds, result["peak_memory_mb"] / 1024


def main() -> None:
    seconds, memory = run("debian")
    report("graphfcl run on debian", seconds, "s", "< 300", seconds < 300)
    report("  its peak memory", memory, "GB", "< 2", memory < 2)
    seconds, memory = run("synthetic-reddit")
    report("graphfcl run on synthetic-reddit", seconds, "s", "-", True)
    report("  its peak memory", memory, "GB", "< 10", memory < 10)
