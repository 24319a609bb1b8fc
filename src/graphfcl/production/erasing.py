"""Erasing nodes from every version of a model folder, as if they had never been in its graph.

Each version that has one of them is loaded, loses them as ``remove_nodes`` does, and its trees are written beside the
old ones. Until then nothing has changed, and an error leaves all as it was. Then the plan is decided and carried out:
see ``erasure_plan.py``. Numbers of nodes that are gone are never given again.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from graphfcl.errors import InputError, quoted
from graphfcl.graph.ids import list_of_nodes, listed, normal, text_of
from graphfcl.production.classifier import GraphClassifier
from graphfcl.production.labels.history import Entry, now
from graphfcl.production.labels.label_store import LabelRole
from graphfcl.production.labels.scrubbing import Scrubber
from graphfcl.production.model.codec import encode
from graphfcl.production.model.erasure_plan import ErasurePlan
from graphfcl.production.model.versions import Versions
from graphfcl.production.model.wholeness import Wholeness
from graphfcl.production.store.damage import Damaged
from graphfcl.production.store.manifests import FORMAT, PRUNED, Manifest
from graphfcl.runtime.files import canonical_json
from graphfcl.version import __version__


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
        plain: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items()}
        return cls(**plain)


def erase(versions: Versions, nodes: Sequence[Any], *, wait: float = 60.0, device: str = "cpu") -> Erased:
    """Erase nodes, given by their ids, from all versions of a folder."""
    # A float goes by the one text that the history is searched for.
    given = [text_of(each) if isinstance(each, float) else each for each in listed(list_of_nodes(nodes))]
    ids = list({normal(text_of(each)): each for each in given}.values())
    if not ids:
        raise InputError("there is nothing to erase: give at least one node.")
    if not versions.exists() and not versions.manifests.numbers():
        raise InputError(f"{versions.path} holds no model: check the path.")
    with versions.writing(wait) as finished:
        work = Erasing(versions, ids, device)
        work.look()
        if finished is not None and work.found_none():  # the same call, after the one before was killed
            return Erased.from_json(finished.report)
        work.refuse_missing()
        versions.erasures.decide(work.plan())
        done = versions.erasures.carry_out()
    assert done is not None
    return Erased.from_json(done.report)


@dataclass(frozen=True, eq=False)
class Without:
    """A version without the nodes: its trees, and what its own history would say of their leaving."""

    trees: dict[str, Any]
    change: Entry


class Erasing:
    """The making of a plan. ids: of the nodes, each once.

    rewritten: the versions that have some of the nodes, without them. scrubber: knows which ids a history named.
    """

    def __init__(self, versions: Versions, ids: list[Any], device: str) -> None:
        self._versions, self._ids, self._device = versions, ids, device
        self._newest = versions.current()
        self._there = [number for number in versions.manifests.numbers() if number <= self._newest]
        self._manifests: dict[int, Manifest] = {}
        self._rewritten: dict[int, Without] = {}
        self._known: dict[bytes, Without] = {}  # by the trees of before: versions may be equal
        self._in_graph = np.zeros(len(ids), dtype=bool)
        self._labelled: dict[int, set[int]] = {}  # version → numbers of those that have a label in it
        self._numbers: set[int] = set()
        self._trained: set[int] = set()
        self._folder_nodes = 0  # numbers below it are of nodes of a graph folder
        self._scrubber = Scrubber(ids)
        self._pruned: tuple[int, list[Entry]] | None = None

    # Looking

    def look(self) -> None:
        """Find the nodes in every version, and in what is told of versions; nothing is written."""
        check = Wholeness(self._versions.manifests, self._versions.objects)
        for number in self._there:
            self._manifests[number] = self._whole_manifest(check, number)
            model = GraphClassifier.from_version(self._versions, number, device=self._device)
            rows = model._node_index().rows_of_ids(self._ids)
            self._in_graph |= rows >= 0
            self._folder_nodes = max(self._folder_nodes, model._node_index().folder_nodes)
            if (rows >= 0).any():
                self._note_labels(number, model, rows[rows >= 0])
            for change in self._manifests[number]["changes"]:
                self._scrubber.scrubbed(change)
        try:
            upto, entries = self._versions.manifests.pruned()
        except Damaged as error:
            raise InputError(
                f"{self._versions.path}: versions/{PRUNED} {error}: remove it; nothing was erased."
            ) from error
        scrubbed = [self._scrubber.scrubbed(entry) for entry in entries]
        self._pruned = (upto, scrubbed) if scrubbed != entries else None

    def _whole_manifest(self, check: Wholeness, number: int) -> Manifest:
        """A version that is damaged cannot be rewritten, and must not stay."""
        if number == self._newest:
            self._versions.load(number).verify()
        elif self._versions.manifests.path(number).exists() and not check.is_whole(number):
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

    def plan(self) -> ErasurePlan:
        """Write the trees of all versions without the nodes, and say what the manifests will be."""
        for number in reversed(self._there):
            self._rewrite(number)
        manifests = [self._manifest(number) for number in self._there]
        changed = [new for new in manifests if new is not self._manifests[new["version"]]]
        report = self._report([manifest["version"] for manifest in changed])
        top = self._top(report)
        self._versions.objects.flush()
        unsealed = [{key: value for key, value in each.items() if key != "sha256"} for each in changed]
        return ErasurePlan([*unsealed, top], self._pruned, asdict(report))

    def _rewrite(self, number: int) -> None:
        """Let a version lose the nodes that it has."""
        if number not in self._labelled:
            return
        manifest = self._manifests[number]
        key = canonical_json(manifest["trees"])
        if key not in self._known:
            model = GraphClassifier.from_version(self._versions, number, device=self._device, whole=True)
            rows = model._node_index().rows_of_ids(self._ids)
            try:
                model.remove_nodes(model._node_index().ids_at(rows[rows >= 0]).tolist())
                trees = encode(model.parts(), self._versions.arrays)
            except (InputError, Damaged) as error:
                raise InputError(
                    f"{self._versions.path}, version {number}: {str(error).rstrip('.')}; nothing was erased."
                ) from error
            self._known[key] = Without(trees, model.history[-1])
        self._rewritten[number] = self._known[key]

    def _manifest(self, number: int) -> Manifest:
        """The manifest of a version without the nodes; the same object if it stays as it is."""
        old = self._manifests[number]
        changes = [self._scrubber.scrubbed(change) for change in old["changes"]]
        without = self._rewritten.get(number)
        if without is None:
            return old if changes == old["changes"] else {**old, "changes": changes}
        before = len(self._versions.stored_history(old)) - len(changes)
        return {
            **old,
            "graphfcl": __version__,
            "written": old.get("written", now()),
            "trees": without.trees,
            "values": {"method": old["values"]["method"]},
            "past": {"changes": before, "accuracy": without.change.get("accuracy")},
            "changes": changes,
        }

    def _top(self, report: Erased) -> Manifest:
        """The manifest of the new version, which equals the newest one and tells of the erasure."""
        number, before = self._versions.after_newest()
        newest = self._versions.load(self._newest)
        without = self._rewritten.get(self._newest)
        told = {} if without is None else without.change
        accuracy = told.get("accuracy") or self._versions.stored_history(newest.manifest).last_accuracy()
        counts = {"nodes": report.nodes, "labels": report.labels, "versions": len(report.versions)}
        optional = {"accuracy": accuracy, "warning": told.get("warning")}
        change = {
            "what": "erase",
            "when": now(),
            **counts,
            "retired": told.get("retired", []),
            "exact": not report.remembering,
            **{key: value for key, value in optional.items() if value},
        }
        return {
            "format": FORMAT,
            "graphfcl": __version__,
            "written": now(),
            "version": number,
            "parent": number - 1,
            "trees": newest.manifest["trees"] if without is None else without.trees,
            "values": {"method": newest.parts.configuration.method},
            "past": {"changes": before, "accuracy": accuracy},
            "changes": [change],
        }

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
