"""What readers see: one version, whole. The next one takes its place by one assignment."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphfcl.active.contract import Memory
from graphfcl.graph.ids import ClassLabel
from graphfcl.production import GraphClassifier
from graphfcl.production.graph import ModelGraph
from graphfcl.production.labels.label_store import LabelStore
from graphfcl.service.changes import Change, as_sent
from graphfcl.service.search import IdSearch

Pointer = tuple[int, str]  # a version and the checksum of its manifest


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A version that answers. Never changed.

    model: its scores are computed. pointer: what the folder showed. changes: all up to here. recalls: of each class
    that was measured, by the last change and by the one before. classes: as they travel, see :func:`as_sent`.
    labels: (n,) the place of each row's class in ``classes``, see :func:`_labels`. search: finds ids. memory: what was
    computed of it for several requests.
    """

    model: GraphClassifier
    pointer: Pointer
    changes: tuple[Change, ...]
    recalls: tuple[dict[str, float], dict[str, float]]
    classes: tuple[ClassLabel, ...]
    labels: np.ndarray
    search: IdSearch
    memory: Memory = field(default_factory=Memory)

    @classmethod
    def of(
        cls,
        model: GraphClassifier,
        pointer: Pointer,
        changes: Sequence[Change],
        recalls: Sequence[dict[str, float]],
        before: "Snapshot | None",
    ) -> "Snapshot":
        """A snapshot of a model that is this version. before: what it may share something with."""
        model.calibrate()
        ids = model.node_ids_
        known = before is not None and (before.search.ids is ids or np.array_equal(before.search.ids, ids))
        return cls(
            model=model,
            pointer=pointer,
            changes=tuple(changes),
            recalls=_recalls(model, recalls, before),
            classes=tuple(map(as_sent, model.classes_)),
            labels=_labels(model.graph_, model.label_store_),
            search=before.search if known and before is not None else IdSearch.of(ids),
        )

    @property
    def version(self) -> int:
        return self.pointer[0]

    @property
    def graph(self) -> ModelGraph:
        return self.model.graph_

    @property
    def changed_at(self) -> str:
        """When its last change was made."""
        return self.changes[-1].when if self.changes else ""

    def row_of(self, node: Any) -> int:
        """The row of an id; -1 if there is none."""
        return int(self.graph.rows_of_ids([node])[0])

    def id_at(self, row: int) -> str:
        """The id of a row, as it travels."""
        return self.ids_at(np.array([row]))[0]

    def ids_at(self, rows: np.ndarray) -> list[str]:
        """The ids of some rows."""
        return [str(each) for each in self.graph.ids_at(rows).tolist()]

    def opinions(self, rows: np.ndarray) -> "Opinions":
        """What the model says of some rows."""
        probabilities, scores = self.model.by_row.with_unknown_scores(rows)
        return Opinions(probabilities, scores, scores > self.model.calibration_.threshold)

    def label_at(self, row: int) -> ClassLabel | None:
        """The label of a row."""
        place = int(self.labels[row])
        return None if place < 0 else self.classes[place]

    def class_sizes(self) -> np.ndarray:
        """(classes,) how many nodes are labelled with each."""
        return np.bincount(self.labels[self.labels >= 0], minlength=len(self.classes))


class Snapshots:
    """The snapshot that readers take, and what is wrong with the folder if something is."""

    def __init__(self) -> None:
        self._current: Snapshot | None = None
        self.trouble: str | None = None

    @property
    def current(self) -> Snapshot:
        """The newest one; whoever takes it works on it to the end."""
        assert self._current is not None, "the service was not started"
        return self._current

    @property
    def started(self) -> bool:
        return self._current is not None

    def publish(self, snapshot: Snapshot) -> None:
        """Let readers see it."""
        self._current, self.trouble = snapshot, None


@dataclass(frozen=True, eq=False)
class Opinions:
    """probabilities: (r, classes). unknown_scores, unknown: (r,); a node that is unknown looks like no class."""

    probabilities: np.ndarray
    unknown_scores: np.ndarray
    unknown: np.ndarray


def _recalls(
    model: GraphClassifier, measured: Sequence[dict[str, float]], before: Snapshot | None
) -> tuple[dict[str, float], dict[str, float]]:
    """Of each class now, and before the last change.

    measured: by the last two changes that say so. Those of a model on a graph folder say nothing: its recalls are known
    once all nodes have scores.
    """
    found = (model.accuracy() or {}).get("classes") or {}
    last = measured[-1] if measured else {}
    if not found or found == last:
        return last, measured[-2] if len(measured) > 1 else {}
    return found, last if before is None else before.recalls[0]


def _labels(graph: ModelGraph, label_store: LabelStore) -> np.ndarray:
    """(n,) the place of each row's class; -1 without a label, -2 of a row that has no node."""
    labels = np.full(graph.visible.row_count, -2, dtype=np.int64)
    labels[graph.visible.rows(graph.visible.nodes)] = -1
    labels[graph.visible.rows(label_store.nodes)] = label_store.class_of_column()[label_store.columns]
    return labels
