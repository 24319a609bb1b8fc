"""Model card: classes, data, accuracy, settings and hash of a model."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from graphfcl.errors import InputError, counted, quoted
from graphfcl.graph.ids import ClassLabel
from graphfcl.production.answers.answers import few_shot_classes
from graphfcl.production.labels.class_curves import CurvePoint, class_curves
from graphfcl.production.labels.history import Entry, lineage, percent, short_time, written_by_graphfcl
from graphfcl.production.model.info import FITS, ModelInfo
from graphfcl.production.model.label_gain import MORE, expected_gains
from graphfcl.production.model.parts import Configuration
from graphfcl.production.model.state import ModelState

EARLIER = 3  # earlier numbers of labels that a card lists for each class
LEAST_GAIN = 0.01  # smallest gain for which a card names the class that gains most
MEASURED = {"validation": "on validation nodes", "leave_one_out": "on supports of learned classes, each left out"}


@dataclass(frozen=True)
class ClassCard:
    """One class of a model.

    Attributes:
        name: Name of the class.
        labels: Number of nodes that it was learned from.
        validation: Number of nodes that it is measured on.
        few_shot: Whether it was learned after the fit.
        recall: Recall as measured last; None if it was not measured.
        gain: Expected gain of recall from ``MORE`` more labels (``label_gain.py``); None if it cannot be estimated.
        earlier: The last few earlier numbers of labels, each with the recall measured then.
    """

    name: ClassLabel
    labels: int
    validation: int
    few_shot: bool
    recall: float | None
    gain: float | None
    earlier: tuple[tuple[int, float], ...] = ()

    def as_json(self) -> dict[str, Any]:
        values = asdict(self)
        earlier = [{"labels": labels, "recall": recall} for labels, recall in self.earlier]
        return {"class": values.pop("name"), **values, "earlier": earlier}


@dataclass(frozen=True)
class ModelCard:
    """Result of :meth:`ModelFolder.card`.

    Attributes:
        info: Counts, sizes, and whether a refit is due.
        configuration: Parameters of the model.
        classes: The classes.
        accuracy: ``validation`` and ``leave_one_out``; None if it was not measured.
        data: The graph of the fit.
        sha256: Checksum of the version's manifest, which covers every byte of the version; None without a folder.
        written_by: Version of graphfcl that wrote it.
    """

    info: ModelInfo
    configuration: Configuration
    classes: tuple[ClassCard, ...]
    accuracy: Mapping[str, float | None]
    data: Mapping[str, Any]
    sha256: str | None
    written_by: str | None

    def as_json(self) -> dict[str, Any]:
        best = most_gain(self.classes)
        return {
            **self.info.as_json(),
            "sha256": self.sha256,
            "graphfcl": self.written_by,
            **self.configuration.parameters(),
            "data": dict(self.data),
            "accuracy": dict(self.accuracy),
            "class_table": [each.as_json() for each in self.classes],
            "most_gain": None if best is None else best.name,
        }

    def rows(self) -> list[tuple[str, str]]:
        """Return names and values of everything except the classes, in words."""
        info, chosen, data = self.info, self.configuration, self.data
        settings = ", ".join(f"{key}={value}" for key, value in chosen.settings.items()) or "all at their defaults"
        measured = [f"{100 * value:.1f} % {MEASURED[key]}" for key, value in self.accuracy.items() if value is not None]
        rows = [
            ("method", info.method),
            ("settings", settings),
            ("expects", f"{chosen.way} new classes at a time with {chosen.shot} supports each; seed {chosen.seed}"),
            ("classes", f"{info.classes:,}, {info.few_shot:,} of them few-shot"),
            ("nodes, edges", f"{info.nodes:,}, {info.edges:,}; {info.labelled:,} labelled"),
            ("balanced accuracy", "; ".join(measured) or "not measured"),
            ("fitted on", _data_text(data)),
            ("fitted", short_time(info.fitted)),
            ("version", f"{info.version or 'not saved'}, {short_time(info.when)}; {counted(info.changes, 'change')}"),
            ("SHA-256", self.sha256 or "not saved"),
            ("written by", f"graphfcl {self.written_by or 'of an older version'}"),
        ]
        if data.get("columns"):
            used = {key: value for key, value in data["columns"].items() if value}
            text = "; ".join(f"{key} {', '.join(v) if isinstance(v, list) else v}" for key, v in used.items())
            rows.append(("columns", text))
        rows += [(f"{kind} on disk", _size(size)) for kind, size in (info.bytes_on_disk or {}).items()]
        return rows

    def class_rows(self) -> list[tuple[str, ...]]:
        """Return the cells of ``CLASS_COLUMNS`` for each class."""
        return [
            (
                str(each.name),
                f"{each.labels:,}",
                f"{each.validation:,}",
                percent(each.recall),
                "" if each.gain is None else f"{100 * each.gain:+.1f}",
                ", ".join(f"{labels:,}: {percent(recall)}" for labels, recall in each.earlier),
                "few-shot" if each.few_shot else "",
            )
            for each in self.classes
        ]

    def __str__(self) -> str:
        return self.as_markdown(f"{self.info.method} on {self.data.get('graph') or 'a graph without a name'}")

    def as_markdown(self, title: str) -> str:
        """Return the card as a page of Markdown."""
        signs = [(s.what, str(s.figure), str(s.limit), "over" if s.over else "") for s in self.info.signs]
        verdict, text = self.info.verdict, gain_text(self.classes)
        parts = [
            f"# {_cell(title)}",
            _table(("what", "value"), self.rows()),
            "## Classes",
            _table(CLASS_COLUMNS, self.class_rows()),
            *([_cell(text)] if text else []),
            "## Age",
            _table(("sign of age", "value", "limit", ""), signs),
            f"{verdict[0].upper()}{verdict[1:]}.",
        ]
        return "\n\n".join(parts)


CLASS_COLUMNS = (
    "class",
    "labels",
    "validation nodes",
    "recall, %",
    f"{MORE} more labels",
    "earlier labels: recall, %",
    "",
)


def card_of(state: ModelState, configuration: Configuration, info: ModelInfo) -> ModelCard:
    """See :meth:`ModelFolder.card`."""
    stored = state.answering.stored
    manifest = {} if stored is None else stored.manifest
    entries = state.history.entries()
    with written_by_graphfcl():
        accuracy = _accuracy(state)
        data = _data(lineage(entries), configuration)
        curves = class_curves(entries)
        classes = class_table(state, accuracy)
    if stored is not None:
        data |= stored.graph.origin()
    names = state.parts.label_store.classes
    return ModelCard(
        info=info,
        configuration=configuration,
        classes=tuple(
            replace(each, earlier=_earlier(curves.get(name, ()), each.labels))
            for name, each in zip(names, classes, strict=True)
        ),
        accuracy={key: accuracy.get(key) for key in MEASURED},
        data=data,
        sha256=manifest.get("sha256"),
        written_by=manifest.get("graphfcl"),
    )


def _accuracy(state: ModelState) -> Mapping[str, Any]:
    """Return the accuracy measured last, by a change or by a later pass over the graph folder."""
    accuracy, since = state.history.last_accuracy() or {}, None
    if state.parts.calibration.stale:
        with suppress(InputError):  # a graph folder that has moved
            since = state.answering.answers().accuracy if state.answering.has_answers() else None
    return {**accuracy, **(since or {})}


def class_table(state: ModelState, accuracy: Mapping[str, Any] | None = None) -> tuple[ClassCard, ...]:
    """Return labels, recall and expected gain of every class. ``accuracy``: by default the one measured last."""
    accuracy = _accuracy(state) if accuracy is None else accuracy
    labels, recalls = state.parts.label_store, accuracy.get("classes") or {}
    counts, few = (labels.counts(), labels.counts(validation=True)), few_shot_classes(labels)
    gains = [None if np.isnan(gain) else round(gain, 4) for gain in expected_gains(labels, accuracy).tolist()]
    return tuple(
        ClassCard(labels.label(name), taught, measured, is_few, recalls.get(name), gain)
        for name, taught, measured, is_few, gain in zip(
            labels.classes, *(each.tolist() for each in counts), few.tolist(), gains, strict=True
        )
    )


def most_gain(classes: Sequence[ClassCard]) -> ClassCard | None:
    """Return the class that would gain most from more labels; None if no known gain reaches ``LEAST_GAIN``."""
    best = max(classes, key=lambda each: each.gain or 0.0)
    return best if (best.gain or 0.0) >= LEAST_GAIN else None


def gain_text(classes: Sequence[ClassCard]) -> str:
    """Say in a sentence which class would gain most from more labels; empty if no gain can be estimated."""
    best = most_gain(classes)
    if best is not None and best.gain is not None:
        recall = "not measured" if best.recall is None else f"{100 * best.recall:.1f} %"
        return (
            f"{quoted(str(best.name))} would gain most from more labels: {counted(best.labels, 'label')}, "
            f"recall {recall}, about {100 * best.gain:+.1f} points from {MORE} more."
        )
    if all(each.gain is None for each in classes):
        return ""
    return f"No class would gain {100 * LEAST_GAIN:g} point of recall from {MORE} more labels."


def _earlier(points: Sequence[CurvePoint], labels: int) -> tuple[tuple[int, float], ...]:
    """Return the last ``EARLIER`` numbers of labels other than the current one, each with the last recall measured with
    it.
    """
    by_labels = {each.labels: each.recall for each in points if each.labels != labels and each.recall is not None}
    return tuple(by_labels.items())[-EARLIER:]


def _data(life: Sequence[Entry], configuration: Configuration) -> dict[str, Any]:
    """Return the graph of the last fit that names one, and the columns of its tables."""
    fits = [entry for entry in life if entry["what"] in FITS and "graph" in entry]
    last: Mapping[str, Any] = fits[-1] if fits else {}
    columns = configuration.columns
    return {
        **{key: last.get(key) for key in ("graph", "nodes", "edges", "labelled")},
        "hidden": list(last.get("hidden", ())),
        "columns": None if columns is None else columns.as_json(),
    }


def _data_text(data: Mapping[str, Any]) -> str:
    counted = [f"{data[key]:,} {key}" for key in ("nodes", "edges", "labelled") if isinstance(data.get(key), int)]
    parts = [f"{data.get('graph') or 'a graph without a name'}: {', '.join(counted)}"]
    if data["hidden"]:
        parts.append(f"hidden classes {', '.join(map(str, data['hidden']))}")
    if "digest" in data:
        parts.append(f"graph folder {data['graph_folder'] or 'whose place is not known'}, digest {data['digest']}")
    return "; ".join(parts)


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1e6 else f"{count / 1e3:,.1f} kB"


def _cell(text: str) -> str:
    """Escape a user's text for Markdown."""
    plain = " ".join(text.split())
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>#|" else sign for sign in plain)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *([_cell(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
