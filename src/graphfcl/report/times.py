"""Plot accuracy against training time, with a dot per seed and a mark at mean accuracy and geometric mean time."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from graphfcl.report.blocks import Block, prominent
from graphfcl.report.figures import FAINT, MARKERS, Style, add_legend, panels_with_legend, title_panel
from graphfcl.runtime.figures import save_figure


def time_figure(blocks: Sequence[Block], path: str | Path, styles: Mapping[str, Style]) -> None:
    """Plot the average over sessions against training seconds on a logarithmic axis, with a panel per block.

    If there are many rows, only the strongest have colours, and the others are grey.
    """
    figure, panels = panels_with_legend(len(blocks))
    bright, names = set(prominent(blocks)), {row.name for block in blocks for row in block.rows}
    others = f"{len(names - bright)} others"
    for panel, block in zip(panels, blocks, strict=False):
        for row in sorted(block.rows, key=lambda row: row.name in bright):
            seconds, averages = row.training_seconds(), row.values("average")
            seeds = sorted(seconds.keys() & averages.keys())
            x, y = np.array([seconds[seed] for seed in seeds]), np.array([averages[seed] for seed in seeds])
            style, shown = styles[row.name], row.name in bright
            colour = style.light if shown else FAINT
            panel.plot(x, y, ".", color=colour, markersize=3, alpha=0.5, label="_", zorder=1)
            face = "white" if shown and "hollow" in style.mark else colour
            middle = (np.exp(np.log(x).mean()), y.mean())
            panel.plot(
                *middle,
                linestyle="",
                marker=MARKERS[style.mark] if shown else "o",
                color=colour,
                markerfacecolor=face,
                markersize=7,
                label=row.name if shown else others,
                zorder=3 if shown else 2,
            )
        panel.set_xscale("log")
        title_panel(panel, block, blocks)
        panel.set_xlabel("training time (s)")
        panel.grid(color="#e2e8f0")
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("balanced accuracy, average over sessions (%)", fontsize=8)
    add_legend(panels, len(blocks), last=others)
    save_figure(figure, path)
