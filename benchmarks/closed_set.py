"""What does a learner gain that knows which classes an isolated session holds? The control against its own other forms.

For each dataset and seed the control is fitted once; session 0 is the same on both tracks. Each form then learns all
sessions, and its answers after the last one are measured.

``CLOSED_SET_DATASETS`` and ``CLOSED_SET_SEEDS`` (comma-separated) change the run; ``CLOSED_SET_OUT`` keeps the table as
CSV, after every seed.
"""

import copy
import csv
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.datasets import load_dataset
from graphfcl.methods.closed_set_control import ClosedSetControl
from graphfcl.metrics import balanced_accuracy, confusion_matrix
from graphfcl.stream import Stream, make_stream

TRACKS = ("isolated", "transductive")
FORMS: dict[str, dict[str, Any]] = {
    "no self-training": {"rounds": 0},
    "among all classes": {"closed_set": False},
    "among the new classes": {"closed_set": True},
}
Row = dict[str, Any]


def rows_of(dataset: str, seed: int) -> list[Row]:
    graph, protocol = load_dataset(dataset)
    streams = {track: make_stream(graph, protocol, seed=seed, track=track) for track in TRACKS}
    fitted = ClosedSetControl(seed=seed)
    fitted.fit(streams["isolated"].base)
    rows = []
    for track, stream in streams.items():
        # On the other tracks the two kinds of self-training are one.
        forms = FORMS if track == "isolated" else dict(list(FORMS.items())[:2])
        for form, last, novel in measured(fitted, stream, forms):
            kind = {"dataset": dataset, "track": track, "form": form, "seed": seed}
            rows.append({**kind, "last": last, "novel": novel})
    return rows


def measured(
    fitted: ClosedSetControl, stream: Stream, forms: dict[str, dict[str, Any]]
) -> list[tuple[str, float, float]]:
    """Of each form the balanced accuracy after the last session, in %: of all classes, and of those learned since 0."""
    learners = {form: copy.copy(fitted) for form in forms}  # a learner replaces its arrays, it does not write to them
    for form, learner in learners.items():
        learner.settings = replace(learner.settings, **forms[form])
    latest = None  # the vectors of a graph, which all forms share
    for session in stream:
        for learner in learners.values():
            learner._latest = latest
            learner.learn(session)
            latest = learner._latest
    last, novel = len(stream), stream.session_of_class > 0
    queries, visible = stream.queries(last), stream.evaluation_graph(last)
    found = []
    for form, learner in learners.items():
        learner._latest = latest
        answers = learner.scores(visible, visible.nodes).argmax(axis=1)[visible.rows(queries.nodes)]
        latest = learner._latest
        confusion = confusion_matrix(queries.labels, answers, len(stream.classes))
        of_all, of_new = 100 * balanced_accuracy(confusion), 100 * balanced_accuracy(confusion, novel)
        found.append((form, round(of_all, 2), round(of_new, 2)))
    return found


def main() -> None:
    datasets = os.environ.get("CLOSED_SET_DATASETS", "debian,wordnet").split(",")
    seeds = [int(seed) for seed in os.environ.get("CLOSED_SET_SEEDS", "0,1,2,3,4").split(",")]
    rows: list[Row] = []
    for seed in seeds:
        for dataset in datasets:
            rows += rows_of(dataset, seed)
            if out := os.environ.get("CLOSED_SET_OUT"):
                write(rows, Path(out))
    print("\n".join(table(rows)))


def write(rows: list[Row], path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def table(rows: list[Row]) -> list[str]:
    """Lines of Markdown: balanced accuracy in % after the last session, of new classes (of all), means over seeds."""
    lines = [f"| new classes (all) | {' | '.join(FORMS)} |", f"|{'---|' * (1 + len(FORMS))}"]
    for dataset, track in dict.fromkeys((row["dataset"], row["track"]) for row in rows):
        cells = []
        for form in FORMS:
            chosen = [row for row in rows if (row["dataset"], row["track"], row["form"]) == (dataset, track, form)]
            means = [float(np.mean([float(row[figure]) for row in chosen])) for figure in ("novel", "last") if chosen]
            cells.append("{:.1f} ({:.1f})".format(*means) if means else "")
        lines.append(f"| `{dataset}`, `{track}` | {' | '.join(cells)} |")
    return lines
