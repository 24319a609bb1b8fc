"""A model over HTTP: reading one node beside a learn, and a learn through the service, as ratios in one run.

A real server in a process of its own, eight clients that read without a pause, or at five requests a second each, as
people at the page do. ``GRAPH=debian`` takes the real graph, ``METHOD`` another method; six classes are hidden and
taught from five nodes each.
"""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import report
from graphfcl.datasets import load_dataset
from graphfcl.defaults import MODEL_METHOD
from graphfcl.graph import Graph
from graphfcl.production import GraphClassifier

GRAPH = "synthetic:nodes=20000,edges=100000,classes=30,features=300,signal=1.0"
CLIENTS, SHOT, HIDDEN = 8, 5, 6
REST = 5.0  # seconds
LEARNS = 7  # of each class
PACE, PAIRS = 5.0, 12  # requests a second in sum; learns with and without them
OF_THE_PAGE = ("", "/neighbours", "/explanation", "")  # what a person at the page reads of a node


class Readers:
    """Clients that read nodes without a pause, each over a connection of its own.

    pace: requests a second of each, with pauses of random length; then also what else the page reads of a node.
    """

    def __init__(self, port: int, nodes: list[str], pace: float | None = None) -> None:
        self.port, self.nodes, self.pace = port, nodes, pace
        self.times: list[tuple[float, float]] = []  # when an answer came, and how long it took
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._read, args=(seed,)) for seed in range(CLIENTS)]

    def __enter__(self) -> "Readers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _read(self, seed: int) -> None:
        draw = np.random.default_rng(seed)
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        while not self._stop.is_set():
            node = self.nodes[int(draw.integers(len(self.nodes)))]
            what = ""
            if self.pace is not None:
                what = OF_THE_PAGE[int(draw.integers(len(OF_THE_PAGE)))]
                if self._stop.wait(draw.exponential(1 / self.pace)):
                    return
            start = time.perf_counter()
            connection.request("GET", f"/v1/nodes/{node}{what}")
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200
            end = time.perf_counter()
            self.times.append((end, end - start))

    def between(self, start: float, end: float) -> np.ndarray:
        """Milliseconds of the answers that came in between."""
        return 1000 * np.array([took for when, took in self.times if start <= when <= end])


def teach(port: int, token: str, name: str, nodes: list[str]) -> float:
    """Seconds until a learn of one class was answered."""
    body = json.dumps({"labels": [{"id": node, "class": name} for node in nodes]})
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", port)
    start = time.perf_counter()
    connection.request("POST", "/v1/labels", body, headers)
    answer = connection.getresponse()
    said = answer.read()
    assert answer.status == 200, said
    return time.perf_counter() - start


def supports_of(graph: Graph, names: list[str]) -> dict[str, list[Any]]:
    """Nodes of each class for several learns, by a fixed draw."""
    draw = np.random.default_rng(0)
    found = {}
    for name in names:
        members = graph.node_ids[graph.labels == graph.class_number(name)]
        found[name] = draw.choice(members, min(SHOT * LEARNS, members.size), replace=False).tolist()
    return found


def in_one_process(folder: Path, supports: dict[str, list[Any]]) -> list[float]:
    """Seconds of each learn of a model in memory, the first of which does not count."""
    model = GraphClassifier.load(folder)
    model.predict()
    times = []
    for name, nodes in supports.items():
        start = time.perf_counter()
        model.learn({name: nodes})
        times.append(time.perf_counter() - start)
    return times[1:]


def main() -> None:
    graph, _ = load_dataset(os.environ.get("GRAPH", GRAPH))
    sizes = np.bincount(graph.labels[graph.labels >= 0], minlength=len(graph.class_names))
    middle = np.argsort(sizes, kind="stable")[len(sizes) // 2 :][:HIDDEN]
    hidden = [graph.class_names[place] for place in middle]
    supports = supports_of(graph, hidden)
    method = os.environ.get("METHOD", MODEL_METHOD)
    start = time.perf_counter()
    model = GraphClassifier(method).fit(graph, hide_classes=hidden)
    report(f"fit of {method} on {graph.name}", time.perf_counter() - start, "s", "-", True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "model"
        model.save(folder)
        model.wait()
        del model
        alone = in_one_process(folder, {name: nodes[:SHOT] for name, nodes in list(supports.items())[:4]})
        measure(folder, supports, float(np.median(alone)), [str(node) for node in graph.node_ids[:1000].tolist()])


def measure(folder: Path, supports: dict[str, list[Any]], alone: float, nodes: list[str]) -> None:
    """Start a server, and measure it. alone: seconds of a learn in one process."""
    command = [sys.executable, "-m", "graphfcl", "serve", "--model", str(folder), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r":(\d+)/#token=(.*)", process.stdout.readline())
        assert found
        port, token = int(found.group(1)), found.group(2)
        lessons = [(name, [str(node) for node in each[:SHOT]]) for name, each in supports.items()]
        more = [
            (name, [str(node) for node in each[place * SHOT : (place + 1) * SHOT]])
            for place in range(1, LEARNS)
            for name, each in supports.items()
            if len(each) >= (place + 1) * SHOT
        ]
        try:
            teach(port, token, *lessons[0])
            through = float(np.median([teach(port, token, *label_batch) for label_batch in lessons[1:3]]))
            with Readers(port, nodes) as readers:
                time.sleep(1)
                start = time.perf_counter()
                time.sleep(REST)
                rest = readers.between(start, time.perf_counter())
            beside, busy = [], []
            with Readers(port, nodes) as readers:
                time.sleep(1)
                for label_batch in lessons[3:]:
                    start = time.perf_counter()
                    beside.append(teach(port, token, *label_batch))
                    busy.append(readers.between(start, time.perf_counter()))
            pairs = paced_pairs(port, token, nodes, more[: 2 * PAIRS])
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()
    during = np.concatenate(busy)
    p50, p99 = float(np.percentile(rest, 50)), float(np.percentile(during, 99))
    report(f"one node at rest, {CLIENTS} clients: p50", p50, "ms", "-", True)
    report("the same: p99", float(np.percentile(rest, 99)), "ms", "-", True)
    report("the same: requests a second", rest.size / REST, "", "-", True)
    report("one node during a learn: p50", float(np.percentile(during, 50)), "ms", "-", True)
    report("one node during a learn: p99", p99, "ms", "-", True)
    report("one node during a learn: slowest", float(during.max()), "ms", "-", True)
    report("p99 during a learn / p50 at rest", p99 / p50, "x", "<= 15", p99 <= 15 * p50)
    report("learn of one class of five in one process", alone, "s", "-", True)
    report("the same through the service, without readers", through, "s", "-", True)
    report("through the service / in one process", through / alone, "x", "<= 1.5", through <= 1.5 * alone)
    report(f"the same while {CLIENTS} clients read", float(np.median(beside)), "s", "-", True)
    idle, paced = np.median(pairs, axis=0).tolist()
    report(f"a learn, {PAIRS} times, without readers", idle, "s", "-", True)
    report(f"in turn with it, {CLIENTS} clients at {PACE:g} requests a second each", paced, "s", "-", True)
    report("the second / the first, median of the ratios", ratio_of(pairs), "x", "<= 1.4", ratio_of(pairs) <= 1.4)


def paced_pairs(port: int, token: str, nodes: list[str], lessons: list[tuple[str, list[str]]]) -> np.ndarray:
    """(pairs, 2) seconds of a learn without readers, and of the next one with clients that read at a pace."""
    pairs = []
    for idle, paced in zip(lessons[::2], lessons[1::2], strict=False):
        time.sleep(1)  # what is computed in the background after a change
        alone = teach(port, token, *idle)
        with Readers(port, nodes, PACE):
            time.sleep(1)
            pairs.append((alone, teach(port, token, *paced)))
    return np.array(pairs)


def ratio_of(pairs: np.ndarray) -> float:
    """The median of the ratios of the pairs, which a slower minute of the machine changes little."""
    return float(np.median(pairs[:, 1] / pairs[:, 0]))
