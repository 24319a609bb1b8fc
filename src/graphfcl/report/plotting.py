"""One picture of an evaluation or of a model: accuracy by session, or by change."""

from pathlib import Path
from typing import Any

from graphfcl.errors import InputError
from graphfcl.evaluation import Evaluation
from graphfcl.production import GraphClassifier
from graphfcl.report.figures import ALL, NOVEL, draw_sessions, new_figure, percent_axis, save_figure


def plot(thing: Evaluation | GraphClassifier, path: str | Path | None = None) -> Any:
    """A figure of matplotlib: balanced accuracy by session of an evaluation, or after each change of a model.

    path: also write it there as PNG. Of a model, a change is named by its version in the folder, or by what it was.
    """
    figure, axes = new_figure(6.4, 3.8)
    if isinstance(thing, Evaluation):
        if not thing.confusions:
            raise InputError("this evaluation has no session yet: evaluate a learner on a stream first.")
        draw_sessions(axes, [{"session": each.session, **each.values} for each in thing.metrics.sessions])
    elif isinstance(thing, GraphClassifier):
        _draw_changes(axes, thing)
    else:
        raise InputError(f"plot takes an evaluation or a classifier, and got {type(thing).__name__}: give one of them.")
    axes.set_ylabel("balanced accuracy (%)")
    percent_axis(axes)
    axes.legend(frameon=False, fontsize=9)
    if path is not None:
        save_figure(figure, path)
    return figure


def _draw_changes(axes: Any, model: GraphClassifier) -> None:
    """What was measured with each change: on validation nodes, and of later classes with each label left out."""
    entries = [entry for entry in model.history if (entry.get("accuracy") or {}).get("validation") is not None]
    if not entries:
        raise InputError("nothing was measured of this model yet: fit it, or call calibrate() first.")
    for key, title, colour in (
        ("validation", "classes of the fit, validation nodes", ALL),
        ("leave_one_out", "later classes, each label left out", NOVEL),
    ):
        measured = [(at, entry["accuracy"][key]) for at, entry in enumerate(entries)]
        points = [(at, 100 * value) for at, value in measured if value is not None]
        if points:
            axes.plot(*zip(*points, strict=True), marker="o", markersize=4, color=colour, label=title)
    names = [
        entry["what"] if entry["version"] is None else f"{entry['what']}\nv{entry['version']}" for entry in entries
    ]
    every = max(1, len(entries) // 12)
    axes.set_xticks(range(0, len(entries), every), names[::every], fontsize=8)
    axes.set_title(f"{model.method}, {len(model.classes_)} classes", fontsize=10)
