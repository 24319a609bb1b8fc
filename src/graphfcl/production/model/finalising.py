"""What follows every change of a model: calibrate it again and measure it."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.production.answers.answers import Answers, class_probabilities
from graphfcl.production.answers.calibration import Answered, Calibration, Readings, unknown_share
from graphfcl.production.answers.row_values import RowValues, node_rows
from graphfcl.production.labels.label_store import LabelRole
from graphfcl.production.labels.monitoring import accuracy_of, class_recalls, left_out_recalls, left_out_scores
from graphfcl.production.model.held_out_run import evidence_of, some_queries
from graphfcl.production.model.parts import ModelParts


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
