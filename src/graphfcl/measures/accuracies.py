"""Accuracy after a session.

Balanced: A_t = 1/|C| Σ_{c ∈ C} found_c / nodes_c, the mean recall over the classes C that have test nodes.
Plain: Σ_c found_c / Σ_c nodes_c, the share of test nodes whose class is found.
"""

import numpy as np

from graphfcl.measures.confusion import recalls
from graphfcl.measures.measure import SessionMeasure


def balanced_accuracy(confusion: np.ndarray, among: np.ndarray | None = None) -> float:
    """Mean recall over the classes (or over those where ``among`` is true) that have nodes."""
    values = recalls(confusion)
    if among is not None:
        values = values[among]
    values = values[~np.isnan(values)]
    return float(values.mean()) if values.size else float("nan")


def accuracy(confusion: np.ndarray, among: np.ndarray | None = None) -> float:
    """Share of nodes (of the classes where ``among`` is true) whose class is found."""
    found, total = np.diagonal(confusion), confusion.sum(axis=1)
    if among is not None:
        found, total = found[among], total[among]
    return float(found.sum() / total.sum()) if total.sum() else float("nan")


BALANCED_ACCURACY = SessionMeasure(
    name="balanced_accuracy",
    title="balanced",
    what="mean recall over the classes seen",
    of=lambda confusion, arrival, session: balanced_accuracy(confusion),  # noqa: ARG005
    places=("column", "print"),
)
ACCURACY = SessionMeasure(
    name="accuracy",
    title="plain",
    what="share of test nodes whose class is found",
    of=lambda confusion, arrival, session: accuracy(confusion),  # noqa: ARG005
    places=("column", "print"),
)
