"""Who gave a label and when: statements of people, which are stored with labels."""

import datetime
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.graph.ids import TextRule, normal

BY = TextRule("name in 'by'", 200)
WHEN = TextRule("time in 'when'", 100)
COLUMN = TextRule("name of a column", 200)
KEPT = TextRule("value", 1_000)
MOST_COLUMNS = 20
REVIEWED = "reviewed"  # stored with a reviewed label
LINE_BREAKS = re.compile(r"[\t\r\n]+")


@dataclass(frozen=True)
class Statement:
    """Who gave a label and when, cleaned, and further columns stored with it; empty texts if unknown."""

    by: str = ""
    when: str = ""
    kept: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, by: Any, when: Any, kept: Mapping[str, Any], place: str) -> "Statement":
        """Clean the texts and drop empty columns. Messages name ``place``, where the statement was written."""
        if isinstance(when, datetime.date):
            when = when.isoformat()
        if len(kept) > MOST_COLUMNS:
            raise InputError(f"{place}: {len(kept)} columns to keep, at most {MOST_COLUMNS} are: leave some out.")
        columns = [(COLUMN.clean(str(name), place), as_one_line(str(value))) for name, value in kept.items()]
        return cls(
            by=_clean(BY, by, place),
            when=_clean(WHEN, when, place),
            kept=tuple((name, KEPT.clean(value, place)) for name, value in columns if value.strip()),
        )

    def __bool__(self) -> bool:
        """Whether it contains anything."""
        return bool(self.by or self.when or self.kept)

    def as_json(self) -> dict[str, Any]:
        return {"by": self.by, "when": self.when, "kept": dict(self.kept)}

    @classmethod
    def from_json(cls, values: Any) -> "Statement":
        """Make a statement from the values of :meth:`as_json`; raises ValueError, KeyError or TypeError for anything
        else.
        """
        by, when, kept = values["by"], values["when"], dict(values["kept"])
        if not all(isinstance(text, str) for text in (by, when, *kept, *kept.values())):
            raise ValueError("a statement contains a value that is not a text")
        return cls(by, when, tuple(kept.items()))


@dataclass(frozen=True)
class Support:
    """A node to learn.

    Attributes:
        node: Id of the node.
        class_name: Its class.
        place: Where the support was written, for messages.
        statement: Who gave the label.
    """

    node: Any
    class_name: str
    place: str
    statement: Statement = Statement()


def as_one_line(text: str) -> str:
    """Return a text on one line, as it is stored; comments may have several lines."""
    return normal(LINE_BREAKS.sub(" ", text))


def people(statements: tuple[Statement, ...]) -> str:
    """Name the people who made some statements, for a message: "ann and bob, 2026-11-16"; empty if no one is named."""
    named = [f"{each.by}, {each.when}" if each.when else each.by for each in statements if each.by]
    return " and ".join(dict.fromkeys(named))


def _clean(rule: TextRule, value: Any, place: str) -> str:
    text = "" if value is None else str(value)
    return rule.clean(text, place) if text.strip() else ""


Statements = Mapping[int, tuple[Statement, ...]]  # node number → statements about its label, oldest first


def statements_column(statements: Statements, nodes: np.ndarray) -> list[str | None]:
    """(m,) statements about the label of each node as JSON; None if there are none. ``nodes``: (m,) node numbers."""
    return [
        json.dumps([each.as_json() for each in statements[number]]) if number in statements else None
        for number in nodes.tolist()
    ]


def read_statements(column: Sequence[str | None], nodes: np.ndarray) -> Statements:
    """Read the values of :func:`statements_column`; raises ValueError, KeyError or TypeError for anything else.

    ``nodes``: (m,) node numbers.
    """
    pairs = zip(nodes.tolist(), column, strict=True)
    return {number: tuple(map(Statement.from_json, json.loads(text))) for number, text in pairs if text}
