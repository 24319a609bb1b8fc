"""A model folder: what answering for one node reads, what a version costs, whether 2,000 of them cost more to open.

``python -m benchmarks model_folder [--graph NAME] [--nodes N] [--versions N]``: on debian and on a synthetic graph of a
million nodes, or of N; or on the graph that is named. Training is cut short: what is measured does not depend on it.
"""

import argparse
import shutil
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.timing import best_seconds, report
from graphfcl.datasets import load_dataset
from graphfcl.production import GraphClassifier, ModelFolder

QUICK = {
    "anchor": {"pretraining.epochs": 1, "head_steps": 10, "hop_weight": 0.5, "hops": 2, "smoothing": 0.0, "links": 0.0}
}


def size_of(folder: Path, *names: str) -> int:
    """Bytes of all files of a folder, or of some."""
    places = [folder / name for name in names] or folder.rglob("*")
    return sum(path.stat().st_size for path in places if path.is_file())


def ask(folder: Path, node: object) -> GraphClassifier:
    model = GraphClassifier.load(folder)
    model.prediction_columns([node])
    return model


def measure(name: str, method: str, folder: Path, versions: int) -> None:
    graph, _ = load_dataset(name)
    hidden = graph.class_names[-2:]
    start = time.perf_counter()
    model = GraphClassifier(method, QUICK.get(method, {})).fit(graph, hide_classes=hidden)
    print(f"{name}: {graph.node_count:,} nodes, {method} fitted in {time.perf_counter() - start:.0f} s")
    start = time.perf_counter()
    model.save(folder)
    saved = time.perf_counter() - start
    model.wait()
    alone = shutil.copytree(folder, folder.parent / "alone")  # as it is with one version
    first = size_of(folder, "model.sqlite")
    cached = size_of(folder, "cache.sqlite")
    print(f"  the first version {first / 1e6:,.1f} MB in {saved:.1f} s, the cache {cached / 1e6:,.1f} MB")
    node = graph.node_ids.tolist()[graph.node_count // 2]
    asked = ask(folder, node)
    share = 100 * asked.bytes_read() / size_of(folder)
    report("answering for one node: bytes read / bytes on disk", share, "%", "< 1", share < 1)
    print(f"  {asked.bytes_read():,} bytes, {1000 * best_seconds(lambda: ask(folder, node), 5):.1f} ms")
    changes(model, folder, first, graph.node_ids[graph.labels == graph.class_number(hidden[0])])
    many_versions(folder, alone, node, versions)


def changes(model: GraphClassifier, folder: Path, first: int, members: np.ndarray) -> None:
    """What a learn and a node more write, beside all that the first version wrote."""
    for place in range(2):
        before, start = size_of(folder, "model.sqlite"), time.perf_counter()
        model.learn({f"new {place}": members[5 * place : 5 * place + 5].tolist()})
        learned, start = time.perf_counter() - start, time.perf_counter()
        model.save(folder)
        saved = time.perf_counter() - start
        model.wait()
        wrote = size_of(folder, "model.sqlite") - before
        report(
            "one learn: bytes written / bytes of the first version",
            100 * wrote / first,
            "%",
            "< 10",
            10 * wrote < first,
        )
        print(f"  {wrote:,} bytes; learn {learned:.2f} s, save {saved:.2f} s")
    before = size_of(folder, "model.sqlite")
    new = max(model.node_ids_.tolist()) + 1 if model.node_ids_.dtype.kind == "i" else "a node more"
    model.grow(
        nodes=([new], model.graph_.visible.features_at(np.arange(1)), None), edges=([new], [model.node_ids_[0]], None)
    )
    model.save(folder)
    model.wait()
    wrote = size_of(folder, "model.sqlite") - before
    report(
        "one node more: bytes written / bytes of the first version",
        100 * wrote / first,
        "%",
        "< 10",
        10 * wrote < first,
    )
    print(f"  {wrote:,} bytes")


def many_versions(folder: Path, alone: Path, node: object, versions: int) -> None:
    """Renames, which change next to nothing else, until there are so many versions. alone: the folder of the first."""
    model = ModelFolder(folder).load()
    old = model.classes_[0]
    while model.version is not None and model.version < versions:
        new = f"name {model.version}"
        model.rename(old, new).save(folder)
        old = new
    model.wait()
    # In turns, so that whatever else the machine does meets both.
    pairs = [[best_seconds(partial(ask, place, node), 1) for place in (alone, folder)] for _ in range(10)]
    once, many = np.array(pairs).min(axis=0)
    title = f"open and ask for one node: {versions:,} versions / 1"
    report(title, many / once, "x", "<= 1.5", many <= 1.5 * once)
    before, start = size_of(folder, "model.sqlite"), time.perf_counter()
    done = ModelFolder(folder).prune(1)
    print(f"  {before / 1e6:,.1f} MB; pruned to one version in {time.perf_counter() - start:.1f} s, "
          f"{done.freed / 1e6:,.1f} MB freed")  # fmt: skip


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser("python -m benchmarks model_folder")
    parser.add_argument("--graph", help="only this one")
    parser.add_argument("--method", default="anchor", help="on the graph that is named")
    parser.add_argument("--nodes", type=int, default=1_000_000, help="of the synthetic graph")
    parser.add_argument("--versions", type=int, default=2_000)
    chosen = parser.parse_args(list(arguments))
    synthetic = f"synthetic:nodes={chosen.nodes},edges={5 * chosen.nodes},features=64,kind=dense"
    both = [("debian", "anchor"), (synthetic, "sgc-ridge")]
    for name, method in [(chosen.graph, chosen.method)] if chosen.graph else both:
        folder = Path(tempfile.mkdtemp())
        try:
            measure(name, method, folder / "model", chosen.versions)
        finally:
            shutil.rmtree(folder)
