"""The history of a model: one entry per change, oldest first.

An entry is plain JSON values: ``version`` (None until it is saved), ``when``, ``what``, what else the change says of
itself, and, where it was measured, ``accuracy`` and ``warning``.
"""

import datetime
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from graphfcl.errors import InputError

Entry = dict[str, Any]


class Past:
    """The entries of a folder, which are read when somebody looks at them.

    count: how many there are. accuracy: the one measured last. A change needs to know no more.
    """

    def __init__(self, read: Callable[[], list[Entry]], count: int, accuracy: dict[str, Any] | None) -> None:
        self.count, self.accuracy = count, accuracy
        self._read = read
        self._entries: list[Entry] | None = None

    def entries(self) -> list[Entry]:
        """All of them."""
        if self._entries is None:
            found = self._read()
            self._entries, self.count = found, len(found)
        return self._entries


class History(Sequence[Entry]):
    """Entries, oldest first. Never changed: a change makes another history.

    past: those of a folder. new: those made since.
    """

    def __init__(self, new: Iterable[Entry] = (), past: Past | None = None) -> None:
        self._new, self._past = tuple(new), past

    @classmethod
    def stored(cls, read: Callable[[], list[Entry]], count: int, accuracy: dict[str, Any] | None) -> "History":
        """The history of a model in a folder. count: of its entries. accuracy: the one measured last."""
        return cls((), Past(read, count, accuracy))

    def entries(self) -> list[Entry]:
        """All of them; what is done to them leaves the history as it is."""
        before = [] if self._past is None else self._past.entries()
        return [dict(entry) for entry in (*before, *self._new)]

    def __len__(self) -> int:
        return (0 if self._past is None else self._past.count) + len(self._new)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries())

    def __getitem__(self, place: Any) -> Any:
        """One entry, or a list of some; the last ones are at hand."""
        if isinstance(place, int) and -len(self._new) <= place < 0:
            return dict(self._new[place])
        return self.entries()[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, History | list) and list(self) == list(other)

    def __repr__(self) -> str:
        return f"History({len(self)} entries)"

    __hash__ = None  # type: ignore[assignment]

    def plus(self, entries: Iterable[Entry]) -> "History":
        """With more changes."""
        return History((*self._new, *entries), self._past)

    def saved_as(self, number: int, count: int) -> "History":
        """The same, of which the first ``count`` changes are in a version; a first version holds all of them."""
        if number == 1:  # the first version of another folder, perhaps
            done = ({**entry, "version": 1} for entry in self.entries()[:count])
            return History((*done, *self.entries()[count:]))
        before = 0 if self._past is None else self._past.count
        return History(
            (
                {**entry, "version": number} if before + place < count and entry["version"] is None else entry
                for place, entry in enumerate(self._new)
            ),
            self._past,
        )

    def last_accuracy(self) -> dict[str, Any] | None:
        """The newest accuracy that was measured."""
        measured = (entry["accuracy"] for entry in reversed(self._new) if (entry.get("accuracy") or {}).get("classes"))
        return next(measured, None if self._past is None else self._past.accuracy)

    def unsaved(self) -> list[Entry]:
        """The changes since the model was loaded or saved."""
        return [dict(entry) for entry in self._new if entry["version"] is None]

    def __getstate__(self) -> dict[str, Any]:
        """A copy in another process has read all that lies in the folder."""
        return {"_new": tuple(self.entries()), "_past": None}


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def new_entry(change: dict[str, Any]) -> Entry:
    """An entry that no version holds yet."""
    return {"version": None, "when": now(), **change}


@contextmanager
def written_by_graphfcl() -> Iterator[None]:
    """Where entries are read for more than to show them: those of a folder may say anything."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            "the history of the model is not one that graphfcl writes: `graphfcl history --json` shows it."
        ) from error


def lineage(entries: Sequence[Entry]) -> list[Entry]:
    """The changes that led to the last one, oldest first: what a rollback went back behind is left out."""
    before: list[int] = []  # for each entry the one that it follows, -1 at the start
    last_of: dict[Any, int] = {}  # the last entry of each version
    last = -1
    for place, entry in enumerate(entries):
        if entry["what"] == "rollback":
            last = last_of.get(entry.get("to"), last)
        before.append(last)
        last = last_of[entry["version"]] = place
    found = []
    while last >= 0:
        found.append(entries[last])
        last = before[last]
    return found[::-1]
