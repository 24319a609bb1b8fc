"""How good a model is on nodes that it did not learn from, and whether a change made it worse."""

from typing import Any

import numpy as np

from graphfcl.arrays import rank_in_run
from graphfcl.graph import VisibleGraph
from graphfcl.methods import Learner
from graphfcl.production.ledger import Ledger, Part

FOLDS = 20  # of leave-one-out; a class with more supports leaves out several at a time


def class_recalls(labels: np.ndarray, found: np.ndarray, ledger: Ledger) -> dict[str, float]:
    """Recall of each class that has nodes among these. Both are positions in the ledger's classes."""
    count = len(ledger.classes)
    asked = np.bincount(labels, minlength=count)
    right = np.bincount(labels[labels == found], minlength=count)
    return {ledger.classes[c]: float(right[c] / asked[c]) for c in np.flatnonzero(asked)}


def leave_one_out(
    learner: Learner, visible: VisibleGraph, ledger: Ledger, active: np.ndarray
) -> dict[str, float] | None:
    """Recall of the classes learned after session 0, each support asked about while it is left out.

    Classes with one support have none to spare and are not measured; None if the learner cannot be restated.
    """
    of_column = ledger.class_of_column()
    own = np.flatnonzero((ledger.columns >= ledger.many) & (ledger.parts != Part.VALIDATION))
    own = own[of_column[ledger.columns[own]] >= 0]
    order = own[np.argsort(ledger.columns[own], kind="stable")]
    columns = ledger.columns[order]
    rank = rank_in_run(columns)
    shots = np.bincount(columns, minlength=len(ledger.names))[columns] if order.size else rank
    folds = min(FOLDS, int(shots.max(initial=0)))
    labels, answers = [], []
    for fold in range(folds):
        left = order[(shots > 1) & (rank % folds == fold)]
        if not left.size:
            continue
        left_out = (ledger.nodes[left], ledger.columns[left])
        scores = learner.scores_without(visible, left_out, *ledger.knowledge())
        if scores is None:
            return None
        answers.append(of_column[active][scores[:, active].argmax(axis=1)])
        labels.append(of_column[left_out[1]])
    if not labels:
        return {}
    return class_recalls(np.concatenate(labels), np.concatenate(answers), ledger)


def accuracy_of(recalls: dict[str, float], learned: dict[str, float] | None) -> dict[str, Any]:
    """What the history keeps: balanced accuracies on validation nodes and by leave-one-out, and every recall."""
    return {
        "validation": _mean(recalls),
        "leave_one_out": None if learned is None else _mean(learned),
        "classes": {name: round(value, 4) for name, value in {**recalls, **(learned or {})}.items()},
    }


def _mean(recalls: dict[str, float]) -> float | None:
    return round(float(np.mean(list(recalls.values()))), 4) if recalls else None


def last_accuracy(history: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The newest accuracy that was measured."""
    return next((entry["accuracy"] for entry in reversed(history) if entry.get("accuracy")), None)


def lost(history: list[dict[str, Any]], entry: dict[str, Any], most: float) -> str | None:
    """A warning if the classes known before lost more than ``most`` of their mean recall."""
    measured = last_accuracy(history)
    if not measured:
        return None
    before = measured["classes"]
    now = entry["accuracy"]["classes"]
    both = [name for name in before if name in now]
    if not both:
        return None
    old, new = (float(np.mean([values[name] for name in both])) for values in (before, now))
    if old - new <= most:
        return None
    worst = max(both, key=lambda name: before[name] - now[name])
    return (
        f"the {len(both)} classes known before lost {100 * (old - new):.1f} points of balanced accuracy "
        f"({100 * old:.1f} to {100 * new:.1f}), most of all {worst!r}"
    )
