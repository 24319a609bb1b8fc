"""Pages of labels: class, role, who gave each label and when."""

from typing import Any

import numpy as np

from graphfcl.errors import quoted
from graphfcl.production.labels.label_store import LabelRole
from graphfcl.service.paging import lost_cursor, make_cursor, read_cursor
from graphfcl.service.problems import Problem
from graphfcl.service.snapshots import Snapshot

ROLES = {int(role): role.name.lower() for role in LabelRole}


def label_page(snapshot: Snapshot, class_name: str | None, limit: int, cursor: str | None) -> dict[str, Any]:
    """Return a page of labels in the order of their rows, so that new labels do not move entries between pages."""
    rows = np.flatnonzero(
        snapshot.labels >= 0 if class_name is None else snapshot.labels == class_place(snapshot, class_name)
    )
    start = 0
    if cursor is not None:
        (last,) = snapshot.graph.rows_of_ids(read_cursor(cursor, str)).tolist()
        if last < 0:
            raise lost_cursor()
        start = int(np.searchsorted(rows, last, side="right"))
    listed = rows[start : start + limit]
    labels = label_cards(snapshot, listed)
    more = start + listed.size < rows.size
    return {"labels": labels, "total": rows.size, "next_cursor": make_cursor(labels[-1]["id"]) if more else None}


def label_cards(snapshot: Snapshot, rows: np.ndarray) -> list[dict[str, Any]]:
    """Return the labels of some labelled rows."""
    if not rows.size:
        return []
    statements = snapshot.model.label_store_.statements
    roles = snapshot.memory.find("roles", lambda: _roles(snapshot))
    return [
        {
            "id": node,
            "class": snapshot.classes[place],
            "role": ROLES[role],
            "statements": [statement.as_json() for statement in statements.get(number, ())],
        }
        for node, place, role, number in zip(
            snapshot.ids_at(rows),
            snapshot.labels[rows].tolist(),
            roles[rows].tolist(),
            snapshot.graph.numbers_at(rows).tolist(),
            strict=True,
        )
    ]


def class_place(snapshot: Snapshot, class_name: str) -> int:
    """Return the position of a class in the classes of a snapshot."""
    labels = snapshot.model.label_store_
    stored = labels.find(class_name)
    if stored is None:
        raise Problem(404, f"the model knows no class {quoted(class_name)}: /v1/classes lists them.", "unknown-class")
    return labels.classes.index(stored)


def _roles(snapshot: Snapshot) -> np.ndarray:
    """Return the role of each row's label, -1 without a label; shape (n,)."""
    labels = snapshot.model.label_store_
    roles = np.full(snapshot.labels.size, -1, dtype=np.int8)
    roles[snapshot.graph.visible.rows(labels.nodes)] = labels.parts
    return roles
