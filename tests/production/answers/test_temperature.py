"""Temperatures: found at any scale, bounded by what the nodes can show, and following measures where that helps."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from graphfcl.production.answers.temperature import best_slopes, best_temperature


def drawn(seed: int, count: int = 400, classes: int = 5, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Scores whose softmax at the temperature ``scale`` says truly how likely each class is."""
    random = np.random.default_rng(seed)
    logits = random.normal(size=(count, classes)) * 2
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = np.array([random.choice(classes, p=row) for row in shares])
    return logits * scale, labels


def smoothed_loss(scores: np.ndarray, labels: np.ndarray, temperature: float) -> float:
    """The mean of −log p of the true class, with label smoothing 1/(v + 2)."""
    log_p = scores / temperature - logsumexp(scores / temperature, axis=1, keepdims=True)
    own, share = log_p[np.arange(labels.size), labels], 1 / (labels.size + 2)
    others = (log_p.sum(axis=1) - own) / (scores.shape[1] - 1)
    return -float(((1 - share) * own + share * others).mean())


@pytest.mark.parametrize("scale", [0.001, 1.0, 500.0])
@pytest.mark.parametrize("start", [0.01, 1.0, 100.0])
def test_the_temperature_is_found_whatever_the_scale_and_the_start(scale: float, start: float) -> None:
    scores, labels = drawn(0, 4000, scale=scale)
    assert best_temperature(scores, labels, start) == pytest.approx(scale, rel=0.1)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1000), st.integers(2, 60), st.integers(2, 6), st.floats(0.05, 20))
def test_no_other_temperature_is_better(seed: int, count: int, classes: int, factor: float) -> None:
    random = np.random.default_rng(seed)
    scores, labels = random.normal(size=(count, classes)), random.integers(classes, size=count)
    scores[np.arange(count), labels] += random.random() * 3
    best = best_temperature(scores, labels)
    # Scores that are of no use have no best temperature; theirs is where the loss has become flat.
    assert smoothed_loss(scores, labels, best) <= smoothed_loss(scores, labels, best * factor) + 1e-3


@pytest.mark.parametrize("count", [5, 50, 500])
def test_nodes_that_are_all_right_show_no_more_than_their_number(count: int) -> None:
    """The best temperature would be 0. The mean error that remains is about that of one node in count + 2."""
    random = np.random.default_rng(0)
    labels = random.integers(4, size=count)
    scores = 30 * np.eye(4)[labels]
    temperature = best_temperature(scores, labels)
    error = 3 / (3 + math.exp(30 / temperature))
    assert error == pytest.approx(1 / (count + 2), rel=0.02)


def test_one_class_alone_and_no_node_have_the_temperature_1() -> None:
    assert best_temperature(np.zeros((3, 1)), np.zeros(3, dtype=int)) == 1.0
    assert best_temperature(np.zeros((0, 3)), np.zeros(0, dtype=int)) == 1.0


def test_slopes_find_the_nodes_that_are_surer_than_they_may_be() -> None:
    """Half of the nodes have a measure of 2 and scores that are three times too large."""
    scores, labels = drawn(3, 4000)
    far = np.arange(4000) % 2 == 0
    scores[far] *= 3
    standard = np.stack([2.0 * far, np.random.default_rng(0).normal(size=4000)], axis=1)
    middle, slopes = best_slopes(scores, labels, standard, np.full(4000, 1 / 4000), 1.0)
    assert slopes[0] == pytest.approx(math.log(3) / 2, rel=0.15)
    assert abs(slopes[1]) < 0.1
    assert math.exp(middle) == pytest.approx(1, rel=0.15)


def test_classes_that_are_not_known_yet_take_no_part_in_slopes() -> None:
    scores, labels = drawn(4, 500)
    standard = np.random.default_rng(1).normal(size=(500, 1))
    wide = np.concatenate([scores, np.full((500, 2), -np.inf)], axis=1)
    weights = np.full(500, 1 / 500)
    narrow_found, wide_found = (best_slopes(each, labels, standard, weights, 1.0) for each in (scores, wide))
    assert narrow_found[0] == pytest.approx(wide_found[0])
    np.testing.assert_allclose(narrow_found[1], wide_found[1])
