"""The losses of Geometer against loops over their formulas, and the traps of the released ones."""

import math

import numpy as np
import pytest
import torch

from graphfcl.methods.geometer.network import memorability, separability, uniformity


def random_tensor(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_uniformity_is_the_mean_cosine_of_the_nearest_direction() -> None:
    prototypes = random_tensor(6, 3)
    vectors = prototypes.numpy() - prototypes.numpy().mean(axis=0)
    expected = []
    for k, one in enumerate(vectors):
        cosines = [one @ other / math.sqrt((one @ one) * (other @ other)) for j, other in enumerate(vectors) if j != k]
        expected.append(max(0.0, *cosines))
    assert min(expected) < max(expected)
    assert float(uniformity(prototypes)) == pytest.approx(np.mean(expected))


def test_uniformity_has_a_hinge() -> None:
    """Four corners of a square: seen from the middle, the others are at a right angle or opposite."""
    assert float(uniformity(torch.tensor([[1.0, 0], [0, 1], [-1, 0], [0, -1]]))) == pytest.approx(0.0)
    assert float(uniformity(torch.tensor([[1.0, 0], [-0.5, 0.9], [-0.5, -0.9]]))) == 0.0, "all cosines are negative"


@pytest.mark.parametrize("classes", [1, 2])
def test_uniformity_of_one_or_two_classes_teaches_nothing(classes: int) -> None:
    """Trap: two prototypes are opposite to each other whatever they are. With one there is no direction at all."""
    prototypes = random_tensor(classes, 4).requires_grad_()
    loss = uniformity(prototypes)
    loss.backward()
    assert float(loss.detach()) == 0.0
    assert prototypes.grad is not None
    assert float(prototypes.grad.abs().max()) == 0.0


def test_separability_is_the_mean_over_new_classes() -> None:
    new, old = 0.5 * random_tensor(2, 3), 0.5 * random_tensor(4, 3, seed=1)
    expected = [math.exp(-min(float(((p - q) ** 2).sum()) for q in old)) for p in new]
    assert float(separability(new, old)) == pytest.approx(np.mean(expected))
    assert float(separability(new[:0], old)) == 0.0, "a session may bring more supports of known classes alone"


@pytest.mark.parametrize(("direction", "sign"), [("far", 1), ("near", -1)])
def test_memorability_is_the_mean_of_the_terms_of_a_divergence(direction: str, sign: int) -> None:
    """Trap: the released sign is plus, which keeps who is farthest."""
    student, teacher = 3 * random_tensor(5, 4) ** 2, 3 * random_tensor(5, 4, seed=1) ** 2
    terms = []
    for q in range(5):
        pi = [math.exp(sign * float(d) / 2) for d in student[q]]
        tau = [math.exp(sign * float(d) / 2) for d in teacher[q]]
        terms += [p / sum(pi) * math.log(p / sum(pi) / (t / sum(tau))) for p, t in zip(pi, tau, strict=True)]
    assert float(memorability(student, teacher, direction)) == pytest.approx(np.mean(terms))
    assert float(memorability(teacher, teacher, direction)) == pytest.approx(0.0, abs=1e-12)


def test_far_and_near_watch_opposite_ends() -> None:
    teacher = torch.tensor([[0.0, 20, 40]])
    nearest_moved, farthest_moved = torch.tensor([[18.0, 20, 40]]), torch.tensor([[0.0, 20, 22]])
    assert memorability(nearest_moved, teacher, "far") < 0.01 < 0.1 < memorability(farthest_moved, teacher, "far")
    assert memorability(farthest_moved, teacher, "near") < 0.01 < 0.1 < memorability(nearest_moved, teacher, "near")


@pytest.mark.parametrize("direction", ["far", "near"])
def test_memorability_of_large_distances_is_finite(direction: str) -> None:
    """Trap: the quotient of two softmax is 0/0 once distances differ by some hundreds."""
    student = torch.tensor([[0.0, 900.0, 2000.0]], requires_grad=True)
    teacher = torch.tensor([[5.0, 700.0, 1500.0]])
    pi, tau = torch.softmax(student / 2, dim=1), torch.softmax(teacher / 2, dim=1)
    assert bool((pi * torch.log(pi / tau)).isnan().any()), "as released"
    loss = memorability(student, teacher, direction)
    loss.backward()
    assert bool(loss.isfinite())
    assert student.grad is not None
    assert bool(student.grad.isfinite().all())


def test_losses_stay_on_the_device_of_their_tensors() -> None:
    """Trap: a released loss moves tensors to the first GPU."""
    prototypes = torch.zeros(3, 4, device="meta")
    assert uniformity(prototypes).device.type == "meta"
    assert separability(prototypes, prototypes).device.type == "meta"
    assert memorability(prototypes, prototypes, "far").device.type == "meta"
