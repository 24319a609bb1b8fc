"""Rows on one dataset under one protocol: titles, comparisons of rows, and which rows a picture shows in colours."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from graphfcl.defaults import REFERENCE_METHOD, STRATEGY
from graphfcl.experiments import Grid
from graphfcl.report.rows import CONTROL, FORM, ORACLE, POOL, Row
from graphfcl.report.statistics import Claims, Comparison, compare_pairs, compare_with
from graphfcl.stream import PROTOCOL_VERSION

MOST_COLOURS = 12  # rows of a picture that all have colours
SHOWN_OF_MANY = 9


def version_text(result: dict[str, Any]) -> str:
    """The protocol version of a result, as titles name it."""
    version = result["protocol_version"]
    return f"protocol version {version}" + ("" if version == PROTOCOL_VERSION else ", being recomputed")


def labels_text(protocol: dict[str, Any]) -> str:
    """Labels per new class: K, or ``all`` of supports and pool."""
    return "all" if protocol.get("pool_as_supports") else str(protocol["shot"])


def kind_text(protocol: dict[str, Any]) -> str:
    """N and K, as titles name them."""
    return f"{protocol['way']}-way {labels_text(protocol)}-shot"


@dataclass(frozen=True, eq=False)
class Block:
    """Rows on the same dataset under the same protocol.

    rows: in the order of the grid's cells.
    reference: the row others are compared with: that of ``REFERENCE_METHOD`` or, under the track ``active``, the first
        of ``STRATEGY``, where it is there; else the best one on average that is no reference itself.
    failures: (row, seed, error) of cells that failed. missing: cells that have not run.
    dataset: its name; with its path where several graphs of the folder have this name.
    dataset_path: the dataset as its cells name it, which for a user's own graph is a path.
    further_rules: rules that tell it from another block of the grid whose title would be the same.
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
        """The protocol version, which all its results share."""
        return version_text(next(iter(self.rows[0].results.values())))

    @property
    def title(self) -> str:
        return self.title_with(kind_text(self.protocol))

    def title_with(self, kind: str) -> str:
        """What its results are of. kind: N and K."""
        protocol = self.protocol
        split = f", split for {protocol['split_shot']}-shot" if protocol.get("split_shot") else ""
        raw = ", not standardised" if protocol.get("standardise") is False else ""
        rules = f"{protocol['name']}, {protocol['track']}{split}{raw}{self.further_rules}"
        return f"{self.dataset}, {kind}, {rules}, {self.version_text}"

    @cached_property
    def reference(self) -> Row:
        fair = [row for row in self.rows if not {POOL, FORM, ORACLE, CONTROL} & set(row.marks)] or list(self.rows)
        named = [row for row in fair if row.name == REFERENCE_METHOD or row.strategy == STRATEGY]
        return named[0] if named else max(fair, key=lambda row: float(np.mean([*row.values("average").values()])))

    def comparable(self, row: Row) -> bool:
        """Whether a row may be tested against the reference: it has the same marks."""
        return row is not self.reference and row.marks == self.reference.marks

    @cached_property
    def ratios(self) -> dict[int, float]:
        """Seed → n_test/n_train of its stream."""
        return {seed: result["n_test"] / result["n_train"] for row in self.rows for seed, result in row.results.items()}

    @cached_property
    def comparisons(self) -> dict[str, Comparison]:
        """Row name → reference − row on the average over sessions: the headline family.

        Rows with other marks than the reference have a difference but no place in the family, and rows that share
        fewer than ``FEWEST_SEEDS`` seeds with it have no test.
        """
        figures = {row.name: row.values("average") for row in self.rows}
        alike = {row.name: figures[row.name] for row in self.rows if row is self.reference or self.comparable(row)}
        tested = compare_with(self.reference.name, alike, self.ratios)
        others = compare_with(self.reference.name, figures, self.ratios)
        return {name: tested.get(name, replace(other, adjusted=None)) for name, other in others.items()}

    def improvement(self, row: Row, key: str) -> float | None:
        """By how much PD or RPD is smaller for the reference, over the seeds both have; None without any."""
        ours, theirs = self.reference.values(key), row.values(key)
        shared = sorted(set(ours) & set(theirs))
        return float(np.mean([theirs[seed] - ours[seed] for seed in shared])) if shared else None

    def fair_figures(self, metric: str) -> dict[str, dict[int, float]]:
        """Row → seed → figure, of the rows without a mark.

        metric: ``average``, over sessions, or ``last``, the balanced accuracy of the last session.
        """
        fair = [row for row in self.rows if not row.marks]
        return {row.name: row.last() if metric == "last" else row.values("average") for row in fair}

    def leads(self, metric: str) -> dict[str, dict[str, Comparison]]:
        """Row → other row → row − other: the family of all pairs of rows without a mark."""
        figures = self.fair_figures(metric)
        leads: dict[str, dict[str, Comparison]] = {name: {} for name in figures}
        for (first, second), comparison in compare_pairs(figures, self.ratios).items():
            leads[first][second] = comparison
            leads[second][first] = comparison.swapped
        return {name: {other: leads[name][other] for other in figures if other in leads[name]} for name in figures}

    @cached_property
    def _contest(self) -> Claims | None:
        """The row with the highest average against each other one; None if all rows have a mark."""
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
        """The row that is ahead of every other on average, each with a raw p < 0.05; None if there is none."""
        contest = self._contest
        return contest.reference if contest is not None and contest.ahead_of_every else None


def by_strength(blocks: Sequence[Block]) -> list[str]:
    """Names of all rows: first those without a mark or with pool labels, each part by its mean average."""
    values: dict[str, list[float]] = {}
    later = {row.name for block in blocks for row in block.rows if set(row.marks) - {POOL}}
    for block in blocks:
        for row in block.rows:
            values.setdefault(row.name, []).append(float(np.mean(list(row.values("average").values()))))
    return sorted(values, key=lambda name: (name in later, -float(np.mean(values[name]))))


def prominent(blocks: Sequence[Block]) -> list[str]:
    """Rows that a picture shows in colours: all, or of many the strongest and the reference."""
    names = by_strength(blocks)
    if len(names) <= MOST_COLOURS:
        return names
    references = {block.reference.name for block in blocks}
    return [name for place, name in enumerate(names) if place < SHOWN_OF_MANY or name in references]


def claims(block: Block, reference: str, metric: str = "average") -> Claims:
    """What the tests of a block support of one of its methods."""
    figures = block.fair_figures(metric)
    comparisons = compare_with(reference, figures, block.ratios)
    untested = frozenset(figures) - {reference, *comparisons}
    return Claims(reference, block.dataset, metric, comparisons, untested)
