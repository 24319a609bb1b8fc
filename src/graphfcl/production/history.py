"""The history of a model: one entry per change, oldest first.

An entry is plain JSON values: ``version`` (None until it is saved), ``when``, ``what``, what else the change says of
itself, and, where it was measured, ``accuracy`` and ``warning``.
"""

import datetime
from typing import Any

Entry = dict[str, Any]
History = list[Entry]


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def new_entry(change: dict[str, Any]) -> Entry:
    """An entry that no version holds yet."""
    return {"version": None, "when": now(), **change}


def unsaved(history: History) -> History:
    """The changes since the model was loaded or saved."""
    return [entry for entry in history if entry["version"] is None]


def last_accuracy(history: History) -> dict[str, Any] | None:
    """The newest accuracy that was measured."""
    return next((entry["accuracy"] for entry in reversed(history) if entry.get("accuracy")), None)
