"""Blocks of comparable rows: one dataset under one protocol, with titles, comparisons, and the rows to emphasise."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from graphfcl.defaults import REFERENCE_METHOD, STRATEGY
from graphfcl.experiments import Grid
from graphfcl.report.rows import CONTROL, FORM, ORACLE, POOL, Row
from graphfcl.report.statistics import Claims, Comparison, compare_pairs, compare_with

MOST_COLOURS = 12  # a figure with more rows shows only the strongest in colours
SHOWN_OF_MANY = 9  # number of these


def version_text(result: dict[str, Any]) -> str:
    """The protocol version of a result, for titles."""
    return f"protocol version {result['protocol_version']}"


def labels_text(protocol: dict[str, Any]) -> str:
    """Number of labels per new class: K, or ``all`` labels of supports and pool."""
    return "all" if protocol.get("pool_as_supports") else str(protocol["shot"])


def kind_text(protocol: dict[str, Any]) -> str:
    """N and K, for titles."""
    return f"{protocol['way']}-way {labels_text(protocol)}-shot"


@dataclass(frozen=True, eq=False)
class Block:
    """Rows on the same dataset under the same protocol.

    Attributes:
        grid: Grid that the rows belong to.
        dataset: Name of the dataset, with its path if several graphs of the folder have this name.
        protocol: Rules of the protocol.
        rows: Rows in the order of the grid's cells.
        failures: Row, seed and error of each cell that failed.
        missing: Number of cells that have not run.
        dataset_path: Dataset as the cells name it: a name, or the path of a user's own graph.
        further_rules: Rules that distinguish the block from another block of the grid with the same title.
    """

    grid: Grid
    dataset: str
    protocol: dict[str, Any]
    rows: tuple[Row, ...]
    failures: tuple[tuple[str, int, str], ...]
    missing: int
    dataset_path: str = ""
    further_rules: str = ""

    @property
    def is_active(self) -> bool:
        return self.protocol["track"] == "active"

    @property
    def sessions(self) -> int:
        return max(len(result["sessions"]) for row in self.rows for result in row.results.values())

    @property
    def version_text(self) -> str:
        """The protocol version, which all results of the block share."""
        return version_text(next(iter(self.rows[0].results.values())))

    @property
    def title(self) -> str:
        return self.title_with(kind_text(self.protocol))

    def title_with(self, kind: str) -> str:
        """Title with the text ``kind`` in place of N and K."""
        protocol = self.protocol
        split = f", split for {protocol['split_shot']}-shot" if protocol.get("split_shot") else ""
        raw = ", not standardised" if protocol.get("standardise") is False else ""
        rules = f"{protocol['name']}, {protocol['track']}{split}{raw}{self.further_rules}"
        return f"{self.dataset}, {kind}, {rules}, {self.version_text}"

    @cached_property
    def reference(self) -> Row:
        """Row with which the others are compared.

        It is the row of ``REFERENCE_METHOD``, or under the track ``active`` the first row of ``STRATEGY``. If there is
        none, it is the row with the highest average among rows without special marks.
        """
        fair = [row for row in self.rows if not {POOL, FORM, ORACLE, CONTROL} & set(row.marks)] or list(self.rows)
        named = [row for row in fair if row.name == REFERENCE_METHOD or row.strategy == STRATEGY]
        return named[0] if named else max(fair, key=lambda row: float(np.mean([*row.values("average").values()])))

    def comparable(self, row: Row) -> bool:
        """Whether a row may be tested against the reference, because it has the same marks."""
        return row is not self.reference and row.marks == self.reference.marks

    @cached_property
    def ratios(self) -> dict[int, float]:
        """n_test/n_train of the stream of each seed."""
        return {seed: result["n_test"] / result["n_train"] for row in self.rows for seed, result in row.results.items()}

    @cached_property
    def comparisons(self) -> dict[str, Comparison]:
        """Reference − row on the average over sessions, by row name. These tests form the headline family.

        Rows with other marks than the reference have a difference, but are not in the family. Rows that share fewer
        than ``FEWEST_SEEDS`` seeds with the reference have no test.
        """
        figures = {row.name: row.values("average") for row in self.rows}
        alike = {row.name: figures[row.name] for row in self.rows if row is self.reference or self.comparable(row)}
        tested = compare_with(self.reference.name, alike, self.ratios)
        others = compare_with(self.reference.name, figures, self.ratios)
        return {name: tested.get(name, replace(other, adjusted=None)) for name, other in others.items()}

    def improvement(self, row: Row, key: str) -> float | None:
        """Mean reduction of PD or RPD by the reference over shared seeds; None if no seed is shared."""
        ours, theirs = self.reference.values(key), row.values(key)
        shared = sorted(set(ours) & set(theirs))
        return float(np.mean([theirs[seed] - ours[seed] for seed in shared])) if shared else None

    def fair_figures(self, metric: str) -> dict[str, dict[int, float]]:
        """Values of the rows without a mark, by row and seed.

        ``metric`` is ``average`` (over sessions) or ``last`` (balanced accuracy after the last session).
        """
        fair = [row for row in self.rows if not row.marks]
        return {row.name: row.last() if metric == "last" else row.values("average") for row in fair}

    def leads(self, metric: str) -> dict[str, dict[str, Comparison]]:
        """Row − other row, by row and other row: the family of all pairs of rows without a mark."""
        figures = self.fair_figures(metric)
        leads: dict[str, dict[str, Comparison]] = {name: {} for name in figures}
        for (first, second), comparison in compare_pairs(figures, self.ratios).items():
            leads[first][second] = comparison
            leads[second][first] = comparison.swapped
        return {name: {other: leads[name][other] for other in figures if other in leads[name]} for name in figures}

    @cached_property
    def _contest(self) -> Claims | None:
        """The row with the highest average compared with every other; None if all rows have a mark."""
        fair = self.fair_figures("average")
        best = max(fair, key=lambda name: float(np.mean(list(fair[name].values()))), default=None)
        return None if best is None else claims(self, best)

    @property
    def too_few_seeds(self) -> bool:
        """Whether the row with the highest average shares too few seeds with another to be tested against it."""
        contest = self._contest
        untested = contest is not None and any(each.difference.p_value is None for each in contest.comparisons.values())
        return untested or (contest is not None and bool(contest.untested))

    @property
    def winner(self) -> str | None:
        """The row that is ahead of every other row on average with raw p < 0.05 each; None if there is none."""
        contest = self._contest
        return contest.reference if contest is not None and contest.ahead_of_every else None


def by_strength(blocks: Sequence[Block]) -> list[str]:
    """Names of all rows, sorted by mean accuracy. Rows with marks other than pool labels come last."""
    values: dict[str, list[float]] = {}
    later = {row.name for block in blocks for row in block.rows if set(row.marks) - {POOL}}
    for block in blocks:
        for row in block.rows:
            values.setdefault(row.name, []).append(float(np.mean(list(row.values("average").values()))))
    return sorted(values, key=lambda name: (name in later, -float(np.mean(values[name]))))


def prominent(blocks: Sequence[Block]) -> list[str]:
    """Rows that a figure shows in colours: all, or the strongest and the references if there are many."""
    names = by_strength(blocks)
    if len(names) <= MOST_COLOURS:
        return names
    references = {block.reference.name for block in blocks}
    return [name for place, name in enumerate(names) if place < SHOWN_OF_MANY or name in references]


def claims(block: Block, reference: str, metric: str = "average") -> Claims:
    """Test one method of a block against the others."""
    figures = block.fair_figures(metric)
    comparisons = compare_with(reference, figures, block.ratios)
    untested = frozenset(figures) - {reference, *comparisons}
    return Claims(reference, block.dataset, metric, comparisons, untested)
