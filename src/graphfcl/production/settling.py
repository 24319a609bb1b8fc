"""What follows every change of a model: calibrate it again and measure it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphfcl.production.calibration import Answered, Calibration, Readings
from graphfcl.production.ledger import LabelRole
from graphfcl.production.model_parts import ModelParts
from graphfcl.production.monitoring import accuracy_of, class_recalls, left_out_recalls, left_out_scores
from graphfcl.production.rehearsal import bounded, evidence_of


@dataclass(frozen=True, eq=False)
class Settled:
    """The calibration of a changed model, its accuracy as the history keeps it, and the readings of every node."""

    calibration: Calibration
    accuracy: dict[str, Any]
    readings: Readings


def settle(parts: ModelParts, scores: np.ndarray) -> Settled:
    """Calibrate and measure a model on its validation nodes. scores: (n, columns) of every node of its graph."""
    visible, ledger = parts.graph.visible, parts.ledger
    class_of_column = ledger.class_of_column()
    active = np.flatnonzero(class_of_column >= 0)
    nodes, columns = ledger.of_part(LabelRole.VALIDATION)
    rows = visible.rows(nodes)
    left = left_out_scores(parts.learner, visible, ledger, active)
    evidence = evidence_of(scores[:, active], parts.calibration.temperature, visible, ledger, active)
    if nodes.size:
        answered = Answered(
            evidence=evidence,
            rows=rows,
            columns=np.searchsorted(active, columns),
            class_of_column=class_of_column[active],
            left_out=None if left is None else (visible.rows(left.nodes), bounded(left.scores)),
        )
        calibration, readings = parts.calibration.recalibrated(answered)
    else:
        calibration, readings = parts.calibration, parts.calibration.readings(evidence)
    answers = class_of_column[active][scores[rows][:, active].argmax(axis=1)]
    recalls = class_recalls(class_of_column[columns], answers, ledger)
    learned = None if left is None else left_out_recalls(left, ledger, active)
    return Settled(calibration, accuracy_of(recalls, learned), readings)


def readings_of(parts: ModelParts, scores: np.ndarray) -> Readings:
    """What every node of a settled model is asked by, besides its scores."""
    active = np.flatnonzero(parts.ledger.class_of_column() >= 0)
    temperature = parts.calibration.temperature
    evidence = evidence_of(scores[:, active], temperature, parts.graph.visible, parts.ledger, active)
    return parts.calibration.readings(evidence)
