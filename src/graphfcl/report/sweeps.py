"""The parameter study: accuracy of each method for several N and K."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphfcl.metrics import SeedSummary
from graphfcl.report.blocks import Block
from graphfcl.report.comparison import code_notes
from graphfcl.report.figures import Style, add_legend, draw_summaries, label_ends, panels_with_legend
from graphfcl.report.rows import Row
from graphfcl.report.table import Table, figure
from graphfcl.runtime.figures import percent_axis, save_figure


@dataclass(frozen=True)
class Sweep:
    """One method on one dataset and protocol (``place``) for several N and K. ``rows`` maps (N, K) to a row."""

    place: str
    row: str
    rows: dict[tuple[int, int], Row]

    @property
    def ways(self) -> list[int]:
        return sorted({way for way, _ in self.rows})

    @property
    def shots(self) -> list[int]:
        return sorted({shot for _, shot in self.rows})

    @property
    def title(self) -> str:
        return f"{self.place}: {self.row}, average balanced accuracy (%)"

    @property
    def lines(self) -> list[list[SeedSummary | None]]:
        """For each N, the averages over sessions at all K; None if there is no result."""
        found = {place: row.summary("average") for place, row in self.rows.items()}
        return [[found.get((way, shot)) for shot in self.shots] for way in self.ways]


def sweeps(blocks: Sequence[Block]) -> list[Sweep]:
    """Collect the parameter study by dataset, protocol, track and row."""
    rows: dict[tuple[str, str], dict[tuple[int, int], Row]] = {}
    for block in blocks:
        for row in block.rows:
            place = (block.protocol["way"], block.protocol["shot"])
            rows.setdefault((block.title_with("N-way K-shot"), row.name), {})[place] = row
    return [Sweep(*place, cells) for place, cells in rows.items()]


def sweep_table(sweep: Sweep) -> Table:
    """Table with the average accuracy of one method, N in rows and K in columns."""
    rows = tuple((f"{way}-way", *map(figure, line)) for way, line in zip(sweep.ways, sweep.lines, strict=True))
    columns = ("", *(f"{shot}-shot" for shot in sweep.shots))
    return Table(sweep.title, columns, rows, notes=tuple(code_notes(sweep.rows.values())))


def sweep_figure(blocks: Sequence[Block], path: str | Path, styles: Mapping[str, Style]) -> None:
    """Plot the average over sessions against K, with a panel per graph and N and a line with 95 % intervals per row."""
    places = {block.title_with("N-way K-shot"): block.dataset for block in blocks}
    unique = len(set(places.values())) == len(places)
    found = sweeps(blocks)
    ways = {place: sorted({way for each in found if each.place == place for way in each.ways}) for place in places}
    shown = [(place, way) for place in places for way in ways[place]]
    picture, panels = panels_with_legend(len(shown))
    for panel, (place, way) in zip(panels, shown, strict=False):
        group = [each for each in found if each.place == place]
        shots = sorted({shot for each in group for shot in each.shots})
        ends = []
        for each in group:
            rows = [each.rows.get((way, shot)) for shot in shots]
            row = next(iter(each.rows.values()))
            averages = [None if one is None else one.summary("average") for one in rows]
            ends.append(draw_summaries(panel, averages, row, styles[each.row]))
        label_ends(panel, list(filter(None, ends)), styles)
        panel.set_title(f"{places[place] if unique else place}, {way}-way", fontsize=9)
        panel.set_xticks(range(len(shots)), [str(shot) for shot in shots])
        panel.set_xlabel("labels per new class")
        percent_axis(panel)
    panels[0].set_ylabel("balanced accuracy,\naverage over sessions (%)", fontsize=8)
    add_legend(panels, len(shown))
    save_figure(picture, path)
