"""The history of a model: one entry per change, oldest first.

An entry consists of JSON values: ``version`` (None until it is saved), ``when``, ``what``, fields that depend on the
kind of change, and, if they were measured, ``accuracy`` and ``warning``.
"""

import datetime
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from graphfcl.errors import InputError, counted, quoted

PLAIN = {
    "rename": "rename {from} to {to}",
    "merge": "merge {from} into {into}",
    "retire": "retire {class}",
    "rollback": "rollback to version {to}",
}

Entry = dict[str, Any]


@dataclass(eq=False)
class Past:
    """The entries stored in a folder, read on first use.

    Attributes:
        read: Reads the entries.
        count: Number of entries.
        accuracy: Newest accuracy that was measured.
    """

    read: Callable[[], list[Entry]]
    count: int
    accuracy: dict[str, Any] | None

    @cached_property
    def entries(self) -> list[Entry]:
        """All entries."""
        entries = self.read()
        self.count = len(entries)
        return entries


class History(Sequence[Entry]):
    """Entries, oldest first. Immutable: a change makes a new history.

    Args:
        new: Entries since the version that was loaded.
        past: Entries stored in a folder.
    """

    def __init__(self, new: Iterable[Entry] = (), past: Past | None = None) -> None:
        self._new, self._past = tuple(new), past

    def entries(self) -> list[Entry]:
        """Return copies of all entries."""
        before = [] if self._past is None else self._past.entries
        return [dict(entry) for entry in (*before, *self._new)]

    def __len__(self) -> int:
        return (0 if self._past is None else self._past.count) + len(self._new)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries())

    def __getitem__(self, place: Any) -> Any:
        """Return one entry, or a list of some; the newest ones are available without reading the folder."""
        if isinstance(place, int) and -len(self._new) <= place < 0:
            return dict(self._new[place])
        return self.entries()[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, History | list) and list(self) == list(other)

    def __repr__(self) -> str:
        return f"History({len(self)} entries)"

    __hash__ = None  # type: ignore[assignment]

    def plus(self, entries: Iterable[Entry]) -> "History":
        """Return a history with further entries."""
        return History((*self._new, *entries), self._past)

    def saved_as(self, number: int, count: int) -> "History":
        """Return the same history after its first ``count`` changes were saved as version ``number``."""
        if number == 1:  # the first version of a folder holds all changes, also those saved elsewhere before
            return History({**entry, "version": 1} if at < count else entry for at, entry in enumerate(self.entries()))
        first = len(self) - len(self._new)
        saved = (
            {**entry, "version": number} if at < count and entry["version"] is None else entry
            for at, entry in enumerate(self._new, first)
        )
        return History(saved, self._past)

    def last_accuracy(self) -> dict[str, Any] | None:
        """Return the newest accuracy that was measured."""
        measured = (entry["accuracy"] for entry in reversed(self._new) if (entry.get("accuracy") or {}).get("classes"))
        return next(measured, None if self._past is None else self._past.accuracy)

    def unsaved(self) -> list[Entry]:
        """Return the changes since the model was loaded or saved."""
        return [dict(entry) for entry in self._new if entry["version"] is None]

    def __getstate__(self) -> dict[str, Any]:
        """Pickle all entries, since another process may not have the folder."""
        return {"_new": tuple(self.entries()), "_past": None}


def now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def new_entry(change: dict[str, Any]) -> Entry:
    """Make an entry that no version holds yet."""
    return {"version": None, "when": now(), **change}


@contextmanager
def written_by_graphfcl() -> Iterator[None]:
    """Report entries of a folder that cannot be interpreted, because graphfcl did not write them."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            "the history of the model cannot be read, because graphfcl did not write it: `graphfcl history --json` "
            "shows it."
        ) from error


def lineage(entries: Sequence[Entry]) -> list[Entry]:
    """Return the changes that led to the last one, oldest first, without changes that a rollback undid."""
    before: list[int] = []  # for each entry the place of the entry that it follows; -1 for the first one
    last_of: dict[Any, int] = {}  # the place of the last entry of each version
    last = -1
    for place, entry in enumerate(entries):
        if entry["what"] == "rollback":
            last = last_of.get(entry.get("to"), last)
        before.append(last)
        last = last_of[entry["version"]] = place
    kept = []
    while last >= 0:
        kept.append(entries[last])
        last = before[last]
    return kept[::-1]


def percent(share: float | None) -> str:
    """Format a share for tables."""
    return "not measured" if share is None else f"{100 * share:.1f}"


def short_time(when: str) -> str:
    """Format the time of an entry for tables."""
    return when.replace("+00:00", "Z")


def change_text(entry: Entry) -> str:
    """Describe a change in a few words; only its kind if graphfcl did not write the entry."""
    try:
        return _describe(entry)
    except (LookupError, TypeError, ValueError, AttributeError):
        return str(entry["what"])


def change_notes(entry: Entry) -> list[str]:
    """Return notes on effects of a change that a user might not expect."""
    same, words, unknown = (entry.get(key) for key in ("unchanged", "words", "unknown_words"))
    notes = []
    if isinstance(same, list) and same:
        notes.append(f"{counted(len(same), 'node')} had this label already ({_some(same)}): nothing changed for them.")
    if entry["what"] == "grow" and isinstance(words, int) and isinstance(unknown, int) and unknown:
        notes.append(
            f"{unknown:,} of {words:,} words of the new nodes are outside the vocabulary of the fit and ignored: "
            "`refit --graph` learns new words."
        )
    if entry.get("unknown_edges"):
        count, named = entry["unknown_edges"], entry["unknown_ends"]
        more = [f"{count - len(named):,} more"] if count > len(named) else []
        listed = ", ".join([*(f"{each['place']} {quoted(each['node'])}" for each in named), *more])
        notes.append(f"{counted(count, 'edge')} skipped with an end that is not in the graph ({listed}).")
    return notes


def _describe(entry: Entry) -> str:
    what = entry["what"]
    if what == "fit":
        return f"fit on {entry['graph']}: {_trained_on(entry)}"
    if what == "refit":
        compared = entry["compared"]
        both = [f"{100 * compared[key]:.1f}" for key in ("before", "after")] if compared["nodes"] else ["?", "?"]
        return f"refit: {_trained_on(entry)}; {both[0]} to {both[1]} % on {counted(compared['nodes'], 'held-out node')}"
    if what == "learn":
        parts = [
            f"{name}{' (new)' if name in map(str, entry['new']) else ''} from {_some(nodes)}"
            for name, nodes in entry["supports"].items()
        ]
        return f"learn {'; '.join([*parts, *_repeated_and_conflicts(entry)])}"
    if what in ("grow", "shrink"):
        reach = f"; {entry['within_reach']:.1%} within reach" if "within_reach" in entry else ""
        sizes = f"{counted(entry['nodes'], 'node')}, {counted(entry['edges'], 'edge')}"
        return f"{what}: {'; '.join([sizes, *_existing(entry)])}{reach}"
    if what == "unlearn":
        return f"unlearn {_some(entry['nodes'])}"
    if what == "accept":
        listed = "; ".join(f"{counted(count, 'node')} as {name}" for name, count in entry["accepted"].items())
        return f"accept {listed}; about {entry['expected_errors']['mean']:.1f} errors expected"
    if what == "review":
        return f"review {_some(entry['nodes'])}: their labels stay"
    if what in PLAIN:
        return PLAIN[what].format_map(entry)
    if what == "erase":
        removed = (counted(entry["nodes"], "node"), counted(entry["labels"], "label"))
        return f"erase {' and '.join(removed)} from {counted(entry['versions'], 'version')}"
    return f"{what}: {entry.get('error', '')}"


def _existing(entry: Entry) -> list[str]:
    """Describe what was done with nodes and edges that were in the graph already."""
    texts = []
    for prefix, text in (("updated_", "updated"), ("skipped_", "skipped"), ("same_", "the same as before")):
        sizes = [(entry.get(f"{prefix}{what}s"), what) for what in ("node", "edge")]
        if any(count for count, _ in sizes):
            texts.append(f"{text} {', '.join(counted(count, what) for count, what in sizes if count)}")
    if entry.get("unknown_edges"):
        texts.append(f"skipped {counted(entry['unknown_edges'], 'edge')} to unknown nodes")
    features = sorted((entry.get("features") or {}).items(), key=lambda item: (-item[1], item[0]))
    changed = ", ".join(f"{name} of {counted(count, 'node')}" for name, count in features)
    return [*texts, *([f"changed {changed}"] if changed else [])]


def _trained_on(entry: Entry) -> str:
    return f"{counted(len(entry['classes']), 'class')}, {counted(entry['labelled'], 'labelled node')}"


def _repeated_and_conflicts(entry: Entry) -> list[str]:
    texts = []
    if entry.get("confirmed"):
        texts.append(f"confirmed: {_some(entry['confirmed'])}")
    if entry.get("unchanged"):
        texts.append(f"unchanged: {_some(entry['unchanged'])}")
    conflicts = entry.get("conflicts", ())
    for conflict in conflicts[:5]:
        both = [(conflict[f"{which}label"], conflict[f"{which}statements"]) for which in ("", "new_")]
        kept, gone = both if entry["on_conflict"] == "keep" else reversed(both)
        texts.append(f"{conflict['node']} is {_by(*kept)} against {_by(*gone)}")
    if len(conflicts) > 5:
        texts.append(f"and {len(conflicts) - 5} more conflicts")
    return texts


def _by(name: str | int, statements: list[dict[str, Any]]) -> str:
    from graphfcl.production.labels.statements import Statement, people  # imports numpy: commands start without it

    who = people(tuple(Statement.from_json(each) for each in statements))
    return f"{name} (by {who})" if who else str(name)


def _some(nodes: list[Any]) -> str:
    if not nodes:
        return "nodes that were erased"
    shown = ", ".join(str(node) for node in nodes[:5])
    return shown if len(nodes) <= 5 else f"{shown} and {len(nodes) - 5} more"
