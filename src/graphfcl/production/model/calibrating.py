"""Compute scores of all nodes, calibration and accuracy, as after every change of a model."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphfcl.errors import InputError, counted, quoted
from graphfcl.graph import VisibleNodes
from graphfcl.methods import SILENT, Learner, Progress
from graphfcl.methods.blocks.interface import some_of_each_class
from graphfcl.methods.state import Labelled
from graphfcl.production.answers.answers import Answers, ModelAnswers, class_probabilities
from graphfcl.production.answers.calibration import Calibration, ModelScores, unknown_share
from graphfcl.production.answers.ood_scores import MANY_NODES, Evidence
from graphfcl.production.answers.row_values import RowValues, node_rows
from graphfcl.production.labels.history import History
from graphfcl.production.labels.label_store import LabelRole, LabelStore
from graphfcl.production.model.parts import ModelParts
from graphfcl.production.model.stored_version import StoredVersion
from graphfcl.runtime.arrays import rank_in_run

WORST = 3  # classes that the text of a loss names
FOLDS = 10  # folds of leave-one-out; a class with more supports leaves out several at a time
MOST_QUERIES = 2000  # validation nodes per class on a graph of more than ``MANY_NODES``

LeftOut = tuple[np.ndarray, np.ndarray, np.ndarray]  # (m,) nodes, (m,) their columns, (m, active columns) scores


def compute_answers(
    parts: ModelParts, progress: Progress = SILENT, stored: StoredVersion | None = None
) -> ModelAnswers:
    """Compute scores of all nodes, and calibrate and measure the model with them.

    If the learner has to be restated on a changed graph, a copy of it is restated first. ``stored``: the version with
    these parts, which may have the scores.
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
        calibration, readings, accuracy = calibrate(replace(parts, graph=graph, learner=learner), scores)
        return graph.make_answers(scores, readings, calibration, accuracy)


def calibrate(parts: ModelParts, scores: Any) -> tuple[Calibration, np.ndarray, dict[str, Any] | None]:
    """Calibrate and measure a model on its validation nodes, unless its calibration already belongs to its scores.

    The calibration is a function of scores, labels and the held-out run; the previous one is used only if there are no
    validation nodes.

    Two numbers of the accuracy show whether a model ages: ``confidence`` is the mean probability of the predicted
    classes of validation nodes, and ``unknown`` the share of nodes called unknown.

    Args:
        parts: Parts of the model.
        scores: (n, columns) scores of all rows of its graph, as an array or a table on disk.

    Returns:
        The calibration, the (n, 2) readings of all nodes, and the accuracy as in the history; None if the model was
        calibrated before.
    """
    visible, labels = parts.graph.visible, parts.label_store
    class_of_column = labels.class_of_column()
    active = np.flatnonzero(class_of_column >= 0)
    used = RowValues.of(scores, active)
    if not parts.calibration.stale:
        evidence = evidence_of(used, parts.calibration.temperature, visible, labels, active)
        return parts.calibration, parts.calibration.readings(evidence), None
    if any(np.isnan(block).any() for block in used.blocks()):
        raise InputError(
            f"the method {parts.configuration.method!r} computed scores that are not numbers: look for values that are "
            "not finite in the features or in the method; nothing was changed."
        )
    nodes, columns = some_queries(visible, labels.with_role(LabelRole.VALIDATION), parts.configuration.seed)
    rows = visible.rows(nodes)
    left = left_out_scores(parts.learner, visible, labels, active)
    evidence = evidence_of(used, parts.calibration.temperature, visible, labels, active)
    if nodes.size:
        model_scores = ModelScores(
            evidence=evidence,
            rows=rows,
            columns=np.searchsorted(active, columns),
            class_of_column=class_of_column[active],
            left_out=None if left is None else (visible.rows(left[0]), RowValues.of(left[2]).bounded().whole()),
        )
        calibration, readings = Calibration(parts.calibration.held_out).recalibrated(model_scores)
    else:
        calibration = replace(parts.calibration, stale=False)
        readings = calibration.readings(evidence)
    predicted = class_of_column[active][used[rows].argmax(axis=1)]
    recalls = class_recalls(class_of_column[columns], predicted, labels)
    left_out_recalls = None
    if left is not None:
        predicted = class_of_column[active][left[2].argmax(axis=1)]
        left_out_recalls = class_recalls(class_of_column[left[1]], predicted, labels)
    best = class_probabilities(labels, Answers(scores[rows], readings[rows])).max(axis=1, initial=0.0)
    accuracy = {
        "validation": _mean(recalls),
        "leave_one_out": None if left_out_recalls is None else _mean(left_out_recalls),
        "classes": {name: round(value, 4) for name, value in {**recalls, **(left_out_recalls or {})}.items()},
        "confidence": round(float(best.mean()), 4) if best.size else None,
        "unknown": round(unknown_share(calibration, readings[node_rows(visible), 0]), 4),
    }
    return calibration, readings, accuracy


def some_queries(visible: VisibleNodes, validation: Labelled, seed: int) -> Labelled:
    """Return the validation nodes that a model is measured on: all, or some of each class on a large graph."""
    return some_of_each_class(validation, MOST_QUERIES, seed) if visible.node_count > MANY_NODES else validation


def evidence_of(
    scores: RowValues, temperature: float, visible: VisibleNodes, labels: LabelStore, active: np.ndarray
) -> Evidence:
    """Collect the values from which OOD scores are computed.

    ``scores`` are (n, active columns), and ``active`` the columns that are not retired.
    """
    labelled = np.zeros(visible.row_count, dtype=bool)
    for nodes, _ in labels.knowledge():
        labelled[visible.rows(nodes)] = True
    return Evidence(scores.bounded(), temperature, active >= labels.session_zero_columns, visible, labelled)


def left_out_scores(learner: Learner, visible: VisibleNodes, labels: LabelStore, active: np.ndarray) -> LeftOut | None:
    """Return scores of the supports of classes learned after session 0, each while it is left out.

    A class with one support is not included. None if the learner cannot be restated. Which supports are left out
    together depends on their node numbers, not on the order in which they were learned. ``active``: columns that are
    not retired.
    """
    class_of_column = labels.class_of_column()
    supports = (labels.parts != LabelRole.VALIDATION) & ~labels.accepted()
    later = np.flatnonzero((labels.columns >= labels.session_zero_columns) & supports)
    later = later[class_of_column[labels.columns[later]] >= 0]
    order = later[np.lexsort((labels.nodes[later], labels.columns[later]))]
    columns = labels.columns[order]
    rank = rank_in_run(columns)
    shots = np.bincount(columns, minlength=len(labels.names))[columns] if order.size else rank
    folds = min(FOLDS, int(shots.max(initial=0)))
    places, scores = [np.zeros(0, dtype=np.int64)], [np.zeros((0, active.size))]
    for fold in range(folds):
        left = order[(shots > 1) & (rank % folds == fold)]
        if not left.size:
            continue
        values = learner.scores_without(visible, (labels.nodes[left], labels.columns[left]), *labels.knowledge())
        if values is None:
            return None
        places.append(left)
        scores.append(values[:, active])
    every = np.concatenate(places)
    return labels.nodes[every], labels.columns[every], np.concatenate(scores)


def class_recalls(classes: np.ndarray, predicted: np.ndarray, labels: LabelStore) -> dict[str, float]:
    """Return the recall of each class that has nodes, from (n,) true and predicted positions in ``labels.classes``."""
    count = len(labels.classes)
    sizes = np.bincount(classes, minlength=count)
    right = np.bincount(classes[classes == predicted], minlength=count)
    return {labels.classes[c]: float(right[c] / sizes[c]) for c in np.flatnonzero(sizes)}


def _mean(recalls: dict[str, float]) -> float | None:
    return round(float(np.mean(list(recalls.values()))), 4) if recalls else None


def regression_warning(history: History, accuracy: dict[str, Any], max_loss: float) -> str | None:
    """Return a warning if the classes measured before lost more than ``max_loss`` of their mean recall."""
    measured = history.last_accuracy()
    loss = loss_of(measured, accuracy) if measured else None
    return str(loss) if loss and loss.share > max_loss else None


def with_renamed_class(accuracy: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    """Return an accuracy after a class was renamed; an earlier class may have had the new name."""
    kept = {name: value for name, value in accuracy["classes"].items() if name == old or name != new}
    return {**accuracy, "classes": {new if name == old else name: value for name, value in kept.items()}}


@dataclass(frozen=True)
class Loss:
    """Loss of recall of classes that were measured before and after a change.

    Attributes:
        before: Recalls before the change, by class.
        after: Recalls after the change, by class.
    """

    before: dict[str, float]
    after: dict[str, float]

    @property
    def share(self) -> float:
        """Difference of the mean recalls."""
        old, new = self._means()
        return old - new

    def _means(self) -> tuple[float, float]:
        return float(np.mean([*self.before.values()])), float(np.mean([*self.after.values()]))

    def __str__(self) -> str:
        (old, new), (first, *others) = (
            self._means(),
            sorted(self.before, key=lambda name: self.after[name] - self.before[name]),
        )
        lost = [first, *(name for name in others[: WORST - 1] if self.after[name] < self.before[name])]
        worst = [f"{quoted(name)} ({100 * self.before[name]:.1f} to {100 * self.after[name]:.1f})" for name in lost]
        return (
            f"the {counted(len(self.before), 'class')} known before lost {100 * (old - new):.1f} points of balanced "
            f"accuracy ({100 * old:.1f} to {100 * new:.1f}), most of all {', '.join(worst)}"
        )


def loss_of(before: dict[str, Any], after: dict[str, Any]) -> Loss | None:
    """Return the loss between two accuracies of the history; None if they have no class in common."""
    old, new = before["classes"], after["classes"]
    both = [name for name in old if name in new]
    return Loss(*({name: recalls[name] for name in both} for recalls in (old, new))) if both else None
