"""Learning curves: the number of labels and the recall of each class after each change."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from graphfcl.production.labels.history import Entry, lineage, percent

NAMED = 3  # classes that the text about a change lists


@dataclass(frozen=True)
class CurvePoint:
    """Labels and recall of a class after a change.

    Attributes:
        version: Version that holds the change; None if it is not saved.
        when: Time of the change.
        labels: Number of labels.
        recall: Recall of the class; None if it was not measured.
    """

    version: int | None
    when: str
    labels: int
    recall: float | None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def class_curves(entries: Sequence[Entry]) -> dict[str, list[CurvePoint]]:
    """Return the points of each class of a model, oldest first: changes of its number of labels, and the newest recall.

    A class keeps its points when it is renamed. Changes that a rollback undid are left out. Only classes that a change
    names are visited, so the time grows with the number of labels, not with changes × classes.
    """
    curves: dict[str, list[CurvePoint]] = {}
    measured: Entry = {}
    for entry in lineage(entries):
        recalls = _recalls(entry)
        measured = entry if recalls else measured
        if entry["what"] == "rename":
            curves[str(entry["to"])] = curves.pop(str(entry["from"]), [])
            continue
        for name, labels in entry.get("label_counts", {}).items():
            if labels:
                curves.setdefault(name, []).append(_point(entry, labels, recalls.get(name)))
            else:
                curves.pop(name, None)
    for name, recall in _recalls(measured).items():
        points = curves.get(name)
        if points and points[-1].recall != recall:
            points.append(_point(measured, points[-1].labels, recall))
    return curves


def labels_text(entry: Entry) -> str:
    """Describe labels and recall, in percent, of the classes to which a change gave labels; empty for a fit."""
    if entry["what"] in ("fit", "refit", "rename"):
        return ""
    try:
        counts = {name: labels for name, labels in entry.get("label_counts", {}).items() if labels}
        recalls = _recalls(entry)
        parts = [f"{name} ({labels:,}): {percent(recalls.get(name))}" for name, labels in list(counts.items())[:NAMED]]
    except (LookupError, TypeError, ValueError, AttributeError):  # graphfcl did not write the entry
        return ""
    return ", ".join([*parts, *([f"{len(counts) - NAMED:,} more"] if len(counts) > NAMED else [])])


def _point(entry: Entry, labels: int, recall: float | None) -> CurvePoint:
    return CurvePoint(entry["version"], str(entry["when"]), int(labels), recall)


def _recalls(entry: Entry) -> dict[str, float]:
    return (entry.get("accuracy") or {}).get("classes") or {}
