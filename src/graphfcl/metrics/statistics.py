"""Figures over seeds: means with intervals, paired differences of methods, corrections and ranks."""

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


FEWEST_SEEDS = 5  # with fewer, nothing is tested


@dataclass(frozen=True)
class PairedDifference:
    """Mean of first − second over the same seeds, half of its 95 % interval, and the p-value of the test against zero.

    Interval and p-value are None with fewer than ``FEWEST_SEEDS`` seeds.
    """

    count: int
    mean: float
    interval: float | None
    p_value: float | None


def paired_difference(first: Sequence[float], second: Sequence[float], ratio: float) -> PairedDifference:
    """The corrected resampled t-test of Nadeau and Bengio (2003), two-sided.

    Seeds split one graph again and again, so their differences d_1..d_n are not independent, and s/√n is too small an
    error of their mean. With ρ = n_test/n_train and s the standard deviation of the d_i, the error is e =
    s · √(1/n + ρ), the test is that of mean(d)/e against Student's distribution with n − 1 degrees of freedom, and the
    interval is mean(d) ± t_{0.975,n−1} · e. If all differences are the same, p is 0 (or 1, if they are all zero).

    ratio: ρ; see ``Stream.n_test`` and ``Stream.n_train``.
    """
    differences = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    count, mean = differences.size, float(differences.mean())
    if count < FEWEST_SEEDS:
        return PairedDifference(count, mean, None, None)
    error = float(differences.std(ddof=1)) * (1 / count + ratio) ** 0.5
    if error == 0:
        return PairedDifference(count, mean, 0.0, 0.0 if mean else 1.0)
    from scipy.stats import t as student

    p_value = 2 * float(student.sf(abs(mean) / error, count - 1))
    return PairedDifference(count, mean, float(student.ppf(0.975, count - 1)) * error, p_value)


def holm(p_values: Sequence[float]) -> np.ndarray:
    """Holm's adjusted p-values: sorted ascending, p_(i) becomes the largest of (m − j) p_(j) over j ≤ i, at most 1."""
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    steps = np.maximum.accumulate(values[order] * (values.size - np.arange(values.size)))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1.0, steps)
    return adjusted


def average_ranks(scores: np.ndarray) -> np.ndarray:
    """(methods,) mean rank over the rows of (blocks, methods) scores; 1 is the highest, ties share their ranks."""
    from scipy.stats import rankdata

    return rankdata(-np.asarray(scores, dtype=np.float64), axis=1).mean(axis=0)
