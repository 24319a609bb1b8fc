"""Measures of a whole stream, from one confusion matrix a session."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from graphfcl.measures.confusion import accuracy, balanced_accuracy, harmonic_mean, macro_f1

Measure = Callable[[np.ndarray, np.ndarray | None], float]


@dataclass(frozen=True)
class SessionMeasures:
    """After session t. ``base`` are all classes of session 0, ``novel`` those of sessions 1..t; both balanced.

    ``novel`` and ``harmonic_mean`` are None at session 0.
    """

    session: int
    classes: int
    balanced_accuracy: float
    accuracy: float
    base: float
    novel: float | None
    harmonic_mean: float | None
    macro_f1: float


@dataclass(frozen=True, eq=False)
class StreamMeasures:
    """After the last session T. The names of the matrices: a_{t,j} is the accuracy after session t on the classes of
    session j, in the joint label space; NaN for j > t.
    """

    sessions: tuple[SessionMeasures, ...]
    pd: float
    rpd: float | None
    average: float
    forgetting: float | None
    matrix: np.ndarray
    plain_pd: float
    plain_rpd: float | None
    plain_average: float
    plain_forgetting: float | None
    plain_matrix: np.ndarray


def measure_session(confusion: np.ndarray, session_of_class: np.ndarray, session: int) -> SessionMeasures:
    """session_of_class: (classes,) arrival of each column; only the classes of the matrix count."""
    arrival = session_of_class[: confusion.shape[0]]
    base = balanced_accuracy(confusion, arrival == 0)
    novel = balanced_accuracy(confusion, arrival > 0) if session > 0 else None
    return SessionMeasures(
        session=session,
        classes=confusion.shape[0],
        balanced_accuracy=balanced_accuracy(confusion),
        accuracy=accuracy(confusion),
        base=base,
        novel=novel,
        harmonic_mean=None if novel is None else harmonic_mean(base, novel),
        macro_f1=macro_f1(confusion),
    )


def measure_stream(confusions: Sequence[np.ndarray], session_of_class: np.ndarray) -> StreamMeasures:
    """confusions: one matrix for each of the sessions 0..T."""
    sessions = tuple(measure_session(matrix, session_of_class, t) for t, matrix in enumerate(confusions))
    balanced = np.array([session.balanced_accuracy for session in sessions])
    plain = np.array([session.accuracy for session in sessions])
    matrix = accuracy_matrix(confusions, session_of_class, balanced_accuracy)
    plain_matrix = accuracy_matrix(confusions, session_of_class, accuracy)
    return StreamMeasures(
        sessions=sessions,
        pd=performance_drop(balanced),
        rpd=relative_performance_drop(balanced),
        average=float(balanced.mean()),
        forgetting=forgetting(matrix),
        matrix=matrix,
        plain_pd=performance_drop(plain),
        plain_rpd=relative_performance_drop(plain),
        plain_average=float(plain.mean()),
        plain_forgetting=forgetting(plain_matrix),
        plain_matrix=plain_matrix,
    )


def accuracy_matrix(confusions: Sequence[np.ndarray], session_of_class: np.ndarray, measure: Measure) -> np.ndarray:
    """(T + 1, T + 1): a_{t,j} for j ≤ t, NaN elsewhere."""
    matrix = np.full((len(confusions), len(confusions)), np.nan)
    for t, confusion in enumerate(confusions):
        arrival = session_of_class[: confusion.shape[0]]
        for j in range(t + 1):
            matrix[t, j] = measure(confusion, arrival == j)
    return matrix


def performance_drop(accuracies: np.ndarray) -> float:
    """PD = A_0 − A_T."""
    return float(accuracies[0] - accuracies[-1])


def relative_performance_drop(accuracies: np.ndarray) -> float | None:
    """RPD = PD / A_0; None if A_0 is 0."""
    return performance_drop(accuracies) / float(accuracies[0]) if accuracies[0] > 0 else None


def forgetting(matrix: np.ndarray) -> float | None:
    """Mean over j < T of max_{j ≤ l < T} a_{l,j} − a_{T,j}; None if there is no session after 0."""
    last = matrix.shape[0] - 1
    if last == 0:
        return None
    best = np.array([matrix[j:last, j].max() for j in range(last)])
    return float((best - matrix[last, :last]).mean())
