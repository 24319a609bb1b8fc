"""A model in production on debian: what learning, asking and growing cost, and how well it is calibrated.

The classes and supports are those of the stream with seed 0 on the track ``open``: the model is fitted on the train and
validation nodes of session 0, every other label is hidden, and the novel classes are learned session by session.
"""

import time
from typing import Any

import numpy as np

from benchmarks.timing import best_seconds, report
from graphfcl.datasets import load_dataset
from graphfcl.graph import build_graph
from graphfcl.methods import find_method
from graphfcl.methods.anchor.learner import Anchor
from graphfcl.methods.shared.untrained_features import propagated
from graphfcl.production import GraphClassifier
from graphfcl.production.calibration import separation
from graphfcl.stream import Session, Stream, make_stream


def calibration_error(confidence: np.ndarray, right: np.ndarray, bins: int = 15) -> float:
    """Mean distance of confidence and accuracy over bins of equal width, weighted by how many nodes are in each."""
    places = np.minimum((confidence * bins).astype(int), bins - 1)
    sizes = np.bincount(places, minlength=bins)
    gaps = np.abs(np.bincount(places, confidence, bins) - np.bincount(places, right, bins))
    return float(gaps[sizes > 0].sum() / sizes.sum())


def fitted(stream: Stream) -> GraphClassifier:
    graph, base = stream.graph, stream.base
    labels = np.full(graph.node_count, -1)
    known = np.concatenate([base.train, base.validation])
    labels[known] = graph.labels[known]
    shown = build_graph(
        graph.adjacency,
        graph.features,
        labels,
        class_names=graph.class_names,
        node_ids=graph.node_ids,
        feature_names=graph.feature_names,
        text=graph.text,
    )
    return GraphClassifier(way=base.way, shot=base.shot).fit(shown)


def quality(model: GraphClassifier, stream: Stream, session: int) -> None:
    """After a session: base, novel and not yet learned classes apart."""
    ids, names = stream.graph.node_ids, np.array(stream.classes, dtype=object)
    queries, first = stream.queries(len(stream)), stream.session_of_class
    asked = first[queries.labels]
    found = model.predictions(ids[queries.nodes].tolist())
    right = found["class"] == names[queries.labels]
    base, novel, unknown = asked == 0, (asked > 0) & (asked <= session), asked > session
    for title, here in (("base", base), ("novel", novel)):
        if not here.any():
            continue
        error = calibration_error(found["probability"][here], right[here])
        kept = 1 - found["unknown"][here].mean()
        print(
            f"  session {session:2d}, {title:5s}: accuracy {100 * right[here].mean():5.1f} %, mean probability "
            f"{100 * found['probability'][here].mean():5.1f} %, calibration error {100 * error:4.1f} points, "
            f"called known {100 * kept:5.1f} %"
        )
    if unknown.any():
        scores = found["unknown_score"]
        known = base | novel
        limit = np.quantile(scores[known], 0.95)
        print(
            f"  session {session:2d}, unknown: AUROC {separation(scores[unknown], scores[known]):.3f}, called known "
            f"when 95 % of known nodes are {100 * (scores[unknown] <= limit).mean():.1f} %, called unknown "
            f"{100 * found['unknown'][unknown].mean():.1f} %"
        )


def supports_of(stream: Stream, numbers: range) -> dict[str, list[Any]]:
    ids, names = stream.graph.node_ids, stream.classes
    found: dict[str, list[Any]] = {}
    for number in numbers:
        session = stream.session(number)
        for node, column in zip(session.supports.tolist(), session.support_labels.tolist(), strict=True):
            found.setdefault(names[column], []).append(ids[node].item())
    return found


def speed(model: GraphClassifier, stream: Stream) -> None:
    visible = model.graph_.visible
    learner: Any = model.learner_

    def forward() -> None:
        learner._inputs(visible).table = None
        learner.embeddings(visible)

    once = best_seconds(forward, 2)
    five = dict(list(supports_of(stream, range(1, 4)).items())[:5])
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
    asked = best_seconds(lambda: model.predictions(model.node_ids_[:1000].tolist()), 3)
    del learner._table
    report("forward passes of asking about nodes that are there", len(calls), "", "0", not calls)
    report("asking about 1,000 nodes", 1000 * asked, "ms", "-", True)


def growth(model: GraphClassifier) -> None:
    """One new node with one edge: to a hub, and to a node of median degree."""
    graph = model.graph_
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
            visible.normalised  # noqa: B018
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
    raw = inputs.raw() @ anchor.known.frame["basis"]
    once = best_seconds(lambda: propagated(inputs, raw, 1), 3)
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
    report("fit on debian, rehearsal included", time.perf_counter() - start, "s", "-", True)
    quality(model, stream, 0)
    speed(model, stream)
    for number in range(4, len(stream) + 1):
        model.learn(supports_of(stream, range(number, number + 1)) | _left(stream, model, number))
        if number in (6, 9, len(stream)):
            quality(model, stream, number)
    growth(model)


def _left(stream: Stream, model: GraphClassifier, number: int) -> dict[str, list[Any]]:
    """The class of session 3 that the five of the speed test left out."""
    return {name: nodes for name, nodes in supports_of(stream, range(1, number)).items() if name not in model.classes_}
