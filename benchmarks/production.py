"""A model in production on debian: what learning, asking and growing cost.

The classes and supports are those of the stream with seed 0 on the track ``open``: the model is fitted on the train and
validation nodes of session 0, every other label is hidden, and the novel classes are learned session by session.
"""

import time
from typing import Any

import numpy as np

from benchmarks.answers import fitted, supports_of
from benchmarks.timing import best_seconds, report
from graphfcl.datasets import load_dataset
from graphfcl.methods import find_method
from graphfcl.methods.anchor.learner import Anchor
from graphfcl.production import GraphClassifier
from graphfcl.stream import Session, Stream, make_stream


def speed(model: GraphClassifier, stream: Stream) -> None:
    visible = model.graph_.visible
    learner: Any = model.learner_

    def forward() -> None:
        learner._inputs(visible).table = None
        learner.embeddings(visible)

    once = best_seconds(forward, 2)
    five = dict([item for number in range(1, 4) for item in supports_of(stream, number).items()][:5])
    start = time.perf_counter()
    model.learn(five)
    seconds = time.perf_counter() - start
    report("one forward pass over debian", once, "s", "-", True)
    report("learn of 5 classes x 5 supports / one forward pass", seconds / once, "x", "<= 2", seconds <= 2 * once)
    calls: list[int] = []
    plain = learner._table

    def counted(*arguments: Any) -> Any:
        calls.append(1)
        return plain(*arguments)

    learner._table = counted
    asked = best_seconds(lambda: model.prediction_columns(model.node_ids_[:1000].tolist()), 3)
    del learner._table
    report("forward passes of asking about nodes that are there", len(calls), "", "0", not calls)
    report("asking about 1,000 nodes", 1000 * asked, "ms", "-", True)


def growth(model: GraphClassifier) -> None:
    """One new node with one edge: to a hub, and to a node of median degree."""
    graph: Any = model.graph_  # in memory, of which arrays are read
    degrees = graph.visible.degrees
    places = {"a hub": int(degrees.argmax()), "a node of median degree": int(np.argsort(degrees)[degrees.size // 2])}
    lonely = np.flatnonzero(degrees == 1)
    if lonely.size:
        sizes = [graph.reach(graph.numbers[[row]], model.learner_.reach).size for row in lonely[:200]]
        places["the node of degree 1 with the smallest surroundings of 200"] = int(lonely[int(np.argmin(sizes))])
    for number, (title, row) in enumerate(places.items()):
        identity = f"new-{number}"
        start = time.perf_counter()
        model.grow(nodes=([identity], graph.features[[row]], None), edges=([identity], [model.graph_.ids[row]], None))
        share = model.history[-1]["within_reach"]
        note = "all recomputed" if share > 0.5 else "only these recomputed"
        print(f"  growth at {title}: {share:.1%} of the embeddings within reach, {note}; "
              f"{time.perf_counter() - start:.2f} s with scores and calibration")  # fmt: skip


def session_costs(stream: Stream) -> None:
    """A session of 5 x 5 on the transductive track: ANCHOR, one propagation, and HAG-Meta with ten steps."""
    base = stream.base
    supports, labels, names = [], [], []
    for number in range(1, 4):
        session = stream.session(number)
        supports.append(session.supports)
        labels.append(session.support_labels)
        names += list(session.new_classes)
    nodes, columns = np.concatenate(supports), np.concatenate(labels)
    five = columns < len(base.classes) + 5

    def seconds(learner: Any) -> tuple[float, float]:
        """On a graph that is new, as in every session of a stream, and once more on it; both find it normalised."""
        state, times = learner.state(), []
        for _ in range(8):
            stream.visible_graph(2)  # the last one is kept, so this makes the next one new
            visible = stream.visible_graph(3)
            visible.loaded().normalised  # noqa: B018
            session = Session(1, tuple(names[:5]), nodes[five], columns[five], visible, "transductive")
            pair = []
            for _ in range(2):
                learner.load_state(state)
                start = time.perf_counter()
                learner.learn(session)
                pair.append(time.perf_counter() - start)
            times.append(pair)
        learner.load_state(state)
        new, again = np.array(times[1:]).min(axis=0)
        return float(new), float(again)

    anchor = find_method("anchor").make({"pretraining.epochs": 3}, seed=0)
    assert isinstance(anchor, Anchor)
    anchor.fit(base)
    inputs = anchor.cache.inputs(stream.visible_graph(3))
    raw = inputs.raw() @ anchor.knowledge.frame["basis"]
    once = best_seconds(lambda: inputs.adjacency @ raw, 3)
    ours, ours_again = seconds(anchor)
    meta = find_method("hag-meta").make(
        {"pretraining.epochs": 3, "episodes": 20, "fine_tuning_steps": 10, "refit": False}, seed=0
    )
    meta.fit(base)
    theirs, theirs_again = seconds(meta)
    report("a session of 5 x 5, anchor / hag-meta with 10 steps", ours / theirs, "x", "< 0.1", ours < 0.1 * theirs)
    report("a session of 5 x 5, anchor / one propagation", ours / once, "x", "<= 2", ours <= 2 * once)
    print(f"  anchor {1000 * ours:.0f} ms, hag-meta {1000 * theirs:.0f} ms, one propagation {1000 * once:.0f} ms; "
          f"on a graph seen before {1000 * ours_again:.0f} and {1000 * theirs_again:.0f} ms")  # fmt: skip


def main() -> None:
    graph, protocol = load_dataset("debian")
    session_costs(make_stream(graph, protocol, seed=0))
    stream = make_stream(graph, protocol, seed=0, track="open")
    start = time.perf_counter()
    model = fitted(stream)
    report("fit on debian, calibration run included", time.perf_counter() - start, "s", "-", True)
    speed(model, stream)
    growth(model)
