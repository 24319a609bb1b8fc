"""Ridge regression from class sums, against systems of as many equations as there are columns."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphfcl.methods.anchor import AnchorSettings
from graphfcl.methods.anchor.class_sums import Anchors, Shrinkage
from graphfcl.methods.anchor.frame import whitened, whitening
from graphfcl.methods.anchor.ridge import LABELS_FOR_HALF, SCALE, RidgeFrame, RidgeSums, shares_of, with_ridge

SIZE, MANY, CLASSES, WIDTH = 7, 3, 5, 3
CHOSEN = AnchorSettings(covariance_columns=WIDTH, covariance_prior=4.0, ridge_share=0.4, ridge_penalty=0.3)


def some_labels(seed: int = 0, count: int = 90) -> tuple[torch.Tensor, torch.Tensor, Any]:
    """f of labelled nodes, their classes, and the frame; later classes spread along the first axis."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, CLASSES, count)
    values = random.standard_normal((count, SIZE)) * np.linspace(2, 0.5, SIZE) + 2 * np.eye(SIZE)[labels]
    values[labels >= MANY, 0] *= 4
    f, columns = torch.from_numpy(values).float(), torch.from_numpy(labels)
    first = columns < MANY
    return f, columns, whitening(f[first], columns[first], MANY, 0.5)


def both_sums(x: torch.Tensor, labels: torch.Tensor, frame: Any) -> tuple[Anchors, RidgeSums]:
    anchors = Anchors.empty(Shrinkage.of(MANY, frame, CHOSEN)).plus(x, labels, CLASSES)
    return anchors, RidgeSums.empty(RidgeFrame.of(MANY, frame, CHOSEN)).plus(x, labels)


def in_blocks_only(matrix: np.ndarray) -> np.ndarray:
    """With zeros outside the blocks on the diagonal."""
    place = np.arange(SIZE) // WIDTH
    return matrix * (place[:, None] == place)


def within_of_a_loop(rows: np.ndarray, labels: np.ndarray, classes: range) -> tuple[np.ndarray, int]:
    """Σ (v − μ_c)(v − μ_c)ᵀ, and the degrees of freedom."""
    total, degrees = np.zeros((SIZE, SIZE)), 0
    for c in classes:
        own = rows[labels == c]
        for row in own - own.mean(axis=0):
            total += np.outer(row, row)
        degrees += len(own) - 1
    return total, degrees


@pytest.mark.parametrize("seed", range(3))
def test_weights_are_those_of_least_squares(seed: int) -> None:
    f, columns, frame = some_labels(seed)
    x, labels = whitened(f, frame, "<f4"), columns.numpy()
    anchors, ridge = both_sums(x, columns, frame)
    root, shift = frame["whitening"].double().numpy(), float(frame["shift"])
    plain = x.double().numpy()
    u = plain @ np.linalg.inv(root)
    parts = [within_of_a_loop(f.double().numpy(), labels, range(c, c + 1)) for c in range(MANY)]
    degrees = sum(size for _, size in parts)
    spread = sum((part for part, _ in parts), np.zeros((SIZE, SIZE))) / degrees / 2
    spread += sum((part / size for part, size in parts), np.zeros((SIZE, SIZE))) / MANY / 2
    later, spare = within_of_a_loop(u, labels, range(MANY, CLASSES))
    of_units, _ = within_of_a_loop(plain, labels, range(MANY))
    unit = np.trace(of_units) / degrees / (SIZE - np.trace(shift * root.T @ root))
    share = (CLASSES - MANY) / CLASSES * spare / (spare + 4)
    within = in_blocks_only((1 - share) * unit * spread + share * later / spare)
    means = np.array([u[labels == c].mean(axis=0) for c in range(CLASSES)])
    gram = means.T @ means + CLASSES * within
    weights = np.linalg.solve(gram + 0.3 * np.trace(gram) / SIZE * np.eye(SIZE), means.T)
    own = np.mean([means[c] @ weights[:, c] for c in range(CLASSES)])
    actual = x @ ridge.weights(anchors, CHOSEN).T
    np.testing.assert_allclose(actual, SCALE * u @ weights / own, rtol=1e-3, atol=1e-4)


def test_it_reads_deviations_from_the_middle_up_to_their_length() -> None:
    f, _, frame = some_labels()
    actual = RidgeFrame.of(MANY, frame, CHOSEN).unwhitened(whitened(f, frame, "<f4")).numpy()
    expected = (f - frame["middle"]).double().numpy()
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(one / np.linalg.norm(one), other / np.linalg.norm(other), atol=1e-5)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 90))
def test_labels_in_any_order_and_batching_give_the_same_sums(seed: int, cut: int) -> None:
    f, columns, frame = some_labels(seed % 5)
    x = whitened(f, frame, "<f4")
    anchors, ridge = both_sums(x, columns, frame)
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(columns)))
    again = RidgeSums.empty(ridge.frame)
    for part in (order[cut:], order[:cut]):
        again = again.plus(x[part], columns[part])
    np.testing.assert_allclose(again.products, ridge.products, atol=1e-10)
    np.testing.assert_allclose(again.weights(anchors, CHOSEN), ridge.weights(anchors, CHOSEN), rtol=1e-5, atol=1e-6)


def test_a_saved_state_is_the_same_to_the_last_digit() -> None:
    f, columns, frame = some_labels()
    anchors, ridge = both_sums(whitened(f, frame, "<f4"), columns, frame)
    again = RidgeSums.load(ridge.tensors(), ridge.frame)
    assert torch.equal(again.weights(anchors, CHOSEN), ridge.weights(anchors, CHOSEN))


def test_vectors_that_changed_since_they_were_added_end_in_a_stronger_penalty() -> None:
    """Means then explain more products than there are, and the difference is not positive definite."""
    f, columns, frame = some_labels()
    x = whitened(f, frame, "<f4")
    anchors, whole = both_sums(x, columns, frame)
    other = both_sums(0.01 * x, columns, frame)[1]
    weak = replace(CHOSEN, ridge_penalty=1e-4)
    right = [
        float(((x @ each.weights(anchors, weak).T).argmax(dim=1) == columns).float().mean()) for each in (whole, other)
    ]
    assert right[1] > right[0] - 0.3


def test_other_shapes_are_refused() -> None:
    f, columns, frame = some_labels()
    _, ridge = both_sums(whitened(f, frame, "<f4"), columns, frame)
    stored = ridge.tensors()["ridge.products"]
    for other in (stored[:1], stored[:, :1], stored.float()):
        with pytest.raises(ValueError, match="different shapes"):
            RidgeSums.load({"ridge.products": other}, ridge.frame)


def test_a_class_without_a_label_changes_nothing() -> None:
    f, columns, frame = some_labels()
    x = whitened(f, frame, "<f4")
    anchors, ridge = both_sums(x, columns, frame)
    more = Anchors.empty(anchors.shrinkage).plus(x, columns, CLASSES + 1)
    np.testing.assert_allclose(ridge.weights(more, CHOSEN)[:CLASSES], ridge.weights(anchors, CHOSEN), rtol=1e-6)


def test_probabilities_are_mixed_as_by_a_loop() -> None:
    random = np.random.default_rng(1)
    posterior = random.random((6, 4))
    posterior[:, 2] = 0.0
    posterior /= posterior.sum(axis=1, keepdims=True)
    logits, shares = random.standard_normal((6, 4)), np.array([0.1, 0.3, 0.2, 0.0])
    counts = np.array([5, 2, 0, 1])
    actual = with_ridge(*(torch.from_numpy(each) for each in (posterior, logits, shares, counts)))
    for v in range(6):
        ridge = np.exp(logits[v]) / np.exp(logits[v][counts > 0]).sum()
        mixed = [posterior[v, c] ** (1 - shares[c]) * ridge[c] ** shares[c] if c != 2 else 0.0 for c in range(4)]
        np.testing.assert_allclose(actual[v], np.array(mixed) / sum(mixed), rtol=1e-6)


def test_a_class_with_few_labels_gives_the_ridge_little_to_say() -> None:
    counts = torch.tensor([0.0, LABELS_FOR_HALF, 1e9]).double()
    np.testing.assert_allclose(shares_of(counts, CHOSEN), [0, 0.2, 0.4], atol=1e-6)
