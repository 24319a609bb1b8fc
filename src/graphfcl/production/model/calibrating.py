"""What follows every change of a model: scores of all nodes, calibration and accuracy."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.graph.interfaces import VisibleNodes
from graphfcl.methods import SILENT, Learner, Progress
from graphfcl.methods.blocks.labelled_rows import some_of_each_class
from graphfcl.methods.learner import Labelled
from graphfcl.production.answers.answers import Answers, ModelAnswers, class_probabilities
from graphfcl.production.answers.calibration import (
    Answered,
    Calibration,
    Readings,
    unknown_share,
)
from graphfcl.production.answers.ood_scores import (
    MANY_NODES,
    Evidence,
)
from graphfcl.production.answers.row_values import RowValues, node_rows
from graphfcl.production.labels.history import History
from graphfcl.production.labels.label_store import LabelRole, LabelStore
from graphfcl.production.model.parts import ModelParts
from graphfcl.production.model.stored_version import StoredVersion
from graphfcl.runtime.arrays import rank_in_run

FOLDS = 20  # of leave-one-out; a class with more supports leaves out several at a time
MOST_ASKED = 2000  # validation nodes of a class that are asked about on a graph of more than ``MANY_NODES``


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
    learner: Learner, visible: VisibleNodes, label_store: LabelStore, active: np.ndarray
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


@dataclass(frozen=True, eq=False)
class Settled:
    """The calibration of a model, its accuracy as the history keeps it, and the readings of every node.

    With the accuracy go two numbers that show whether a model grows old: the mean probability of its answers on
    validation nodes (``confidence``), and the share of all nodes that it calls unknown (``unknown``). It is None if the
    model was calibrated before.
    """

    calibration: Calibration
    accuracy: dict[str, Any] | None
    readings: Readings


def settle(parts: ModelParts, scores: Any) -> Settled:
    """Calibrate and measure a model on its validation nodes, unless its calibration is that of its scores.

    The calibration is a function of scores, labels and the held-out run; the previous one is used only if all
    validation nodes are gone.

    scores: (n, columns) of every row of its graph, an array or a table on disk.
    """
    visible, label_store = parts.graph.visible, parts.label_store
    class_of_column = label_store.class_of_column()
    active = np.flatnonzero(class_of_column >= 0)
    used = RowValues.of(scores, active)
    if not parts.calibration.stale:
        evidence = evidence_of(used, parts.calibration.temperature, visible, label_store, active)
        return Settled(parts.calibration, None, parts.calibration.readings(evidence))
    if used.has_nan():
        raise InputError(
            f"the method {parts.configuration.method!r} gave scores that are no numbers: look for values that are "
            "not finite in the features, or in the method; nothing was changed."
        )
    nodes, columns = some_queries(visible, label_store.of_part(LabelRole.VALIDATION), parts.configuration.seed)
    rows = visible.rows(nodes)
    left = left_out_scores(parts.learner, visible, label_store, active)
    evidence = evidence_of(used, parts.calibration.temperature, visible, label_store, active)
    if nodes.size:
        answered = Answered(
            evidence=evidence,
            rows=rows,
            columns=np.searchsorted(active, columns),
            class_of_column=class_of_column[active],
            left_out=None if left is None else (visible.rows(left.nodes), RowValues.of(left.scores).bounded().whole()),
        )
        calibration, readings = Calibration(parts.calibration.rehearsed).recalibrated(answered)
    else:
        calibration = replace(parts.calibration, stale=False)
        readings = calibration.readings(evidence)
    answers = class_of_column[active][used[rows].argmax(axis=1)]
    recalls = class_recalls(class_of_column[columns], answers, label_store)
    learned = None if left is None else left_out_recalls(left, label_store, active)
    accuracy = {
        **accuracy_of(recalls, learned),
        "confidence": _confidence(parts, scores, readings, rows),
        "unknown": round(unknown_share(calibration, readings.ood_score[node_rows(visible)]), 4),
    }
    return Settled(calibration, accuracy, readings)


def _confidence(parts: ModelParts, scores: Any, readings: Readings, rows: np.ndarray) -> float | None:
    """The mean probability of the likeliest class of some nodes; None without nodes."""
    if not rows.size:
        return None
    answers = Answers(scores[rows], readings.ood_score[rows], readings.temperatures[rows])
    return round(float(class_probabilities(parts.label_store, answers).max(axis=1).mean()), 4)


def compute_answers(
    parts: ModelParts, progress: Progress = SILENT, stored: StoredVersion | None = None
) -> ModelAnswers:
    """Scores of all nodes, and what calibration and accuracy follow from them.

    Where the learner is due to be restated on a changed graph, a copy of it is. stored: the version of these parts,
    which may have the scores.
    """

    with parts.graph.in_use(), parts.graph.at_work() as graph:
        learner = parts.learner if graph is parts.graph else parts.learner.copy(graph.visible)
        if graph.restate_due:
            learner = learner.copy(graph.visible)
            learner.watch(graph.visible, progress)
            learner.restate(graph.visible, *parts.label_store.knowledge())

        def compute() -> Any:
            return graph.all_scores(learner, progress)

        scores = compute() if stored is None else stored.scores(compute)
        settled = settle(replace(parts, graph=graph, learner=learner), scores)
        return graph.make_answers(scores, settled.readings, settled.calibration, settled.accuracy)


def some_queries(visible: VisibleNodes, labelled: Labelled, seed: int) -> Labelled:
    """The validation nodes that a model is asked about: all, or some of each class on a large graph."""
    return some_of_each_class(labelled, MOST_ASKED, seed) if visible.node_count > MANY_NODES else labelled


def evidence_of(
    scores: RowValues, temperature: float, visible: VisibleNodes, label_store: LabelStore, active: np.ndarray
) -> Evidence:
    """What is known of all nodes. scores: (n, columns) of the columns in use. active: (columns,) which ones."""
    labelled = np.zeros(visible.row_count, dtype=bool)
    for nodes, _ in label_store.knowledge():
        labelled[visible.rows(nodes)] = True
    return Evidence(scores.bounded(), temperature, active >= label_store.session_zero_columns, visible, labelled)
