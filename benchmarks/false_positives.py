"""How often does the test of ``graphfcl.metrics.paired_difference`` call equal learners different?

Graphs are drawn independently of each other (:mod:`graphfcl.datasets.synthetic`), ten streams each, and two learners
that are equal in expectation are compared on the average over sessions. Three ways to be equal:

``views``
    One learner (``sgc-ridge``), two views of the nodes: the features are drawn twice from the same class vectors, so
    each view is as good as the other for nodes of this source, and only the sample of nodes decides which one is ahead
    on a graph. All streams of a graph share that sample. This is the null hypothesis of the test.
``draws``
    One view, ``ranpac`` with two random projections that are drawn again for every stream: the differences of a graph's
    streams are independent, so that any correction is too much.
``sources``
    As ``views``, but the class vectors of each view are drawn by themselves: the learners are equal only on average
    over graphs, and really differ on each one. A test on one graph does not answer for other graphs.

Each is tested with ρ = 0 (Student's paired test), with 1/3, and with n_test/n_train of the streams.
``FALSE_POSITIVES_GRAPHS`` (200) and ``FALSE_POSITIVES_JOBS`` change the run; ``FALSE_POSITIVES_OUT`` keeps a row for
each graph as CSV.
"""

import csv
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

import numpy as np

from benchmarks.timing import report
from graphfcl.datasets.synthetic import SyntheticSettings, class_vectors, draw_features, make_synthetic
from graphfcl.errors import GraphfclWarning
from graphfcl.evaluation import evaluate
from graphfcl.graph import Graph
from graphfcl.methods import find_method
from graphfcl.metrics import paired_difference
from graphfcl.stream import Protocol, Stream, make_stream
from graphfcl.stream.stream import fit_view

SETTINGS = SyntheticSettings(
    nodes=500, edges=1000, features=100, classes=10, homophily=0.5, skew=0.4, words=8, signal=0.3
)
PROTOCOL = Protocol(base=4, pseudo_novel=3, novel=3, way=1, shot=5)
SEEDS = 10
LEVEL = 0.05
RATIOS = ("none", "third", "stream")  # ρ: 0, 1/3, n_test/n_train
NULLS = ("views", "draws", "sources")
RIDGE = {"rank": 32, "penalty": 3.0, "hop_weight": 2.0}
PROJECTED = {"rank": 32, "width": 64, "penalty": 3.0}

Row = dict[str, Any]


def average(stream: Stream, method: str, settings: Mapping[str, Any], seed: int) -> float:
    """Average balanced accuracy over the sessions, in %."""
    learner = find_method(method).make(dict(settings), seed=seed)
    found = evaluate(learner, stream).metrics.values["average"]
    assert found is not None
    return 100 * found


def views(number: int) -> dict[str, Graph]:
    """A graph with two views from the same class vectors, and one from vectors of its own."""
    graph = make_synthetic(replace(SETTINGS, seed=number))
    random = np.random.default_rng([number, 1])
    shared, own = class_vectors(SETTINGS, random), class_vectors(SETTINGS, random)
    labels = graph.labels
    vectors = {"first": shared, "second": shared, "other": own}
    return {
        name: replace(graph, features=draw_features(SETTINGS, labels, each, random)) for name, each in vectors.items()
    }


def one_graph(number: int) -> list[Row]:
    """A row for each null hypothesis: differences on the streams of one graph, and their p-values."""
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore", GraphfclWarning)
    graphs = views(number)
    splits = [make_stream(graphs["first"], PROTOCOL, seed=seed).split for seed in range(SEEDS)]
    found = {  # the same nodes are trained on and tested
        name: [
            Stream(graph, PROTOCOL, seed, split, fit_view(graph, PROTOCOL, split)) for seed, split in enumerate(splits)
        ]
        for name, graph in graphs.items()
    }
    ridge = {
        name: [average(stream, "sgc-ridge", RIDGE, stream.seed) for stream in each] for name, each in found.items()
    }
    drawn = [
        [average(stream, "ranpac", PROJECTED, 100 * number + 2 * stream.seed + part) for stream in found["first"]]
        for part in (0, 1)
    ]
    pairs = {"views": [ridge["first"], ridge["second"]], "draws": drawn, "sources": [ridge["first"], ridge["other"]]}
    ratio = float(np.mean([stream.n_test / stream.n_train for stream in found["first"]]))
    return [{"null": null, "graph": number, **tested(pairs[null], ratio)} for null in NULLS]


def tested(pair: Sequence[Sequence[float]], ratio: float) -> Row:
    """The ratio of the streams, accuracy, mean and deviation of the differences, and p for each ρ."""
    first, second = pair
    ratios = dict(zip(RATIOS, (0.0, 1 / 3, ratio), strict=True))
    differences = np.subtract(first, second)
    return {
        "ratio": round(ratio, 4),
        "accuracy": round(float(np.mean([*first, *second])), 2),
        "difference": round(float(differences.mean()), 4),
        "deviation": round(float(differences.std(ddof=1)), 4),
        **{f"p_{name}": f"{paired_difference(first, second, value).p_value:.6f}" for name, value in ratios.items()},
    }


def rates(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Null hypothesis → ρ → share of the graphs with p < 0.05."""
    listed = list(rows)
    return {
        null: {
            name: float(np.mean([float(row[f"p_{name}"]) < LEVEL for row in listed if row["null"] == null]))
            for name in RATIOS
        }
        for null in NULLS
    }


def main() -> None:
    count = int(os.environ.get("FALSE_POSITIVES_GRAPHS", "200"))
    jobs = int(os.environ.get("FALSE_POSITIVES_JOBS", "1"))
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        rows = [row for each in pool.map(one_graph, range(count)) for row in each]
    if "FALSE_POSITIVES_OUT" in os.environ:
        with open(os.environ["FALSE_POSITIVES_OUT"], "w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    for null, found in rates(rows).items():
        for name, share in found.items():
            bound = null == "views" and name == "stream"
            bar = "<= 5" if bound else "-"
            report(f"false positives, {null}, rho {name}", 100 * share, "%", bar, not bound or share <= LEVEL)
