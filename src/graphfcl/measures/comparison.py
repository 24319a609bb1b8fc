"""Comparing methods on the same streams: paired differences, correction for many comparisons, average ranks."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from graphfcl.measures.seeds import summarise_seeds


@dataclass(frozen=True)
class PairedDifference:
    """Mean of first − second over the same seeds, half of its Student 95 % interval, and the paired t-test's p-value.

    Interval and p-value are None with fewer than two seeds.
    """

    count: int
    mean: float
    interval: float | None
    p_value: float | None


def paired_difference(first: Sequence[float], second: Sequence[float]) -> PairedDifference:
    """The two-sided paired t-test; if all differences are the same, p is 0 (or 1, if they are all zero)."""
    differences = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    summary = summarise_seeds(differences)
    if summary.interval is None:
        return PairedDifference(summary.count, summary.mean, None, None)
    if summary.standard_deviation == 0:
        return PairedDifference(summary.count, summary.mean, 0.0, 0.0 if summary.mean else 1.0)
    from scipy.stats import ttest_1samp

    return PairedDifference(summary.count, summary.mean, summary.interval, float(ttest_1samp(differences, 0.0).pvalue))


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
