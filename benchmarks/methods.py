"""A whole run of every method on debian, as a multiple of HAG-Meta's time in the same benchmark, and its peak memory.

``METHODS`` (comma-separated) names some of them.
"""

import os

from benchmarks.timing import report
from benchmarks.whole_run import run
from graphfcl.methods import METHODS

UNBOUND = ("joint", "meta-gnn")  # these two only say what they cost
TRAINED = ("tap", "geometer", "mecoin", "lpmc")  # these train more, and may take longer


def main() -> None:
    chosen = os.environ.get("METHODS", ",".join(method.name for method in METHODS)).split(",")
    reference, memory = run("debian")
    report("hag-meta on debian", reference, "s", "-", True)
    report("  its peak memory", memory, "GB", "< 2", memory < 2)
    for name in chosen:
        if name == "hag-meta":
            continue
        seconds, memory = run("debian", name)
        ratio, bar = seconds / reference, 6 if name in TRAINED else 3
        bound = name not in UNBOUND
        report(f"{name} / hag-meta", ratio, "x", f"< {bar}" if bound else "-", not bound or ratio < bar)
        report("  its peak memory", memory, "GB", "< 2" if bound else "-", not bound or memory < 2)
