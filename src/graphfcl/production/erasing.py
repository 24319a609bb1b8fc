"""Erasing nodes from every version of a model folder, as if they had never been in its graph.

Each version that has one of them is loaded, loses them as ``remove_nodes`` does, and its parts are written anew, all in
one transaction: whoever is killed leaves every version with the nodes, or every version without them. Then the cache
goes, and the database is written anew without its free room; if that is interrupted, the next writer does it. Numbers
of nodes that are gone are never given again.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from graphfcl.errors import InputError, quoted
from graphfcl.graph.ids import list_of_nodes, listed, normal, text_of
from graphfcl.production.classifier import GraphClassifier
from graphfcl.production.labels.history import Entry, now
from graphfcl.production.labels.label_store import LabelRole
from graphfcl.production.model.codec import encode
from graphfcl.production.model.pruning import needed_chunks
from graphfcl.production.model.stored_version import ERASURE, PRUNED, Manifest, is_whole, read_pruned
from graphfcl.production.model.versions import Versions
from graphfcl.production.store.checks import Damaged, need

ID_LISTS = ("confirmed", "unchanged", "nodes")  # keys of an entry that may hold a list of ids
OPTIONAL = ("confirmed", "unchanged", "statements", "conflicts")  # keys that are left out where they would be empty


@dataclass(frozen=True)
class Erased:
    """What an erasure did, and what it could not.

    nodes: how many were erased. labels: how many of them had a label in some version. versions: those that were written
    anew. version: the new one on top, which tells of it.
    trained, seen: how many of them ``fit`` had as labelled nodes, and how many it saw at all. Weights, scales and
        choices that it made of them stay.
    remembering: versions whose weights were taught labels of them by a method that cannot take that back.
    in_graph_folder: how many of them the graph folder of a model on disk still holds, which no model ever changes.
    """

    method: str
    nodes: int
    labels: int
    versions: tuple[int, ...]
    version: int
    trained: int
    seen: int
    remembering: tuple[int, ...]
    in_graph_folder: int = 0

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Erased":
        """The reverse of ``dataclasses.asdict``, by way of JSON."""
        need(values.keys() == {each.name for each in fields(cls)}, "its report of an erasure is none")
        plain: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items()}
        return cls(**plain)


def erase(versions: Versions, nodes: Sequence[Any], *, wait: float = 60.0, device: str = "cpu") -> Erased:
    """Erase nodes, given by their ids, from all versions of a folder."""
    # A float goes by the one text that the history is searched for.
    given = [text_of(each) if isinstance(each, float) else each for each in listed(list_of_nodes(nodes))]
    ids = list({normal(text_of(each)): each for each in given}.values())
    if not ids:
        raise InputError("there is nothing to erase: give at least one node.")
    versions.current()  # an error if there is none
    with versions.writing(wait) as finished:
        work = Erasing(versions, ids, device)
        work.look()
        if finished is not None and work.found_none():  # the same call, after the one before was killed
            return Erased.from_json(finished)
        work.refuse_missing()
        report = work.carry_out()
        versions.finish_erasure()
    return report


@dataclass(frozen=True, eq=False)
class Without:
    """A version without the nodes: its parts, and what its own history would say of their leaving."""

    parts: dict[str, str]
    change: Entry


class Erasing:
    """An erasure. ids: of the nodes, each once.

    rewritten: the versions that have some of the nodes, without them. scrubber: knows which ids a history named.
    """

    def __init__(self, versions: Versions, ids: list[Any], device: str) -> None:
        self._versions, self._ids, self._device = versions, ids, device
        self._newest = versions.current()
        self._there = versions.numbers()
        self._manifests: dict[int, Manifest] = {}
        self._rewritten: dict[int, Without] = {}
        self._known: dict[str, Without] = {}  # by the parts of before: versions may be equal
        self._in_graph = np.zeros(len(ids), dtype=bool)
        self._labelled: dict[int, set[int]] = {}  # version → numbers of those that have a label in it
        self._numbers: set[int] = set()
        self._trained: set[int] = set()
        self._folder_nodes = 0  # numbers below it are of nodes of a graph folder
        self._scrubber = Scrubber(ids)
        self._pruned: dict[int, list[Entry]] = {}

    # Looking

    def look(self) -> None:
        """Find the nodes in every version, and in what is told of versions; nothing is written."""
        verified = set[str]()
        for number in self._there:
            self._manifests[number] = self._whole_manifest(number, verified)
            model = GraphClassifier.from_version(self._versions, number, device=self._device)
            rows = model._node_index().rows_of_ids(self._ids)
            self._in_graph |= rows >= 0
            self._folder_nodes = max(self._folder_nodes, model._node_index().folder_nodes)
            if (rows >= 0).any():
                self._note_labels(number, model, rows[rows >= 0])
            for change in self._manifests[number]["changes"]:
                self._scrubber.scrubbed(change)
        for number in self._versions.database.numbers(PRUNED):
            try:
                changes = read_pruned(self._versions.database, number)
            except Damaged as error:
                raise InputError(
                    f"{self._versions.path}: what is told of version {number}, which was pruned, is damaged, {error}: "
                    "save the model to another folder and erase there; nothing was erased."
                ) from error
            scrubbed = [self._scrubber.scrubbed(change) for change in changes]
            if scrubbed != changes:
                self._pruned[number] = scrubbed

    def _whole_manifest(self, number: int, verified: set[str]) -> Manifest:
        """A version that is damaged cannot be rewritten, and must not stay."""
        if number == self._newest:
            self._versions.load(number).verify()
        elif not is_whole(self._versions.database, number, verified):
            keep = self._newest - number
            raise InputError(
                f"{self._versions.path}: version {number} is damaged, so that nothing can be erased from it: `graphfcl "
                f"prune --model {self._versions.path} --keep {keep}` removes it; nothing was erased."
            )
        return self._versions.manifest(number)

    def _note_labels(self, number: int, model: GraphClassifier, rows: np.ndarray) -> None:
        numbers, label_store = model._node_index().numbers_at(rows), model.label_store_
        self._numbers |= set(numbers.tolist())
        ours = np.isin(label_store.nodes, numbers)
        self._labelled[number] = set(label_store.nodes[ours].tolist())
        self._trained |= set(label_store.nodes[ours & (label_store.parts != LabelRole.SUPPORT)].tolist())

    def found_none(self) -> bool:
        """Whether no version has or tells of any of the nodes."""
        return not self._in_graph.any() and not self._scrubber.met

    def refuse_missing(self) -> None:
        """A node that nothing is known of is an error."""
        told = np.array([normal(text_of(each)) in self._scrubber.met for each in self._ids])
        missing = np.flatnonzero(~self._in_graph & ~told).tolist()
        if missing:
            more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
            raise InputError(
                f"no version of {self._versions.path} has node {quoted(self._ids[missing[0]])}{more}: leave it out; "
                "nothing was erased."
            )

    # Rewriting

    def carry_out(self) -> Erased:
        """Write all versions without the nodes, and a new one on top, in one transaction."""
        versions, database = self._versions, self._versions.database
        with versions.transaction():
            for number in reversed(self._there):
                self._rewrite(number)
            changed = [new for new in map(self._manifest, self._there) if new is not self._manifests[new["version"]]]
            report = self._report([manifest["version"] for manifest in changed])
            for manifest in (*changed, self._top(report)):
                versions.put_manifest({key: value for key, value in manifest.items() if key != "sha256"})
            for number, changes in self._pruned.items():
                database.put_document(PRUNED, number, {"changes": changes})
            database.put_document(ERASURE, 0, {"report": asdict(report)})
            database.keep_chunks(needed_chunks(versions, versions.numbers()))
        return report

    def _rewrite(self, number: int) -> None:
        """Let a version lose the nodes that it has."""
        if number not in self._labelled:
            return
        manifest = self._manifests[number]
        key = repr(sorted(manifest["parts"].items()))
        if key not in self._known:
            model = GraphClassifier.from_version(self._versions, number, device=self._device, whole=True)
            rows = model._node_index().rows_of_ids(self._ids)
            try:
                model.remove_nodes(model._node_index().ids_at(rows[rows >= 0]).tolist())
                sources = encode(model.parts())
                parts = {name: self._versions.stored.write(source) for name, source in sources.items()}
            except (InputError, Damaged) as error:
                raise InputError(
                    f"{self._versions.path}, version {number}: {str(error).rstrip('.')}; nothing was erased."
                ) from error
            self._known[key] = Without(parts, model.history[-1])
        self._rewritten[number] = self._known[key]

    def _manifest(self, number: int) -> Manifest:
        """The manifest of a version without the nodes; the same object if it stays as it is."""
        old = self._manifests[number]
        changes = [self._scrubber.scrubbed(change) for change in old["changes"]]
        without = self._rewritten.get(number)
        if without is None:
            return old if changes == old["changes"] else {**old, "changes": changes}
        before = len(self._versions.stored_history(old)) - len(changes)
        past = {"changes": before, "accuracy": without.change.get("accuracy")}
        return {**old, "parts": without.parts, "past": past, "changes": changes}

    def _top(self, report: Erased) -> Manifest:
        """The manifest of the new version, which equals the newest one and tells of the erasure."""
        newest = self._versions.load(self._newest)
        without = self._rewritten.get(self._newest)
        told = {} if without is None else without.change
        accuracy = told.get("accuracy") or self._versions.stored_history(newest.manifest).last_accuracy()
        optional = {"accuracy": accuracy, "warning": told.get("warning")}
        change = {
            "what": "erase",
            "when": now(),
            "nodes": report.nodes,
            "labels": report.labels,
            "versions": len(report.versions),
            "retired": told.get("retired", []),
            "exact": not report.remembering,
            **{key: value for key, value in optional.items() if value},
        }
        top = self._versions.on_top(newest, accuracy)
        return {**top, "parts": top["parts"] if without is None else without.parts, "changes": [change]}

    def _report(self, changed: list[int]) -> Erased:
        fits = [entry for entry in self._versions.history() if entry["what"] == "fit"]
        first = fits[0].get("nodes", 0) if fits else 0  # numbers below it were given to the nodes of the fit
        labelled = set[int]().union(*self._labelled.values())
        taught = min((number for number, nodes in self._labelled.items() if nodes), default=None)
        exact = all(without.change["exact"] for without in self._rewritten.values())
        # A label that was taken back before still is in the weights.
        remembering = [] if exact or taught is None else [number for number in self._there if number >= taught]
        return Erased(
            method=str(self._manifests[self._newest]["values"]["method"]),
            nodes=len(self._ids),
            labels=len(labelled),
            versions=tuple(changed),
            version=self._newest + 1,
            trained=len(self._trained),
            seen=sum(number < first for number in self._numbers),
            remembering=tuple(remembering),
            in_graph_folder=sum(number < self._folder_nodes for number in self._numbers),
        )


class Scrubber:
    """Takes some nodes out of entries; ``erased`` of an entry says how many it named. met: ids that entries named.

    An id is known by its cleaned text, whatever form an older version wrote it in.
    """

    def __init__(self, ids: Sequence[Any]) -> None:
        self._texts = {normal(text_of(each)) for each in ids}
        self.met: set[str] = set()

    def scrubbed(self, entry: Entry) -> Entry:
        """The entry without the nodes; itself if it names none of them."""
        gone: set[str] = set()
        found = {key: self._value(key, value, gone) for key, value in entry.items()}
        if not gone:
            return entry
        self.met |= gone
        for key in OPTIONAL:
            if found.get(key) == []:
                del found[key]
        if "conflicts" not in found:
            found.pop("on_conflict", None)
        return {**found, "erased": entry.get("erased", 0) + len(gone)}

    def _value(self, key: str, value: Any, gone: set[str]) -> Any:
        if key == "supports" and isinstance(value, dict):
            return {name: self._kept(nodes, gone) for name, nodes in value.items()}
        if key in ID_LISTS:
            return self._kept(value, gone)
        if isinstance(value, list):
            return [each for each in value if not (isinstance(each, dict) and self._is_erased(each.get("node"), gone))]
        return value

    def _kept(self, nodes: Any, gone: set[str]) -> Any:
        return [each for each in nodes if not self._is_erased(each, gone)] if isinstance(nodes, list) else nodes

    def _is_erased(self, node: Any, gone: set[str]) -> bool:
        if not isinstance(node, str | int) or isinstance(node, bool):
            return False
        text = normal(text_of(node))
        if text not in self._texts:
            return False
        gone.add(text)
        return True
