"""All metrics of a stream, and their registry. Every one is a function of confusion matrices.

Balanced accuracy: A_t = 1/|C| Σ_{c ∈ C} correct_c / nodes_c, the mean recall over the classes C that have test nodes.
Plain accuracy: Σ_c correct_c / Σ_c nodes_c, the share of test nodes that are classified correctly.
Macro F1: the mean over the classes that have test nodes of 2·correct / (true + predicted).
Base and novel: b and n, the balanced accuracy over the classes of session 0 and of sessions 1..t; harmonic mean: 2bn /
(b + n). n and the harmonic mean do not exist at session 0.
PD = A_0 − A_T, RPD = PD / A_0 (none if A_0 is 0). Average: 1/(T + 1) Σ_t A_t.
Forgetting: 1/T Σ_{j<T} (max_{j≤l<T} a_{l,j} − a_{T,j}), where a_{t,j} is the accuracy after session t on the classes of
session j, in the joint label space; none without a session after 0.

Under the track ``active``, A(ℓ) is the balanced accuracy over all classes of the stream with ℓ labels spent, linear
between sessions; a class without a labelled node counts 0. With B the budget of the whole stream: A(0.6 B) and A(B),
over all classes and over those that session 0 lacks. Classes found: novel classes with a label in the end / all.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from graphfcl.errors import InputError
from graphfcl.metrics.metric import (
    Accuracy,
    ActiveMetric,
    ActiveRecord,
    Place,
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
    """(classes,) share of each class's nodes that are classified correctly; NaN for a class without nodes."""
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
    """Share of nodes (of the classes where ``among`` is true) that are classified correctly."""
    correct, total = np.diagonal(confusion), confusion.sum(axis=1)
    if among is not None:
        correct, total = correct[among], total[among]
    return float(correct.sum() / total.sum()) if total.sum() else float("nan")


def macro_f1(confusion: np.ndarray) -> float:
    """Mean over the classes with nodes of 2·correct / (true + predicted)."""
    true, predicted = confusion.sum(axis=1), confusion.sum(axis=0)
    present = true > 0
    if not present.any():
        return float("nan")
    return float((2 * np.diagonal(confusion)[present] / (true + predicted)[present]).mean())


def harmonic_mean(first: float, second: float) -> float:
    """2ab/(a + b); 0 if both are 0."""
    return 2 * first * second / (first + second) if first + second > 0 else first * second


def _base(confusion: np.ndarray, arrival: np.ndarray, *_: int) -> float:
    return balanced_accuracy(confusion, arrival == 0)


def _novel(confusion: np.ndarray, arrival: np.ndarray, session: int) -> float | None:
    return balanced_accuracy(confusion, arrival > 0) if session > 0 else None


def _harmonic_mean(confusion: np.ndarray, arrival: np.ndarray, session: int) -> float | None:
    novel = _novel(confusion, arrival, session)
    return None if novel is None else harmonic_mean(_base(confusion, arrival), novel)


# Functions of a stream. kind: balanced or plain accuracy


def _performance_drop(record: StreamRecord, kind: Accuracy) -> float:
    curve = record.curve(kind)
    return float(curve[0] - curve[-1])


def _relative_performance_drop(record: StreamRecord, kind: Accuracy) -> float | None:
    first = float(record.curve(kind)[0])
    return _performance_drop(record, kind) / first if first > 0 else None


def _average(record: StreamRecord, kind: Accuracy) -> float:
    return float(record.curve(kind).mean())


def _forgetting(record: StreamRecord, kind: Accuracy) -> float | None:
    matrix = record.matrix(kind)
    last = matrix.shape[0] - 1
    if last == 0:
        return None
    best = np.array([matrix[j:last, j].max() for j in range(last)])
    return float((best - matrix[last, :last]).mean())


def _accuracy_at(curve: str, classes: str, title: str, share: float) -> ActiveMetric:
    """Balanced accuracy where a share of the labels is spent. curve: a field of :class:`ActiveRecord`."""
    key, labels = ("all", "all labels") if share == 1 else (f"{100 * share:.0f}", f"{100 * share:.0f} % of labels")
    return ActiveMetric(
        name=f"{curve}_at_{key}",
        title=f"{title}{labels}",
        what=f"balanced accuracy over {classes} classes with {labels.replace('of labels', 'of the labels')}",
        of=lambda record: record.at(share, getattr(record, curve)),
    )


MAIN: tuple[Place, ...] = ("column", "print")
# Name, title, meaning and function.
OF_SESSIONS: tuple[tuple[str, str, str, Callable[..., float | None]], ...] = (
    (
        "balanced_accuracy",
        "balanced",
        "mean recall over the classes seen",
        lambda table, *_: balanced_accuracy(table),
    ),
    ("accuracy", "plain", "share of test nodes whose class is found", lambda table, *_: accuracy(table)),
    ("base", "base", "balanced accuracy of the classes of session 0", _base),
    ("novel", "novel", "balanced accuracy of the classes that came later", _novel),
    ("harmonic_mean", "harmonic", "harmonic mean of base and novel", _harmonic_mean),
)
OF_STREAMS: tuple[tuple[str, str, str, Callable[..., float | None]], ...] = (
    ("pd", "PD", "balanced accuracy at session 0 minus that at the last", _performance_drop),
    ("rpd", "RPD", "PD relative to session 0", _relative_performance_drop),
    ("average", "average", "mean of balanced accuracy over sessions", _average),
    ("forgetting", "forgetting", "how far each session's classes fell below their best balanced accuracy", _forgetting),
)
BALANCED: dict[str, Any] = {"places": MAIN, "note": "balanced accuracy, %"}

# Their order is that in files and tables: new ones come last.
METRICS: tuple[Metric, ...] = (
    *(SessionMetric(name=name, title=title, what=what, of=of, places=MAIN) for name, title, what, of in OF_SESSIONS),
    SessionMetric(
        name="macro_f1",
        title="macro F1",
        what="mean F1 over the classes",
        of=lambda table, *_: macro_f1(table),
        places=("column",),
    ),
    *(
        StreamMetric(name=name, title=title, what=what, of=partial(of, kind=balanced_accuracy), **BALANCED)
        for name, title, what, of in OF_STREAMS
    ),
    *(
        StreamMetric(
            name=f"plain_{name}",
            title=f"plain {title}",
            what=f"{title} of plain accuracy",
            of=partial(of, kind=accuracy),
            places=(),
        )
        for name, title, _, of in OF_STREAMS
    ),
    _accuracy_at("balanced", "all", "", PART),
    _accuracy_at("balanced", "all", "", 1.0),
    _accuracy_at("novel", "novel", "novel, ", PART),
    _accuracy_at("novel", "novel", "novel, ", 1.0),
    ActiveMetric(
        name="classes_found",
        title="classes found",
        what="share of novel classes of which a node was labelled",
        of=lambda record: float(record.classes_found[-1] / record.classes),
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
