"""The metric and the directions that ANCHOR makes of class sums, against plain loops."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphfcl.methods.anchor import AnchorSettings
from graphfcl.methods.anchor.class_sums import Anchors, Shrinkage
from graphfcl.methods.anchor.frame import whitening
from graphfcl.methods.anchor.metric import directions_of, in_blocks, probabilities

SIZE, MANY, CLASSES = 7, 3, 5
CHOSEN = AnchorSettings(covariance_columns=3, covariance_prior=4.0)


def labelled(seed: int, count: int = 90) -> tuple[torch.Tensor, torch.Tensor]:
    """Unit vectors; later classes spread along the first axis."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, CLASSES, count)
    values = random.standard_normal((count, SIZE)) + 2 * np.eye(SIZE)[labels]
    values[labels >= MANY, 0] *= 4
    return torch.from_numpy(values / np.linalg.norm(values, axis=1, keepdims=True)).float(), torch.from_numpy(labels)


def some_anchors(
    seed: int = 0, chosen: AnchorSettings = CHOSEN, count: int = 90
) -> tuple[Anchors, torch.Tensor, torch.Tensor, Any]:
    points, labels = labelled(seed, count)
    first = labels < MANY
    frame = whitening(points[first], labels[first], MANY, 0.5)
    shrinkage = Shrinkage.of(MANY, frame, chosen)
    return Anchors.empty(shrinkage).plus(points, labels, CLASSES), points, labels, frame


def covariance_of_a_loop(points: np.ndarray, labels: np.ndarray, frame: Any, prior: float, width: int) -> np.ndarray:
    """(D, D) B, with zeros outside the blocks."""
    root, shift = frame["whitening"].double().numpy(), float(frame["shift"])
    added = shift * root.T @ root
    variance, within, degrees = 0.0, np.zeros((SIZE, SIZE)), 0
    for c in range(CLASSES):
        own = points[labels == c]
        centred = own - own.mean(axis=0)
        if c < MANY:
            variance += float((centred**2).sum())
        else:
            for row in centred:
                within += np.outer(row, row)
            degrees += len(own) - 1
    variance /= (labels < MANY).sum() - MANY
    kept = np.array([[i // width == j // width for j in range(SIZE)] for i in range(SIZE)])
    added = added * kept
    scale = (SIZE - np.trace(added)) / variance
    share = (CLASSES - MANY) / CLASSES * degrees / (degrees + prior)
    return (1 - share) * np.eye(SIZE) + share * (scale * within / degrees * kept + added)


@pytest.mark.parametrize("seed", range(3))
def test_the_metric_is_that_of_a_loop(seed: int) -> None:
    anchors, points, labels, frame = some_anchors(seed)
    expected = covariance_of_a_loop(points.double().numpy(), labels.numpy(), frame, 4.0, 3)
    vectors = torch.eye(SIZE, dtype=torch.float64)
    np.testing.assert_allclose(anchors.metric.times(vectors), np.linalg.inv(expected), rtol=1e-5, atol=1e-8)
    inverse, x = np.linalg.inv(expected), points.double().numpy()
    first = labels.numpy() < MANY
    means = [x[labels == c].mean(axis=0) for c in range(CLASSES)]
    length = np.mean([means[c] @ inverse @ means[c] for c in labels.numpy()[first]])
    added = float(frame["shift"]) * frame["whitening"].double().numpy().T @ frame["whitening"].double().numpy()
    variance = sum(((x[labels == c] - means[c]) ** 2).sum() for c in range(MANY)) / (first.sum() - MANY)
    within = variance * (SIZE - np.trace(inverse @ added)) / (SIZE - np.trace(added))
    noise = within * (1 - MANY / first.sum())  # the means have theirs already
    assert anchors.metric.length == pytest.approx(noise + length, rel=1e-5)


@pytest.mark.parametrize("prior", [1e9, 4.0])
def test_with_one_label_a_class_the_metric_is_that_of_session_0(prior: float) -> None:
    chosen = AnchorSettings(covariance_columns=3, covariance_prior=prior)
    anchors, points, labels, _ = some_anchors(chosen=chosen)
    vectors = torch.eye(SIZE, dtype=torch.float64)
    if prior == 4.0:
        last = [int(torch.nonzero(labels == c)[0, 0]) for c in range(MANY, CLASSES)]
        kept = torch.tensor([*torch.nonzero(labels < MANY)[:, 0].tolist(), *last])
        anchors = Anchors.empty(anchors.shrinkage).plus(points[kept], labels[kept], CLASSES)
        assert anchors.metric.length == 1.0
    np.testing.assert_allclose(anchors.metric.times(vectors), vectors, atol=1e-6)


def test_directions_are_those_of_a_loop() -> None:
    anchors, points, labels, _ = some_anchors()
    metric, x = anchors.metric, points.double().numpy()
    inverse = metric.times(torch.eye(SIZE, dtype=torch.float64)).numpy()
    actual, squares, counts = anchors.directions(CHOSEN).numpy(), [], []
    for c in range(CLASSES):
        own = x[labels == c]
        mean, count = own.mean(axis=0), len(own)
        square = (mean @ inverse @ mean - metric.length / count) / (1 - 1 / count)
        squares.append(min(metric.length, max(0.0, square)))
        counts.append(count)
    sure = [c for c in range(CLASSES) if counts[c] >= 20] or list(range(CLASSES))
    usual = sum(squares[c] for c in sure) / len(sure)
    for c in range(CLASSES):
        square = (counts[c] * squares[c] + 20 * usual) / (counts[c] + 20)
        expected = inverse @ x[labels == c].mean(axis=0) / math.sqrt(square * metric.length)
        np.testing.assert_allclose(actual[c], expected, rtol=1e-4, atol=1e-6)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 60), st.integers(1, 9))
def test_labels_in_any_order_and_batching_and_taken_back_give_the_same_sums(seed: int, cut: int, columns: int) -> None:
    chosen = AnchorSettings(covariance_columns=columns)
    anchors, points, labels, _ = some_anchors(seed % 5, chosen)
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(labels)))
    first, second = order[:cut], order[cut:]
    again = Anchors.empty(anchors.shrinkage).plus(points[second], labels[second], CLASSES)
    again = again.plus(points[first], labels[first], CLASSES)
    back = anchors.minus(points[first], labels[first]).plus(points[first], labels[first], CLASSES)
    for other in (again, back):
        for name in ("sums", "counts", "products"):
            np.testing.assert_allclose(getattr(other, name), getattr(anchors, name), atol=1e-10)
        np.testing.assert_allclose(other.directions(chosen), anchors.directions(chosen), atol=1e-6)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 40), st.integers(1, 50))
def test_blocks_have_equal_widths_and_every_column_once(size: int, columns: int) -> None:
    vectors = torch.arange(2 * size).reshape(2, size).double()
    blocks = in_blocks(vectors, columns)
    assert blocks.shape[2] <= columns
    assert torch.equal(blocks.transpose(0, 1).flatten(1)[:, :size], vectors)
    assert torch.equal(in_blocks(vectors, blocks.shape[2]), blocks), "blocks of blocks' width are the same blocks"


def test_a_saved_state_is_the_same_to_the_last_digit() -> None:
    anchors, *_ = some_anchors()
    loaded = Anchors.load(anchors.tensors(), torch.device("cpu"), anchors.shrinkage)
    assert torch.equal(loaded.products, anchors.products)
    assert torch.equal(loaded.directions(CHOSEN), anchors.directions(CHOSEN))
    plain = Anchors.empty()
    assert Anchors.load(plain.tensors(), torch.device("cpu"), None).products.shape == (0, 0, 0)


def test_later_classes_that_spread_elsewhere_are_told_apart() -> None:
    """Later classes differ along one axis and spread along another, on which those of session 0 do not."""
    random = np.random.default_rng(0)
    base = random.standard_normal((400, 4)) * [0.1, 0.1, 1, 1] + 4 * np.eye(4)[2 + np.arange(400) % 2]
    signs = np.where(np.arange(200) % 2, 1.0, -1.0)
    later = random.standard_normal((200, 4)) * [3.0, 0.3, 0.1, 0.1] + np.outer(signs, [0, 0.8, 0, 0])
    values = np.concatenate([base, later])
    points = torch.from_numpy(values / np.linalg.norm(values, axis=1, keepdims=True)).float()
    labels = torch.from_numpy(np.concatenate([np.arange(400) % 2, 2 + np.arange(200) % 2]))
    frame = whitening(points[:400], labels[:400], 2, 0.5)
    right = []
    for prior in (1e9, 20.0):
        chosen = AnchorSettings(covariance_columns=4, covariance_prior=prior)
        anchors = Anchors.empty(Shrinkage.of(2, frame, chosen)).plus(points[:460], labels[:460], 4)
        logits = anchors.logits(points[460:], chosen)
        right.append(float((logits.argmax(dim=1) == labels[460:]).float().mean()))
    assert right[1] > right[0] + 0.1


def with_labels_of_session_0(left: int) -> Anchors:
    """``some_anchors(count=600)``, but with so many labels of each class of session 0."""
    anchors, points, labels, _ = some_anchors(count=600)
    kept = labels >= MANY
    for c in range(MANY):
        kept[torch.nonzero(labels == c)[:left, 0]] = True
    return Anchors.empty(anchors.shrinkage).plus(points[kept], labels[kept], CLASSES)


@pytest.mark.parametrize("left", [0, 1])
def test_later_classes_are_told_apart_where_session_0_has_no_or_one_label_a_class(left: int) -> None:
    """Lengths and scales are then those of all classes."""
    anchors, points, labels, _ = some_anchors(count=600)
    few = with_labels_of_session_0(left)
    assert few.metric.length == pytest.approx(anchors.metric.length, rel=0.5)
    later = labels >= MANY
    whole, actual = (each.logits(points[later], CHOSEN)[:, MANY:] for each in (anchors, few))
    assert float(actual.abs().max()) < 2 * float(whole.abs().max())
    right = (actual.argmax(dim=1) + MANY == labels[later]).float().mean()
    assert right > 0.7


def test_vectors_that_were_not_added_can_be_taken_back() -> None:
    anchors, points, labels, _ = some_anchors()
    other = torch.nn.functional.normalize(points.roll(1, dims=1) + points, dim=1)
    some = torch.nonzero(labels >= MANY)[:12, 0]
    without = anchors.minus(other[some] * 1.5, labels[some])
    assert torch.isfinite(without.directions(CHOSEN)).all()


@pytest.mark.parametrize("count", [2, 8])
def test_a_class_without_a_label_moves_no_other(count: int) -> None:
    """Also where no class has so many nodes that it tells how long means are."""
    anchors, points, labels, _ = some_anchors(count=40)
    more = Anchors.empty(anchors.shrinkage).plus(points, labels, CLASSES + 3)
    random = np.random.default_rng(0)
    posterior = torch.from_numpy(random.dirichlet(np.ones(CLASSES), size=count))
    wide = torch.nn.functional.pad(posterior, (0, 3))
    found = points[:count].double()
    actual = more.moved(wide.T @ found, wide.sum(dim=0), CHOSEN)
    expected = anchors.moved(posterior.T @ found, posterior.sum(dim=0), CHOSEN)
    directions = [directions_of(*each, anchors.metric, CHOSEN) for each in (actual, expected)]
    np.testing.assert_allclose(directions[0][:CLASSES], directions[1], rtol=1e-6)
    assert (actual[1][CLASSES:] == 0).all()


@pytest.mark.parametrize("number", [math.nan, -math.inf])
def test_numbers_that_are_not_finite_end_in_no_endless_search(number: float) -> None:
    anchors, *_ = some_anchors()
    anchors.products[0, 0, 0] = number
    assert anchors.metric.inverse is None


@given(seed=st.integers(0, 2**32 - 1), count=st.integers(2, 40))
def test_probabilities_do_not_depend_on_the_order_of_classes(seed: int, count: int) -> None:
    """Two sums in 64 bits may still round to neighbouring numbers of 32, once in about 10⁸."""
    random = torch.Generator().manual_seed(seed)
    logits, order = 10 * torch.randn(50, count, generator=random), torch.randperm(count, generator=random)
    found, expected = probabilities(logits[:, order]), probabilities(logits)[:, order]
    assert int((found != expected).sum()) <= 1
