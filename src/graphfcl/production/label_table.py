"""The labels of a model as a table that a person can open, and who gave them."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphfcl.graph.ids import text_array
from graphfcl.production.ledger import LabelRole, Ledger, Statements
from graphfcl.production.model_graph import NodeIndex
from graphfcl.production.supports import Statement

Columns = dict[str, np.ndarray]


def label_table(
    ledger: Ledger, names: NodeIndex, nodes: Sequence[Any] | None = None
) -> tuple[Columns, np.ndarray | None]:
    """Columns ``node, class, part, by, when`` and those that were kept; a row for each statement, or one without any.

    nodes: ids of the nodes that are asked for, in whose order the rows come; those without a label have no row.
    Beside the columns, (rows,) which of the nodes each row is about; None if all are.
    """
    asked, listed = (None, np.arange(ledger.nodes.size)) if nodes is None else _places(ledger, names.numbers_of(nodes))
    said = [ledger.statements.get(number, ()) or (Statement(),) for number in ledger.nodes[listed].tolist()]
    counts = np.array([len(statements) for statements in said], dtype=np.int64)
    rows = np.repeat(listed, counts)
    statements = [statement for each in said for statement in each]
    roles = {int(role): role.name.lower() for role in LabelRole}
    kept = [dict(statement.kept) for statement in statements]
    further = dict.fromkeys(name for each in kept for name in each)
    columns = {
        "node": names.ids_of(ledger.nodes[rows]),
        "class": ledger.label_array()[ledger.class_of_column()[ledger.columns[rows]]],
        "part": text_array([roles[part] for part in ledger.parts[rows].tolist()]),
        "by": text_array([statement.by for statement in statements]),
        "when": text_array([statement.when for statement in statements]),
        **{name: text_array([each.get(name, "") for each in kept]) for name in further},
    }
    return columns, None if asked is None else np.repeat(asked, counts)


def _places(ledger: Ledger, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which of some nodes have a label, and the place of each of them in the ledger."""
    if ledger.nodes.size == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    order = np.argsort(ledger.nodes, kind="stable")
    places = order[np.searchsorted(ledger.nodes, numbers, sorter=order).clip(max=ledger.nodes.size - 1)]
    asked = np.flatnonzero(ledger.nodes[places] == numbers)
    return asked, places[asked]


def statements_column(ledger: Ledger) -> list[str | None]:
    """(m,) who gave each label, as JSON; None where nobody said."""
    return [
        json.dumps([statement.as_json() for statement in ledger.statements[number]])
        if number in ledger.statements
        else None
        for number in ledger.nodes.tolist()
    ]


def read_statements(column: Sequence[str | None], nodes: np.ndarray) -> Statements:
    """The reverse. nodes: (m,) numbers. ValueError, KeyError or TypeError if it is something else."""
    found = zip(nodes.tolist(), column, strict=True)
    return {number: tuple(Statement.from_json(values) for values in json.loads(text)) for number, text in found if text}
