"""Are groups without a name of one class? Purity of the tightest groups among nodes that look unknown.

For each dataset and seed the classes are those of the stream on the track ``open``: the model is fitted on the train
and validation nodes of session 0, every other label is hidden. The purity of a group is the share of its largest true
class. Told are also how sure the model was, how many classes the groups are of, how many of these the model does not
know, and the recall of the other nodes of such a class once its first group has got its name.

``GROUPS_DATASETS`` and ``GROUPS_SEEDS`` (comma-separated), ``GROUPS_JOBS``, ``GROUPS_DEVICE`` and ``GROUPS_METHOD``
change the run; ``GROUPS_OUT`` keeps the table as CSV.
"""

import os
import time

import numpy as np

from benchmarks.answers import fitted
from benchmarks.timing import report
from benchmarks.walks import Row, open_stream, rows_of_walks
from graphfcl.defaults import MODEL_METHOD
from graphfcl.production import GraphClassifier, Group
from graphfcl.stream import Stream

COUNT = 5


def quality(group: Group, stream: Stream) -> Row:
    """Of one group: its size, purity, class, and whether that is one that the model does not know."""
    graph = stream.graph
    place = {node: row for row, node in enumerate(graph.node_ids.tolist())}
    names = [graph.class_names[graph.labels[place[node]]] for node in group.nodes]
    best = max(set(names), key=names.count)
    arrived = dict(zip(stream.classes, stream.session_of_class.tolist(), strict=True))
    return {
        "group": group.number,
        "size": group.size,
        "purity": names.count(best) / group.size,
        "sure": group.estimated_purity,
        "class": best,
        "unknown": arrived.get(best, 1) > 0,
    }


def recall_when_named(model: GraphClassifier, groups: tuple[Group, ...], rows: list[Row], stream: Stream) -> None:
    """Name the first group of each class as what most of it is; the recall of the other nodes of the class."""
    graph = stream.graph
    first = {row["class"]: (group, row) for group, row in reversed(list(zip(groups, rows, strict=True)))}
    new = {name: each for name, each in first.items() if each[1]["unknown"]}
    for name, (group, _) in new.items():
        model.name_group(group, name)
    labelled = set(model.label_columns()["node"].tolist())
    for name, (_, row) in new.items():
        here = graph.node_ids[graph.labels == graph.class_number(name)].tolist()
        others = [node for node in here if node not in labelled]
        row["recall when named"] = float((model.predict(others) == name).mean()) if others else None


def walk(dataset: str, seed: int, device: str, method: str) -> list[Row]:
    """The groups of one stream, after session 0."""
    stream = open_stream(dataset, seed, device)
    model = fitted(stream, device, method)
    start = time.perf_counter()
    groups = model.groups(COUNT)
    seconds = time.perf_counter() - start
    rows = [quality(group, stream) for group in groups]
    recall_when_named(model, groups, rows, stream)
    return [{"dataset": dataset, "seed": seed, "seconds": seconds, **row} for row in rows]


def show(rows: list[Row]) -> None:
    """Each dataset, then the bar."""
    purities = []
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        here = [row for row in rows if row["dataset"] == dataset]
        purities.append(float(np.mean([row["purity"] for row in here])))
        seeds = dict.fromkeys(row["seed"] for row in here)
        kinds = np.mean([len({row["class"] for row in here if row["seed"] == seed}) for seed in seeds])
        recalls = [row["recall when named"] for row in here if row.get("recall when named") is not None]
        print(
            f"  {dataset}: purity {purities[-1]:.3f}, least {min(row['purity'] for row in here):.2f}, "
            f"sure {np.mean([row['sure'] for row in here]):.3f}, size {np.mean([row['size'] for row in here]):.0f}, "
            f"classes {kinds:.1f} of {len(here) / len(seeds):.1f} groups, "
            f"unknown ones {np.mean([row['unknown'] for row in here]):.2f}, "
            f"recall when named {np.mean(recalls) if recalls else float('nan'):.2f}, "
            f"{np.mean([row['seconds'] for row in here]):.1f} s"
        )
    gaps = {
        dataset: 100 * float(np.mean([row["sure"] - row["purity"] for row in rows if row["dataset"] == dataset]))
        for dataset in dict.fromkeys(row["dataset"] for row in rows)
    }
    for dataset, gap in gaps.items():
        report(f"stated minus true purity, {dataset}", gap, "points", "within 5", abs(gap) <= 5)
    sure = [row["purity"] for row in rows if row["sure"] >= 0.95]
    few = float(np.mean([purity < 0.8 for purity in sure])) if sure else 0.0
    report(f"of {len(sure)} groups of stated 95 % or more, below 80 %", 100 * few, "%", "<= 5", few <= 0.05)
    mean = float(np.mean(purities))
    report("purity of the five tightest groups, mean over the graphs", 100 * mean, "%", ">= 85", mean >= 0.85)


def main() -> None:
    show(rows_of_walks("GROUPS", walk, os.environ.get("GROUPS_METHOD", MODEL_METHOD)))


if __name__ == "__main__":
    main()
