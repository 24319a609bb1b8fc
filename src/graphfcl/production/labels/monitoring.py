"""How good a model is on nodes that it did not learn from, and whether a change made it worse."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphfcl.graph import VisibleGraph
from graphfcl.methods import Learner
from graphfcl.production.labels.history import History
from graphfcl.production.labels.label_store import LabelRole, LabelStore
from graphfcl.runtime.arrays import rank_in_run

FOLDS = 20  # of leave-one-out; a class with more supports leaves out several at a time


def class_recalls(classes: np.ndarray, answers: np.ndarray, label_store: LabelStore) -> dict[str, float]:
    """Recall of each class that has nodes among these.

    classes, answers: (n,) true and answered classes, as positions in ``label_store.classes``.
    """
    count = len(label_store.classes)
    asked = np.bincount(classes, minlength=count)
    right = np.bincount(classes[classes == answers], minlength=count)
    return {label_store.classes[c]: float(right[c] / asked[c]) for c in np.flatnonzero(asked)}


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Supports of classes learned after session 0, each asked about while it is left out.

    nodes, columns: (m,) node numbers and true columns. scores: (m, columns in use).
    """

    nodes: np.ndarray
    columns: np.ndarray
    scores: np.ndarray


def left_out_scores(
    learner: Learner, visible: VisibleGraph, label_store: LabelStore, active: np.ndarray
) -> LeftOut | None:
    """Scores of the supports of classes learned after session 0, each while it is left out.

    active: columns that are not retired. A class with one support has none to spare and is not asked about. None if the
    learner cannot be restated. Which supports are left out together follows from their node numbers, not from the order
    in which they were learned.
    """
    class_of_column = label_store.class_of_column()
    later = np.flatnonzero(
        (label_store.columns >= label_store.session_zero_columns) & (label_store.parts != LabelRole.VALIDATION)
    )
    later = later[class_of_column[label_store.columns[later]] >= 0]
    order = later[np.lexsort((label_store.nodes[later], label_store.columns[later]))]
    columns = label_store.columns[order]
    rank = rank_in_run(columns)
    shots = np.bincount(columns, minlength=len(label_store.names))[columns] if order.size else rank
    folds = min(FOLDS, int(shots.max(initial=0)))
    asked, scores = [np.zeros(0, dtype=np.int64)], [np.zeros((0, active.size))]
    for fold in range(folds):
        left = order[(shots > 1) & (rank % folds == fold)]
        if not left.size:
            continue
        found = learner.scores_without(
            visible, (label_store.nodes[left], label_store.columns[left]), *label_store.knowledge()
        )
        if found is None:
            return None
        asked.append(left)
        scores.append(found[:, active])
    places = np.concatenate(asked)
    return LeftOut(label_store.nodes[places], label_store.columns[places], np.concatenate(scores))


def left_out_recalls(left: LeftOut, label_store: LabelStore, active: np.ndarray) -> dict[str, float]:
    """Recall of the classes learned after session 0 on supports that were left out."""
    class_of_column = label_store.class_of_column()
    answers = class_of_column[active][left.scores.argmax(axis=1)]
    return class_recalls(class_of_column[left.columns], answers, label_store)


def accuracy_of(recalls: dict[str, float], learned: dict[str, float] | None) -> dict[str, Any]:
    """What the history keeps: balanced accuracies on validation nodes and by leave-one-out, and recalls per class."""
    return {
        "validation": _mean(recalls),
        "leave_one_out": None if learned is None else _mean(learned),
        "classes": {name: round(value, 4) for name, value in {**recalls, **(learned or {})}.items()},
    }


def _mean(recalls: dict[str, float]) -> float | None:
    return round(float(np.mean(list(recalls.values()))), 4) if recalls else None


def regression_warning(history: History, accuracy: dict[str, Any], max_loss: float) -> str | None:
    """A warning if the classes measured before lost more than ``max_loss`` of their mean recall."""
    measured = history.last_accuracy()
    if not measured:
        return None
    before, after = measured["classes"], accuracy["classes"]
    both = [name for name in before if name in after]
    if not both:
        return None
    old, new = (float(np.mean([recalls[name] for name in both])) for recalls in (before, after))
    if old - new <= max_loss:
        return None
    worst = max(both, key=lambda name: before[name] - after[name])
    return (
        f"the {len(both)} classes known before lost {100 * (old - new):.1f} points of balanced accuracy "
        f"({100 * old:.1f} to {100 * new:.1f}), most of all {worst!r}"
    )
