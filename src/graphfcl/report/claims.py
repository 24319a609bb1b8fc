"""What may be said of a method on a dataset: which methods it is ahead of, tied with and behind."""

from collections.abc import Mapping
from dataclasses import dataclass

from graphfcl.report.blocks import Block, Findings
from graphfcl.report.statistics import Comparison, compare_with


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
        return tuple(name for name, found in self.comparisons.items() if _ahead(found, holm=holm))

    def behind(self, *, holm: bool = True) -> tuple[str, ...]:
        """Methods that are ahead of it with p < 0.05, after Holm's correction or raw."""
        return tuple(name for name, found in self.comparisons.items() if _ahead(found.swapped, holm=holm))

    def tied(self, *, holm: bool = True) -> tuple[str, ...]:
        """The other methods: the test separates none of them from it, or they share too few seeds for a test."""
        apart = {*self.ahead(holm=holm), *self.behind(holm=holm)}
        return tuple(name for name in self.comparisons if name not in apart)


def _ahead(found: Comparison, *, holm: bool) -> bool:
    return found.ahead_after_holm if holm else found.ahead


def claims(block: Block, reference: str, metric: str = "average") -> Claims:
    """What the tests of a block support of one of its methods."""
    figures = block.fair_figures(metric)
    comparisons = compare_with(reference, figures, block.ratios)
    untested = frozenset(figures) - {reference, *comparisons}
    return Claims(reference, block.dataset, metric, comparisons, untested)


def claims_by_dataset(
    findings: Findings, reference: str, metric: str = "average", grid: str = "table2"
) -> dict[str, Claims]:
    """Dataset → claims, over the blocks of a grid that have the method."""
    blocks = [block for block in findings.blocks if block.grid.name == grid]
    return {
        block.dataset: claims(block, reference, metric) for block in blocks if reference in block.fair_figures(metric)
    }
