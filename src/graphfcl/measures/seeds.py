"""Figures over seeds."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class SeedSummary:
    """Mean, sample standard deviation, and half the width of Student's 95 % interval; None with one seed."""

    count: int
    mean: float
    standard_deviation: float | None
    interval: float | None

    def __str__(self) -> str:
        return f"{self.mean:.4f}" if self.interval is None else f"{self.mean:.4f} ± {self.interval:.4f}"


def summarise_seeds(values: Sequence[float] | np.ndarray, confidence: float = 0.95) -> SeedSummary:
    """mean ± t_{(1+confidence)/2, n−1} · s / √n."""
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.size == 0:
        raise ValueError("no values to summarise: give at least one seed's figure.")
    if numbers.size == 1:
        return SeedSummary(1, float(numbers[0]), None, None)
    from scipy.stats import t as student

    deviation = float(numbers.std(ddof=1))
    factor = float(student.ppf((1 + confidence) / 2, numbers.size - 1))
    return SeedSummary(numbers.size, float(numbers.mean()), deviation, factor * deviation / numbers.size**0.5)
