"""Statistics over seeds: means with intervals, paired differences of methods, corrections and ranks."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class SeedSummary:
    """Mean of a metric over seeds, with its spread.

    Attributes:
        count: Number of seeds.
        mean: Mean over the seeds.
        standard_deviation: Sample standard deviation; None with one seed.
        interval: Half the width of Student's confidence interval of the mean; None with one seed.
    """

    count: int
    mean: float
    standard_deviation: float | None
    interval: float | None

    def __str__(self) -> str:
        return f"{self.mean:.4f}" if self.interval is None else f"{self.mean:.4f} ± {self.interval:.4f}"


def summarise_seeds(values: Sequence[float] | np.ndarray, confidence: float = 0.95) -> SeedSummary:
    """Summarise the values of a metric over seeds.

    The interval is mean ± t_{(1+confidence)/2, n−1} · s / √n, with s the sample standard deviation of n values.

    Args:
        values: One value for each seed.
        confidence: Confidence level of the interval, between 0 and 1.

    Returns:
        A summary with ``count``, ``mean``, ``standard_deviation`` and ``interval`` (half the width).

    Raises:
        ValueError: If there are no values.

    Examples:
        >>> from graphfcl import summarise_seeds
        >>> print(summarise_seeds([0.81, 0.84, 0.83]))
        0.8267 ± 0.0379
    """
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.size == 0:
        raise ValueError("there are no values to summarise: give the value of at least one seed.")
    if numbers.size == 1:
        return SeedSummary(1, float(numbers[0]), None, None)
    from scipy.stats import t as student

    deviation = float(numbers.std(ddof=1))
    factor = float(student.ppf((1 + confidence) / 2, numbers.size - 1))
    return SeedSummary(numbers.size, float(numbers.mean()), deviation, factor * deviation / numbers.size**0.5)


FEWEST_SEEDS = 5  # least number of seeds for a test


@dataclass(frozen=True)
class PairedDifference:
    """Mean difference of two methods over the same seeds.

    Attributes:
        count: Number of seeds.
        mean: Mean of first − second.
        interval: Half the width of its 95 % interval; None with fewer than ``FEWEST_SEEDS`` seeds.
        p_value: p-value of the test against zero; None with fewer than ``FEWEST_SEEDS`` seeds.
    """

    count: int
    mean: float
    interval: float | None
    p_value: float | None


def paired_difference(first: Sequence[float], second: Sequence[float], ratio: float) -> PairedDifference:
    """Compare two methods with the two-sided corrected resampled t-test of Nadeau and Bengio (2003).

    All seeds split the same graph, so the differences d_1..d_n are not independent, and s/√n underestimates the
    standard error of their mean. With ρ = n_test/n_train and s the standard deviation of the d_i, the corrected
    standard error is e = s · √(1/n + ρ). The statistic mean(d)/e is compared with Student's distribution with n − 1
    degrees of freedom, and the interval is mean(d) ± t_{0.975,n−1} · e. If all differences are equal, p is 0, or 1 if
    they are all zero.

    Args:
        first: Values of the first method, one for each seed.
        second: Values of the second method for the same seeds.
        ratio: ρ, the number of test nodes divided by that of training nodes (``Stream.n_test``, ``Stream.n_train``).
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
    """Adjust m p-values after Holm: in ascending order, p_(i) = min(1, max_{j ≤ i} (m − j + 1) p_(j)), i, j ≥ 1."""
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    steps = np.maximum.accumulate(values[order] * (values.size - np.arange(values.size)))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1.0, steps)
    return adjusted


def average_ranks(scores: np.ndarray) -> np.ndarray:
    """Mean rank of each method over the rows of (blocks, methods) scores; the highest score has rank 1, ties share."""
    from scipy.stats import rankdata

    return rankdata(-np.asarray(scores, dtype=np.float64), axis=1).mean(axis=0)
