"""What commands on a small model cost before they do anything: CPU seconds, user and system, of whole processes.

``python -m benchmarks start_up [--source FOLDER] [--repeats N]``: of this package, or of the one under FOLDER, to
compare with another commit. Seconds differ between machines and hours, so each is also given as a ratio to
``python -c "import torch"``. Each command runs several times; the smallest figure counts.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import graphfcl
from benchmarks.timing import report

GRAPH = "synthetic:nodes=500,edges=1500,classes=8,features=60"
QUICK = ("--set", "pretraining.epochs=2", "--set", "head_steps=10")
Command = tuple[str, tuple[object, ...], Callable[[], object]]
"""Its title, its words, and what to do before each run."""
BAR = 1.0  # CPU seconds that a command on a small model may take


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=Path, default=Path(graphfcl.__file__).parents[1])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args(list(arguments))
    environment = {**os.environ, "PYTHONPATH": str(options.source.resolve()), "OMP_NUM_THREADS": "1"}

    def run(*words: object) -> float:
        """CPU seconds of a process of Python."""
        start = _used()
        quiet = subprocess.DEVNULL
        subprocess.run([sys.executable, *map(str, words)], check=True, env=environment, stdout=quiet, stderr=quiet)
        return _used() - start

    torch = min(run("-c", "import torch") for _ in range(options.repeats))
    report('python -c "import torch"', torch, "CPU s", "-", True)
    with tempfile.TemporaryDirectory() as place:
        for name, words, before in _commands(Path(place), partial(run, "-m", "graphfcl")):
            found = []
            for _ in range(options.repeats):
                before()
                found.append(run("-m", "graphfcl", *words))
            least = min(found)
            report(f"graphfcl {name} ({least / torch:.2f} x import torch)", least, "CPU s", f"< {BAR:g}", least < BAR)


def _commands(folder: Path, run: Callable[..., float]) -> list[Command]:
    """What to run on a model that is made in the folder. run: runs a command."""
    model, fresh, out = folder / "model", folder / "fresh", folder / "out.csv"
    one, supports = folder / "one.csv", folder / "supports.csv"
    one.write_text("node\n5\n")
    run("fit", "--graph", GRAPH, "--hide-classes", "class-07", "--model", model, *QUICK)
    run("labels", "--model", model, "--out", out)
    labelled = {line.partition(",")[0] for line in out.read_text().splitlines()}
    unlabelled = [node for node in map(str, range(500)) if node not in labelled]
    supports.write_text("node,class\n" + "".join(f"{node},class-07\n" for node in unlabelled[:5]))
    run("predict", "--model", model, "--out", out)  # leaves a cache

    def copy() -> None:
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(model, fresh)

    def nothing() -> None:
        pass

    return [
        ("--help", ("--help",), nothing),
        ("history", ("history", "--model", model), nothing),
        ("labels, to CSV", ("labels", "--model", model, "--out", out), nothing),
        ("predict of one node", ("predict", "--model", model, "--nodes", one, "--out", out), nothing),
        ("predict of all 500", ("predict", "--model", model, "--out", out), nothing),
        ("explain", ("explain", 5, "--model", model), nothing),
        ("learn of 5 supports", ("learn", supports, "--model", fresh), copy),
    ]


def _used() -> float:
    """CPU seconds of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
