"""The parameter study: accuracy of each method for several N and K."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphfcl.metrics import SeedSummary
from graphfcl.report.blocks import Block
from graphfcl.report.comparison import code_notes
from graphfcl.report.figures import Style, add_legend, draw_summaries, label_ends, panels_with_legend
from graphfcl.report.rows import Row
from graphfcl.report.shots import AXIS, MEASURES
from graphfcl.report.table import Table, figure
from graphfcl.runtime.figures import percent_axis, save_figure


@dataclass(frozen=True)
class Sweep:
    """One method on one dataset for several N and K.

    ``rules`` is a title with dataset and rules, ``name`` the name of the row, and ``rows`` maps (N, K) to its results.
    """

    rules: str
    name: str
    rows: dict[tuple[int, int], Row]

    @property
    def ways(self) -> list[int]:
        return sorted({way for way, _ in self.rows})

    @property
    def shots(self) -> list[int]:
        return sorted({shot for _, shot in self.rows})

    @property
    def title(self) -> str:
        return f"{self.rules}: {self.name}, average balanced accuracy (%)"

    @property
    def lines(self) -> list[list[SeedSummary | None]]:
        """One list per N: the average over sessions at each K, or None without a result."""
        return [[self.average(way, shot) for shot in self.shots] for way in self.ways]

    def average(self, way: int, shot: int) -> SeedSummary | None:
        row = self.rows.get((way, shot))
        return None if row is None else row.summary("average")


def sweeps(blocks: Sequence[Block]) -> list[Sweep]:
    """Group rows by name, dataset and all rules except N and K."""
    rows: dict[tuple[str, str], dict[tuple[int, int], Row]] = {}
    for block in blocks:
        for row in block.rows:
            key = (block.title_with("N-way K-shot"), row.name)
            rows.setdefault(key, {})[block.protocol["way"], block.protocol["shot"]] = row
    return [Sweep(*key, cells) for key, cells in rows.items()]


def sweep_table(sweep: Sweep) -> Table:
    """Table with the average accuracy of one method, N in rows and K in columns."""
    rows = tuple((f"{way}-way", *map(figure, line)) for way, line in zip(sweep.ways, sweep.lines, strict=True))
    columns = ("", *(f"{shot}-shot" for shot in sweep.shots))
    return Table(sweep.title, columns, rows, notes=tuple(code_notes(sweep.rows.values())))


def sweep_figure(blocks: Sequence[Block], path: str | Path, styles: Mapping[str, Style]) -> None:
    """Plot the average over sessions against K, a panel per dataset, rules and N, with a line and band per row."""
    block_of = {block.title_with("N-way K-shot"): block for block in blocks}
    unique = len({block.dataset for block in block_of.values()}) == len(block_of)
    found = sweeps(blocks)
    panels_of: dict[tuple[str, int], list[Sweep]] = {}
    for rules in block_of:
        group = [sweep for sweep in found if sweep.rules == rules]
        for way in sorted({way for sweep in group for way in sweep.ways}):
            panels_of[rules, way] = group
    picture, panels = panels_with_legend(len(panels_of))
    for panel, ((rules, way), group) in zip(panels, panels_of.items(), strict=False):
        block = block_of[rules]
        shots = sorted({shot for sweep in group for of_way, shot in sweep.rows if of_way == way})
        ends = []
        for sweep in group:
            averages = [sweep.average(way, shot) for shot in shots]
            row = next(iter(sweep.rows.values()))
            ends.append(draw_summaries(panel, averages, row, styles[sweep.name]))
        label_ends(panel, list(filter(None, ends)), styles)
        title = f"{block.dataset}, {way}-way" if unique else block.title_with(f"{way}-way")
        panel.set_title(textwrap.fill(title, 46), fontsize=9 if unique else 7)
        panel.set_xticks(range(len(shots)), [str(shot) for shot in shots])
        panel.set_xlabel(AXIS)
        percent_axis(panel)
    panels[0].set_ylabel(MEASURES["average"].replace(", ", ",\n"), fontsize=8)
    add_legend(panels, len(panels_of))
    save_figure(picture, path)
