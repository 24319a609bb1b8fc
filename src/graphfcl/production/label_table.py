"""The labels of a model as a table that a person can open, and who gave them."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphfcl.graph.ids import text_array
from graphfcl.production.ledger import LabelRole, Ledger, Statements
from graphfcl.production.node_names import NodeNames
from graphfcl.production.supports import Statement

Columns = dict[str, np.ndarray]


def label_table(ledger: Ledger, names: NodeNames, nodes: Sequence[Any] | None = None) -> Columns:
    """Columns ``node, class, part, by, when`` and those that were kept; a row for each statement, or one without any.

    nodes: ids of the nodes that are asked for; those without a label have no row.
    """
    asked = np.ones(ledger.nodes.size, dtype=bool) if nodes is None else np.isin(ledger.nodes, names.numbers_of(nodes))
    listed = np.flatnonzero(asked)
    said = [ledger.statements.get(number, ()) or (Statement(),) for number in ledger.nodes[listed].tolist()]
    rows = np.repeat(listed, [len(statements) for statements in said]).astype(np.int64)
    statements = [statement for each in said for statement in each]
    roles = {int(role): role.name.lower() for role in LabelRole}
    kept = [dict(statement.kept) for statement in statements]
    further = dict.fromkeys(name for each in kept for name in each)
    return {
        "node": names.ids_of(ledger.nodes[rows]),
        "class": text_array([str(ledger.names[column]) for column in ledger.columns[rows].tolist()]),
        "part": text_array([roles[part] for part in ledger.parts[rows].tolist()]),
        "by": text_array([statement.by for statement in statements]),
        "when": text_array([statement.when for statement in statements]),
        **{name: text_array([each.get(name, "") for each in kept]) for name in further},
    }


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
