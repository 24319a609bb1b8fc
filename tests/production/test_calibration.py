"""Calibration against plain loops, and what it promises."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from graphfcl.production.calibration import (
    KEPT,
    LEVELS,
    Calibration,
    balanced_weights,
    best_temperature,
    learn_from_rehearsal,
    separation,
    weighted_loss,
    weighted_quantiles,
)


def drawn(seed: int, count: int = 400, classes: int = 5, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Scores whose softmax at temperature 1/scale says truly how likely each class is."""
    random = np.random.default_rng(seed)
    logits = random.normal(size=(count, classes)) * 2
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = np.array([random.choice(classes, p=row) for row in shares])
    return logits * scale, labels


@pytest.mark.parametrize("scale", [0.001, 1.0, 500.0])
def test_the_temperature_is_found_whatever_the_scale(scale: float) -> None:
    scores, labels = drawn(0, 4000, scale=scale)
    assert best_temperature(scores, labels, np.full(labels.size, 1 / labels.size)) == pytest.approx(scale, rel=0.1)


def test_the_loss_is_that_of_a_loop() -> None:
    scores, labels = drawn(1, 50)
    weights = balanced_weights(labels)
    expected = 0.0
    for row, label, weight in zip(scores, labels, weights, strict=True):
        expected -= weight * math.log(math.exp(row[label]) / sum(math.exp(value) for value in row))
    assert weighted_loss(scores, labels, weights) == pytest.approx(expected)
    for label in set(labels.tolist()):
        assert weights[labels == label].sum() == pytest.approx(1 / len(set(labels.tolist())))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-5, 5), min_size=1, max_size=30), st.lists(st.integers(-5, 5), min_size=1, max_size=30))
def test_separation_is_the_auroc(high: list[int], low: list[int]) -> None:
    expected = roc_auc_score([1] * len(high) + [0] * len(low), high + low)
    assert separation(np.array(high), np.array(low)) == pytest.approx(expected)


def test_quantiles_of_equal_weights_are_the_usual_ones() -> None:
    values = np.random.default_rng(0).normal(size=101)
    found = weighted_quantiles(values, np.ones(101), np.array([0.25, 0.5, 0.9]))
    np.testing.assert_allclose(found, np.quantile(values, [0.25, 0.5, 0.9]))


def test_the_threshold_keeps_as_many_known_nodes_as_promised() -> None:
    scores, labels = drawn(2, 3000)
    calibration = Calibration().recalibrated(scores, labels, few_share=0.0)
    fresh, fresh_labels = drawn(3, 3000)
    kept = calibration.unknown_scores(fresh) <= calibration.threshold
    assert (balanced_weights(fresh_labels) * kept).sum() == pytest.approx(KEPT, abs=0.02)
    probabilities = calibration.probabilities(fresh)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == fresh_labels
    for low in (0.2, 0.4, 0.6, 0.8):
        here = (confidence >= low) & (confidence < low + 0.2)
        assert confidence[here].mean() == pytest.approx(right[here].mean(), abs=0.06)


def test_few_shot_classes_soften_the_temperature_and_raise_the_threshold() -> None:
    """In the rehearsal few-shot nodes are right less often than their scores say, and look stranger."""
    scores, labels = drawn(4, 4000, classes=6)
    few = labels >= 4
    random = np.random.default_rng(5)
    scores[few] = random.normal(size=scores[few].shape) * 2  # no relation to the label
    learned, separations = learn_from_rehearsal((scores[:, :4], labels), (scores, labels), known=4)
    assert set(separations) == {"probability", "score", "energy"}
    alone = learned.recalibrated(scores[~few], labels[~few], few_share=0.0)
    mixed = learned.recalibrated(scores[~few], labels[~few], few_share=0.5)
    assert mixed.temperature > 1.2 * alone.temperature
    assert alone.threshold == KEPT
    stranger = replace(learned, few_kept=tuple((LEVELS**3).tolist())).recalibrated(scores[~few], labels[~few], 0.5)
    assert 0.5 * stranger.threshold + 0.5 * stranger.threshold**3 == pytest.approx(KEPT, abs=0.01)
    assert Calibration.from_json(mixed.as_json()) == mixed


def test_unknown_scores_rise_with_strangeness_and_stay_between_0_and_1() -> None:
    scores, labels = drawn(6, 500)
    calibration = Calibration().recalibrated(scores, labels, 0.0)
    found = calibration.unknown_scores(np.concatenate([scores, np.zeros((1, 5)), 100 * np.eye(5)[:1]]))
    assert found.min() >= 0
    assert found.max() <= 1
    assert found[-2] > 0.98
    assert found[-1] < 0.02


def test_of_equal_strangeness_scores_the_first_is_kept() -> None:
    columns = np.array([0, 0, 1, 1, 2, 2])
    scores = np.concatenate([np.repeat(8 * np.eye(2), 2, axis=0), np.zeros((2, 2))])
    after = np.eye(3)[columns]
    calibration, separations = learn_from_rehearsal((scores, columns), (after, columns), known=2)
    assert list(separations.values()) == [1.0, 1.0, 1.0]
    assert calibration.unknown_by == "probability"
