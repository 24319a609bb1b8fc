"""Erasing nodes from every version of a model folder, as if they had never been in its graph.

Each version that has one of them is loaded, loses them as ``remove_nodes`` does, and its parts are rewritten, all in
one transaction: a process that is killed leaves every version with the nodes, or every version without them. Then the
cache is deleted, and the database is rewritten without its free room; if that is interrupted, the next writer does it.
Numbers of nodes that are gone are never given again.
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

    nodes: how many were erased. labels: how many of them had a label in some version. versions: those that were
    rewritten. version: the new one on top, which tells of it.
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
    ids = _different(nodes)
    versions.current()  # an error if there is none
    with versions.writing(wait) as finished:
        work = Erasing(versions, ids, device)
        if finished is not None and not work.in_graph.any() and not work.scrubber.met:
            return Erased.from_json(finished)  # the same call, after the one before was killed
        work.refuse_missing()
        report = work.carry_out()
        versions.finish_erasure()
    return report


def dry_erase(versions: Versions, nodes: Sequence[Any], *, device: str = "cpu") -> Erased:
    """What :func:`erase` would report; nothing is written."""
    work = Erasing(versions, _different(nodes), device, dry_run=True)
    work.refuse_missing()
    return work.rewritten()[1]


def _different(nodes: Sequence[Any]) -> list[Any]:
    """Ids of nodes, each once."""
    # A float goes by the one text that the history is searched for.
    plain = [text_of(each) if isinstance(each, float) else each for each in listed(list_of_nodes(nodes))]
    ids = list({normal(text_of(each)): each for each in plain}.values())
    if not ids:
        raise InputError("there is nothing to erase: give at least one node.")
    return ids


class Erasing:
    """An erasure. ids: of the nodes, each once. dry_run: no part is written.

    in_graph: (ids,) whether a version has the node. scrubber: knows which ids a history named.
    """

    def __init__(self, versions: Versions, ids: list[Any], device: str, *, dry_run: bool = False) -> None:
        self._versions, self._ids, self._device, self._dry_run = versions, ids, device, dry_run
        self._newest, self._there = versions.current(), versions.numbers()
        self.in_graph, self.scrubber = np.zeros(len(ids), dtype=bool), Scrubber(ids)
        self._labelled: dict[int, set[int]] = {}  # version that has some of the nodes → numbers of those with a label
        self._numbers, self._trained = set[int](), set[int]()
        self._folder_nodes = 0  # numbers below it are of nodes of a graph folder
        self._rewritten: dict[str, tuple[dict[str, str], Entry]] = {}  # by the parts of before: versions may be equal
        verified = set[str]()
        self._manifests = {number: self._look_at(number, verified) for number in self._there}
        self._pruned = {number: self._scrub_pruned(number) for number in versions.database.numbers(PRUNED)}

    # Looking; nothing is written

    def _look_at(self, number: int, verified: set[str]) -> Manifest:
        """Find the nodes in a version and in its changes; its manifest. One that is damaged cannot be rewritten."""
        if number == self._newest:
            self._versions.load(number).verify()
        elif not is_whole(self._versions.database, number, verified):
            raise InputError(
                f"{self._versions.path}: version {number} is damaged, so that nothing can be erased from it: `graphfcl "
                f"prune --model {self._versions.path} --keep {self._newest - number}` removes it; nothing was erased."
            )
        model = GraphClassifier.from_version(self._versions, number, device=self._device)
        index = model._node_index()
        rows = index.rows_of_ids(self._ids)
        self.in_graph |= rows >= 0
        self._folder_nodes = max(self._folder_nodes, index.folder_nodes)
        if (rows >= 0).any():
            numbers, labels = index.numbers_at(rows[rows >= 0]), model.label_store_
            ours = np.isin(labels.nodes, numbers)
            self._numbers |= set(numbers.tolist())
            self._labelled[number] = set(labels.nodes[ours].tolist())
            self._trained |= set(labels.nodes[ours & (labels.parts <= LabelRole.VALIDATION)].tolist())
        manifest = self._versions.manifest(number)
        for change in manifest["changes"]:
            self.scrubber.scrubbed(change)
        return manifest

    def _scrub_pruned(self, number: int) -> list[Entry]:
        """The changes of a version that was pruned, without the nodes."""
        try:
            return [self.scrubber.scrubbed(change) for change in read_pruned(self._versions.database, number)]
        except Damaged as error:
            raise InputError(
                f"{self._versions.path}: what is told of version {number}, which was pruned, is damaged, {error}: "
                "save the model to another folder and erase there; nothing was erased."
            ) from error

    def refuse_missing(self) -> None:
        """Refuse a node that is in no version and in no change."""
        named = np.array([normal(text_of(each)) in self.scrubber.met for each in self._ids])
        missing = np.flatnonzero(~self.in_graph & ~named).tolist()
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
            changed, report = self.rewritten()
            for manifest in (*changed, self._top(report)):
                versions.put_manifest({key: value for key, value in manifest.items() if key != "sha256"})
            for number, changes in self._pruned.items():
                database.put_document(PRUNED, number, {"changes": changes})
            database.put_document(ERASURE, 0, {"report": asdict(report)})
            database.keep_chunks(needed_chunks(versions, versions.numbers()))
        return report

    def rewritten(self) -> tuple[list[Manifest], Erased]:
        """The manifests that change, and the report; parts of versions are written."""
        rewritten = [self._manifest(number) for number in reversed(self._there)]
        changed = [new for new in reversed(rewritten) if new is not self._manifests[new["version"]]]
        return changed, self._report([manifest["version"] for manifest in changed])

    def _without(self, number: int) -> tuple[dict[str, str], Entry] | None:
        """Parts of a version without the nodes, and the entry of their leaving; None if it has none of them."""
        if number not in self._labelled:
            return None
        key = repr(sorted(self._manifests[number]["parts"].items()))
        if key not in self._rewritten:
            model = GraphClassifier.from_version(self._versions, number, device=self._device, whole=True)
            rows = model._node_index().rows_of_ids(self._ids)
            try:
                model.remove_nodes(model._node_index().ids_at(rows[rows >= 0]).tolist())
                sources = {} if self._dry_run else encode(model.parts())
                parts = {name: self._versions.stored.write(source) for name, source in sources.items()}
            except (InputError, Damaged) as error:
                raise InputError(
                    f"{self._versions.path}, version {number}: {str(error).rstrip('.')}; nothing was erased."
                ) from error
            self._rewritten[key] = parts, model.history[-1]
        return self._rewritten[key]

    def _manifest(self, number: int) -> Manifest:
        """The manifest of a version without the nodes; the same object if it stays as it is."""
        old, without = self._manifests[number], self._without(number)
        changes = [self.scrubber.scrubbed(change) for change in old["changes"]]
        if without is None:
            return old if changes == old["changes"] else {**old, "changes": changes}
        before = len(self._versions.stored_history(old)) - len(changes)
        past = {"changes": before, "accuracy": without[1].get("accuracy")}
        return {**old, "parts": without[0], "past": past, "changes": changes}

    def _top(self, report: Erased) -> Manifest:
        """The manifest of the new version, which equals the newest one and tells of the erasure."""
        newest, without = self._versions.load(self._newest), self._without(self._newest)
        parts, entry = without or (newest.manifest["parts"], {})
        accuracy = entry.get("accuracy") or self._versions.stored_history(newest.manifest).last_accuracy()
        optional = {"accuracy": accuracy, **{key: entry.get(key) for key in ("warning", "label_counts")}}
        change = {
            "what": "erase",
            "when": now(),
            "nodes": report.nodes,
            "labels": report.labels,
            "versions": len(report.versions),
            "retired": entry.get("retired", []),
            "exact": not report.remembering,
            **{key: value for key, value in optional.items() if value},
        }
        return {**self._versions.on_top(newest, accuracy), "parts": parts, "changes": [change]}

    def _report(self, changed: list[int]) -> Erased:
        fits = [entry for entry in self._versions.history() if entry["what"] == "fit"]
        first = fits[0].get("nodes", 0) if fits else 0  # numbers below it were given to the nodes of the fit
        taught = min((number for number, nodes in self._labelled.items() if nodes), default=None)
        exact = all(entry["exact"] for _, entry in self._rewritten.values())
        # A label that was taken back before still is in the weights.
        remembering = [] if exact or taught is None else [number for number in self._there if number >= taught]
        return Erased(
            method=str(self._manifests[self._newest]["values"]["method"]),
            nodes=len(self._ids),
            labels=len(set[int]().union(*self._labelled.values())),
            versions=tuple(changed),
            version=self._newest + 1,
            trained=len(self._trained),
            seen=sum(number < first for number in self._numbers),
            remembering=tuple(remembering),
            in_graph_folder=sum(number < self._folder_nodes for number in self._numbers),
        )


class Scrubber:
    """Takes some nodes out of entries; ``erased`` of an entry says how many it named. met: ids that entries named.

    An id is recognised by its cleaned text, in whatever form an older version wrote it.
    """

    def __init__(self, ids: Sequence[Any]) -> None:
        self._texts = {normal(text_of(each)) for each in ids}
        self.met: set[str] = set()

    def scrubbed(self, entry: Entry) -> Entry:
        """The entry without the nodes; itself if it names none of them."""
        gone: set[str] = set()

        def stays(node: Any) -> bool:
            text = normal(text_of(node)) if isinstance(node, str | int) and not isinstance(node, bool) else None
            if text in self._texts:
                gone.add(text)
            return text not in self._texts

        def kept(key: str, value: Any) -> Any:
            if key == "supports" and isinstance(value, dict):
                return {name: kept("nodes", nodes) for name, nodes in value.items()}
            if not isinstance(value, list):
                return value
            if key in ID_LISTS:
                return [each for each in value if stays(each)]
            return [each for each in value if not isinstance(each, dict) or stays(each.get("node"))]

        values = {key: kept(key, value) for key, value in entry.items()}
        if not gone:
            return entry
        self.met |= gone
        values = {key: value for key, value in values.items() if value != [] or key not in OPTIONAL}
        if "conflicts" not in values:
            values.pop("on_conflict", None)
        return {**values, "erased": entry.get("erased", 0) + len(gone)}
