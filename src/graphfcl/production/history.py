"""The history of a model: one entry per change, oldest first.

An entry is plain JSON values: ``version`` (None until it is saved), ``when``, ``what``, what else the change says of
itself, and, where it was measured, ``accuracy`` and ``warning``.
"""

import datetime
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

Entry = dict[str, Any]


class History(Sequence[Entry]):
    """Entries, of which those that lie in a folder are read when somebody looks at them.

    new: those made since. A folder says beforehand how many entries it has and which accuracy was measured last, which
    is all that a change needs to know.
    """

    def __init__(self, new: Iterable[Entry] = ()) -> None:
        self.new = list(new)
        self._read: Callable[[], list[Entry]] | None = None
        self._kept: list[Entry] = []
        self._count = 0
        self._accuracy: dict[str, Any] | None = None

    @classmethod
    def stored(
        cls, read: Callable[[], list[Entry]], count: int, accuracy: dict[str, Any] | None, new: Iterable[Entry] = ()
    ) -> "History":
        """The history of a model in a folder. count: of its entries. accuracy: the one measured last."""
        found = cls(new)
        found._read, found._count, found._accuracy = read, count, accuracy
        return found

    def entries(self) -> list[Entry]:
        """All of them."""
        if self._read is not None:
            self._kept, self._read = self._read(), None
            self._count = len(self._kept)
        return [*self._kept, *self.new]

    def __len__(self) -> int:
        return self._count + len(self.new)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries())

    def __getitem__(self, place: Any) -> Any:
        """One entry, or a list of some; the last ones are at hand."""
        if isinstance(place, int) and -len(self.new) <= place < 0:
            return self.new[place]
        return self.entries()[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, History | list) and list(self) == list(other)

    def __repr__(self) -> str:
        return f"History({len(self)} entries)"

    __hash__ = None  # type: ignore[assignment]

    def append(self, entry: Entry) -> None:
        """One change more."""
        self.new.append(entry)

    def cut(self, count: int) -> None:
        """Forget all entries after the first so many; those of the folder stay."""
        del self.new[max(0, count - self._count) :]

    def last_accuracy(self) -> dict[str, Any] | None:
        """The newest accuracy that was measured."""
        measured = (entry["accuracy"] for entry in reversed(self.new) if (entry.get("accuracy") or {}).get("classes"))
        return next(measured, self._accuracy)

    def unsaved(self) -> list[Entry]:
        """The changes since the model was loaded or saved."""
        return [entry for entry in self.new if entry["version"] is None]

    def copy(self) -> "History":
        """Another with the same entries."""
        found = History.stored(self._read or (lambda: self._kept), self._count, self._accuracy)
        found.new = [dict(entry) for entry in self.new]
        return found

    def __getstate__(self) -> dict[str, Any]:
        """A copy in another process, or one by ``deepcopy``, has read all that lies in the folder."""
        self.entries()
        return self.__dict__


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def new_entry(change: dict[str, Any]) -> Entry:
    """An entry that no version holds yet."""
    return {"version": None, "when": now(), **change}
