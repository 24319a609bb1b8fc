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
    found = _family([(reference, name) for name in others], figures, ratios)
    return {second: comparison for (_, second), comparison in found.items()}


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
    raw = {pair: found.p_value for pair, found in differences.items() if found.p_value is not None}
    adjusted = dict(zip(raw, holm(list(raw.values())).tolist(), strict=True))
    return {pair: Comparison(found, adjusted.get(pair)) for pair, found in differences.items()}
