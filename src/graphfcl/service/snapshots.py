"""Snapshots: complete versions that readers see. A new snapshot replaces the last one in a single assignment."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from graphfcl.active.contract import Memory
from graphfcl.graph.ids import ClassLabel
from graphfcl.production import GraphClassifier
from graphfcl.production.graph import ModelGraph
from graphfcl.production.labels.label_store import LabelStore
from graphfcl.service.changes import Change, as_sent

Pointer = tuple[int, str]  # a version and the checksum of its manifest
BREAK = "\n"  # no id contains a control character
CONTAINS = 2  # the rank of ids that contain the text, but do not start with it


@dataclass(frozen=True, eq=False)
class IdSearch:
    """All ids in one lower-case text, so that a search is a single pass in C.

    Attributes:
        ids: Ids of all nodes in the order in which they are listed, shape (n,).
        text: All ids in lower case, separated by line breaks.
        starts: Position of each id in ``text``, shape (n,).
    """

    ids: np.ndarray
    text: str
    starts: np.ndarray

    @classmethod
    def of(cls, ids: np.ndarray) -> "IdSearch":
        folded = [str(each).lower() for each in ids.tolist()]
        starts = np.concatenate([[1], 2 + np.cumsum([len(text) for text in folded]) + np.arange(len(folded))])
        return cls(ids, f"{BREAK}{BREAK.join(folded)}{BREAK}", starts[:-1])

    def search(self, query: str, limit: int, after: int | None = None) -> list[int]:
        """Return positions in ``ids`` of ids that equal, start with or contain a text, in this order, ignoring case.

        With ``after``, only results after this position are returned, which must be a result for the same text.
        """
        wanted = query.strip().lower()
        if BREAK in wanted:
            return []
        if not wanted:
            start = 0 if after is None else after + 1
            return list(range(start, min(start + limit, len(self.starts))))
        first = 0 if after is None else self._likeness(after, wanted)
        matches: list[int] = []
        for likeness, pattern in enumerate((f"{BREAK}{wanted}{BREAK}", f"{BREAK}{wanted}", wanted)[first:], first):
            shift = int(likeness < CONTAINS)
            position = self.text.find(pattern, self._end(after) if after is not None and likeness == first else 0)
            while position >= 0 and len(matches) < limit:
                place = int(np.searchsorted(self.starts, position + shift, side="right")) - 1
                if self._likeness(place, wanted) == likeness:
                    matches.append(place)
                position = self.text.find(pattern, self._end(place))  # so that an id is listed once
        return matches

    def place_of(self, node: str, place: int) -> int:
        """Return the position of an id, -1 if it is gone. ``place`` is its position when it was listed."""
        if 0 <= place < len(self.ids) and str(self.ids[place]) == node:
            return place
        return next(iter(np.flatnonzero(self.ids.astype(str) == node).tolist()), -1)

    def _likeness(self, place: int, wanted: str) -> int:
        """Return 0 if the id equals the text, 1 if it starts with the text, and otherwise 2."""
        start = int(self.starts[place])
        if not self.text.startswith(wanted, start):
            return CONTAINS
        return int(start + len(wanted) != self._end(place))

    def _end(self, place: int) -> int:
        """Return the end of an id in ``text``, at the line break before the next id."""
        return int(self.starts[place + 1]) - 1 if place + 1 < len(self.starts) else len(self.text) - 1


@dataclass(frozen=True, eq=False)
class Snapshot:
    """An immutable version whose scores are computed.

    Attributes:
        model: The model of this version.
        pointer: Version, and checksum of its manifest.
        changes: All changes up to this version.
        recalls: Recalls of the measured classes after the last change and before it.
        classes: Classes as JSON values (:func:`as_sent`).
        labels: Position of each row's class in ``classes``, shape (n,); -1 without a label, -2 without a node.
        search: Index for the search of ids.
        memory: Results that several requests share.
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
        """Make a snapshot. The search index of the snapshot ``before`` is reused if the ids are the same."""
        model.calibrate()
        ids = model.node_ids_
        search = None if before is None else before.search
        if search is None or not (search.ids is ids or np.array_equal(search.ids, ids)):
            search = IdSearch.of(ids)
        return cls(
            model=model,
            pointer=pointer,
            changes=tuple(changes),
            recalls=_recalls(model, recalls, before),
            classes=tuple(map(as_sent, model.classes_)),
            labels=_labels(model.graph_, model.label_store_),
            search=search,
        )

    @property
    def version(self) -> int:
        return self.pointer[0]

    @property
    def graph(self) -> ModelGraph:
        return self.model.graph_

    def ids_at(self, rows: np.ndarray) -> list[str]:
        """Return the ids of some rows."""
        return [str(each) for each in self.graph.ids_at(rows).tolist()]

    def predictions(self, rows: np.ndarray) -> "Predictions":
        """Return probabilities and unknown scores of some rows."""
        probabilities, scores = self.model.by_row.with_unknown_scores(rows)
        return Predictions(probabilities, scores, scores > self.model.calibration_.threshold)

    def label_at(self, row: int) -> ClassLabel | None:
        """Return the label of a row."""
        place = int(self.labels[row])
        return None if place < 0 else self.classes[place]


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions for r rows.

    Attributes:
        probabilities: Probability of each class, shape (r, classes).
        unknown_scores: Unknown score of each row, shape (r,).
        unknown: Whether each row looks like none of the classes, shape (r,).
    """

    probabilities: np.ndarray
    unknown_scores: np.ndarray
    unknown: np.ndarray


def _recalls(
    model: GraphClassifier, measured: Sequence[dict[str, float]], before: Snapshot | None
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the recalls of the classes now and before the last change.

    ``measured`` has the recalls of the last two changes that recorded them. Changes of a model on a graph folder record
    none; its recalls are computed once all nodes have scores.
    """
    now = (model.accuracy() or {}).get("classes") or {}
    last = measured[-1] if measured else {}
    if not now or now == last:
        return last, measured[-2] if len(measured) > 1 else {}
    return now, last if before is None else before.recalls[0]


def _labels(graph: ModelGraph, label_store: LabelStore) -> np.ndarray:
    """Return the position of each row's class, shape (n,); -1 without a label, -2 for a row without a node."""
    labels = np.full(graph.visible.row_count, -2, dtype=np.int64)
    labels[graph.visible.rows(graph.visible.nodes)] = -1
    labels[graph.visible.rows(label_store.nodes)] = label_store.class_of_column()[label_store.columns]
    return labels
