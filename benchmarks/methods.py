"""A whole run of every method on debian, as a multiple of HAG-Meta's time in the same benchmark."""

from benchmarks.timing import report
from benchmarks.whole_run import run
from graphfcl.methods import METHODS

UNBOUND = ("joint", "meta-gnn")  # these two only say what they cost


def main() -> None:
    reference, _ = run("debian")
    report("hag-meta on debian", reference, "s", "-", True)
    for method in METHODS:
        if method.name == "hag-meta":
            continue
        seconds, _ = run("debian", method.name)
        ratio = seconds / reference
        bound = method.name not in UNBOUND
        report(f"{method.name} / hag-meta", ratio, "x", "< 3" if bound else "-", not bound or ratio < 3)
