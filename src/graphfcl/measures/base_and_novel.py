"""Old classes against new ones.

b: balanced accuracy over the classes of session 0. n: the same over the classes of sessions 1..t.
Harmonic mean: 2bn / (b + n). n and the harmonic mean do not exist at session 0.
"""

import numpy as np

from graphfcl.measures.accuracies import balanced_accuracy
from graphfcl.measures.measure import SessionMeasure


def harmonic_mean(first: float, second: float) -> float:
    """2ab/(a + b); 0 if both are 0."""
    return 2 * first * second / (first + second) if first + second > 0 else first * second


def _base(confusion: np.ndarray, arrival: np.ndarray, session: int) -> float:  # noqa: ARG001
    return balanced_accuracy(confusion, arrival == 0)


def _novel(confusion: np.ndarray, arrival: np.ndarray, session: int) -> float | None:
    return balanced_accuracy(confusion, arrival > 0) if session > 0 else None


def _harmonic_mean(confusion: np.ndarray, arrival: np.ndarray, session: int) -> float | None:
    novel = _novel(confusion, arrival, session)
    return None if novel is None else harmonic_mean(_base(confusion, arrival, session), novel)


BASE = SessionMeasure(
    name="base",
    title="base",
    what="balanced accuracy of the classes of session 0",
    of=_base,
    places=("column", "print"),
)
NOVEL = SessionMeasure(
    name="novel",
    title="novel",
    what="balanced accuracy of the classes that came later",
    of=_novel,
    places=("column", "print"),
)
HARMONIC_MEAN = SessionMeasure(
    name="harmonic_mean",
    title="harmonic",
    what="harmonic mean of base and novel",
    of=_harmonic_mean,
    places=("column", "print"),
)
