"""All metrics of a stream, and their registry. Every one is a function of confusion matrices.

Balanced accuracy: A_t = 1/|C| Σ_{c ∈ C} found_c / nodes_c, the mean recall over the classes C that have test nodes.
Plain accuracy: Σ_c found_c / Σ_c nodes_c, the share of test nodes whose class is found.
Macro F1: the mean over the classes that have test nodes of 2·found / (true + predicted).
Base and novel: b and n, the balanced accuracy over the classes of session 0 and of sessions 1..t; harmonic mean: 2bn /
(b + n). n and the harmonic mean do not exist at session 0.
PD = A_0 − A_T, RPD = PD / A_0 (none if A_0 is 0). Average: 1/(T + 1) Σ_t A_t.
Forgetting: 1/T Σ_{j<T} (max_{j≤l<T} a_{l,j} − a_{T,j}), where a_{t,j} is the accuracy after session t on the classes of
session j, in the joint label space; none without a session after 0.

Under the track ``active``, A(ℓ) is the balanced accuracy over all classes of the stream with ℓ labels spent, linear
between sessions; a class that was not found counts 0. With B the budget of the whole stream: A(0.6 B) and A(B), over
all classes and over those that session 0 lacks. Classes found: novel classes with at least one label in the end / all.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from graphfcl.errors import InputError
from graphfcl.metrics.metric import (
    Accuracy,
    ActiveMetric,
    ActiveRecord,
    SessionMetric,
    SessionMetrics,
    StreamMetric,
    StreamMetrics,
    StreamRecord,
)
from graphfcl.runtime.registry import Entry, Registry, check_name
from graphfcl.runtime.source_code import reference_of

Metric = SessionMetric | StreamMetric | ActiveMetric
AnyMetric = TypeVar("AnyMetric", SessionMetric, StreamMetric, ActiveMetric)
PART = 0.6  # of the budget

# Functions of one confusion matrix (rows: true columns, columns: predicted)


def confusion_matrix(labels: np.ndarray, predictions: np.ndarray, classes: int) -> np.ndarray:
    """(classes, classes) int64 counts; entry (j, k): nodes of class j predicted as k."""
    pairs = np.asarray(labels, dtype=np.int64) * classes + np.asarray(predictions, dtype=np.int64)
    return np.bincount(pairs, minlength=classes * classes).reshape(classes, classes)


def recalls(confusion: np.ndarray) -> np.ndarray:
    """(classes,) share of each class's nodes that are found; NaN for a class without nodes."""
    total = confusion.sum(axis=1)
    correct = np.diagonal(confusion)
    return np.divide(correct, total, out=np.full(total.shape, np.nan), where=total > 0)


def balanced_accuracy(confusion: np.ndarray, among: np.ndarray | None = None) -> float:
    """Mean recall over the classes (or over those where ``among`` is true) that have nodes."""
    values = recalls(confusion)
    if among is not None:
        values = values[among]
    values = values[~np.isnan(values)]
    return float(values.mean()) if values.size else float("nan")


def accuracy(confusion: np.ndarray, among: np.ndarray | None = None) -> float:
    """Share of nodes (of the classes where ``among`` is true) whose class is found."""
    correct, total = np.diagonal(confusion), confusion.sum(axis=1)
    if among is not None:
        correct, total = correct[among], total[among]
    return float(correct.sum() / total.sum()) if total.sum() else float("nan")


def macro_f1(confusion: np.ndarray) -> float:
    """Mean over the classes with nodes of 2·found / (true + predicted)."""
    true, predicted = confusion.sum(axis=1), confusion.sum(axis=0)
    present = true > 0
    if not present.any():
        return float("nan")
    return float((2 * np.diagonal(confusion)[present] / (true + predicted)[present]).mean())


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


# Functions of a curve or a matrix of accuracies


def performance_drop(curve: np.ndarray) -> float:
    """PD = A_0 − A_T."""
    return float(curve[0] - curve[-1])


def relative_performance_drop(curve: np.ndarray) -> float | None:
    """RPD = PD / A_0; None if A_0 is 0."""
    return performance_drop(curve) / float(curve[0]) if curve[0] > 0 else None


def mean_forgetting(matrix: np.ndarray) -> float | None:
    """matrix: (T + 1, T + 1) a_{t,j}."""
    last = matrix.shape[0] - 1
    if last == 0:
        return None
    best = np.array([matrix[j:last, j].max() for j in range(last)])
    return float((best - matrix[last, :last]).mean())


def _stream_metrics(kind: Accuracy) -> tuple[StreamMetric, ...]:
    """PD, RPD, average and forgetting of balanced or of plain accuracy; those of plain accuracy are only stored."""
    figures: tuple[tuple[str, str, str, Callable[[StreamRecord], float | None]], ...] = (
        (
            "pd",
            "PD",
            "balanced accuracy at session 0 minus that at the last",
            lambda record: performance_drop(record.curve(kind)),
        ),
        ("rpd", "RPD", "PD relative to session 0", lambda record: relative_performance_drop(record.curve(kind))),
        (
            "average",
            "average",
            "mean of balanced accuracy over sessions",
            lambda record: float(record.curve(kind).mean()),
        ),
        (
            "forgetting",
            "forgetting",
            "how far each session's classes fell below their best balanced accuracy",
            lambda record: mean_forgetting(record.matrix(kind)),
        ),
    )
    if kind is accuracy:
        return tuple(
            StreamMetric(
                name=f"plain_{name}", title=f"plain {title}", what=f"{title} of plain accuracy", of=of, places=()
            )
            for name, title, _, of in figures
        )
    return tuple(
        StreamMetric(name=name, title=title, what=what, of=of, places=("column", "print"), note="balanced accuracy, %")
        for name, title, what, of in figures
    )


# Their order is that in files and tables: new ones come last.
METRICS: tuple[Metric, ...] = (
    SessionMetric(
        name="balanced_accuracy",
        title="balanced",
        what="mean recall over the classes seen",
        of=lambda confusion, arrival, session: balanced_accuracy(confusion),  # noqa: ARG005
        places=("column", "print"),
    ),
    SessionMetric(
        name="accuracy",
        title="plain",
        what="share of test nodes whose class is found",
        of=lambda confusion, arrival, session: accuracy(confusion),  # noqa: ARG005
        places=("column", "print"),
    ),
    SessionMetric(
        name="base",
        title="base",
        what="balanced accuracy of the classes of session 0",
        of=_base,
        places=("column", "print"),
    ),
    SessionMetric(
        name="novel",
        title="novel",
        what="balanced accuracy of the classes that came later",
        of=_novel,
        places=("column", "print"),
    ),
    SessionMetric(
        name="harmonic_mean",
        title="harmonic",
        what="harmonic mean of base and novel",
        of=_harmonic_mean,
        places=("column", "print"),
    ),
    SessionMetric(
        name="macro_f1",
        title="macro F1",
        what="mean F1 over the classes",
        of=lambda confusion, arrival, session: macro_f1(confusion),  # noqa: ARG005
        places=("column",),
    ),
    *_stream_metrics(balanced_accuracy),
    *_stream_metrics(accuracy),
    ActiveMetric(
        name="balanced_at_60",
        title="60 % of labels",
        what="balanced accuracy over all classes with 60 % of the labels",
        of=lambda record: record.at(PART, record.balanced),
    ),
    ActiveMetric(
        name="balanced_at_all",
        title="all labels",
        what="balanced accuracy over all classes with all labels",
        of=lambda record: record.at(1.0, record.balanced),
    ),
    ActiveMetric(
        name="novel_at_60",
        title="novel, 60 % of labels",
        what="balanced accuracy over novel classes with 60 % of the labels",
        of=lambda record: record.at(PART, record.novel),
    ),
    ActiveMetric(
        name="novel_at_all",
        title="novel, all labels",
        what="balanced accuracy over novel classes with all labels",
        of=lambda record: record.at(1.0, record.novel),
    ),
    ActiveMetric(
        name="classes_found",
        title="classes found",
        what="share of novel classes of which a node was labelled",
        of=lambda record: float(record.found[-1] / record.classes),
    ),
)


def find_metric(name: str) -> Metric:
    """The metric of a name."""
    return REGISTRY.find(name).thing


def register_metric(metric: AnyMetric) -> AnyMetric:
    """Make a metric of your own known, in this process and in the workers of its grids.

    It then stands in results and reports.

    An installed package offers one with an entry point of the group ``graphfcl.metrics``.
    """
    REGISTRY.register(metric)
    return metric


def session_metrics() -> list[SessionMetric]:
    """Metrics of every session: those of this package, registered ones and installed plug-ins."""
    return _of_kind(SessionMetric)


def stream_metrics() -> list[StreamMetric]:
    """Metrics of a whole stream."""
    return _of_kind(StreamMetric)


def active_metrics() -> list[ActiveMetric]:
    """Metrics of a whole stream of the track ``active``."""
    return _of_kind(ActiveMetric)


def outside_metrics() -> tuple[Metric, ...]:
    """What was registered in this process."""
    return tuple(entry.thing for entry in REGISTRY.outside())


def _of_kind(kind: type[AnyMetric]) -> list[AnyMetric]:
    return [entry.thing for entry in REGISTRY.all() if isinstance(entry.thing, kind)]


def _check(metric: Any, where: str) -> None:
    if not isinstance(metric, Metric):
        raise InputError(f"{where}: it is no metric: give a SessionMetric or a StreamMetric of graphfcl.metrics.")
    check_name(metric.name, where, "the metric")
    if not callable(metric.of):
        raise InputError(f"{where}: `of` of {metric.name} cannot be called: give a function.")


REGISTRY: Registry[Metric, Entry[Metric]] = Registry(
    "metric",
    "graphfcl.metrics",
    {metric.name: metric for metric in METRICS},
    Entry,
    _check,
    reference=lambda metric: reference_of(metric.of),
)


def compute_session_metrics(confusion: np.ndarray, session_of_class: np.ndarray, session: int) -> SessionMetrics:
    """session_of_class: (classes,) arrival of each column; only the classes of the matrix count."""
    arrival = session_of_class[: confusion.shape[0]]
    values = {metric.name: metric.of(confusion, arrival, session) for metric in session_metrics()}
    return SessionMetrics(session, confusion.shape[0], values)


def compute_stream_metrics(confusions: Sequence[np.ndarray], session_of_class: np.ndarray) -> StreamMetrics:
    """confusions: one matrix for each of the sessions 0..T."""
    record = StreamRecord(confusions, session_of_class)
    return StreamMetrics(
        tuple(compute_session_metrics(matrix, session_of_class, t) for t, matrix in enumerate(confusions)),
        {metric.name: metric.of(record) for metric in stream_metrics()},
        record.matrix(balanced_accuracy),
        record.matrix(accuracy),
    )


def compute_active_metrics(record: ActiveRecord) -> dict[str, float]:
    """Every metric of the track ``active`` by its name."""
    return {metric.name: metric.of(record) for metric in active_metrics()}
