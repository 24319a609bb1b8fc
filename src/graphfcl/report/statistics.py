"""Compare rows on one dataset, with one test for each pair and two families that are fixed in advance.

The headline family compares the reference row with each other row. The second family contains all pairs. The raw
p-value of a pair is the same in both (:func:`graphfcl.metrics.paired_difference`). Holm's correction depends on the
family, so tables name it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from graphfcl.metrics import PairedDifference, holm, paired_difference

SIGNIFICANT = 0.05
Figures = Mapping[str, Mapping[int, float]]  # row → seed → value


@dataclass(frozen=True)
class Comparison:
    """One row minus another, with the p-value ``adjusted`` by Holm's correction; None if it is not tested."""

    difference: PairedDifference
    adjusted: float | None = None

    @property
    def ahead(self) -> bool:
        """Whether the first row is ahead, by the raw p-value."""
        return self.difference.mean > 0 and _below(self.difference.p_value)

    @property
    def ahead_after_holm(self) -> bool:
        return self.difference.mean > 0 and _below(self.adjusted)

    @property
    def swapped(self) -> "Comparison":
        """The second row minus the first."""
        return replace(self, difference=replace(self.difference, mean=-self.difference.mean))


def _below(p_value: float | None) -> bool:
    return p_value is not None and p_value < SIGNIFICANT


def compare_with(reference: str, figures: Figures, ratios: Mapping[int, float]) -> dict[str, Comparison]:
    """Compute the headline family: reference − row, by row. Rows that share no seed with the reference are left out.

    ``ratios`` holds n_test/n_train of the stream of each seed.
    """
    others = [name for name in figures if name != reference]
    comparisons = _family([(reference, name) for name in others], figures, ratios)
    return {second: comparison for (_, second), comparison in comparisons.items()}


def compare_pairs(figures: Figures, ratios: Mapping[int, float]) -> dict[tuple[str, str], Comparison]:
    """Compute the family of all pairs: row − other row, once for each pair in the order of the rows."""
    return _family(list(combinations(figures, 2)), figures, ratios)


def _family(
    pairs: list[tuple[str, str]], figures: Figures, ratios: Mapping[int, float]
) -> dict[tuple[str, str], Comparison]:
    differences = {}
    for first, second in pairs:
        shared = sorted(set(figures[first]) & set(figures[second]))
        if shared:
            ours, theirs = ([figures[name][seed] for seed in shared] for name in (first, second))
            ratio = float(np.mean([ratios[seed] for seed in shared]))
            differences[first, second] = paired_difference(ours, theirs, ratio)
    raw = {pair: difference.p_value for pair, difference in differences.items() if difference.p_value is not None}
    adjusted = dict(zip(raw, holm(list(raw.values())).tolist(), strict=True))
    return {pair: Comparison(difference, adjusted.get(pair)) for pair, difference in differences.items()}


@dataclass(frozen=True)
class Claims:
    """A headline family: a reference method compared with every other comparable method on one dataset.

    Rows with a mark are excluded: upper references (``joint``), rows trained on query labels, other forms of a method.
    The reference must be fixed before the results are known.

    Attributes:
        reference: Name of the reference method.
        dataset: Name of the dataset.
        metric: ``average`` (over sessions) or ``last`` (balanced accuracy after the last session).
        comparisons: Reference − other by other method, with raw and adjusted p-values.
        untested: Methods that share no seed with the reference.
    """

    reference: str
    dataset: str
    metric: str
    comparisons: Mapping[str, Comparison]
    untested: frozenset[str] = frozenset()

    @property
    def family(self) -> str:
        return f"{self.reference} against the rest, {self.metric}"

    @property
    def ahead_of_every(self) -> bool:
        """Whether the reference is ahead of each method with raw p < 0.05 (intersection–union test; no correction)."""
        return not self.untested and bool(self.comparisons) and all(each.ahead for each in self.comparisons.values())

    def ahead(self, *, holm: bool = True) -> tuple[str, ...]:
        """Methods behind the reference with p < 0.05, after Holm's correction or raw."""
        return tuple(name for name, comparison in self.comparisons.items() if _ahead(comparison, holm=holm))

    def behind(self, *, holm: bool = True) -> tuple[str, ...]:
        """Methods ahead of the reference with p < 0.05, after Holm's correction or raw."""
        return tuple(name for name, comparison in self.comparisons.items() if _ahead(comparison.swapped, holm=holm))

    def tied(self, *, holm: bool = True) -> tuple[str, ...]:
        """Methods whose difference from the reference is not significant, or that share too few seeds for a test."""
        different = {*self.ahead(holm=holm), *self.behind(holm=holm)}
        return tuple(name for name in self.comparisons if name not in different)


def _ahead(comparison: Comparison, *, holm: bool) -> bool:
    return comparison.ahead_after_holm if holm else comparison.ahead
