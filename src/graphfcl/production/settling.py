"""What follows every change of a model: calibrate it again and measure it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.graph.visible_folder import VisibleFolder
from graphfcl.methods.blocks.labelled_rows import some_of_each_class
from graphfcl.production.answers import Answers, class_probabilities
from graphfcl.production.calibration import Answered, Calibration, Readings, unknown_share
from graphfcl.production.ledger import LabelRole, Ledger
from graphfcl.production.model_parts import ModelParts
from graphfcl.production.monitoring import accuracy_of, class_recalls, left_out_recalls, left_out_scores
from graphfcl.production.rehearsal import MOST_ASKED, evidence_of
from graphfcl.production.score_rows import bounded, columns_of, has_nan


@dataclass(frozen=True, eq=False)
class Settled:
    """The calibration of a changed model, its accuracy as the history keeps it, and the readings of every node.

    With the accuracy go two numbers by which a model is seen to grow old: the mean probability of its answers on
    validation nodes (``confidence``), and the share of all nodes that it calls unknown (``unknown``).
    """

    calibration: Calibration
    accuracy: dict[str, Any]
    readings: Readings


def settle(parts: ModelParts, scores: Any) -> Settled:
    """Calibrate and measure a model on its validation nodes.

    The calibration is a function of scores, ledger and what the rehearsal taught: of the one before nothing is used,
    unless all validation nodes are gone.

    scores: (n, columns) of every node of its graph, an array, or a table of a graph folder, of which some validation
    nodes of each class are asked about.
    """
    visible, ledger = parts.graph.visible, parts.ledger
    class_of_column = ledger.class_of_column()
    active = np.flatnonzero(class_of_column >= 0)
    used = columns_of(scores, active)
    if has_nan(used):
        raise InputError(
            f"the method {parts.configuration.method!r} gave scores that are no numbers: look for values that are "
            "not finite in the features, or in the method; nothing was changed."
        )
    nodes, columns = ledger.of_part(LabelRole.VALIDATION)
    if isinstance(visible, VisibleFolder):
        nodes, columns = some_of_each_class((nodes, columns), MOST_ASKED, parts.configuration.seed)
    rows = visible.rows(nodes)
    left = left_out_scores(parts.learner, visible, ledger, active)
    evidence = evidence_of(used, parts.calibration.temperature, visible, ledger, active)
    if nodes.size:
        answered = Answered(
            evidence=evidence,
            rows=rows,
            columns=np.searchsorted(active, columns),
            class_of_column=class_of_column[active],
            left_out=None if left is None else (visible.rows(left.nodes), bounded(left.scores)),
        )
        calibration, readings = Calibration(parts.calibration.rehearsed).recalibrated(answered)
    else:
        calibration, readings = parts.calibration, parts.calibration.readings(evidence)
    answers = class_of_column[active][scores[rows][:, active].argmax(axis=1)]
    recalls = class_recalls(class_of_column[columns], answers, ledger)
    learned = None if left is None else left_out_recalls(left, ledger, active)
    said = {
        **accuracy_of(recalls, learned),
        "confidence": _confidence(ledger, Answers(scores, readings.strangeness, readings.temperatures).of(rows)),
        "unknown": round(unknown_share(calibration, readings), 4),
    }
    return Settled(calibration, said, readings)


def _confidence(ledger: Ledger, answers: Answers) -> float | None:
    """The mean probability of the likeliest class of some nodes; None without nodes."""
    if not len(answers.scores):
        return None
    return round(float(class_probabilities(ledger, answers).max(axis=1).mean()), 4)


def readings_of(parts: ModelParts, scores: np.ndarray) -> Readings:
    """What every node of a settled model is asked by, besides its scores."""
    active = np.flatnonzero(parts.ledger.class_of_column() >= 0)
    temperature = parts.calibration.temperature
    used = columns_of(scores, active)
    evidence = evidence_of(used, temperature, parts.graph.visible, parts.ledger, active)
    return parts.calibration.readings(evidence)
