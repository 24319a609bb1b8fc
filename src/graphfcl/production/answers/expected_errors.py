"""Estimate the number of errors in some predictions from their calibrated probabilities."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import pdtr

TAILS = 0.025, 0.975  # quantiles at the ends of the 95 % range


@dataclass(frozen=True)
class ExpectedErrors:
    """Expected number of wrong predictions, and the range that contains 95 % of such counts."""

    mean: float
    low: int
    high: int

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "mean": round(self.mean, 2)}


def expected_errors(probabilities: np.ndarray) -> ExpectedErrors:
    """Sum 1 − p over the probabilities p of the predicted classes.

    The range is the central 95 % range of a Poisson distribution with this mean. The number of errors of independent
    predictions varies less than a Poisson variable (Le Cam, 1960), so the range is cautious. We assume that the
    probabilities are calibrated and that every node belongs to a known class.
    """
    mean = float((1 - probabilities.astype(np.float64)).clip(min=0).sum())
    counts = np.arange(int(mean + 10 * np.sqrt(mean + 1)) + 10)
    low, high = (int(np.argmax(pdtr(counts, mean) >= share)) for share in TAILS)
    return ExpectedErrors(mean, min(low, probabilities.size), min(high, probabilities.size))
