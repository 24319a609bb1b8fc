"""The labelling queue: all unlabelled nodes, in the order in which to label them."""

from typing import Any

import numpy as np

from graphfcl.active.contract import RowValues, likeliest_classes
from graphfcl.service.cards import likeliest
from graphfcl.service.snapshots import Snapshot

CHOSEN = 200  # number of nodes that the strategy ``auto`` chooses


def queue_order(snapshot: Snapshot) -> np.ndarray:
    """Return the rows of all unlabelled nodes, shape (u,), using the choice of the strategy ``auto``."""
    chosen = snapshot.graph.rows_of_ids([each.node for each in snapshot.model.suggest(CHOSEN)])
    return _order_of(snapshot, np.asarray(chosen, dtype=np.int64))


def simple_order(snapshot: Snapshot) -> np.ndarray:
    """Return the queue without running the strategy ``auto``, which takes seconds."""
    return snapshot.memory.find("simple order", lambda: _order_of(snapshot, np.zeros(0, dtype=np.int64)))


def _order_of(snapshot: Snapshot, chosen: np.ndarray) -> np.ndarray:
    model = snapshot.model
    unknown_scores = model.by_row.unknown_scores()
    unknown = unknown_scores > model.calibration_.threshold
    free = np.flatnonzero(snapshot.labels == -1)
    return mixed_order(free, chosen, model.by_row, unknown_scores, unknown)


def mixed_order(
    free: np.ndarray, chosen: np.ndarray, probabilities: RowValues, unknown_scores: np.ndarray, unknown: np.ndarray
) -> np.ndarray:
    """Order the rows of ``free``, shape (u,), so that unknown-looking and known-looking rows alternate.

    Unknown-looking rows start with those in ``chosen``. The others follow, highest unknown score first. Known-looking
    rows rotate through the predicted classes, least certain first, so that no class is left out. The certainty is
    p_1 - p_2. Known-looking rows in ``chosen`` have no priority.

    Args:
        free: Unlabelled rows, shape (u,).
        chosen: Rows that the strategy chose among them, best first.
        probabilities: Class probabilities, shape (n, C), read in blocks of rows.
        unknown_scores: Unknown score of each row, shape (n,).
        unknown: Whether each row looks unknown, shape (n,).
    """
    others = np.setdiff1d(free[unknown[free]], chosen)
    others = others[np.argsort(-unknown_scores[others], kind="stable")]
    first = np.concatenate([chosen[unknown[chosen]], others])
    second = _class_by_class(free[~unknown[free]], probabilities)
    place = np.concatenate([2 * np.arange(first.size), 2 * np.arange(second.size) + 1])
    return np.concatenate([first, second])[np.argsort(place, kind="stable")]


def _class_by_class(rows: np.ndarray, probabilities: RowValues) -> np.ndarray:
    """Rotate through the predicted classes: the least certain row of each class, then the second one, and so on."""
    if rows.size == 0:
        return rows
    predicted, _, margin = likeliest_classes(probabilities, rows)
    by_class = np.lexsort((margin, predicted))
    sizes = np.bincount(predicted)
    turn = np.empty(rows.size, dtype=np.int64)  # number of rows of the same class that come before a row
    turn[by_class] = np.arange(rows.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return rows[np.lexsort((margin, turn))]


def queued_rows(snapshot: Snapshot, order: np.ndarray) -> np.ndarray:
    """Return all unlabelled rows, shape (u,): first those in ``order``, which may be outdated, then the rest."""
    free = snapshot.labels == -1
    listed = order[order < free.size]
    listed = listed[free[listed]]
    free[listed] = False
    return np.concatenate([listed, np.flatnonzero(free)])


def queue_cards(snapshot: Snapshot, rows: np.ndarray) -> list[dict[str, Any]]:
    """Return the predictions for some rows as JSON values."""
    if rows.size == 0:
        return []
    predicted = snapshot.predictions(rows)
    return [
        {"id": node, "classes": likeliest(snapshot.classes, probabilities), "unknown": unknown}
        for node, probabilities, unknown in zip(
            snapshot.ids_at(rows), predicted.probabilities, predicted.unknown.tolist(), strict=True
        )
    ]
