"""A model card: classes, data, accuracy, settings and hash of a model."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from graphfcl.errors import InputError, counted
from graphfcl.graph.ids import ClassLabel
from graphfcl.production.answers.answers import few_shot_classes
from graphfcl.production.labels.history import Entry, lineage, written_by_graphfcl
from graphfcl.production.labels.label_store import LabelRole, LabelStore
from graphfcl.production.model.info import FITS, ModelInfo
from graphfcl.production.model.parts import Configuration
from graphfcl.production.model.state import ModelState

MEASURED = {"validation": "on validation nodes", "leave_one_out": "on supports of learned classes, each left out"}


@dataclass(frozen=True)
class ClassCard:
    """One class. labels: nodes that it was learned from; validation: nodes that it is measured on.

    few_shot: it was learned after the fit. recall: as measured last; None if it was not.
    """

    name: ClassLabel
    labels: int
    validation: int
    few_shot: bool
    recall: float | None

    def as_json(self) -> dict[str, Any]:
        values = asdict(self)
        return {"class": values.pop("name"), **values}


@dataclass(frozen=True)
class ModelCard:
    """The result of :meth:`ModelFolder.card`.

    info: counts, sizes, and whether a refit is due. accuracy: ``validation`` and ``leave_one_out``, None where it was
    not measured. data: the graph of the fit. sha256: of the version's manifest, which seals every byte of the version;
    None without a folder. written_by: the version of graphfcl that wrote it.
    """

    info: ModelInfo
    configuration: Configuration
    classes: tuple[ClassCard, ...]
    accuracy: Mapping[str, float | None]
    data: Mapping[str, Any]
    sha256: str | None
    written_by: str | None

    def as_json(self) -> dict[str, Any]:
        return {
            **self.info.as_json(),
            "sha256": self.sha256,
            "graphfcl": self.written_by,
            **self.configuration.parameters(),
            "data": dict(self.data),
            "accuracy": dict(self.accuracy),
            "class_table": [each.as_json() for each in self.classes],
        }

    def rows(self) -> list[tuple[str, str]]:
        """Everything besides the classes, in words."""
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
            ("fitted", _when(info.fitted)),
            ("version", f"{info.version or 'not saved'}, {_when(info.when)}; {counted(info.changes, 'change')}"),
            ("SHA-256", self.sha256 or "not saved"),
            ("written by", f"graphfcl {self.written_by or 'of an older version'}"),
        ]
        if data.get("columns"):
            used = {key: value for key, value in data["columns"].items() if value}
            text = "; ".join(f"{key} {', '.join(v) if isinstance(v, list) else v}" for key, v in used.items())
            rows.append(("columns", text))
        rows += [(f"{kind} on disk", _size(size)) for kind, size in (info.bytes_on_disk or {}).items()]
        return rows

    def class_rows(self) -> list[tuple[str, str, str, str, str]]:
        """Class, labels, validation nodes, recall, and whether it is few-shot."""
        return [
            (
                str(each.name),
                f"{each.labels:,}",
                f"{each.validation:,}",
                "not measured" if each.recall is None else f"{100 * each.recall:.1f}",
                "few-shot" if each.few_shot else "",
            )
            for each in self.classes
        ]

    def __str__(self) -> str:
        return self.as_markdown(f"{self.info.method} on {self.data.get('graph') or 'a graph without a name'}")

    def as_markdown(self, title: str) -> str:
        """A page of Markdown."""
        signs = [(s.what, str(s.figure), str(s.limit), "over" if s.over else "") for s in self.info.signs]
        verdict = self.info.verdict
        parts = [
            f"# {_cell(title)}",
            _table(("what", "value"), self.rows()),
            "## Classes",
            _table(CLASS_COLUMNS, self.class_rows()),
            "## Age",
            _table(("sign of age", "found", "limit", ""), signs),
            f"{verdict[0].upper()}{verdict[1:]}.",
        ]
        return "\n\n".join(parts)


CLASS_COLUMNS = ("class", "labels", "validation nodes", "recall, %", "")


def card_of(state: ModelState, configuration: Configuration, info: ModelInfo) -> ModelCard:
    """See :meth:`ModelFolder.card`."""
    stored = state.answering.stored
    manifest = {} if stored is None else stored.manifest
    entries = state.history.entries()
    with written_by_graphfcl():
        accuracy = _accuracy(state)
        data = _data(lineage(entries), configuration)
    if stored is not None:
        data |= stored.graph.origin()
    recalls = accuracy.get("classes") or {}
    return ModelCard(
        info=info,
        configuration=configuration,
        classes=tuple(_classes(state.parts.label_store, recalls)),
        accuracy={key: accuracy.get(key) for key in MEASURED},
        data=data,
        sha256=manifest.get("sha256"),
        written_by=manifest.get("graphfcl"),
    )


def _accuracy(state: ModelState) -> Mapping[str, Any]:
    """As it was measured last, by a change or by a pass over the graph folder since."""
    accuracy = state.history.last_accuracy()
    if accuracy is None:
        with suppress(InputError):  # a graph folder that has moved
            if state.answering.has_answers():
                accuracy = state.answering.answers().accuracy
    return accuracy or {}


def _classes(labels: LabelStore, recalls: Mapping[str, float]) -> list[ClassCard]:
    classes = labels.class_of_column()[labels.columns]
    validates = labels.parts == LabelRole.VALIDATION
    taught, measured = (
        np.bincount(classes[here & (classes >= 0)], minlength=len(labels.classes)) for here in (~validates, validates)
    )
    few = few_shot_classes(labels)
    return [
        ClassCard(labels.label(name), int(taught[place]), int(measured[place]), bool(few[place]), recalls.get(name))
        for place, name in enumerate(labels.classes)
    ]


def _data(life: Sequence[Entry], configuration: Configuration) -> dict[str, Any]:
    """The graph of the last fit that names one, and the columns of its tables."""
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


def _when(text: str) -> str:
    return text.replace("+00:00", "Z")


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1e6 else f"{count / 1e3:,.1f} kB"


def _cell(text: str) -> str:
    """Text of a user, which Markdown must not take for its own signs."""
    plain = " ".join(text.split())
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>#|" else sign for sign in plain)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *([_cell(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
