"""Pictures of one run, and of the rows of a grid."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.files import write_durably
from graphfcl.report.blocks import POOL, QUERIES, Block, Row, by_strength, prominent, rules_of_result, summary

BASE, NOVEL, ALL = "#2b6cb0", "#dd6b20", "#1a202c"


def accuracy_figure(result: dict[str, Any], path: str | Path) -> None:
    """Balanced accuracy by session: all classes, base classes, novel classes."""
    figure, axes = new_figure(6.4, 3.8)
    sessions = result["sessions"]
    numbers = [session["session"] for session in sessions]
    for key, title, colour in (
        ("balanced_accuracy", "all classes", ALL),
        ("base", "base and pseudo-novel", BASE),
        ("novel", "novel", NOVEL),
    ):
        points = [(n, 100 * s[key]) for n, s in zip(numbers, sessions, strict=True) if s[key] is not None]
        axes.plot(*zip(*points, strict=True), marker="o", markersize=4, color=colour, label=title)
    axes.set_xticks(numbers)
    axes.set_ylim(0, 100)
    axes.set_xlabel("session")
    axes.set_ylabel("balanced accuracy (%)")
    axes.set_title(_title(result), fontsize=10)
    axes.grid(axis="y", color="#e2e8f0")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)
    save_figure(figure, path)


FAINT = "#ced4da"
COLOURS = (  # those of page.html
    "#0b63ce",
    "#d9480f",
    "#2b8a3e",
    "#9c36b5",
    "#c92a2a",
    "#0c8599",
    "#b8860b",
    "#5f3dc4",
    "#868e96",
    "#e64980",
    "#74b816",
    "#3bc9db",
    "#a0522d",
    "#f08c00",
    "#087f5b",
    "#f783ac",
)


def curves_figure(blocks: Sequence[Block], path: str | Path) -> None:
    """Balanced accuracy by session of all rows, a panel per block, with 95 % bands over seeds.

    Of many rows the strongest have colours; the others are grey.
    """
    # One place is the legend's; of three blocks it would else begin a row of its own.
    across = 2 if len(blocks) == 3 else min(3, len(blocks) + 1)
    down = -(-(len(blocks) + 1) // across)
    figure, grid = new_figure(3.7 * across, 3.1 * down, (down, across))
    panels = list(grid.flat)
    names, bright = by_strength(blocks), prominent(blocks)
    colours = {name: COLOURS[names.index(name) % len(COLOURS)] for name in bright}
    others = f"{len(names) - len(bright)} others"
    for panel, block in zip(panels, blocks, strict=False):
        numbers = np.arange(max(row.sessions().shape[1] for row in block.rows))
        for row in block.rows:
            if row.name not in colours:
                panel.plot(numbers, row.sessions().mean(axis=0), color=FAINT, label=others, linewidth=0.8, zorder=1)
        for row in sorted(block.rows, key=lambda row: names.index(row.name)):
            if row.name in colours:
                _draw_row(panel, row, colours[row.name])
        alone = sum(other.dataset == block.dataset for other in blocks) == 1
        title = f"{block.dataset}, rules {block.rules}" if alone else block.title
        panel.set_title(title, fontsize=10 if alone else 7)
        panel.set_xlabel("session")
        panel.set_ylim(0, 100)
        panel.set_xticks(numbers[:: max(1, numbers.size // 7)])
        panel.grid(axis="y", color="#e2e8f0")
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("balanced accuracy (%)")
    for panel in panels[len(blocks) :]:
        panel.set_axis_off()
    lines = {line.get_label(): line for panel in panels[: len(blocks)] for line in panel.get_lines()}
    if others in lines:
        lines[others] = lines.pop(others)  # last
    panels[len(blocks)].legend(lines.values(), lines.keys(), frameon=False, fontsize=9, loc="center")
    save_figure(figure, path)


def _draw_row(panel: Any, row: Row, colour: str) -> None:
    """The mean over seeds, and its band."""
    values = row.sessions()
    numbers, mean = np.arange(values.shape[1]), values.mean(axis=0)
    mark = "".join(f" ({mark})" for mark in row.marks)
    style = "--" if POOL in row.marks else "-"
    panel.plot(numbers, mean, style, color=colour, label=row.name + mark, linewidth=1.8)
    if len(values) > 1:
        interval = np.array([summary(column).interval or 0.0 for column in values.T])
        panel.fill_between(numbers, mean - interval, mean + interval, color=colour, alpha=0.12, linewidth=0)


def matrix_figure(result: dict[str, Any], path: str | Path) -> None:
    """a_{t,j}: after session t (down), on the classes of session j (across)."""
    values = 100 * np.array([[np.nan if v is None else v for v in row] for row in result["matrix"]], dtype=float)
    count = len(values)
    figure, axes = new_figure(1.8 + 0.45 * count, 1.4 + 0.4 * count)
    image = axes.imshow(values, cmap="viridis", vmin=0, vmax=100, aspect="auto")
    for t in range(count):
        for j in range(t + 1):
            if not np.isnan(values[t, j]):
                dark = values[t, j] < 60
                axes.text(j, t, f"{values[t, j]:.0f}", ha="center", va="center", fontsize=8, color="w" if dark else "k")
    axes.set_xticks(range(count))
    axes.set_yticks(range(count))
    axes.set_xlabel("classes of session j")
    axes.set_ylabel("after session t")
    axes.set_title(f"balanced accuracy $a_{{t,j}}$ (%)\n{_title(result)}", fontsize=9)
    figure.colorbar(image, ax=axes, fraction=0.04)
    save_figure(figure, path)


def _title(result: dict[str, Any]) -> str:
    """In lines that are short enough for the picture of three sessions."""
    protocol = result["protocol"]
    lines = [
        f"{result['method']} on {result['dataset']}, seed {result['seed']}, rules {rules_of_result(result)}",
        f"{protocol['way']}-way {protocol['shot']}-shot, {protocol['name']}/{protocol['track']}",
    ]
    return "\n".join([*lines, QUERIES] if result["trained_on_query_labels"] else lines)


def new_figure(width: float, height: float, panels: tuple[int, int] = (1, 1)) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(*panels, sharey=True)


def save_figure(figure: Any, path: str | Path) -> None:
    write_durably(path, lambda file: figure.savefig(file, format="png", dpi=150))
