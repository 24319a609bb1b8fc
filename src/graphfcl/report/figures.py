"""Figures of one run and of the rows of a grid, and the styles of rows.

Each row has a colour and a mark, the same in every figure and on the page. ``styles.json`` lists slots (a colour for a
light background, one for a dark background, and a mark) and the slots of the package's methods. Its colours differ in
normal vision and in the three kinds of colour blindness, most clearly between slots with the same mark. Other rows get
a slot that is determined by their name.
"""

import hashlib
import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.metrics import SeedSummary
from graphfcl.report.blocks import Block, by_strength, kind_text, prominent, version_text
from graphfcl.report.rows import POOL, QUERIES, Row, summary
from graphfcl.runtime.figures import draw_sessions, new_figure, percent_axis, save_figure

MOST_MARKS = 14  # on one line
LABEL_GAP = 5.0  # smallest distance of names at line ends, in percentage points
LEADER = {
    "arrowstyle": "-",
    "linewidth": 0.5,
    "shrinkA": 1,
    "shrinkB": 3,
    "relpos": (0, 0.5),
}  # line from a name to the end of its curve
MARKERS: Mapping[str, str] = {  # shape → marker of matplotlib, which is the same for hollow shapes
    "circle": "o",
    "square": "s",
    "triangle": "^",
    "diamond": "D",
    "cross": "X",
    "star": "*",
    "plus": "P",
    "triangle down": "v",
    "circle hollow": "o",
    "square hollow": "s",
    "triangle hollow": "^",
    "diamond hollow": "D",
}
FAINT = "#ced4da"  # colour of the weaker rows if there are many


@dataclass(frozen=True)
class Style:
    """Colour and mark of a row.

    Attributes:
        slot: Number of the colour.
        light: Colour on a light background, as ``#rrggbb``.
        dark: Colour on a dark background.
        mark: Shape, a key of ``MARKERS``.
    """

    slot: int
    light: str
    dark: str
    mark: str


def accuracy_figure(result: dict[str, Any], path: str | Path) -> None:
    """Plot balanced accuracy by session: all classes, base classes, novel classes."""
    figure, axes = new_figure(6.4, 3.8)
    draw_sessions(axes, result["sessions"])
    axes.set_title(_title(result), fontsize=10)
    save_figure(figure, path)


def curves_figure(blocks: Sequence[Block], path: str | Path, styles: Mapping[str, Style]) -> None:
    """Plot balanced accuracy by session with 95 % bands over seeds, one panel per block.

    If there are many rows, only the strongest have colours, and the others are grey.
    """
    figure, panels = panels_with_legend(len(blocks))
    names, bright = by_strength(blocks), set(prominent(blocks))
    others = f"{len(names) - len(bright)} others"
    for panel, block in zip(panels, blocks, strict=False):
        rows = sorted(block.rows, key=lambda row: names.index(row.name))
        numbers = np.arange(max(row.sessions().shape[1] for row in rows))
        for row in rows:
            if row.name not in bright:
                mean = row.sessions().mean(axis=0)
                panel.plot(np.arange(mean.size), mean, color=FAINT, label=others, linewidth=0.8, zorder=1)
        shown = [row for row in rows if row.name in bright]
        for row in shown:
            _draw_row(panel, row, styles[row.name])
        label_ends(panel, [(row.name, numbers[-1], float(row.sessions().mean(axis=0)[-1])) for row in shown], styles)
        title_panel(panel, block, blocks)
        panel.set_xlabel("session")
        panel.set_xticks(numbers[:: max(1, numbers.size // 7)])
        percent_axis(panel)
    panels[0].set_ylabel("balanced accuracy (%)")
    add_legend(panels, len(blocks), last=others)
    save_figure(figure, path)


def title_panel(panel: Any, block: Block, blocks: Sequence[Block]) -> None:
    """Title a panel with dataset and protocol version, or with the full title if two blocks share the dataset."""
    alone = sum(other.dataset == block.dataset for other in blocks) == 1
    title = f"{block.dataset}, {block.version_text}" if alone else block.title
    panel.set_title(textwrap.fill(title, 46), fontsize=10 if alone and len(title) < 46 else 7)


def panels_with_legend(count: int) -> tuple[Any, list[Any]]:
    """Make a figure with ``count`` panels, at most three side by side, and at least one more for the legend."""
    # With three panels in a row, the legend would need a row of its own.
    across = 2 if count == 3 else min(3, count + 1)
    down = -(-(count + 1) // across)
    figure, grid = new_figure(4.6 * across, 3.3 * down, (down, across))
    return figure, list(grid.flat)


def add_legend(panels: Sequence[Any], count: int, last: str = "") -> None:
    """Draw the legend of the first ``count`` panels in the next panel. The name ``last`` comes at the end."""
    for panel in panels[count:]:
        panel.set_axis_off()
    drawn = (line for panel in panels[:count] for line in panel.get_lines())
    lines = {line.get_label(): line for line in drawn if not line.get_label().startswith("_")}
    if last in lines:
        lines[last] = lines.pop(last)
    panels[count].legend(lines.values(), lines.keys(), frameon=False, fontsize=9, loc="center")


def _draw_row(panel: Any, row: Row, style: Style) -> None:
    """Draw the mean over seeds and its band."""
    values = row.sessions()
    numbers, mean = np.arange(values.shape[1]), values.mean(axis=0)
    draw_line(panel, numbers, mean, row, style, dashed=POOL in row.marks)
    if len(values) > 1:
        interval = np.array([summary(column).interval or 0.0 for column in values.T])
        panel.fill_between(numbers, mean - interval, mean + interval, color=style.light, alpha=0.12, linewidth=0)


def draw_line(panel: Any, x: np.ndarray, y: np.ndarray, row: Row, style: Style, *, dashed: bool) -> None:
    """Draw a line in the style of a row. If there are many points, only some get a mark."""
    hollow = "hollow" in style.mark
    panel.plot(
        x,
        y,
        "--" if dashed else "-",
        color=style.light,
        linewidth=1.6,
        marker=MARKERS[style.mark],
        markersize=6 if style.mark == "star" else 4.5,
        markerfacecolor="white" if hollow else style.light,
        markevery=max(1, -(-x.size // MOST_MARKS)),
        label=row.name + "".join(f" ({mark})" for mark in row.marks),
    )


def draw_summaries(
    panel: Any, summaries: Sequence[SeedSummary | None], row: Row, style: Style
) -> tuple[str, float, float] | None:
    """Draw means with 95 % bands at x = 0, 1, …, without the places of None. Return the name and the last point of the
    line for its label, or None if the last summary is None.
    """
    points = [(place, found) for place, found in enumerate(summaries) if found is not None]
    if not points:
        return None
    x, mean = np.array([place for place, _ in points]), np.array([found.mean for _, found in points])
    draw_line(panel, x, mean, row, style, dashed=POOL in row.marks)
    half = np.array([found.interval or 0.0 for _, found in points])
    panel.fill_between(x, mean - half, mean + half, color=style.light, alpha=0.12, linewidth=0)
    return None if summaries[-1] is None else (row.name, float(x[-1]), float(mean[-1]))


def label_ends(panel: Any, ends: Sequence[tuple[str, float, float]], styles: Mapping[str, Style]) -> None:
    """Write the name of each line next to its end (name, x, y), without overlaps. y lies between 0 and 100.

    If there are too many lines, only the highest get names; the legend has all of them.
    """
    ends = sorted(ends, key=lambda end: -end[2])[: int(100 / LABEL_GAP)]
    places = spread([y for _, _, y in ends], LABEL_GAP, 0.0, 100.0)
    for (name, x, y), place in zip(ends, places, strict=True):
        panel.annotate(
            name,
            xy=(x, y),
            xytext=(1.05 * x, place),
            color=styles[name].light,
            fontsize=6.5,
            va="center",
            annotation_clip=False,
            arrowprops={**LEADER, "color": styles[name].light},
        )


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Find positions close to the wanted ones, in the same order, at least ``gap`` apart, if possible in [low, high].

    After subtracting the gaps, they are the isotonic regression of the wanted positions.
    """
    from sklearn.isotonic import isotonic_regression

    if not wanted:
        return []
    order, gaps = np.argsort(wanted, kind="stable"), gap * np.arange(len(wanted))
    places = np.empty(len(wanted))
    limit = max(low, high - float(gaps[-1]))
    places[order] = np.clip(isotonic_regression(np.array(wanted)[order] - gaps), low, limit) + gaps
    return places.tolist()


def matrix_figure(result: dict[str, Any], path: str | Path) -> None:
    """Plot a_{t,j}: accuracy after session t (rows) on the classes of session j (columns)."""
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
    """Title of a run, in lines that fit into the smallest figure."""
    protocol = result["protocol"]
    lines = [
        f"{result['method']} on {result['dataset']}, seed {result['seed']}, {version_text(result)}",
        f"{kind_text(protocol)}, {protocol['name']}/{protocol['track']}",
    ]
    return "\n".join([*lines, QUERIES] if result["trained_on_query_labels"] else lines)


def read_slots() -> tuple[list[Style], dict[str, int]]:
    """Read all slots, and the slot of each method of the package."""
    stored = json.loads(files("graphfcl.report").joinpath("styles.json").read_text(encoding="utf-8"))
    return [Style(place, **slot) for place, slot in enumerate(stored["slots"])], stored["methods"]


def row_styles(groups: Iterable[Sequence[str]]) -> dict[str, Style]:
    """Choose a style for each name. The names of a group are shown together.

    Two names of a group never have the same colour and mark, and share a colour only if the group has more names than
    there are colours. The package's methods have the same styles everywhere. Any other name tries the slots in an order
    given by its hash, slots without a method first, and takes the first one that is free in its groups.
    """
    slots, fixed = read_slots()
    together: dict[str, set[str]] = {}
    for group in groups:
        for name in group:
            together.setdefault(name, set()).update(group)
    styles = {name: slots[fixed[name]] for name in together if name in fixed}
    for name in sorted(together.keys() - fixed.keys()):
        used = [styles[other] for other in together[name] if other in styles]
        styles[name] = _first_free(name, slots, set(fixed.values()), used)
    return styles


def _first_free(name: str, slots: Sequence[Style], method_slots: set[int], used: Sequence[Style]) -> Style:
    """The first style, in the order of this name, with a free colour, or else with a free pair of colour and mark."""
    order = sorted(slots, key=lambda slot: (slot.slot in method_slots, _hash(f"{name} {slot.slot}")))
    marks = sorted(MARKERS, key=lambda mark: _hash(f"{name} {mark}"))
    colours = {style.slot for style in used}
    new_colours = (slot for slot in order if slot.slot not in colours)
    new_marks = (replace(slot, mark=mark) for mark in marks for slot in order)
    unused = (style for style in chain(new_colours, new_marks) if style not in used)
    return next(unused, order[0])  # order[0] if there are more names than pairs of colour and mark


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def colour_rules() -> str:
    """CSS rules of the colours: class ``colour-N`` sets ``--own``. Printed and exported figures use light colours."""
    slots, _ = read_slots()
    light = "".join(f".colour-{slot.slot}{{--own:{slot.light}}}" for slot in slots)
    dark = "".join(f":root:not(.exported) .colour-{slot.slot}{{--own:{slot.dark}}}" for slot in slots)
    return f"{light}\n@media screen and (prefers-color-scheme: dark){{{dark}}}"
