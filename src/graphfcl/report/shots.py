"""Accuracy against labels per new class, for blocks that share classes and test nodes (the rule ``split_shot``)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.metrics import SeedSummary
from graphfcl.report.blocks import Block, labels_text
from graphfcl.report.comparison import code_notes, mark_notes, marked_name
from graphfcl.report.figures import Style, add_legend, draw_summaries, label_ends, panels_with_legend
from graphfcl.report.rows import POOL, Row
from graphfcl.report.table import Table, figure, plain_summary
from graphfcl.runtime.figures import percent_axis, save_figure

MEASURES = {  # metric → title
    "balanced_accuracy": "balanced accuracy after the last session, all classes (%)",
    "novel": "balanced accuracy after the last session, new classes only (%)",
    "average": "balanced accuracy, average over sessions (%)",
}
PICTURES = {"": "balanced_accuracy", "-new-classes": "novel"}  # suffix of a figure's name → metric
LABEL_RULES = ("shot", "pool_as_supports")  # rules in which the blocks of a curve differ
AXIS = "labels per new class"


@dataclass(frozen=True, eq=False)
class ShotCurves:
    """Blocks that differ only in the number of labels per new class, in ascending order."""

    blocks: tuple[Block, ...]

    @property
    def dataset(self) -> str:
        return self.blocks[0].dataset

    @property
    def title(self) -> str:
        """Title without the number of labels."""
        return self.blocks[0].title_with(f"{self.blocks[0].protocol['way']}-way")

    @property
    def labels(self) -> list[str]:
        """K of each block, or ``all``."""
        return [labels_text(block.protocol) for block in self.blocks]

    @property
    def rows(self) -> dict[str, Row]:
        """Rows by name, each from the block with the most labels that contains it."""
        return {row.name: row for block in self.blocks for row in block.rows}

    def figures(self, name: str, metric: str) -> list[SeedSummary | None]:
        """A metric of a row at each number of labels. A row that has the same labels everywhere has one run for all."""
        if self._runs_once(name):
            return [self.rows[name].summary(metric)] * len(self.blocks)
        rows = [next((row for row in block.rows if row.name == name), None) for block in self.blocks]
        return [None if row is None else row.summary(metric) for row in rows]

    def _runs_once(self, name: str) -> bool:
        """Whether a row uses pool labels, and therefore the same labels at every K, and ran at only one K."""
        return POOL in self.rows[name].marks and sum(row.name == name for b in self.blocks for row in b.rows) == 1

    @property
    def notes(self) -> tuple[str, ...]:
        split = self.blocks[0].protocol["split_shot"]
        lines = [f"classes and test nodes are those of K = {split} at every K, and supports are nested"]
        for block in self.blocks:
            if block.protocol.get("pool_as_supports"):
                results = [result for row in block.rows for result in row.results.values()]
                counts = [r["n_supports"] / sum(session > 0 for session in r["session_of_class"]) for r in results]
                lines.append(f"all: every label of supports and pool, {np.mean(counts):.0f} per new class on average")
        if any(map(self._runs_once, self.rows)):
            lines.append("a row that uses pool labels has the labels of `all` at every K, so one run is shown at each")
        lines += code_notes(row for block in self.blocks for row in block.rows)
        return (*lines, *mark_notes(self.rows.values()))

    def table(self, metric: str) -> Table:
        """Table with a row per method and a column per number of labels."""
        lines = tuple(
            (marked_name(row), self._seeds(name), *map(figure, self.figures(name, metric)))
            for name, row in self.rows.items()
        )
        title = f"{self.title}: {MEASURES[metric]}, by {AXIS}"
        columns = ("method", "seeds", *self.labels)
        return Table(title, columns, lines, notes=self.notes, names=tuple(self.rows))

    def _seeds(self, name: str) -> str:
        """Number of seeds of a row, as a range if it differs between numbers of labels."""
        counts = sorted({len(row.results) for block in self.blocks for row in block.rows if row.name == name})
        return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"

    def data(self) -> dict[str, Any]:
        """Data for the page."""
        block = self.blocks[0]
        rows = [
            {
                "name": name,
                "marks": list(row.marks),
                **{metric: [plain_summary(each) for each in self.figures(name, metric)] for metric in MEASURES},
            }
            for name, row in self.rows.items()
        ]
        place = {"grid": block.grid.name, "protocol": block.protocol["name"], "track": block.protocol["track"]}
        tables = {metric: self.table(metric).data() for metric in MEASURES}
        return {**place, "dataset": self.dataset, "labels": self.labels, "rows": rows, "tables": tables}


def shot_curves(blocks: Sequence[Block]) -> list[ShotCurves]:
    """Group blocks to curves by grid, dataset and protocol, in the order of the blocks."""
    groups: dict[str, list[Block]] = {}
    for block in blocks:
        if block.protocol.get("split_shot"):
            shared = sorted((rule, str(value)) for rule, value in block.protocol.items() if rule not in LABEL_RULES)
            groups.setdefault(f"{block.grid.name} {block.dataset_path} {shared}", []).append(block)

    def labels(block: Block) -> tuple[bool, int]:
        return bool(block.protocol.get("pool_as_supports")), block.protocol["shot"]

    return [ShotCurves(tuple(sorted(group, key=labels))) for group in groups.values()]


def shots_figure(blocks: Sequence[Block], path: str | Path, styles: Mapping[str, Style], metric: str) -> None:
    """Plot a metric against labels per new class, with a panel per graph and a line with 95 % intervals per row."""
    every = shot_curves(blocks)
    figure_, panels = panels_with_legend(len(every))
    for panel, curves in zip(panels, every, strict=False):
        lines = ((row, curves.figures(name, metric)) for name, row in curves.rows.items())
        ends = [draw_summaries(panel, found, row, styles[row.name]) for row, found in lines]
        label_ends(panel, list(filter(None, ends)), styles)
        panel.set_title(curves.dataset if len({c.dataset for c in every}) == len(every) else curves.title, fontsize=9)
        panel.set_xticks(range(len(curves.labels)), curves.labels)
        panel.set_xlabel(AXIS)
        percent_axis(panel)
    panels[0].set_ylabel(MEASURES[metric].replace(", ", ",\n"), fontsize=8)
    add_legend(panels, len(every))
    save_figure(figure_, path)
