"""The labelling queue: all unlabelled nodes, in the order in which to label them."""

from typing import Any

import numpy as np

from graphfcl.active.contract import RowValues, likeliest_classes
from graphfcl.service.cards import likeliest
from graphfcl.service.snapshots import Snapshot

CHOSEN = 200  # number of nodes that the strategy ``auto`` chooses


def queue_order(snapshot: Snapshot) -> np.ndarray:
    """Return the rows of all unlabelled nodes, shape (u,), starting with the choice of the strategy ``auto``."""
    chosen = snapshot.graph.rows_of_ids([each.node for each in snapshot.model.suggest(CHOSEN)])
    return _order_of(snapshot, np.asarray(chosen, dtype=np.int64))


def simple_order(snapshot: Snapshot) -> np.ndarray:
    """Return the rows of all unlabelled nodes, shape (u,), without the strategy, which would take seconds."""
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
    """Return the rows of ``free``, shape (u,), taken in turn from two lists.

    The first list has the rows that look unknown: the rows in ``chosen``, then the other rows by descending score. The
    second list has the rows that look known: the least certain row of each predicted class (smallest p_1 - p_2), then
    the second row of each class, and so on, so that no class is left out.

    Args:
        free: Unlabelled rows, shape (u,).
        chosen: Some of these rows, best first.
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
    """Order rows: the least certain row of each predicted class first, then the second of each class, and so on."""
    if rows.size == 0:
        return rows
    predicted, _, margin = likeliest_classes(probabilities, rows)
    by_class = np.lexsort((margin, predicted))
    sizes = np.bincount(predicted)
    turn = np.empty(rows.size, dtype=np.int64)  # how many of its class come before a row
    turn[by_class] = np.arange(rows.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return rows[np.lexsort((margin, turn))]


def queued_rows(snapshot: Snapshot, order: np.ndarray) -> np.ndarray:
    """Return all unlabelled rows, shape (u,): rows in ``order`` first, which may be of an older version."""
    free = snapshot.labels == -1
    listed = order[order < free.size]
    listed = listed[free[listed]]
    free[listed] = False
    return np.concatenate([listed, np.flatnonzero(free)])


def queue_cards(snapshot: Snapshot, rows: np.ndarray) -> list[dict[str, Any]]:
    """Return the predictions for some rows."""
    if rows.size == 0:
        return []
    predicted = snapshot.predictions(rows)
    return [
        {"id": node, "classes": likeliest(snapshot.classes, probabilities), "unknown": unknown}
        for node, probabilities, unknown in zip(
            snapshot.ids_at(rows), predicted.probabilities, predicted.unknown.tolist(), strict=True
        )
    ]
