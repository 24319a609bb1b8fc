"""The history of a folder for clients: summaries of changes, completed requests, former classes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from graphfcl.graph.ids import ClassLabel, class_label
from graphfcl.production.labels.history import Entry, change_text, lineage
from graphfcl.production.model.versions import Versions

LARGEST = 2**53  # a JavaScript client rounds integers beyond it
EXISTING = ("updated", "skipped", "same")  # what was done with nodes and edges that existed already
LONGEST = 400  # characters of the description of a change
UNREADABLE = (LookupError, TypeError, ValueError, AttributeError)


@dataclass(frozen=True)
class Change:
    """A summary of an entry of the history.

    Attributes:
        version: Version that the change wrote.
        when: Time of the change.
        what: Kind of the change.
        text: Description of the change.
        classes: Classes that the change concerns.
        gone: Names that are no longer classes, and what happened to them.
        came: Names that became classes.
        to: Version that a rollback restored.
        accuracy: Accuracy after the change.
        warning: What may be wrong with the change.
        by: People who gave labels.
    """

    version: int
    when: str
    what: str
    text: str
    classes: tuple[str, ...] = ()
    gone: dict[str, str] = field(default_factory=dict)
    came: tuple[str, ...] = ()
    to: int | None = None
    accuracy: dict[str, float | None] | None = None
    warning: str | None = None
    by: tuple[str, ...] = ()

    @classmethod
    def of(cls, entry: Entry) -> "Change":
        """Summarise an entry. If its kind is unknown, only the name of the kind is shown."""
        version, when, what = int(entry["version"]), str(entry["when"]), str(entry["what"])
        text = change_text(entry)
        text = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
        try:
            return cls(version, when, what, text, *_names(entry, version), **_figures(entry))
        except UNREADABLE:
            return cls(version, when, what, text)

    def as_json(self, integers: bool = False) -> dict[str, Any]:
        """Return JSON values; ``integers`` says whether the model has integer classes."""
        values = {
            "version": self.version,
            "when": self.when,
            "kind": self.what,
            "what": self.text,
            "classes": [as_sent(class_label(name, integers)) for name in self.classes],
        }
        optional = {"by": list(self.by), "accuracy": self.accuracy, "warning": self.warning}
        return values | {name: value for name, value in optional.items() if value}


@dataclass(frozen=True)
class Completed:
    """A completed request: its fingerprint and its answer."""

    fingerprint: str
    answer: dict[str, Any]


class ChangeLog:
    """All changes of a folder, read once and then version by version. Only the writer uses it.

    Args:
        keys: Number of idempotency keys to remember; the oldest are forgotten.
        integers: Whether the model has integer classes.
    """

    def __init__(self, keys: int, integers: bool = False) -> None:
        self.changes: list[Change] = []
        self.recalls: list[dict[str, float]] = []  # of the last two changes that measured recalls
        self.completed: dict[str, Completed] = {}
        self._keys, self._read, self.integers = keys, 0, integers
        self.last: Entry = {}

    def read(self, versions: Versions, upto: int) -> None:
        """Read new versions up to and including ``upto``."""
        for entry in versions.history(upto, after=self._read):
            self.add(entry)
        self._read = upto

    def add(self, entry: Entry) -> None:
        """Add a change."""
        self.last = entry
        self.changes.append(Change.of(entry))
        self._read = max(self._read, int(entry["version"]))
        recalls = (entry.get("accuracy") or {}).get("classes")
        if recalls:
            self.recalls = [*self.recalls[-1:], dict(recalls)]
        request = entry.get("request")
        if isinstance(request, dict) and isinstance(request.get("key"), str):
            self.remember(request["key"], Completed(str(request.get("hash")), answer_to(entry, self.integers)))

    def remember(self, key: str, completed: Completed) -> None:
        """Store the answer to a key; the oldest keys are forgotten."""
        self.completed.pop(key, None)
        self.completed[key] = completed
        while len(self.completed) > self._keys:
            del self.completed[next(iter(self.completed))]


def as_sent(label: ClassLabel) -> ClassLabel:
    """Return a class as a JSON value. Integers are numbers, but strings where a client might round them."""
    return label if isinstance(label, str) or abs(label) < LARGEST else str(label)


def is_empty(entry: Entry) -> bool:
    """Whether a change left labels and graph unchanged, because all of it existed already or was skipped."""
    if entry["what"] == "learn":
        return not any(entry.get(name) for name in ("supports", "confirmed", "conflicts"))
    return entry["what"] == "grow" and not any(
        entry.get(name) for name in ("nodes", "edges", "updated_nodes", "updated_edges")
    )


def answer_to(entry: Entry, integers: bool) -> dict[str, Any]:
    """Return the answer to the request of a change; ``integers`` says whether the model has integer classes."""

    def classes(names: Any) -> list[ClassLabel]:
        return [as_sent(class_label(str(name), integers)) for name in names]

    what, values = entry["what"], {"version": entry["version"], "what": entry["what"]}
    if what == "learn":
        supports = entry.get("supports", {})
        values["learned"] = sum(len(nodes) for nodes in supports.values())
        values["classes"] = classes(supports)
        values["new_classes"] = classes(entry.get("new", ()))
        values |= {name: len(entry.get(name, ())) for name in ("confirmed", "unchanged", "conflicts")}
    if what == "accept":
        values["accepted"] = sum(entry["accepted"].values())
        values["classes"] = classes(entry["accepted"])
        values["expected_errors"] = entry["expected_errors"]
    if what == "review":
        values["reviewed"] = len(entry.get("nodes", ()))
    if what == "unlearn":
        values["taken_back"] = len(entry.get("nodes", ()))
    if what in ("grow", "shrink"):
        counts = ("nodes", "edges", *(f"{done}_{what}" for done in EXISTING for what in ("nodes", "edges")))
        values |= {name: entry.get(name, 0) for name in counts}
    if entry.get("retired"):
        values["retired"] = classes(entry["retired"])
    if what == "rollback" and entry.get("to") is not None:
        values["equals"] = entry["to"]
    details = (entry.get("request") or {}).get("details") or {}
    return values | ({"warning": entry["warning"]} if entry.get("warning") else {}) | details


def gone_classes(changes: Sequence[Change]) -> dict[str, str]:
    """Return the names of former classes and what happened to them, without changes that were rolled back."""
    gone: dict[str, str] = {}
    for change in _followed(changes):
        gone = {name: why for name, why in gone.items() if name not in change.came} | change.gone
    return gone


def sessions_of(changes: Sequence[Change]) -> dict[str, int]:
    """Return the version that added each class learned after the fit; a renamed class keeps its version."""
    born: dict[str, int] = {}
    for change in _followed(changes):
        if change.what == "learn":
            born |= dict.fromkeys(change.came, change.version)
        elif change.what == "rename" and set(change.gone) & born.keys():
            born |= dict.fromkeys(change.came, born[next(iter(change.gone))])
    return born


def _followed(changes: Sequence[Change]) -> list[Change]:
    """Return the changes that led to the last change, without changes that a rollback undid."""
    plain = [{"version": c.version, "what": c.what, "to": c.to, "place": place} for place, c in enumerate(changes)]
    return [changes[entry["place"]] for entry in lineage(plain)]


def _names(entry: Entry, version: int) -> tuple[tuple[str, ...], dict[str, str], tuple[str, ...]]:
    """The fields ``classes``, ``gone`` and ``came`` of a :class:`Change`."""
    what = entry["what"]
    gone = {str(name): f"lost its last label in version {version}" for name in entry.get("retired", ())}
    if what == "learn":
        return tuple(entry["supports"]), gone, tuple(map(str, entry["new"]))
    if what == "accept":
        return tuple(map(str, entry["accepted"])), {}, ()
    if what in ("fit", "refit"):
        return tuple(map(str, entry["classes"])), gone, ()
    if what == "rename":
        old, new = str(entry["from"]), str(entry["to"])
        return (old, new), {old: f"is called {new!r} since version {version}"}, (new,)
    if what == "merge":
        old, into = str(entry["from"]), str(entry["into"])
        return (old, into), {old: f"was merged into {into!r} in version {version}"}, ()
    if what == "retire":
        return (str(entry["class"]),), {str(entry["class"]): f"was retired in version {version}"}, ()
    return tuple(gone), gone, ()


def _figures(entry: Entry) -> dict[str, Any]:
    accuracy = entry.get("accuracy")
    means = None if not accuracy else {name: accuracy.get(name) for name in ("validation", "leave_one_out")}
    back = int(entry["to"]) if entry["what"] == "rollback" else None
    by = tuple(dict.fromkeys(str(each["by"]) for each in entry.get("statements", ()) if each["by"]))
    return {"to": back, "accuracy": means, "warning": entry.get("warning"), "by": by}
