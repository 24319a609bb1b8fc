"""The labels of a model as a table that a person can open, and who gave them."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphfcl.graph.ids import text_array
from graphfcl.production.graph import NodeIndex
from graphfcl.production.labels.label_store import LabelRole, LabelStore, Statements
from graphfcl.production.labels.supports import Statement

Columns = dict[str, np.ndarray]


def label_table(
    label_store: LabelStore, names: NodeIndex, nodes: Sequence[Any] | None = None
) -> tuple[Columns, np.ndarray | None]:
    """Columns ``node, class, part, by, when`` and those that were kept; a row for each statement, or one without any.

    nodes: ids of the nodes that are asked for, in whose order the rows come; those without a label have no row.
    Beside the columns, (rows,) which of the nodes each row is about; None if all are.
    """
    asked, listed = (
        (None, np.arange(label_store.nodes.size)) if nodes is None else _places(label_store, names.numbers_of(nodes))
    )
    said = [label_store.statements.get(number, ()) or (Statement(),) for number in label_store.nodes[listed].tolist()]
    counts = np.array([len(statements) for statements in said], dtype=np.int64)
    rows = np.repeat(listed, counts)
    statements = [statement for each in said for statement in each]
    roles = {int(role): role.name.lower() for role in LabelRole}
    kept = [dict(statement.kept) for statement in statements]
    further = dict.fromkeys(name for each in kept for name in each)
    columns = {
        "node": names.ids_of(label_store.nodes[rows]),
        "class": label_store.label_array()[label_store.class_of_column()[label_store.columns[rows]]],
        "part": text_array([roles[part] for part in label_store.parts[rows].tolist()]),
        "by": text_array([statement.by for statement in statements]),
        "when": text_array([statement.when for statement in statements]),
        **{name: text_array([each.get(name, "") for each in kept]) for name in further},
    }
    return columns, None if asked is None else np.repeat(asked, counts)


def _places(label_store: LabelStore, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which of some nodes have a label, and the place of each of them in the label_store."""
    if label_store.nodes.size == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    order = np.argsort(label_store.nodes, kind="stable")
    places = order[np.searchsorted(label_store.nodes, numbers, sorter=order).clip(max=label_store.nodes.size - 1)]
    asked = np.flatnonzero(label_store.nodes[places] == numbers)
    return asked, places[asked]


def statements_column(label_store: LabelStore) -> list[str | None]:
    """(m,) who gave each label, as JSON; None where nobody said."""
    return [
        json.dumps([statement.as_json() for statement in label_store.statements[number]])
        if number in label_store.statements
        else None
        for number in label_store.nodes.tolist()
    ]


def read_statements(column: Sequence[str | None], nodes: np.ndarray) -> Statements:
    """The reverse. nodes: (m,) numbers. ValueError, KeyError or TypeError if it is something else."""
    found = zip(nodes.tolist(), column, strict=True)
    return {number: tuple(Statement.from_json(values) for values in json.loads(text)) for number, text in found if text}
