"""Are wrong labels found? AUROC of confidence scores for labels that were flipped, and their precision.

Of each development graph 5 % of the labels are drawn, and each is replaced by a class drawn uniformly from the others.
A model is fitted on all labels. Out-of-fold probabilities are those of ``model.label_issues``, whose confidence is
``1 - p``. Other scores of the same probabilities are beside it: with adjusted probabilities, from which the mean
probability of each class over nodes labelled so is subtracted (Northcutt et al., Confident Learning, JAIR 2021), and
those of cleanlab, if it is installed. Precision is that of as many labels as were flipped, the most confident first.
Seconds are of the processor, with one thread: a fit, and the out-of-fold probabilities.

The graphs are ``GRAPHFCL_DATA/NAME.npz``, or datasets of that name. ``LABEL_ISSUES_DATASETS`` and
``LABEL_ISSUES_SEEDS`` (comma-separated), ``LABEL_ISSUES_FOLDS`` (comma-separated), ``LABEL_ISSUES_METHOD``,
``LABEL_ISSUES_JOBS`` and ``LABEL_ISSUES_DEVICE`` change the run; ``LABEL_ISSUES_OUT`` keeps the table as CSV.
"""

import importlib
import os
import time
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import report
from benchmarks.walks import Row, rows_of_walks
from graphfcl.datasets import load_dataset
from graphfcl.defaults import MODEL_METHOD
from graphfcl.errors import GraphfclWarning
from graphfcl.graph import Graph
from graphfcl.methods import SILENT
from graphfcl.production import GraphClassifier
from graphfcl.production.answers.ood_scores import separation
from graphfcl.production.model.cross_fitting import Folds, cross_fit

GRAPHS = "cora-ml,amazon-computers,uai"
FLIPPED = 0.05
OURS = "1 - p"
TITLES = {  # in tables
    OURS: "the model's confidence, 1 − p",
    "margin": "margin to the likeliest other class",
    "entropy / p": "entropy over p",
    "adjusted margin": "margin of adjusted probabilities",
    "cleanlab self_confidence": "cleanlab, `self_confidence`",
    "cleanlab normalized_margin": "cleanlab, `normalized_margin`",
    "cleanlab confidence_weighted_entropy": "cleanlab, `confidence_weighted_entropy`",
    "cleanlab self_confidence, adjusted": "cleanlab, `self_confidence`, adjusted",
    "cleanlab normalized_margin, adjusted": "cleanlab, `normalized_margin`, adjusted",
}
MEASURED = ("labels", "accuracy", "fit seconds", "seconds", "AUROC", "precision")
LEAST = 1e-12


def read(dataset: str) -> Graph:
    """A dataset, or a file of the data folder."""
    folder = os.environ.get("GRAPHFCL_DATA", ".")
    file = Path(folder) / f"{dataset}.npz"
    return load_dataset(str(file) if file.exists() else dataset, data_dir=folder)[0].loaded()


def flipped(graph: Graph, seed: int) -> tuple[Graph, np.ndarray]:
    """The graph with some wrong labels, and (n,) bool, which they are."""
    random, labels = np.random.default_rng([seed, 5]), graph.labels.copy()
    known = np.flatnonzero(labels >= 0)
    rows = random.choice(known, round(FLIPPED * known.size), replace=False)
    count = len(graph.class_names)
    labels[rows] = (labels[rows] + random.integers(1, count, rows.size)) % count
    return replace(graph, labels=labels), np.isin(np.arange(labels.size), rows)


def scores(probabilities: np.ndarray, given: np.ndarray) -> dict[str, np.ndarray]:
    """Name → (m,) scores, higher for a label that is rather wrong. given: (m,) columns of the labels."""
    rows = np.arange(given.size)
    own = probabilities[rows, given]
    entropy = -(probabilities * np.log(np.maximum(probabilities, LEAST))).sum(axis=1)
    usual = np.bincount(given, own) / np.maximum(1, np.bincount(given))
    found = {
        OURS: 1 - own,
        "margin": margin(probabilities, given),
        "entropy / p": entropy / np.maximum(own, LEAST),
        "adjusted margin": margin(probabilities - usual, given),
    }
    with suppress(ModuleNotFoundError):
        quality = importlib.import_module("cleanlab.rank").get_label_quality_scores
        for name in ("self_confidence", "normalized_margin", "confidence_weighted_entropy"):
            found[f"cleanlab {name}"] = 1 - quality(given, probabilities, method=name)
        for name in ("self_confidence", "normalized_margin"):
            found[f"cleanlab {name}, adjusted"] = 1 - quality(given, probabilities, method=name, adjust_pred_probs=True)
    return found


def margin(probabilities: np.ndarray, given: np.ndarray) -> np.ndarray:
    """(m,) the likeliest other class over the label."""
    rows, others = np.arange(given.size), probabilities.copy()
    others[rows, given] = -np.inf
    return others.max(axis=1) - probabilities[rows, given]


def walk(dataset: str, seed: int, device: str, method: str, counts: tuple[int, ...]) -> list[Row]:
    """One row for each number of folds and score."""
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore", GraphfclWarning)
    graph = read(dataset)
    noisy, is_wrong = flipped(graph, seed)
    start = time.process_time()
    model = GraphClassifier(method, seed=seed, device=device).fit(noisy)
    fit_seconds = time.process_time() - start
    rows: list[Row] = []
    for count in counts:
        start = time.process_time()
        folds = Folds.draw(model.label_store_, count, 0)
        wanted, configuration = folds.fold_of >= 0, model.configuration
        probabilities = np.zeros((wanted.size, len(folds.names)))
        judged = cross_fit(model.graph_, folds, wanted, configuration, device=device, progress=SILENT)
        for places, found in judged:
            probabilities[places] = found / found.sum(axis=1, keepdims=True)
        seconds = time.process_time() - start
        nodes, probabilities, given = folds.nodes[wanted], probabilities[wanted], folds.classes[wanted]
        wrong = is_wrong[model.graph_.rows_of(nodes)]
        place = np.array([folds.names.index(name) for name in graph.class_names])
        true = place[graph.labels[model.graph_.rows_of(nodes)]]
        facts = {
            "dataset": dataset,
            "seed": seed,
            "folds": count,
            "labels": given.size,
            "flipped": int(wrong.sum()),
            "accuracy": float((probabilities.argmax(axis=1) == true).mean()),
            "fit seconds": fit_seconds,
            "seconds": seconds,
        }
        rows += [
            {
                **facts,
                "score": name,
                "AUROC": separation(values[wrong], values[~wrong]),
                "precision": top(values, wrong),
            }
            for name, values in scores(probabilities, given).items()
        ]
    return rows


def top(values: np.ndarray, wrong: np.ndarray) -> float:
    """The share of wrong labels among as many of the highest scores as there are wrong labels."""
    return float(wrong[np.argsort(-values, kind="stable")[: int(wrong.sum())]].mean())


def mean(rows: Iterable[Mapping[str, Any]], key: str) -> float:
    """The mean of a column."""
    return float(np.mean([float(row[key]) for row in rows]))


def show(rows: list[Row]) -> None:
    """Each graph and score, then the bars."""
    for dataset, folds in dict.fromkeys((row["dataset"], row["folds"]) for row in rows):
        here = [row for row in rows if (row["dataset"], row["folds"]) == (dataset, folds)]
        accuracy, seconds, fit = (mean(here, key) for key in ("accuracy", "seconds", "fit seconds"))
        print(f"  {dataset}, {folds} folds: accuracy {100 * accuracy:.1f} %, {seconds:.0f} s, a fit {fit:.0f} s")
        for score in dict.fromkeys(row["score"] for row in here):
            found = [mean([row for row in here if row["score"] == score], key) for key in ("AUROC", "precision")]
            print(f"    {TITLES[score]:<46} AUROC {found[0]:.4f}, precision {100 * found[1]:.1f} %")
        value, easy = mean([row for row in here if row["score"] == OURS], "AUROC"), accuracy > 0.8
        report(f"AUROC of wrong labels, {dataset}", value, "", ">= 0.90" if easy else "-", value >= 0.9 or not easy)


def main() -> None:
    method = os.environ.get("LABEL_ISSUES_METHOD", MODEL_METHOD)
    counts = tuple(int(each) for each in os.environ.get("LABEL_ISSUES_FOLDS", "3").split(","))
    show(rows_of_walks("LABEL_ISSUES", walk, method, counts, graphs=GRAPHS, draws="0,1"))


if __name__ == "__main__":
    main()
