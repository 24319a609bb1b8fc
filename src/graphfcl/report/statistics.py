"""Comparisons of rows on one dataset: one test for each pair, and two families of them that are fixed in advance.

**Headline**: the reference row against each other row. **All pairs**: the appendix. The raw p-value of a pair is the
same in both (:func:`graphfcl.metrics.paired_difference`); Holm's correction is over the pairs of the family, so a
table names its family.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from graphfcl.metrics import PairedDifference, holm, paired_difference

SIGNIFICANT = 0.05
Figures = Mapping[str, Mapping[int, float]]  # row → seed → figure


@dataclass(frozen=True)
class Comparison:
    """One row minus another. adjusted: its p-value after Holm's correction in a family; None where it is not tested."""

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
    """Row → reference − row: the headline family. Rows that share no seed with the reference are left out.

    ratios: seed → n_test/n_train of its stream.
    """
    others = [name for name in figures if name != reference]
    comparisons = _family([(reference, name) for name in others], figures, ratios)
    return {second: comparison for (_, second), comparison in comparisons.items()}


def compare_pairs(figures: Figures, ratios: Mapping[int, float]) -> dict[tuple[str, str], Comparison]:
    """(row, other row) → row − other for each pair once, in the order of the rows: the family of all pairs."""
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
    """A reference method against every other one that may be compared with it, on one dataset: a headline family.

    Rows with a mark take no part: upper references (``joint``), rows trained on query labels, other forms of a method.
    The reference is to be fixed before results are looked at.

    metric: ``average`` over sessions, or ``last``, the balanced accuracy of the last session.
    comparisons: other method → reference − other, with its raw p-value and that after Holm's correction.
    untested: methods that share no seed with the reference.
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
        """An intersection–union test: ahead of each other method with a raw p < 0.05, so no correction is needed."""
        return not self.untested and bool(self.comparisons) and all(each.ahead for each in self.comparisons.values())

    def ahead(self, *, holm: bool = True) -> tuple[str, ...]:
        """Methods that it is ahead of with p < 0.05, after Holm's correction or raw."""
        return tuple(name for name, comparison in self.comparisons.items() if _ahead(comparison, holm=holm))

    def behind(self, *, holm: bool = True) -> tuple[str, ...]:
        """Methods that are ahead of it with p < 0.05, after Holm's correction or raw."""
        return tuple(name for name, comparison in self.comparisons.items() if _ahead(comparison.swapped, holm=holm))

    def tied(self, *, holm: bool = True) -> tuple[str, ...]:
        """The other methods: the test separates none of them from it, or they share too few seeds for a test."""
        apart = {*self.ahead(holm=holm), *self.behind(holm=holm)}
        return tuple(name for name in self.comparisons if name not in apart)


def _ahead(comparison: Comparison, *, holm: bool) -> bool:
    return comparison.ahead_after_holm if holm else comparison.ahead
