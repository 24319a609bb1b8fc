"""Sums and products of classes against plain loops."""

import numpy as np
import pytest
import torch

from graphfcl.methods.shared.class_statistics import ClassMoments, ClassSums
from tests.methods.closed_forms import plus


def vectors_of(count: int = 60, size: int = 5, classes: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    """Labelled vectors in no order; the class before the last has one vector, the last has none."""
    random = torch.Generator().manual_seed(0)
    labels = torch.randint(classes - 2, (count,), generator=random)
    labels[7] = classes - 2
    return torch.randn(count, size, generator=random), labels


@pytest.mark.parametrize(("block", "together"), [(4, 3), (128, 64)])
def test_means_and_covariances_are_those_of_a_loop(block: int, together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphfcl.methods.shared.class_statistics.BLOCK", block)
    monkeypatch.setattr("graphfcl.methods.shared.class_statistics.TOGETHER", together)
    vectors, labels = vectors_of()
    first = plus(ClassMoments.empty(5), vectors[:25], labels[:25], 4)
    found = plus(first, vectors[25:], labels[25:], 5)
    for c in range(5):
        own = vectors[labels == c].double().numpy()
        assert found.counts[c] == len(own)
        wanted = own.mean(axis=0) if len(own) else np.zeros(5)
        np.testing.assert_allclose(found.means()[c], wanted, rtol=1e-12)
        spread = np.cov(own.T) if len(own) > 1 else np.zeros((5, 5))
        np.testing.assert_allclose(found.covariances()[c], spread, atol=1e-12)
    sums = plus(ClassSums.empty(5), vectors, labels, 5)
    np.testing.assert_allclose(sums.means(), found.means(), rtol=1e-12)


def test_whole_classes_can_be_exchanged() -> None:
    vectors, labels = vectors_of()
    of_first = labels == 0
    whole = plus(ClassMoments.empty(5), vectors, labels, 5)
    old = plus(ClassMoments.empty(5), vectors[of_first], labels[of_first], 5)
    new = plus(ClassMoments.empty(5), vectors[of_first][1:], labels[of_first][1:], 5)
    found = whole.exchanged(old, new)
    gone = torch.arange(60) != int(torch.nonzero(of_first)[0])
    wanted = plus(ClassMoments.empty(5), vectors[gone], labels[gone], 5)
    torch.testing.assert_close(found.covariances(), wanted.covariances(), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(found.counts, wanted.counts)


def test_read_again_they_are_the_same_and_as_large_as_they_say() -> None:
    whole = plus(ClassMoments.empty(5), *vectors_of(), 5)
    again = ClassMoments.empty(5).loaded(whole.tensors(), torch.device("cpu"))
    torch.testing.assert_close(again.products, whole.products, rtol=1e-14, atol=1e-14)
    assert torch.equal(again.sums, whole.sums)
    assert whole.nbytes == sum(tensor.nbytes for tensor in whole.tensors().values())
    sums = ClassSums(sums=whole.sums, counts=whole.counts)
    assert sums.nbytes == sum(tensor.nbytes for tensor in sums.tensors().values())
    assert torch.equal(ClassSums.empty(5).loaded(sums.tensors(), torch.device("cpu")).sums, sums.sums)
