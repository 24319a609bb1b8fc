"""How many labels does the order of the page save? A scripted person teaches hidden classes over HTTP.

The model is fitted on the train and validation nodes of session 0 of a stream of the track ``open``; every other label
is hidden. The person labels nodes in the order of ``GET /v1/queue``, or in random order, ten before each learn, and
slips on 2 % of them. Accuracy is the mean recall over all classes of the stream, on at most forty nodes of each; the
person passes over these nodes, and over nodes of no class of the stream. Told is after how many labels
the accuracy stays above 95 % of what the order of the page reaches in the end.

``ORDER_DATASETS`` and ``ORDER_SEEDS`` (comma-separated), ``ORDER_LABELS`` and ``ORDER_JOBS`` change the run;
``ORDER_OUT`` keeps the table as CSV.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.answers import fitted
from benchmarks.timing import report
from benchmarks.walks import Row, open_stream, rows_of_walks
from graphfcl.client import Client
from graphfcl.stream import Stream
from tests.service.pages import serving

BATCH, SLIPS, TESTED, ENOUGH, LISTED = 10, 0.02, 40, 0.95, 150


def held_out(stream: Stream, labelled: np.ndarray) -> dict[str, str]:
    """At most forty nodes of each class that have no label at the fit, with their class."""
    graph, draw = stream.graph, np.random.default_rng(stream.seed)
    free = np.setdiff1d(np.arange(graph.node_count), labelled)
    order = draw.permutation(free)
    chosen: dict[str, str] = {}
    for name in stream.classes:
        rows = order[graph.labels[order] == graph.class_number(name)][:TESTED]
        chosen.update(dict.fromkeys(map(str, graph.node_ids[rows]), name))
    return chosen


def page_order(client: Client, wanted: set[str]) -> Iterator[list[str]]:
    """The next wanted nodes of the queue, once its order is that of the newest version."""
    while True:
        while client.list_queue(1).status != "ready":
            time.sleep(0.2)
        pages = client.pages(client.list_queue, LISTED)
        yield list(islice((node.id for page in pages for node in page.nodes if node.id in wanted), BATCH))


def random_order(nodes: list[str], seed: int) -> Iterator[list[str]]:
    """All nodes in random order."""
    order = np.random.default_rng(seed).permutation(nodes).tolist()
    for start in range(0, len(order), BATCH):
        yield order[start : start + BATCH]


def accuracy(client: Client, tested: dict[str, str]) -> float:
    """Mean recall over the classes."""
    ids = list(tested)
    predicted = [
        name for start in range(0, len(ids), 1000) for name in client.predict(ids[start : start + 1000]).classes
    ]
    right: dict[str, list[bool]] = {}
    for node, name in zip(ids, predicted, strict=True):
        right.setdefault(tested[node], []).append(name == tested[node])
    return float(np.mean([np.mean(each) for each in right.values()]))


def teach(
    client: Client, nodes: Iterator[list[str]], truth: dict[str, str], tested: dict[str, str], count: int, seed: int
) -> Iterator[Row]:
    """Label and learn; the accuracy after each learn."""
    draw, names, given = np.random.default_rng(seed), sorted(set(truth.values())), 0
    yield {"labels": 0, "accuracy": accuracy(client, tested)}
    while given < count:
        supports: dict[Any, list[str]] = {}
        for node in next(nodes):
            name = str(draw.choice(names)) if draw.random() < SLIPS else truth[node]
            supports.setdefault(name, []).append(node)
        client.learn(supports, by="a scripted person", new_classes=list(supports))
        given += sum(map(len, supports.values()))
        yield {"labels": given, "accuracy": accuracy(client, tested)}


def walk(dataset: str, seed: int, device: str, count: int) -> list[Row]:
    """Both orders on one stream."""
    stream = open_stream(dataset, seed, device)
    graph, base = stream.graph, stream.base
    labelled = stream.node_of_number[np.concatenate([base.train, base.validation])]
    taught = np.isin(graph.labels, np.array([graph.class_number(name) for name in stream.classes]))
    truth = {str(graph.node_ids[row]): graph.class_names[graph.labels[row]] for row in np.flatnonzero(taught)}
    tested = held_out(stream, labelled)
    known = set(map(str, graph.node_ids[labelled]))
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as temporary:
        for order in ("page", "random"):
            folder = Path(temporary) / order
            if order == "page":
                model = fitted(stream, device)
                for each in ("page", "random"):
                    model.save(Path(temporary) / each)
                model.wait()
                del model
            with serving(folder) as served:
                client = Client(served.address, served.token)
                unlabelled = sorted(set(truth) - known - set(tested))
                nodes = page_order(client, set(unlabelled)) if order == "page" else random_order(unlabelled, seed)
                start = time.perf_counter()
                for row in teach(client, nodes, truth, tested, count, seed):
                    rows.append({"dataset": dataset, "seed": seed, "order": order, **row})
                print(dataset, seed, order, rows[-1], f"{time.perf_counter() - start:.0f} s", flush=True)
    return rows


def labels_needed(rows: list[Row], accuracy: float) -> int | None:
    """The number of labels from which the accuracy stays at a value or above; None if it ends below."""
    below = [row["labels"] for row in rows if row["accuracy"] < accuracy]
    last = max(below, default=-1)
    return next((row["labels"] for row in rows if row["labels"] > last), None)


def main() -> None:
    count = int(os.environ.get("ORDER_LABELS", "150"))
    rows = rows_of_walks("ORDER", walk, count, graphs="debian")
    for dataset, seed in sorted({(row["dataset"], row["seed"]) for row in rows}):
        curves = {
            order: [row for row in rows if (row["dataset"], row["seed"], row["order"]) == (dataset, seed, order)]
            for order in ("page", "random")
        }
        final = curves["page"][-1]["accuracy"]
        for order, curve in curves.items():
            needed, text = labels_needed(curve, ENOUGH * final), f"{dataset}, seed {seed}, order {order}"
            report(f"{text}: labels for 95 % of {final:.3f}", needed or float("nan"), "labels", "-", True)
            report(f"{text}: accuracy in the end", curve[-1]["accuracy"], "", "-", True)


if __name__ == "__main__":
    main()
