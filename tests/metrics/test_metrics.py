"""Metrics against independent references: scikit-learn, scipy, and plain loops over nodes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics

from graphfcl import compute_stream_metrics, summarise_seeds
from graphfcl.metrics import (
    accuracy,
    balanced_accuracy,
    confusion_matrix,
    harmonic_mean,
    macro_f1,
    session_metrics,
    stream_metrics,
)

ARRIVAL = np.array([0, 0, 0, 1, 1, 2, 3])


def answers(seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Labels and predictions after each of the sessions 0..3 of the classes in ARRIVAL."""
    random = np.random.default_rng(seed)
    result = []
    for session in range(4):
        classes = int((ARRIVAL <= session).sum())
        labels = np.concatenate([np.arange(classes), random.integers(0, classes, 60)])
        right = random.random(labels.size) < 0.6
        result.append((labels, np.where(right, labels, random.integers(0, classes, labels.size))))
    return result


@given(st.integers(0, 10_000))
def test_one_session_against_scikit_learn(seed: int) -> None:
    labels, predictions = answers(seed)[-1]
    confusion = confusion_matrix(labels, predictions, 7)
    np.testing.assert_array_equal(confusion, metrics.confusion_matrix(labels, predictions, labels=range(7)))
    assert accuracy(confusion) == pytest.approx(metrics.accuracy_score(labels, predictions))
    assert balanced_accuracy(confusion) == pytest.approx(metrics.balanced_accuracy_score(labels, predictions))
    assert macro_f1(confusion) == pytest.approx(metrics.f1_score(labels, predictions, average="macro"))


def mean_recall(labels: np.ndarray, predictions: np.ndarray, classes: list[int]) -> float:
    recalls = []
    for number in classes:
        actual = [p == y for y, p in zip(labels.tolist(), predictions.tolist(), strict=True) if y == number]
        recalls.append(sum(actual) / len(actual))
    return sum(recalls) / len(recalls)


@given(st.integers(0, 10_000))
def test_a_stream_against_plain_loops(seed: int) -> None:
    answered = answers(seed)
    confusions = [confusion_matrix(y, p, int((ARRIVAL <= t).sum())) for t, (y, p) in enumerate(answered)]
    metrics = compute_stream_metrics(confusions, ARRIVAL)
    by_session = {t: [c for c in range(7) if ARRIVAL[c] == t] for t in range(4)}
    a = [[mean_recall(*answered[t], by_session[j]) for j in range(t + 1)] for t in range(4)]
    overall = [mean_recall(*answered[t], [c for c in range(7) if ARRIVAL[c] <= t]) for t in range(4)]
    for t in range(4):
        np.testing.assert_allclose(metrics.matrix[t, : t + 1], a[t])
        assert np.isnan(metrics.matrix[t, t + 1 :]).all()
        session = metrics.sessions[t]
        assert session.balanced_accuracy == pytest.approx(overall[t])
        assert session.base == pytest.approx(a[t][0])
        assert session.accuracy == pytest.approx((answered[t][0] == answered[t][1]).mean())
    novel = mean_recall(*answered[3], [3, 4, 5, 6])
    assert metrics.sessions[3].novel == pytest.approx(novel)
    assert metrics.sessions[3].harmonic_mean == pytest.approx(stats.hmean([a[3][0], novel]) if novel and a[3][0] else 0)
    assert metrics.sessions[0].novel is None
    assert metrics.sessions[0].harmonic_mean is None
    assert metrics.pd == pytest.approx(overall[0] - overall[3])
    assert metrics.rpd == pytest.approx((overall[0] - overall[3]) / overall[0])
    assert metrics.average == pytest.approx(sum(overall) / 4)
    lost = [max(a[t][j] for t in range(j, 3)) - a[3][j] for j in range(3)]
    assert metrics.forgetting == pytest.approx(sum(lost) / 3)
    plain = [(y == p).mean() for y, p in answered]
    assert metrics.plain_pd == pytest.approx(plain[0] - plain[3])
    assert metrics.plain_average == pytest.approx(np.mean(plain))


def test_a_class_without_queries_does_not_count() -> None:
    confusion = np.array([[3, 1, 0], [0, 0, 0], [0, 0, 2]])
    assert balanced_accuracy(confusion) == pytest.approx((0.75 + 1) / 2)
    assert macro_f1(confusion) == pytest.approx((6 / 7 + 1) / 2)
    assert np.isnan(balanced_accuracy(confusion, np.array([False, True, False])))


def test_nothing_is_divided_by_zero() -> None:
    assert harmonic_mean(0.0, 0.0) == 0
    metrics = compute_stream_metrics([np.array([[0, 2], [3, 0]])], np.array([0, 0]))
    assert (metrics.rpd, metrics.forgetting, metrics.pd) == (None, None, 0)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30))
def test_the_interval_against_scipy(values: list[float]) -> None:
    summary = summarise_seeds(values)
    if stats.sem(values) > 0:
        low, high = stats.t.interval(0.95, len(values) - 1, loc=np.mean(values), scale=stats.sem(values))
        assert summary.interval == pytest.approx((high - low) / 2, abs=1e-12)
    assert summary.mean == pytest.approx(np.mean(values))
    assert summary.standard_deviation == pytest.approx(np.std(values, ddof=1))


def test_one_seed_has_no_interval() -> None:
    assert summarise_seeds([0.5]).interval is None
    with pytest.raises(ValueError, match="at least one"):
        summarise_seeds([])


def test_the_order_of_metrics_is_that_of_stored_results() -> None:
    """Files of earlier versions have this order; new metrics come after."""
    sessions = ["balanced_accuracy", "accuracy", "base", "novel", "harmonic_mean", "macro_f1"]
    stream = ["pd", "rpd", "average", "forgetting"]
    stream += [f"plain_{name}" for name in stream]
    assert [metric.name for metric in session_metrics()[:6]] == sessions
    assert [metric.name for metric in stream_metrics()[:8]] == stream
    names = [metric.name for metric in (*session_metrics(), *stream_metrics())]
    assert len(set(names)) == len(names)
    assert not {"session", "classes", "seconds", "sessions", "matrix", "total_seconds"} & set(names)


def test_attributes_are_the_listed_values() -> None:
    confusions = [confusion_matrix(y, p, int((ARRIVAL <= t).sum())) for t, (y, p) in enumerate(answers(1))]
    metrics = compute_stream_metrics(confusions, ARRIVAL)
    assert all(getattr(metrics, name) == value for name, value in metrics.values.items())
    assert list(metrics.values) == [metric.name for metric in stream_metrics()]
    for session in metrics.sessions:
        assert all(getattr(session, name) == value for name, value in session.values.items())
        assert list(session.values) == [metric.name for metric in session_metrics()]
