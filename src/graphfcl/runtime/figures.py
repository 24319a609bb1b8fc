"""Common parts of figures: panels, axes in percent, colours of kinds of classes, and writing files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graphfcl.runtime.files import write_durably

BASE, NOVEL, ALL = "#2b6cb0", "#dd6b20", "#1a202c"


def new_figure(
    width: float, height: float, panels: tuple[int, int] = (1, 1), *, share_scale: bool = True
) -> tuple[Any, Any]:
    """Return a figure and its panel, or an array of panels, which share the vertical axis with ``share_scale``."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(*panels, sharey=share_scale, squeeze=panels == (1, 1))


def percent_axis(panel: Any, axis: str = "y") -> None:
    """Scale one axis from 0 to 100 and draw its grid."""
    panel.set(**{f"{axis}lim": (0, 100)})
    panel.grid(axis=axis, color="#e2e8f0")
    panel.spines[["top", "right"]].set_visible(False)


def draw_accuracies(axes: Any, rows: Sequence[Mapping[str, Any]], places: Sequence[int], lines: Sequence[Any]) -> None:
    """Draw accuracies in percent; each of ``lines`` is the key in the rows, the title and the colour of a line."""
    for key, title, colour in lines:
        points = [(x, 100 * row[key]) for x, row in zip(places, rows, strict=True) if row[key] is not None]
        if points:
            axes.plot(*zip(*points, strict=True), marker="o", markersize=4, color=colour, label=title)
    axes.set_ylabel("balanced accuracy (%)")
    percent_axis(axes)
    axes.legend(frameon=False, fontsize=9)


def draw_sessions(axes: Any, sessions: Sequence[Mapping[str, Any]]) -> None:
    """Draw the balanced accuracy of all, base and novel classes over sessions."""
    numbers = [session["session"] for session in sessions]
    lines = (("balanced_accuracy", "all classes", ALL), ("base", "base and pseudo-novel", BASE))
    draw_accuracies(axes, sessions, numbers, (*lines, ("novel", "novel", NOVEL)))
    axes.set_xticks(numbers)
    axes.set_xlabel("session")


def save_figure(figure: Any, path: str | Path) -> None:
    """Write a figure as PNG."""
    write_durably(path, lambda file: figure.savefig(file, format="png", dpi=150))
