"""Find labels that need a second look: labels that the model disputes, and labels on which people disagree."""

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from graphfcl.production.labels.history import Entry, lineage, written_by_graphfcl
from graphfcl.production.model.versions import Versions
from graphfcl.service.background import Computed, compute_for
from graphfcl.service.snapshots import Snapshot

MOST = 1_000  # maximum number of disputed labels to list
REST = 10.0  # the next computation waits for this many times the duration of the last one
EVENTS = ("learn", "unlearn", "rename", "merge", "retire", "rollback", "review")

SETTLED = "review"  # reason stored with a label that settles a disagreement


@dataclass(frozen=True)
class Dispute:
    """A label that the model disputes.

    Attributes:
        id: Id of the node.
        label: Class that the node has as its label.
        confidence: Confidence of the model that the label is wrong.
        guess: Class that the model predicts without this label.
        probability: Probability of ``guess``.
    """

    id: str
    label: str
    confidence: float
    guess: Any
    probability: float


@dataclass(frozen=True)
class Vote:
    """The class that one person gave to a node."""

    label: str
    by: str
    when: str


class Disputes:
    """Finds labels that the model disputes, by training models without some of the labels in a background thread.

    A run takes as long as a few fits, so it starts only on request. After a run, no run starts for ``REST`` times its
    duration. Meanwhile the last result is used.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._result: Computed | None = None
        self._running, self._again = False, 0.0

    def find(self, snapshot: Snapshot) -> Computed | None:
        """Return the last result, a list of :class:`Dispute`, which may belong to an older version.

        Start a run in the background if the result is outdated.
        """
        with self._lock:
            due = self._result is None or self._result.version != snapshot.version
            if due and not self._running and time.monotonic() >= self._again:
                self._running = True
                threading.Thread(target=self._run, args=(snapshot,), name="graphfcl-disputes", daemon=True).start()
            return self._result

    def _run(self, snapshot: Snapshot) -> None:
        start = time.monotonic()
        result = compute_for(snapshot, _disputes, "disputed labels")
        with self._lock:
            self._result, self._running = result, False
            self._again = time.monotonic() + REST * (time.monotonic() - start)


def _disputes(snapshot: Snapshot) -> list[Dispute]:
    if snapshot.model.has_graph_folder:  # changes would have to wait for the work folder during the training
        return []
    columns = snapshot.model.label_issues(count=MOST).to_pydict()
    names = ("node", "given", "confidence", "guess", "probability")
    return [
        Dispute(str(node), str(given), float(confidence), guess, float(probability))
        for node, given, confidence, guess, probability in zip(*(columns[name] for name in names), strict=True)
    ]


class VoteLog:
    """The classes that people gave to nodes. After the first call, only entries of new versions are read."""

    def __init__(self, versions: Versions) -> None:
        self._versions, self._lock = versions, threading.Lock()
        self._events: list[Entry] = []
        self._read = 0
        self._newest: tuple[int, str] | None = None
        self._votes: dict[str, list[Vote]] = {}

    def disagreements(self, snapshot: Snapshot) -> dict[str, list[Vote]]:
        """Return the votes on each node on which people disagree. A review ends earlier disagreements."""
        with self._lock:
            if self._newest != snapshot.pointer:
                if snapshot.version <= self._read:  # nodes were erased, or the folder was replaced
                    self._events, self._read = [], 0
                entries = self._versions.history(snapshot.version, after=self._read)
                self._events += [_event(entry) for entry in entries]
                self._read, self._newest = snapshot.version, snapshot.pointer
                with written_by_graphfcl():
                    self._votes = _disagreements(lineage(self._events))
            return self._votes


def _event(entry: Entry) -> Entry:
    """Return the needed fields of an entry. Of an irrelevant entry, only its version and kind are kept."""
    kept = ("version", "what", "to", "from", "into", "class", "nodes", "statements", "conflicts")
    names = kept if entry["what"] in EVENTS else ("version", "what")
    return {name: entry[name] for name in names if name in entry}


def _disagreements(events: Iterable[Entry]) -> dict[str, list[Vote]]:
    """Return the newest vote of each person, for all nodes on which two people disagree."""
    votes: dict[str, dict[str, Vote]] = {}
    for event in events:
        what = event["what"]
        if what == "learn":
            for each in event.get("conflicts", ()):
                by_person = votes.setdefault(str(each["node"]), {})
                for statement in each["statements"]:
                    by_person.setdefault(statement["by"], _vote(each["label"], statement))
                by_person |= {
                    statement["by"]: _vote(each["new_label"], statement) for statement in each["new_statements"]
                }
            for each in event.get("statements", ()):
                if each.get("kept", {}).get("reason") == SETTLED:
                    votes[str(each["node"])] = {}
                votes.setdefault(str(each["node"]), {})[each["by"]] = _vote(each["class"], each)
        elif what in ("unlearn", "review"):
            for node in map(str, event["nodes"]):
                votes.pop(node, None)
        elif what == "retire":
            for node, by_person in votes.items():
                votes[node] = {by: vote for by, vote in by_person.items() if vote.label != str(event["class"])}
        elif what in ("rename", "merge"):
            old, new = str(event["from"]), str(event["to" if what == "rename" else "into"])
            for by_person in votes.values():
                for by, vote in by_person.items():
                    by_person[by] = replace(vote, label=new if vote.label == old else vote.label)
    named = {node: [vote for by, vote in by_person.items() if by] for node, by_person in votes.items()}
    return {node: by_person for node, by_person in named.items() if len({vote.label for vote in by_person}) > 1}


def _vote(label: Any, statement: dict[str, Any]) -> Vote:
    return Vote(str(label), statement["by"], statement["when"])
