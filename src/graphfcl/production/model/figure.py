"""Figure of a model: accuracy after each change, and recall of each class."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.graph.ids import ClassLabel
from graphfcl.production.labels.history import Entry
from graphfcl.production.model.card import ClassCard, class_table
from graphfcl.production.model.recalls import wilson_interval
from graphfcl.production.model.state import ModelState
from graphfcl.runtime.figures import ALL, BASE, NOVEL, draw_accuracies, new_figure, percent_axis, save_figure

MOST = 40  # most classes that are drawn; the classes with the lowest recall are chosen
LONGEST = 32  # characters of a name


def model_figure(state: ModelState, path: str | Path | None) -> Any:
    """Draw a figure of matplotlib with two panels; ``path``: also write it there as PNG.

    The left panel shows balanced accuracy after each change. The right panel shows the recall of each class as measured
    last, with the 95 % Wilson interval for the number of nodes that it was measured on.
    """
    entries = [entry for entry in state.history if (entry.get("accuracy") or {}).get("validation") is not None]
    if not entries:
        raise InputError("the accuracy of this model has not been measured yet: call calibrate() first.")
    classes = class_table(state)
    measured = sorted((each for each in classes if each.recall is not None), key=lambda each: each.recall or 0.0)
    shown = measured[:MOST]
    figure, ((left, right),) = new_figure(10.0, max(3.8, 0.8 + 0.22 * len(shown)), (1, 2), share_scale=False)
    _draw_changes(left, entries)
    _draw_classes(right, shown)
    of_all = "" if len(shown) == len(classes) else f", {len(shown):,} of {len(classes):,} classes, lowest first"
    right.set_title(f"recall as measured last{of_all}", fontsize=10)
    left.set_title(f"{state.parts.configuration.method}, {len(classes):,} classes", fontsize=10)
    if path is not None:
        save_figure(figure, path)
    return figure


def _draw_changes(axes: Any, entries: Sequence[Entry]) -> None:
    """Draw the accuracy of each change, which is labelled with its kind and its version in the folder."""
    lines = (
        ("validation", "classes of the fit, validation nodes", ALL),
        ("leave_one_out", "later classes, each label left out", NOVEL),
    )
    draw_accuracies(axes, [entry["accuracy"] for entry in entries], range(len(entries)), lines)
    names = [
        entry["what"] if entry["version"] is None else f"{entry['what']}\nv{entry['version']}" for entry in entries
    ]
    every = max(1, len(entries) // 12)
    axes.set_xticks(range(0, len(entries), every), names[::every], fontsize=8)


def _draw_classes(axes: Any, classes: Sequence[ClassCard]) -> None:
    """Draw a line for each class, the first at the top: its recall, the interval and the number of its labels."""
    for few_shot, title, colour in ((False, "validation nodes", BASE), (True, "labels, each left out", NOVEL)):
        drawn = [(place, each) for place, each in enumerate(classes) if each.few_shot is few_shot]
        if drawn:
            places, recalls = zip(*((place, 100 * (each.recall or 0.0)) for place, each in drawn), strict=True)
            spans = np.array([wilson_interval(each.recall or 0.0, _measured_on(each)) for _, each in drawn])
            lengths = np.abs(100 * spans.T - np.array(recalls))
            look = {"fmt": "o", "markersize": 4, "color": colour, "capsize": 2, "clip_on": False}
            axes.errorbar(recalls, places, xerr=lengths, label=title, **look)
    axes.set_yticks(range(len(classes)), [f"{_shown(each.name)} ({each.labels:,})" for each in classes], fontsize=8)
    axes.set_ylim(len(classes) - 0.5, -0.5)
    axes.set_xlabel("recall (%), 95 % interval")
    axes.set_ylabel("class (labels)")
    percent_axis(axes, "x")
    axes.legend(frameon=False, fontsize=9)


def _shown(name: ClassLabel) -> str:
    """Shorten a name, and escape ``$``, which matplotlib would read as a formula."""
    text = str(name)
    return (text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…").replace("$", r"\$")


def _measured_on(each: ClassCard) -> int:
    """Return the largest number of nodes that the recall of a class can have been measured on."""
    return max(1, each.labels if each.few_shot else each.validation)
