"""Prototypes, distances, weights and losses against loops over nodes and classes in float64, values and gradients."""

import math
from collections.abc import Callable

import pytest
import torch

from graphfcl.methods.hag_meta import class_weights, hard_task_loss, weighted_binary_cross_entropy
from graphfcl.methods.shared.prototype_network import (
    class_shares,
    leave_one_out_distances,
    query_shares,
    squared_distances,
    weighted_cross_entropy,
    weighted_prototypes,
)

pytestmark = pytest.mark.usefixtures("double_precision")

CLASSES = torch.tensor([0, 0, 0, 1, 1, 2, 3, 3])
LABELS = torch.tensor([0, 1, 1, 2, 3, 3, 0, 3])
TASK_OF_CLASS = torch.tensor([0, 0, 1, 2])


def values(seed: int, *shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


def assert_same(found: torch.Tensor, expected: torch.Tensor, *inputs: torch.Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-8)
    for left, right in zip(
        torch.autograd.grad(
            (found * torch.arange(1.0, found.numel() + 1).view(found.shape)).sum(), inputs, retain_graph=True
        ),
        torch.autograd.grad((expected * torch.arange(1.0, found.numel() + 1).view(found.shape)).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(left, right, rtol=1e-5, atol=1e-8)


def members(k: int) -> list[int]:
    return [j for j, c in enumerate(CLASSES.tolist()) if c == k]


def test_prototype_is_the_mean() -> None:
    z = values(0, 8, 3)
    found = weighted_prototypes(z, class_shares(CLASSES, 4), CLASSES, 4)
    expected = torch.stack([sum((z[j] for j in members(k)), torch.zeros(3)) / len(members(k)) for k in range(4)])
    assert_same(found, expected, z)


def attended(z: torch.Tensor, scores: torch.Tensor, left_out: int = -1) -> list[torch.Tensor]:
    prototypes = []
    for k in range(4):
        of_class = [j for j in members(k) if j != left_out]
        total = sum(torch.exp(scores[j]) for j in of_class)
        prototypes.append(sum((torch.exp(scores[j]) / total * z[j] for j in of_class), torch.zeros(3)))
    return prototypes


def test_prototype_with_node_level_attention_is_a_softmax_over_the_class() -> None:
    z, raw = values(1, 8, 3), values(2, 8)
    scores = torch.sigmoid(raw)
    shares = class_shares(CLASSES, 4, scores)
    assert_same(weighted_prototypes(z, shares, CLASSES, 4), torch.stack(attended(z, scores)), z, raw)
    for k in range(4):
        assert float(shares[CLASSES == k].sum().detach()) == pytest.approx(1)
        ratio = float((shares[CLASSES == k].max() / shares[CLASSES == k].min()).detach())
        assert ratio <= math.e


def test_squared_distances() -> None:
    q, p = values(3, 5, 3), values(4, 4, 3)
    expected = torch.stack([torch.stack([((q[i] - p[k]) ** 2).sum() for k in range(4)]) for i in range(5)])
    assert_same(squared_distances(q, p), expected, q, p)


def test_a_support_is_left_out_of_its_own_prototype() -> None:
    z, raw = values(5, 8, 3), values(6, 8)
    scores = torch.sigmoid(raw)
    queries = torch.cat([z[3:4], values(7, 1, 3).detach(), z[0:1]])
    own = torch.tensor([3, -1, 0])
    shares = class_shares(CLASSES, 4, scores)
    prototypes = weighted_prototypes(z, shares, CLASSES, 4)
    found = leave_one_out_distances(
        squared_distances(queries, prototypes), queries, prototypes, own, z, shares, CLASSES
    )
    rows = []
    for i, support in enumerate(own.tolist()):
        around = attended(z, scores, left_out=support) if support >= 0 else attended(z, scores)
        rows.append(torch.stack([((queries[i] - p) ** 2).sum() for p in around]))
    assert_same(found, torch.stack(rows), z, raw)


def test_class_weights() -> None:
    w = values(8, 3)
    expected = torch.stack([w[0] / 2, w[0] / 2, w[1] / 1, w[2] / 1])
    assert_same(class_weights(w, TASK_OF_CLASS), expected, w)


def softmax(distances: torch.Tensor, i: int) -> list[torch.Tensor]:
    raw = [torch.exp(-distances[i, k]) for k in range(4)]
    return [value / sum(raw) for value in raw]


def cross_entropy_by_loop(distances: torch.Tensor, w: torch.Tensor, share: Callable[[int], float]) -> torch.Tensor:
    total = torch.zeros(())
    for i, y in enumerate(LABELS.tolist()):
        total = total - share(i) * (1 + w[y]) * torch.log(softmax(distances, i)[y])
    return total


@pytest.mark.parametrize("by_class", [False, True])
def test_total_loss(by_class: bool) -> None:
    distances, w = values(9, 8, 4), values(10, 4)
    counts = [LABELS.tolist().count(y) for y in LABELS.tolist()]
    found = weighted_cross_entropy(distances, LABELS, w, query_shares(LABELS, 4, by_class))
    expected = cross_entropy_by_loop(distances, w, lambda i: 1 / (4 * counts[i]) if by_class else 1 / 8)
    assert_same(found, expected, distances, w)


def test_binary_loss() -> None:
    distances, w = values(11, 8, 4), values(12, 4)
    expected = torch.zeros(())
    for i, y in enumerate(LABELS.tolist()):
        p = softmax(distances, i)
        for k in range(4):
            expected = expected - (1 + w[k]) / 8 * torch.log(p[k] if k == y else 1 - p[k])
    found = weighted_binary_cross_entropy(distances, LABELS, w, query_shares(LABELS, 4, False))
    assert_same(found, expected, distances, w)
    sure = torch.tensor([[0.0, 900.0, 900.0, 900.0]], requires_grad=True)
    one = weighted_binary_cross_entropy(sure, torch.tensor([0]), torch.zeros(4), torch.ones(1))
    (gradient,) = torch.autograd.grad(one, sure)
    assert torch.isfinite(one)
    assert torch.isfinite(gradient).all()


def test_hard_tasks_are_what_attention_is_taught() -> None:
    distances = values(13, 8, 4)
    raw = values(14, 3)
    w = torch.softmax(raw, dim=0)
    losses: list[list[float]] = [[], [], []]
    for i, y in enumerate(LABELS.tolist()):
        losses[int(TASK_OF_CLASS[y])].append(-float(torch.log(softmax(distances, i)[y]).detach()))
    means = [math.exp(sum(part) / len(part)) for part in losses]
    expected = -sum(mean / sum(means) * torch.log(w[j]) for j, mean in enumerate(means))
    found = hard_task_loss(distances, LABELS, w, TASK_OF_CLASS)
    assert isinstance(expected, torch.Tensor)
    assert_same(found, expected, raw)
    assert torch.autograd.grad(found, distances, allow_unused=True)[0] is None

    def attention_after(hard: bool) -> torch.Tensor:
        """A few steps on the weights alone: what each loss does to them."""
        logits = torch.zeros(3, requires_grad=True)
        for _ in range(200):
            weights = torch.softmax(logits, dim=0)
            if hard:
                loss = hard_task_loss(distances.detach(), LABELS, weights, TASK_OF_CLASS)
            else:
                shares = query_shares(LABELS, 4, True)
                loss = weighted_cross_entropy(distances.detach(), LABELS, class_weights(weights, TASK_OF_CLASS), shares)
            (gradient,) = torch.autograd.grad(loss, logits)
            logits = (logits - 0.5 * gradient).detach().requires_grad_()
        return torch.softmax(logits, dim=0).detach()

    hardest, easiest = means.index(max(means)), means.index(min(means))
    assert int(attention_after(hard=True).argmax()) == hardest
    assert int(attention_after(hard=False).argmax()) == easiest


def test_supports_without_any_weight_count_the_same() -> None:
    """An attention whose values are all 0 in 32 bits must not divide by their sum."""
    shares = class_shares(torch.tensor([0, 0, 1, 1]), 2, torch.tensor([0.0, 0.0, 0.2, 0.6]), softmax=False)
    torch.testing.assert_close(shares, torch.tensor([0.5, 0.5, 0.25, 0.75]))
