"""What is lost from the first session to the last: PD = A_0 − A_T, RPD = PD / A_0 (none if A_0 is 0)."""

import numpy as np

from graphfcl.measures.accuracies import accuracy, balanced_accuracy
from graphfcl.measures.measure import StreamMeasure


def performance_drop(curve: np.ndarray) -> float:
    """PD = A_0 − A_T."""
    return float(curve[0] - curve[-1])


def relative_performance_drop(curve: np.ndarray) -> float | None:
    """RPD = PD / A_0; None if A_0 is 0."""
    return performance_drop(curve) / float(curve[0]) if curve[0] > 0 else None


PD = StreamMeasure(
    name="pd",
    title="PD",
    what="balanced accuracy at session 0 minus that at the last",
    of=lambda record: performance_drop(record.curve(balanced_accuracy)),
    places=("column", "print"),
    note="balanced accuracy, %",
)
RPD = StreamMeasure(
    name="rpd",
    title="RPD",
    what="PD relative to session 0",
    of=lambda record: relative_performance_drop(record.curve(balanced_accuracy)),
    places=("column", "print"),
    note="balanced accuracy, %",
)
PLAIN_PD = StreamMeasure(
    name="plain_pd",
    title="plain PD",
    what="PD of plain accuracy",
    of=lambda record: performance_drop(record.curve(accuracy)),
    places=(),
)
PLAIN_RPD = StreamMeasure(
    name="plain_rpd",
    title="plain RPD",
    what="RPD of plain accuracy",
    of=lambda record: relative_performance_drop(record.curve(accuracy)),
    places=(),
)
