"""Can the answers of a model in production be trusted? Calibration, "unknown" and prediction sets on test nodes.

For each dataset and seed the classes and supports are those of the stream on the track ``open``: the model is fitted on
the train and validation nodes of session 0, every other label is hidden, and the novel classes are learned session by
session. Asked are the test nodes, after session 0, half of the sessions, the last but one and the last. Nodes of
classes that are not learned yet are unknown.

Calibration is measured twice: over the nodes that are of a class of session 0 (or of a later one), which nobody knows
beforehand, and over the nodes of known classes that are answered so, which is what a user sees.

``ANSWERS_DATASETS`` and ``ANSWERS_SEEDS`` (comma-separated), ``ANSWERS_SHOT`` (labels of a new class), ``ANSWERS_JOBS``
and ``ANSWERS_DEVICE`` change the run; ``ANSWERS_OUT`` keeps the table as CSV.
"""

import os
from typing import Any

import numpy as np

from benchmarks.timing import report
from benchmarks.walks import Row, open_stream, rows_of_walks
from graphfcl.defaults import MODEL_METHOD
from graphfcl.graph import build_graph
from graphfcl.production import GraphClassifier
from graphfcl.production.answers.ood_scores import separation
from graphfcl.stream import Stream

COVERAGE = 0.9


def calibration_error(confidence: np.ndarray, right: np.ndarray, bins: int = 15) -> float:
    """Mean distance of confidence and accuracy over bins of equal width, weighted by how many nodes are in each."""
    places = np.minimum((confidence * bins).astype(int), bins - 1)
    sizes = np.bincount(places, minlength=bins)
    gaps = np.abs(np.bincount(places, confidence, bins) - np.bincount(places, right, bins))
    return float(gaps[sizes > 0].sum() / sizes.sum())


def fitted(stream: Stream, device: str = "cpu", method: str = MODEL_METHOD) -> GraphClassifier:
    """A model of session 0's labels; all other nodes are there without one."""
    graph, base = stream.graph.loaded(), stream.base
    labels = np.full(graph.node_count, -1)
    known = stream.node_of_number[np.concatenate([base.train, base.validation])]
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
    return GraphClassifier(method, way=base.way, shot=base.shot, seed=stream.seed, device=device).fit(shown)


def supports_of(stream: Stream, number: int) -> dict[str, list[Any]]:
    """The supports of a session, by the user's ids."""
    session, found = stream.session(number), dict[str, list[Any]]()
    ids = stream.graph.node_ids[stream.node_of_number[session.supports]]
    for node, column in zip(ids.tolist(), session.support_labels.tolist(), strict=True):
        found.setdefault(stream.classes[column], []).append(node)
    return found


def quality(model: GraphClassifier, stream: Stream, session: int) -> Row:
    """After a session: classes of session 0, classes learned since, and those not learned yet."""
    names = np.array(stream.classes, dtype=object)
    queries = stream.queries(len(stream))
    arrived = stream.session_of_class[queries.labels]
    truth = names[queries.labels]
    found = model.prediction_columns(
        stream.graph.node_ids[stream.node_of_number[queries.nodes]].tolist(), coverage=COVERAGE
    )
    right = found["class"] == truth
    base, novel, unknown = arrived == 0, (arrived > 0) & (arrived <= session), arrived > session
    says_base = np.isin(found["class"], names[stream.session_of_class == 0])
    row: Row = {"session": session}
    for title, here, says in (("base", base, says_base), ("novel", novel, ~says_base)):
        says = says & ~unknown
        if says.any():
            row[f"{title} answers right"] = right[says].mean()
            row[f"{title} answers probability"] = found["probability"][says].mean()
            row[f"{title} answers calibration error"] = calibration_error(found["probability"][says], right[says])
        if here.any():
            row[f"{title} accuracy"] = right[here].mean()
            row[f"{title} probability"] = found["probability"][here].mean()
            row[f"{title} calibration error"] = calibration_error(found["probability"][here], right[here])
            row[f"{title} called known"] = 1 - found["unknown"][here].mean()
            sets = found["set"][here]
            row[f"{title} coverage"] = np.mean([name in held for name, held in zip(truth[here], sets, strict=True)])
            row[f"{title} set size"] = np.mean([len(held) for held in sets])
    if unknown.any():
        scores, known = found["unknown_score"], base | novel
        row["AUROC"] = separation(scores[unknown], scores[known])
        row["false positives at 95 %"] = (scores[unknown] <= np.quantile(scores[known], 0.95)).mean()
        row["flagged"] = found["unknown"][unknown].mean()
    return row


def walk(dataset: str, seed: int, device: str, shot: int | None) -> list[Row]:
    """One stream, asked four times."""
    stream = open_stream(dataset, seed, device, shot)
    model = fitted(stream, device)
    asked, rows = {0, len(stream) // 2, len(stream) - 1, len(stream)}, []
    for number in range(len(stream) + 1):
        if number:
            model.learn(supports_of(stream, number))
        if number in asked:
            kind = "0" if number == 0 else "last" if number == len(stream) else "middle"
            rows.append({"dataset": dataset, "seed": seed, "kind": kind, **quality(model, stream, number)})
    return rows


def show(rows: list[Row]) -> None:
    """The mean over seeds of each dataset and session, then the bars."""
    columns = list(
        dict.fromkeys(key for row in rows for key in row if key not in ("dataset", "seed", "session", "kind"))
    )
    for dataset, session in dict.fromkeys((row["dataset"], row["session"]) for row in rows):
        here = [row for row in rows if (row["dataset"], row["session"]) == (dataset, session)]
        means = {key: np.mean([row[key] for row in here]) for key in columns if key in here[0]}
        print(f"  {dataset}, session {session}: " + ", ".join(f"{key} {value:.3f}" for key, value in means.items()))

    def mean(key: str, over: str = "mean") -> float:
        of_datasets = [
            np.mean([row[key] for row in rows if row["dataset"] == dataset and key in row])
            for dataset in dict.fromkeys(row["dataset"] for row in rows)
        ]
        return float(np.min(of_datasets) if over == "least" else np.mean(of_datasets))

    auroc, least, flagged = mean("AUROC"), mean("AUROC", "least"), mean("flagged")
    report("AUROC of unknown nodes, mean over the graphs", auroc, "", ">= 0.88", auroc >= 0.88)
    report("AUROC on the worst graph", least, "", ">= 0.80", least >= 0.80)
    report("unknown nodes flagged", 100 * flagged, "%", ">= 40", flagged >= 0.4)
    for title, bar in (("base", 0.95), ("novel", 0.92)):
        kept, error = mean(f"{title} called known"), mean(f"{title} calibration error")
        report(f"{title} nodes called known", 100 * kept, "%", f">= {100 * bar:.0f}", kept >= bar)
        report(f"calibration error of {title} classes", 100 * error, "points", "<= 6", error <= 0.06)
        answered = mean(f"{title} answers calibration error")
        report(f"calibration error where the answer is a {title} class", 100 * answered, "points", "-", True)
        report(f"sets of 90 % hold the class of {title} nodes", 100 * mean(f"{title} coverage"), "%", "90", True)
        report(f"classes in such a set, {title}", mean(f"{title} set size"), "", "-", True)


def main() -> None:
    shot = os.environ.get("ANSWERS_SHOT")
    show(rows_of_walks("ANSWERS", walk, None if shot is None else int(shot)))


if __name__ == "__main__":
    main()
