"""ANCHOR's table of all nodes: the memory it takes while it is made, and what a session costs on a GPU and a CPU."""

import ctypes
import gc
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.timing import report
from graphfcl.datasets import load_dataset
from graphfcl.datasets.synthetic import SyntheticSettings, make_synthetic
from graphfcl.methods import find_method
from graphfcl.stream import Protocol, Stream, make_stream

# One candidate and hardly any training: neither changes the table's size.
SHORT: dict[str, Any] = {
    "pretraining.epochs": 1,
    "head_steps": 5,
    "hop_weight": 2.0,
    "hops": 2,
    "smoothing": 0.7,
    "smoothing_steps": 3,
    "links": 0.0,
}
LARGE = SyntheticSettings(nodes=200_000, edges=2_000_000, features=2_000, classes=20)


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak_while(work: Callable[[], object]) -> int:
    """The most bytes in memory while something is done, looked up every few milliseconds."""
    seen, done = [resident()], threading.Event()

    def look() -> None:
        while not done.wait(0.003):
            seen.append(resident())

    watcher = threading.Thread(target=look)
    watcher.start()
    work()
    done.set()
    watcher.join()
    return max(seen)


def memory() -> None:
    """Bytes a node that making the table adds, at its peak, on a CPU; on debian, at rank 1,024."""
    graph, protocol = load_dataset("debian")
    stream = make_stream(graph, protocol, seed=0)
    learner = find_method("anchor").make(SHORT, seed=0)
    learner.fit(stream.base)
    visible = stream.visible_graph(1)
    learner.cache.inputs(visible)  # type: ignore[attr-defined]  # it lets go of the table of session 0
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)  # what was freed counts as free
    before = resident()
    added = (peak_while(lambda: learner.embeddings(visible)) - before) / visible.node_count / 1000
    report("anchor's table while it is made, debian, rank 1,024", added, "kB/node", "<= 15", added <= 15)


def session_seconds(stream: Stream, device: str) -> float:
    """The shortest of three sessions on a graph that is new to the learner."""
    learner = find_method("anchor").make(SHORT, seed=0, device=device)
    learner.fit(stream.base)
    state, found = learner.state(), []
    for _ in range(3):
        learner.load_state(state)
        session = stream.fresh().session(1)
        _ = session.visible_graph.loaded().normalised
        start = time.perf_counter()
        learner.learn(session)
        if device == "cuda":
            torch.cuda.synchronize()
        found.append(time.perf_counter() - start)
    return min(found)


def main() -> None:
    memory()
    if not torch.cuda.is_available():
        print("no GPU: a session on a GPU against one on a CPU is not measured")
        return
    stream = make_stream(make_synthetic(LARGE), Protocol(base=5, pseudo_novel=5, way=5, shot=5), seed=0)
    there, here = (session_seconds(stream, device) for device in ("cuda", "cpu"))
    report("a session of 5 x 5 on 200,000 nodes, GPU", 1000 * there, "ms", "-", True)
    report("the same on a CPU", 1000 * here, "ms", "-", True)
    report("GPU / CPU", there / here, "x", "<= 1.5", there <= 1.5 * here)
