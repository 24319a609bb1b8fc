"""Labels as a table: the label of each node, its role, and who gave it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphfcl.graph.ids import text_array
from graphfcl.production.graph import NodeIndex
from graphfcl.production.labels.label_store import LabelRole, LabelStore
from graphfcl.production.labels.statements import Statement

Columns = dict[str, np.ndarray]


def label_table(
    labels: LabelStore, names: NodeIndex, nodes: Sequence[Any] | None = None
) -> tuple[Columns, np.ndarray | None]:
    """Return the columns ``node``, ``class``, ``part``, ``by``, ``when`` and stored ones, and which node each row is
    about.

    A label has a row for each statement, or one row without any. With ``nodes``, rows follow the order of these ids,
    nodes without a label have no row, and the second value is (rows,) positions in ``nodes``. Without, there are rows
    for all labelled nodes, and the second value is None.
    """
    labelled, places = None, np.arange(labels.nodes.size)
    if nodes is not None:
        labelled, places = _places(labels, names.numbers_of(nodes))
    by_place = [labels.statements.get(number, ()) or (Statement(),) for number in labels.nodes[places].tolist()]
    counts = np.array([len(each) for each in by_place], dtype=np.int64)
    rows = np.repeat(places, counts)
    statements = [statement for each in by_place for statement in each]
    roles = {int(role): role.name.lower() for role in LabelRole}
    kept = [dict(statement.kept) for statement in statements]
    kept_names = dict.fromkeys(name for each in kept for name in each)
    columns = {
        "node": names.ids_of(labels.nodes[rows]),
        "class": labels.label_array()[labels.class_of_column()[labels.columns[rows]]],
        "part": text_array([roles[part] for part in labels.parts[rows].tolist()]),
        "by": text_array([statement.by for statement in statements]),
        "when": text_array([statement.when for statement in statements]),
        **{name: text_array([each.get(name, "") for each in kept]) for name in kept_names},
    }
    return columns, None if labelled is None else np.repeat(labelled, counts)


def _places(labels: LabelStore, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which of some nodes have a label, and the places of these labels in the label store."""
    if labels.nodes.size == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    order = np.argsort(labels.nodes, kind="stable")
    places = order[np.searchsorted(labels.nodes, numbers, sorter=order).clip(max=labels.nodes.size - 1)]
    labelled = np.flatnonzero(labels.nodes[places] == numbers)
    return labelled, places[labelled]
