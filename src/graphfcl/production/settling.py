"""What follows every change of a model: calibrate it again and measure it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphfcl.production.calibration import Calibration
from graphfcl.production.ledger import LabelRole
from graphfcl.production.model_parts import ModelParts
from graphfcl.production.monitoring import accuracy_of, class_recalls, leave_one_out


@dataclass(frozen=True)
class Settled:
    """The calibration of a changed model, and its accuracy as the history keeps it."""

    calibration: Calibration
    accuracy: dict[str, Any]


def settle(parts: ModelParts, scores: np.ndarray) -> Settled:
    """Calibrate and measure a model on its validation nodes. scores: (n, columns) of every node of its graph."""
    graph, ledger = parts.graph, parts.ledger
    class_of_column = ledger.class_of_column()
    active = np.flatnonzero(class_of_column >= 0)
    nodes, columns = ledger.of_part(LabelRole.VALIDATION)
    asked = scores[graph.visible.rows(nodes)][:, active]
    calibration = parts.calibration
    if nodes.size:
        few = {ledger.names[column] for column in active if column >= ledger.session_zero_columns}
        calibration = calibration.recalibrated(asked, np.searchsorted(active, columns), len(few) / len(ledger.classes))
    answers = class_of_column[active][asked.argmax(axis=1)]
    recalls = class_recalls(class_of_column[columns], answers, ledger)
    learned = leave_one_out(parts.learner, graph.visible, ledger, active)
    return Settled(calibration, accuracy_of(recalls, learned))
