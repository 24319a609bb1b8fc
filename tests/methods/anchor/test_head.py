"""The head of ANCHOR against plain loops."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphfcl import SILENT, Progress
from graphfcl.methods.anchor.head import mix_with_head, retrained_head, trained_head


def drawn(seed: int, nodes: int = 12, classes: int = 5, size: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(seed)
    points = torch.randn(nodes, size, generator=random)
    posterior = torch.softmax(3 * torch.randn(nodes, classes, generator=random), dim=1)
    return points / points.norm(dim=1, keepdim=True), posterior


def by_loop(posterior: np.ndarray, points: np.ndarray, weight: np.ndarray, share: float) -> np.ndarray:
    actual = posterior.copy()
    for v in range(len(points)):
        logits = [sum(w * x for w, x in zip(row, points[v], strict=True)) for row in weight]
        total = sum(math.exp(value) for value in logits)
        mixed = [posterior[v, c] ** (1 - share) * (math.exp(value) / total) ** share for c, value in enumerate(logits)]
        mass = sum(posterior[v, c] for c in range(len(weight)))
        for c in range(len(weight)):
            actual[v, c] = mass * mixed[c] / sum(mixed) if mass > 0 else posterior[v, c]
    return actual


@given(seed=st.integers(0, 10_000), known=st.integers(1, 5), share=st.floats(0.05, 0.95))
@settings(max_examples=30, deadline=None)
def test_what_the_head_says_is_shared_out_as_by_a_loop(seed: int, known: int, share: float) -> None:
    points, posterior = drawn(seed)
    weight = 4 * torch.randn(known, 4, generator=torch.Generator().manual_seed(seed + 1))
    actual = mix_with_head(posterior, points, weight, share)
    expected = by_loop(posterior.double().numpy(), points.double().numpy(), weight.double().numpy(), share)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-7)
    np.testing.assert_array_equal(actual[:, known:], posterior[:, known:])
    np.testing.assert_allclose(actual.sum(dim=1), 1, rtol=1e-5)


def test_a_class_that_takes_no_part_gets_nothing_from_the_head() -> None:
    points, posterior = drawn(0)
    posterior[:, 1] = 0
    posterior[3] = torch.tensor([0.0, 0.0, 0.0, 0.4, 0.6])  # nothing for the classes of session 0
    weight = torch.zeros(3, 4)
    weight[1] = 50.0
    actual = mix_with_head(posterior, points, weight, 0.5)
    assert not actual[:, 1].any()
    assert not actual.isnan().any()
    np.testing.assert_array_equal(actual[3], posterior[3])


def test_without_a_say_or_a_head_nothing_changes() -> None:
    points, posterior = drawn(0)
    assert mix_with_head(posterior, points, torch.ones(3, 4), 0.0) is posterior
    assert mix_with_head(posterior, points, torch.zeros(0, 0), 0.5) is posterior


def test_the_head_learns_what_means_cannot_tell() -> None:
    """Two classes with one mean: one lies along an axis, the other across it."""
    random = torch.Generator().manual_seed(0)
    labels = torch.arange(600) % 2
    values = 0.1 * torch.randn(600, 3, generator=random)
    values[:, 0] += 1.0
    values[labels == 1, 1] += 0.3
    values = values / values.norm(dim=1, keepdim=True)
    train, validation = (values[:400].half(), labels[:400]), (values[400:].half(), labels[400:])
    start = torch.zeros(2, 3)
    start[:, 0] = 1.0  # the rule of the means knows only the first axis
    weight, steps = trained_head(start, train, validation, 200, 0.05, SILENT)
    assert weight.dtype == torch.float16
    assert steps > 0
    np.testing.assert_array_equal(retrained_head(start, train, steps, 0.05), weight)

    def accuracy(rule: torch.Tensor) -> float:
        return float(((validation[0].float() @ rule.float().T).argmax(dim=1) == validation[1]).float().mean())

    assert accuracy(start) == pytest.approx(0.5, abs=0.05)
    assert accuracy(weight) > 0.85


def test_no_step_leaves_the_rule_of_the_means() -> None:
    points, _ = drawn(1)
    labelled = (points.half(), torch.arange(12) % 3)
    start = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    weight, steps = trained_head(start, labelled, labelled, 0, 0.01, SILENT)
    np.testing.assert_array_equal(weight, start.half())
    assert steps == 0


@pytest.mark.parametrize("most", [3, 7])
def test_the_last_steps_count_too(most: int) -> None:
    points, _ = drawn(1, nodes=60)
    labels = points[:, :3].argmax(dim=1)
    weight, steps = trained_head(
        torch.zeros(3, 4), (points.half(), labels), (points.half(), labels), most, 0.01, SILENT
    )
    assert 0 < steps <= most
    assert weight.any()


class Checks(Progress):
    """Keeps when the head was checked."""

    def __init__(self) -> None:
        self.steps: list[int] = []

    def step(self, stage: str, step: int, total: int, **_: float | None) -> None:  # noqa: ARG002
        self.steps.append(step)


def test_the_head_stops_after_six_checks_that_bring_nothing_better() -> None:
    labels = torch.arange(30) % 3
    points = torch.eye(3)[labels].half()
    checks = Checks()
    weight, steps = trained_head(torch.eye(3), (points, labels), (points, labels), 200, 0.01, checks)
    assert checks.steps == [0, 5, 10, 15, 20, 25, 30], "the first check is perfect, then six bring nothing"
    assert steps == 0
    np.testing.assert_array_equal(weight, torch.eye(3).half())
