"""Macro F1: the mean over the classes that have test nodes of 2·found / (true + predicted)."""

import numpy as np

from graphfcl.measures.measure import SessionMeasure


def macro_f1(confusion: np.ndarray) -> float:
    """Mean over the classes with nodes of 2·found / (true + predicted)."""
    true, predicted = confusion.sum(axis=1), confusion.sum(axis=0)
    present = true > 0
    if not present.any():
        return float("nan")
    return float((2 * np.diagonal(confusion)[present] / (true + predicted)[present]).mean())


MACRO_F1 = SessionMeasure(
    name="macro_f1",
    title="macro F1",
    what="mean F1 over the classes",
    of=lambda confusion, arrival, session: macro_f1(confusion),  # noqa: ARG005
    places=("column",),
)
