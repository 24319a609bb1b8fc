"""A model that is asked while it learns: what an explanation, a copy, and an answer beside a change cost."""

import copy
import threading
import time
from typing import Any

import numpy as np

from benchmarks.timing import best_seconds, report
from graphfcl.datasets import load_dataset
from graphfcl.production import GraphClassifier

GRAPH = "synthetic:nodes=50000,edges=250000,features=500"  # about as large as debian
QUICK = {"pretraining.epochs": 1, "head_steps": 10}  # how well it is trained does not matter here
HEARD = {  # the two ways in which neighbours are heard
    "smoothing": {"hop_weight": 2.0, "hops": 2, "smoothing": 0.7, "smoothing_steps": 3, "links": 0.0},
    "links": {"hop_weight": 2.0, "hops": 2, "smoothing": 0.0, "smoothing_steps": 3, "links": 0.5},
}


def seconds_of(function: Any) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def explanations(model: GraphClassifier) -> None:
    """Of one node: with a pass over the graph, and once that was made."""
    nodes = np.random.default_rng(0).choice(model.node_ids_, 200, replace=False).tolist()
    cold = GraphClassifier.from_parts(model.parts())
    learner: Any = cold.learner_
    learner.cache.classes_changed()
    visible = cold.graph_.visible
    first = seconds_of(lambda: cold.explain(nodes[0]))
    scores = best_seconds(lambda: (learner.cache.classes_changed(), cold.parts().compute_scores()), 2)
    learner.scores(visible, visible.nodes[:1])
    times = np.array([seconds_of(lambda node=node: cold.explain(node)) for node in nodes])
    report("explain of one node, nothing kept", 1000 * first, "ms", "-", True)
    report("the same after answers: median of 200 nodes", 1000 * float(np.median(times)), "ms", "-", True)
    report("the same after answers: slowest of 200 nodes", 1000 * float(times.max()), "ms", "-", True)
    ratio = first / float(np.median(times))
    report("explain with a pass / after answers", ratio, "x", ">= 20", ratio >= 20)
    kept = learner.cache.intermediate(learner.cache.inputs(visible))
    table = kept.posterior.nbytes + kept.directions.nbytes
    share = table / (cold.all_scores().nbytes)
    report("memory kept for explanations / table of scores", share, "x", "<= 1.1", share <= 1.1)
    report("scores of all nodes", scores, "s", "-", True)


def copies(model: GraphClassifier) -> None:
    """The learner that a change is made on, and a whole model."""
    learner, visible = model.learner_, model.graph_.visible
    report("copy of the learner", 1000 * best_seconds(lambda: learner.copy(visible)), "ms", "-", True)
    report("deepcopy of the model", 1000 * best_seconds(lambda: copy.deepcopy(model)), "ms", "-", True)
    packed = best_seconds(model.__getstate__, 1)
    report("a model packed for another process", packed, "s", "-", True)


def reading_beside_a_change(model: GraphClassifier, supports: dict[str, list[Any]]) -> None:
    """How long an answer about 1,000 nodes takes alone, and while the model learns."""
    asked = model.node_ids_[:1000].tolist()
    alone = best_seconds(lambda: model.prediction_columns(asked))
    writer = threading.Thread(target=lambda: model.learn(supports))
    times = []
    start = time.perf_counter()
    writer.start()
    while writer.is_alive():
        times.append(seconds_of(lambda: model.prediction_columns(asked)))
        time.sleep(0.01)
    learned = time.perf_counter() - start
    report("asking about 1,000 nodes, alone", 1000 * alone, "ms", "-", True)
    report("the same while it learns: median", 1000 * float(np.median(times)), "ms", "-", True)
    slowest = max(times)
    share = 100 * slowest / learned
    report("slowest answer / the learn beside it", share, "%", "< 50", share < 50)
    print(f"  {len(times)} answers during a learn of {learned:.2f} s, the slowest {1000 * slowest:.0f} ms")


def main() -> None:
    graph, _ = load_dataset(GRAPH)
    hidden = graph.class_names[-1]
    members = graph.node_ids[graph.labels == graph.class_number(hidden)].tolist()
    for name, how in HEARD.items():
        start = time.perf_counter()
        model = GraphClassifier("anchor", {**QUICK, **how}).fit(graph, hide_classes=[hidden])
        print(f"  {model!r}, neighbours heard by {name}, fitted in {time.perf_counter() - start:.0f} s")
        explanations(model)
    copies(model)
    reading_beside_a_change(model, {hidden: members[:5]})
