"""Forgetting: 1/T Σ_{j<T} (max_{j≤l<T} a_{l,j} − a_{T,j}); none without a session after 0.

a_{t,j} is the accuracy after session t on the classes of session j, in the joint label space.
"""

import numpy as np

from graphfcl.measures.accuracies import accuracy, balanced_accuracy
from graphfcl.measures.measure import StreamMeasure


def mean_forgetting(matrix: np.ndarray) -> float | None:
    """matrix: (T + 1, T + 1) a_{t,j}."""
    last = matrix.shape[0] - 1
    if last == 0:
        return None
    best = np.array([matrix[j:last, j].max() for j in range(last)])
    return float((best - matrix[last, :last]).mean())


FORGETTING = StreamMeasure(
    name="forgetting",
    title="forgetting",
    what="how far each session's classes fell below their best balanced accuracy",
    of=lambda record: mean_forgetting(record.matrix(balanced_accuracy)),
    places=("column", "print"),
    note="balanced accuracy, %",
)
PLAIN_FORGETTING = StreamMeasure(
    name="plain_forgetting",
    title="plain forgetting",
    what="forgetting of plain accuracy",
    of=lambda record: mean_forgetting(record.matrix(accuracy)),
    places=(),
)
