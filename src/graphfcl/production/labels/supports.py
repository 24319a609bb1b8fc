"""What a user hands in to be learned: a node, its class, and who said so when."""

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphfcl.errors import InputError
from graphfcl.graph.ids import TextRule, normal

BY = TextRule("name in 'by'", 200)
WHEN = TextRule("time in 'when'", 100)
COLUMN = TextRule("name of a column", 200)
KEPT = TextRule("value", 1_000)
MOST_COLUMNS = 20
LINE_BREAKS = re.compile(r"[\t\r\n]+")


@dataclass(frozen=True)
class Statement:
    """Who gave a label and when, in the user's words, and further columns that are kept with it; "" where not said."""

    by: str = ""
    when: str = ""
    kept: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, by: Any, when: Any, kept: Mapping[str, Any], place: str) -> "Statement":
        """The cleaned statement; empty columns are left out. place: for messages."""
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
        """Whether anything is said."""
        return bool(self.by or self.when or self.kept)

    def as_json(self) -> dict[str, Any]:
        return {"by": self.by, "when": self.when, "kept": dict(self.kept)}

    @classmethod
    def from_json(cls, values: Any) -> "Statement":
        """The reverse of :meth:`as_json`; ValueError, KeyError or TypeError if it is something else."""
        by, when, kept = values["by"], values["when"], dict(values["kept"])
        if not all(isinstance(text, str) for text in (by, when, *kept, *kept.values())):
            raise ValueError("a statement of the label_store is no text")
        return cls(by, when, tuple(kept.items()))


@dataclass(frozen=True)
class Support:
    """A node to learn, its class, where both were written (``place``, for messages), and who said so."""

    node: Any
    class_name: str
    place: str
    statement: Statement = Statement()


def as_one_line(text: str) -> str:
    """A text as it is kept: a comment may have several lines."""
    return normal(LINE_BREAKS.sub(" ", text))


def people(statements: tuple[Statement, ...]) -> str:
    """Who made some statements, for a message: "ann and bob, 2026-11-16"; "" if nobody is named."""
    named = [f"{each.by}, {each.when}" if each.when else each.by for each in statements if each.by]
    return " and ".join(dict.fromkeys(named))


def _clean(rule: TextRule, value: Any, place: str) -> str:
    text = "" if value is None else str(value)
    return rule.clean(text, place) if text.strip() else ""
