"""Logits of labelled nodes that are left out, against sums that never had them."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphfcl.methods.anchor.class_sums import Anchors
from graphfcl.methods.anchor.left_out import logits_without
from tests.methods.anchor.test_class_sums import CHOSEN, CLASSES, MANY, some_anchors, with_labels_of_session_0


def left_and_kept(seed: int, labels: torch.Tensor, count: int, first: int = MANY) -> tuple[torch.Tensor, torch.Tensor]:
    """Some nodes of classes from ``first`` on, and all others."""
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(labels)))
    left = order[labels[order] >= first][:count]
    return left, torch.ones(len(labels), dtype=torch.bool).index_fill(0, left, False)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 30), st.integers(1, 9), st.sampled_from([0, MANY]))
def test_they_are_those_of_sums_that_never_had_them(seed: int, count: int, columns: int, first: int) -> None:
    chosen = replace(CHOSEN, covariance_columns=columns)
    anchors, points, labels, _ = some_anchors(seed % 5, chosen)
    left, kept = left_and_kept(seed, labels, count, first)
    never = Anchors.empty(anchors.shrinkage).plus(points[kept], labels[kept], CLASSES)
    expected = never.logits(points[left], chosen)
    for _ in range(2):  # what is kept between calls changes nothing
        np.testing.assert_allclose(logits_without(anchors, points[left], labels[left], chosen), expected, atol=1e-4)


def test_few_labels_need_no_decomposition() -> None:
    anchors, points, labels, _ = some_anchors(chosen=replace(CHOSEN, covariance_columns=7))
    parts = [torch.nonzero(labels == MANY)[place : place + 1, 0] for place in range(5)]
    with mock.patch.object(Anchors, "minus", side_effect=AssertionError("taken apart")):
        for part in parts:
            logits_without(anchors, points[part], labels[part], CHOSEN)
    assert len(anchors._inverses) == 1  # all of them leave as many labels


@pytest.mark.parametrize("factor", [1.5, 3.0])
def test_vectors_that_changed_since_they_were_added(factor: float) -> None:
    anchors, points, labels, _ = some_anchors()
    left, _ = left_and_kept(0, labels, 12)
    other = torch.nn.functional.normalize(points.roll(1, dims=1) + points, dim=1)[left] * factor
    actual = logits_without(anchors, other, labels[left], CHOSEN)
    assert torch.isfinite(actual).all()


@pytest.mark.parametrize("left", [0, 1])
def test_where_session_0_tells_no_scale(left: int) -> None:
    _, points, labels, _ = some_anchors(count=600)
    few = with_labels_of_session_0(left)
    one = torch.nonzero(labels == MANY)[:1, 0]
    without = few.minus(points[one], labels[one])
    actual = logits_without(few, points[one], labels[one], CHOSEN)
    np.testing.assert_allclose(actual, without.logits(points[one], CHOSEN), atol=1e-5)
