"""The same work with two source trees, in turn: ``python -m benchmarks two_trees --before PATH``.

PATH holds the ``graphfcl`` package of another commit (``git worktree add PATH COMMIT``, then ``PATH/src``). Every step
runs in a process of its own, through public names alone, first with one tree and then with the other; the figure is the
ratio of the medians of CPU seconds, or of wall seconds on a GPU and with several threads. ``--debian`` takes minutes a
step: HAG-Meta at the paper's widths, ANCHOR and ``fit`` at the defaults of each tree.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.timing import report

BAR = 1.05
PREPARE = """
import sys, time, pathlib
import numpy as np, torch
import graphfcl
from graphfcl import GraphClassifier, evaluate, find_method, import_graph, load_dataset, make_stream
torch.set_num_threads(THREADS)
folder = pathlib.Path(sys.argv[1])
graph, protocol = load_dataset("DATASET")
hidden = graph.class_names[-4:]

def learner_of(name, device="cpu", **settings):
    kind = find_method(name).learner
    return kind(kind.settings_type(**settings), seed=0, device=device)

def fitted(method="anchor", on=None):
    return GraphClassifier(method=method, seed=0).fit(graph if on is None else on, hide_classes=hidden)

def supports():
    return {name: graph.node_ids[graph.labels == graph.class_number(name)][:5].tolist() for name in hidden}

def run(method, device="cpu", **settings):
    evaluate(learner_of(method, device, **settings), make_stream(graph, protocol, seed=0))

def timed(work):
    clock = time.perf_counter if torch.cuda.is_available() or THREADS > 1 else time.process_time
    start = clock()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    print("seconds", clock() - start)
"""
STEPS = {
    "whole run, hag-meta": "timed(lambda: run('hag-meta'))",
    "whole run, anchor": "timed(lambda: run('anchor'))",
    "whole run, sgc-ridge": "timed(lambda: [run('sgc-ridge') for _ in range(3)])",
    "fit": "timed(fitted)",
    "learn": "model = fitted(); timed(lambda: [model.snapshot().learn(supports()) for _ in range(5)])",
    "open and predict one node": """
fitted().save(folder / "model")
node = graph.node_ids[:1].tolist()
GraphClassifier.load(folder / "model").predict(node)
timed(lambda: [GraphClassifier.load(folder / "model").predict(node) for _ in range(50)])""",
    "fit on disk": """
import graphfcl
stored = import_graph(graph, folder / "graph")
resources = getattr(graphfcl, "Resources" if "Resources" in dir(graphfcl) else "Means")(folder / "work", 2 << 30)
one_class = hasattr(stored, "with_resources")
on_disk = stored.with_resources(resources) if one_class else graphfcl.FolderGraph(stored, resources)
timed(lambda: fitted("sgc-ridge", on_disk))""",
}
ON_DEBIAN = {
    "debian: whole run, hag-meta": "timed(lambda: run('hag-meta', hidden=32, size=16))",
    "debian: session 0, anchor": "timed(lambda: learner_of('anchor').fit(make_stream(graph, protocol, seed=0).base))",
    "debian: fit": "timed(fitted)",
}
DEBIAN_BAR = 0.5
ON_GPU = {
    "GPU: whole run, hag-meta": "timed(lambda: run('hag-meta', 'cuda'))",
    "GPU: whole run, anchor": "timed(lambda: run('anchor', 'cuda'))",
}
ALL_STEPS = {**STEPS, **ON_DEBIAN, **ON_GPU}


def seconds_of(tree: Path, name: str, threads: int) -> float:
    """What one step takes with one source tree."""
    hidden = {} if name in ON_GPU else {"CUDA_VISIBLE_DEVICES": ""}
    environment = {**os.environ, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": str(threads), **hidden}
    dataset = "debian" if name in ON_DEBIAN else "synthetic:classes=24,nodes=2400,seed=1"
    code = PREPARE.replace("THREADS", str(threads)).replace("DATASET", dataset) + ALL_STEPS[name]
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-W", "ignore", "-c", code, folder]
        ran = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if ran.returncode:
        sys.exit(f"{tree}: {ran.stderr}")
    return float(ran.stdout.split("seconds")[-1])


def main(options: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks two_trees", description=__doc__)
    parser.add_argument("--before", type=Path, required=True, help="the folder that holds the other graphfcl package")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="", help="steps whose name holds these words")
    parser.add_argument("--debian", action="store_true", help="the long steps on debian instead")
    parser.add_argument("--threads", type=int, default=1, help="of torch and BLAS")
    chosen = parser.parse_args(options or [])
    trees = (chosen.before.absolute(), Path(__file__).resolve().parents[1] / "src")
    import torch

    others = {**STEPS, **(ON_GPU if torch.cuda.is_available() else {})}
    bar = DEBIAN_BAR if chosen.debian else BAR
    for name in ON_DEBIAN if chosen.debian else others:
        if chosen.only not in name:
            continue
        pairs = [[seconds_of(tree, name, chosen.threads) for tree in trees] for _ in range(chosen.repeats)]
        before, after = (statistics.median(each) for each in zip(*pairs, strict=True))
        what = f"{name}: {before:.2f} s before, {after:.2f} s now"
        report(what, after / before, "×", f"≤ {bar}", after <= bar * before)
