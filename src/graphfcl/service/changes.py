"""What the versions of a folder tell: changes in short, requests that were carried out, classes that are gone."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from graphfcl.graph.ids import ClassLabel, class_label
from graphfcl.production.labels.history import Entry, change_text, lineage
from graphfcl.production.model.versions import Versions
from graphfcl.production.store.damage import Damaged

LARGEST = 2**53  # a JavaScript client rounds integers beyond it
LONGEST = 400  # characters of a change in words
UNREADABLE = (LookupError, TypeError, ValueError, AttributeError)


@dataclass(frozen=True)
class Change:
    """An entry of the history in short.

    text: it in words. classes: those it is about. gone: names that stand for no class since, with what became of them.
    came: names that stand for a class since. to: the version that a rollback went back to.
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

    @classmethod
    def of(cls, entry: Entry) -> "Change":
        """What a folder holds may say anything: an entry of another kind is shown by its name alone."""
        version, when, what = int(entry["version"]), str(entry["when"]), str(entry["what"])
        text = change_text(entry)
        text = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
        try:
            return cls(version, when, what, text, *_names(entry, version), **_figures(entry))
        except UNREADABLE:
            return cls(version, when, what, text)

    def as_json(self, integers: bool = False) -> dict[str, Any]:
        """integers: the model has integer classes."""
        found: dict[str, Any] = {"version": self.version, "when": self.when, "kind": self.what, "what": self.text}
        found["classes"] = [as_sent(class_label(name, integers)) for name in self.classes]
        if self.accuracy:
            found["accuracy"] = self.accuracy
        return found | ({"warning": self.warning} if self.warning else {})


@dataclass(frozen=True)
class Done:
    """A request that was carried out. fingerprint: of what was asked. answer: what it was answered."""

    fingerprint: str
    answer: dict[str, Any]


class ChangeLog:
    """All changes of a folder, read once, then as versions appear. Only the writer touches it.

    keys: how many idempotency keys are remembered, the newest ones. integers: the model has integer classes.
    """

    def __init__(self, keys: int, integers: bool = False) -> None:
        self.changes: list[Change] = []
        self.recalls: list[dict[str, float]] = []  # of the last two changes that measured them
        self._done: dict[str, Done] = {}
        self._keys, self._read, self.integers = keys, 0, integers
        self.last: Entry = {}

    def read(self, versions: Versions, upto: int) -> None:
        """Everything up to a version; what was read before is not read again."""
        entries = versions.history(upto) if self._read == 0 else _entries_after(versions, self._read, upto)
        for entry in entries:
            self.add(entry)
        self._read = upto

    def add(self, entry: Entry) -> None:
        """One more change."""
        self.last = entry
        self.changes.append(Change.of(entry))
        self._read = max(self._read, int(entry["version"]))
        recalls = (entry.get("accuracy") or {}).get("classes")
        if recalls:
            self.recalls = [*self.recalls[-1:], dict(recalls)]
        request = entry.get("request")
        if isinstance(request, dict) and isinstance(request.get("key"), str):
            self._done.pop(request["key"], None)
            self._done[request["key"]] = Done(str(request.get("hash")), answer_to(entry, self.integers))
            while len(self._done) > self._keys:
                del self._done[next(iter(self._done))]

    def done(self, key: str) -> Done | None:
        """The request of this key, if it was carried out."""
        return self._done.get(key)


def as_sent(label: ClassLabel) -> ClassLabel:
    """A class as it travels: a number if it is an integer, but as a text where a client might round it."""
    return label if isinstance(label, str) or abs(label) < LARGEST else str(label)


def answer_to(entry: Entry, integers: bool) -> dict[str, Any]:
    """What is answered to the request of a change; the same whenever it is asked again.

    integers: the model has integer classes.
    """

    def classes(names: Any) -> list[ClassLabel]:
        return [as_sent(class_label(str(name), integers)) for name in names]

    found: dict[str, Any] = {"version": entry["version"], "what": entry["what"]}
    if entry["what"] == "learn":
        supports = entry.get("supports", {})
        found["learned"] = sum(len(nodes) for nodes in supports.values())
        found["classes"] = classes(supports)
        found["new_classes"] = classes(entry.get("new", ()))
        found["agreed"] = len(entry.get("agreed", ()))
        found["known"] = len(entry.get("known", ()))
        found["conflicts"] = len(entry.get("conflicts", ()))
    if entry["what"] == "unlearn":
        found["taken_back"] = len(entry.get("nodes", ()))
    if entry["what"] in ("grow", "shrink"):
        found |= {"nodes": entry.get("nodes"), "edges": entry.get("edges")}
    if entry.get("retired"):
        found["retired"] = classes(entry["retired"])
    if entry.get("to") is not None and entry["what"] == "rollback":
        found["equals"] = entry["to"]
    return found | ({"warning": entry["warning"]} if entry.get("warning") else {})


def gone_classes(changes: Sequence[Change]) -> dict[str, str]:
    """Names that stood for a class and do not now, with what became of them; what was rolled back does not count."""
    gone: dict[str, str] = {}
    for change in _followed(changes):
        gone = {name: why for name, why in gone.items() if name not in change.came} | change.gone
    return gone


def sessions_of(changes: Sequence[Change]) -> dict[str, int]:
    """The version in which each class came that was taught after the fit; a renamed class keeps its version."""
    born: dict[str, int] = {}
    for change in _followed(changes):
        if change.what == "learn":
            born |= dict.fromkeys(change.came, change.version)
        elif change.what == "rename" and set(change.gone) & born.keys():
            born |= dict.fromkeys(change.came, born[next(iter(change.gone))])
    return born


def _followed(changes: Sequence[Change]) -> list[Change]:
    """Those that led to the last one."""
    plain = [{"version": c.version, "what": c.what, "to": c.to, "place": place} for place, c in enumerate(changes)]
    return [changes[entry["place"]] for entry in lineage(plain)]


def _entries_after(versions: Versions, last: int, upto: int) -> list[Entry]:
    found: list[Entry] = []
    for number in range(last + 1, upto + 1):
        try:
            found += [{**change, "version": number} for change in versions.manifests.read(number)["changes"]]
        except Damaged as error:
            found.append({"version": number, "when": "", "what": "damaged", "error": str(error)})
    return found


def _names(entry: Entry, version: int) -> tuple[tuple[str, ...], dict[str, str], tuple[str, ...]]:
    """Classes, gone and came of a :class:`Change`."""
    what = entry["what"]
    gone = {str(name): f"lost its last label in version {version}" for name in entry.get("retired", ())}
    if what == "learn":
        return tuple(entry["supports"]), gone, tuple(map(str, entry["new"]))
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
    return {"to": back, "accuracy": means, "warning": entry.get("warning")}
