"""Early stopping: which weights stay, and when training ends."""

import json
from typing import Any

import pytest
import torch
from torch import nn

from graphfcl.methods.shared.learned_attributes import pack, unpack
from graphfcl.methods.shared.training_state import EarlyStopping

# Sums of these are exact, so that equal means are equal.
RISING_THEN_FALLING = [0.125, 0.25, 0.125, 0.5, 0.25, 0.75, 1.0, 0.75, 0.875, 0.5, 0.25, 0.25, 0.125, 0.125, 0.0, 0.0]


def stopped(
    scores: list[float], patience: int, window: int = 1, interrupted: int | None = None
) -> tuple[int, Any, int]:
    """The step found best, the weight kept of it, and the step at which training ended (-1: it did not).

    The weight at a step is the step itself. interrupted: saved and loaded before this step.
    """
    stopping, module = EarlyStopping(patience, window=window), nn.Linear(1, 1, bias=False)
    for step, score in enumerate(scores):
        if step == interrupted:
            tensors: dict[str, torch.Tensor] = {}
            packed = json.loads(json.dumps(pack(stopping.saved_state, "best", tensors)))
            stopping = EarlyStopping(patience, window=window)
            stopping.saved_state = unpack(packed, "best", tensors, torch.device("cpu"))
        with torch.no_grad():
            module.weight.fill_(step)
        if stopping.check(score, step, module):
            return stopping.step, stopping.weights["weight"].item(), step
    return stopping.step, stopping.weights["weight"].item(), -1


def test_the_first_of_equal_scores_stays_best() -> None:
    assert stopped([0.25, 0.5, 0.5, 0.25, 0.5, 0.75], patience=3) == (1, 1, 4), "a tie brings nothing better"
    assert stopped([0.0, 0.0, 0.0], patience=2) == (0, 0, 2)
    assert stopped([0.25, 0.5, 0.5, 0.75, 0.75, 0.75], patience=3) == (3, 3, -1)


@pytest.mark.parametrize("interrupted", [None, 1, 4, 7, 11])
@pytest.mark.parametrize("window", [1, 2, 5])
def test_a_score_counts_as_the_mean_of_the_last_ones(window: int, interrupted: int | None) -> None:
    scores, patience = RISING_THEN_FALLING, 4
    means = [sum(scores[max(0, i - window + 1) : i + 1]) / min(window, i + 1) for i in range(len(scores))]
    best, end = 0, -1
    for i, mean in enumerate(means):
        best = i if mean > means[best] else best
        if i - best == patience:
            end = i
            break
    assert end > best > 5, "the best mean is of a full window that has moved on"
    assert stopped(scores, patience, window, interrupted) == (best, best, end)
