"""The built-in metrics and their registry. Every metric is a function of confusion matrices.

Balanced accuracy: A_t = 1/|C| Σ_{c ∈ C} correct_c / nodes_c, the mean recall over the classes C that have test nodes.
Plain accuracy: Σ_c correct_c / Σ_c nodes_c, the share of test nodes that are classified correctly.
Macro F1: the mean over the classes that have test nodes of 2·correct / (true + predicted).
Base and novel: b and n, the balanced accuracy over the classes of session 0 and of sessions 1..t. Harmonic mean: 2bn /
(b + n). The novel accuracy and the harmonic mean are undefined at session 0.
Performance drop (PD) = A_0 − A_T. Relative performance drop (RPD) = PD / A_0, undefined if A_0 is 0.
Average: 1/(T + 1) Σ_t A_t.
Forgetting: 1/T Σ_{j<T} (max_{j≤l<T} a_{l,j} − a_{T,j}), where a_{t,j} is the accuracy after session t on the classes of
session j, in the joint label space; undefined if session 0 is the only one.

Under the track ``active``, A(ℓ) is the balanced accuracy over all classes of the stream after ℓ labels, interpolated
linearly between sessions. A class without a labelled node counts as 0. With B the label budget of the whole stream, the
metrics are A(0.6 B) and A(B), over all classes and over the novel classes. "Classes found" is the share of novel
classes with a labelled node after the last session.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from graphfcl.errors import InputError
from graphfcl.metrics.confusion import accuracy, balanced_accuracy, harmonic_mean, macro_f1
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
PARTIAL_BUDGET = 0.6  # share of the budget at which accuracy is also reported


def _base(confusion: np.ndarray, arrival: np.ndarray, *_: int) -> float:
    return balanced_accuracy(confusion, arrival == 0)


def _novel(confusion: np.ndarray, arrival: np.ndarray, session: int) -> float | None:
    return balanced_accuracy(confusion, arrival > 0) if session > 0 else None


def _harmonic_mean(confusion: np.ndarray, arrival: np.ndarray, session: int) -> float | None:
    novel = _novel(confusion, arrival, session)
    return None if novel is None else harmonic_mean(_base(confusion, arrival), novel)


# Functions of a whole stream; `kind` is balanced_accuracy or accuracy


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
    """Balanced accuracy after a share of the labels; ``curve`` names a field of :class:`ActiveRecord`."""
    key, labels = ("all", "all labels") if share == 1 else (f"{100 * share:.0f}", f"{100 * share:.0f} % of labels")
    return ActiveMetric(
        name=f"{curve}_at_{key}",
        title=f"{title}{labels}",
        what=f"balanced accuracy over {classes} classes with {labels.replace('of labels', 'of the labels')}",
        of=lambda record: record.at(share, getattr(record, curve)),
    )


MAIN: tuple[Place, ...] = ("column", "print")
# Name, title, meaning and function of each metric of a session, then of a stream.
SESSION_METRICS: tuple[tuple[str, str, str, Callable[..., float | None]], ...] = (
    (
        "balanced_accuracy",
        "balanced",
        "mean recall over the classes seen",
        lambda table, *_: balanced_accuracy(table),
    ),
    ("accuracy", "plain", "share of test nodes that are classified correctly", lambda table, *_: accuracy(table)),
    ("base", "base", "balanced accuracy of the classes of session 0", _base),
    ("novel", "novel", "balanced accuracy of the classes that came later", _novel),
    ("harmonic_mean", "harmonic", "harmonic mean of base and novel", _harmonic_mean),
)
STREAM_METRICS: tuple[tuple[str, str, str, Callable[..., float | None]], ...] = (
    ("pd", "PD", "performance drop: balanced accuracy after session 0 minus after the last session", _performance_drop),
    (
        "rpd",
        "RPD",
        "relative performance drop: PD / balanced accuracy after session 0",
        _relative_performance_drop,
    ),
    ("average", "average", "mean of balanced accuracy over sessions", _average),
    (
        "forgetting",
        "forgetting",
        "mean drop of each session's classes below their best balanced accuracy",
        _forgetting,
    ),
)
BALANCED: dict[str, Any] = {"places": MAIN, "note": "balanced accuracy, %"}

# Files and tables keep this order: add new metrics at the end.
METRICS: tuple[Metric, ...] = (
    *(
        SessionMetric(name=name, title=title, what=what, of=of, places=MAIN)
        for name, title, what, of in SESSION_METRICS
    ),
    SessionMetric(
        name="macro_f1",
        title="macro F1",
        what="mean F1 over the classes",
        of=lambda table, *_: macro_f1(table),
        places=("column",),
    ),
    *(
        StreamMetric(name=name, title=title, what=what, of=partial(of, kind=balanced_accuracy), **BALANCED)
        for name, title, what, of in STREAM_METRICS
    ),
    *(
        StreamMetric(
            name=f"plain_{name}",
            title=f"plain {title}",
            what=f"{title} of plain accuracy",
            of=partial(of, kind=accuracy),
            places=(),
        )
        for name, title, _, of in STREAM_METRICS
    ),
    _accuracy_at("balanced", "all", "", PARTIAL_BUDGET),
    _accuracy_at("balanced", "all", "", 1.0),
    _accuracy_at("novel", "novel", "novel, ", PARTIAL_BUDGET),
    _accuracy_at("novel", "novel", "novel, ", 1.0),
    ActiveMetric(
        name="classes_found",
        title="classes found",
        what="share of novel classes with a labelled node",
        of=lambda record: float(record.classes_found[-1] / record.classes),
    ),
)


def find_metric(name: str) -> Metric:
    """Return the metric with a name.

    Args:
        name: Name of a built-in metric, of a registered one, or of one from an installed package.

    Returns:
        The metric. It has ``name``, ``title``, ``what`` (its meaning) and ``of`` (the function that computes it).

    Raises:
        InputError: If no metric has this name.

    Examples:
        >>> from graphfcl import find_metric
        >>> find_metric("harmonic_mean").what
        'harmonic mean of base and novel'
    """
    return REGISTRY.find(name).thing


def register_metric(metric: AnyMetric) -> AnyMetric:
    """Register a metric of your own, so that results and reports contain it.

    It is known in this process and in the worker processes of :func:`run_grid`. An installed package can offer metrics
    through entry points of the group ``graphfcl.metrics``.

    Args:
        metric: ``SessionMetric``, ``StreamMetric`` or ``ActiveMetric`` of ``graphfcl.metrics``. Its function must be
            defined at the top level of a module if a grid is run in worker processes.

    Returns:
        The metric itself.

    Raises:
        InputError: If it is not a metric, its name is not valid, or another metric has its name.

    Examples:
        In a module of your own, such as ``lowest.py``::

            def lowest_recall(confusion, arrival, session):
                return float(np.nanmin(recalls(confusion)))

            register_metric(
                SessionMetric(name="lowest", title="lowest", what="recall of the worst class", of=lowest_recall)
            )

        A script imports the module before it evaluates:

        >>> from graphfcl import evaluate
        >>> def evaluate_with_lowest(stream):
        ...     import lowest  # registers the metric
        ...     return evaluate("sgc-ridge", stream).metrics.sessions[-1].values["lowest"]
    """
    REGISTRY.register(metric)
    return metric


def session_metrics() -> list[SessionMetric]:
    """All metrics of single sessions: built-in, registered, and from installed packages."""
    return _of_kind(SessionMetric)


def stream_metrics() -> list[StreamMetric]:
    """All metrics of whole streams: built-in, registered, and from installed packages."""
    return _of_kind(StreamMetric)


def active_metrics() -> list[ActiveMetric]:
    """All metrics of streams of the track ``active``."""
    return _of_kind(ActiveMetric)


def outside_metrics() -> tuple[Metric, ...]:
    """The metrics that were registered in this process."""
    return tuple(entry.thing for entry in REGISTRY.outside())


def _of_kind(kind: type[AnyMetric]) -> list[AnyMetric]:
    return [entry.thing for entry in REGISTRY.all() if isinstance(entry.thing, kind)]


def _check(metric: Any, where: str) -> None:
    if not isinstance(metric, Metric):
        raise InputError(f"{where}: it is not a metric: give a SessionMetric or a StreamMetric of graphfcl.metrics.")
    check_name(metric.name, where, "the metric")
    if not callable(metric.of):
        raise InputError(f"{where}: `of` of the metric {metric.name} is not callable: give a function.")


REGISTRY: Registry[Metric, Entry[Metric]] = Registry(
    "metric",
    "graphfcl.metrics",
    {metric.name: metric for metric in METRICS},
    Entry,
    _check,
    reference=lambda metric: reference_of(metric.of),
)


def compute_session_metrics(confusion: np.ndarray, session_of_class: np.ndarray, session: int) -> SessionMetrics:
    """Compute every session metric from one confusion matrix.

    ``session_of_class`` holds the session in which each class arrives, shape (classes,). It may be longer than the
    matrix, which has only the classes seen so far.
    """
    arrival = session_of_class[: confusion.shape[0]]
    values = {metric.name: metric.of(confusion, arrival, session) for metric in session_metrics()}
    return SessionMetrics(session, confusion.shape[0], values)


def compute_stream_metrics(confusions: Sequence[np.ndarray], session_of_class: np.ndarray) -> StreamMetrics:
    """Compute every metric of a stream from its confusion matrices.

    Args:
        confusions: One matrix for each of the sessions 0..T, in the joint label space of the classes seen so far. Entry
            (j, k) counts nodes of class j that were predicted as class k.
        session_of_class: Session in which each class arrives, shape (classes,).

    Returns:
        The metrics of each session (``sessions``), of the stream (``values``), and the accuracies of each session's
        classes after each session (``matrix``, ``plain_matrix``).

    Examples:
        >>> import numpy as np
        >>> from graphfcl import compute_stream_metrics
        >>> after_0 = np.array([[8, 2], [0, 10]])
        >>> after_1 = np.array([[8, 0, 2], [0, 9, 1], [1, 0, 4]])
        >>> metrics = compute_stream_metrics([after_0, after_1], np.array([0, 0, 1]))
        >>> round(metrics.average, 3), round(metrics.pd, 3)
        (0.867, 0.067)
    """
    record = StreamRecord(confusions, session_of_class)
    return StreamMetrics(
        tuple(compute_session_metrics(matrix, session_of_class, t) for t, matrix in enumerate(confusions)),
        {metric.name: metric.of(record) for metric in stream_metrics()},
        record.matrix(balanced_accuracy),
        record.matrix(accuracy),
    )


def compute_active_metrics(record: ActiveRecord) -> dict[str, float]:
    """Compute every metric of the track ``active``, by name."""
    return {metric.name: metric.of(record) for metric in active_metrics()}
