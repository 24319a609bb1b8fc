"""Erase nodes from every version of a model folder.

Every version that contains one of the nodes is loaded, changed as by ``remove_nodes``, and rewritten, and the ids are
removed from the history. What ``fit`` derived from the nodes (weights, feature scales and settings) does not change;
:class:`Erased` reports how many nodes this concerns. The graph folder of a model does not change either.

All versions are rewritten in one transaction: if the process is killed, either every version still has the nodes or
none has them. After the transaction, the cache is deleted and the database file is rewritten without its free space. If
this step is interrupted, the next writer completes it. The numbers of erased nodes are never used again.
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

ID_LISTS = ("confirmed", "unchanged", "nodes")  # keys of a history entry that may hold a list of ids
OPTIONAL = ("confirmed", "unchanged", "statements", "conflicts")  # keys that an entry leaves out if they are empty


@dataclass(frozen=True)
class Erased:
    """Report of an erasure: what was removed, and what still depends on the nodes.

    Attributes:
        method: Name of the model's method.
        nodes: Number of erased nodes.
        labels: Number of these nodes that had a label in some version.
        versions: Versions that were rewritten.
        version: New version whose history records the erasure.
        trained: Number of these nodes that ``fit`` used as labelled nodes.
        seen: Number of these nodes that ``fit`` saw at all. Weights, feature scales and settings that ``fit`` derived
            from them do not change.
        remembering: Versions whose weights still depend on labels of these nodes, because the method cannot unlearn.
        in_graph_folder: Number of these nodes that are still in the model's graph folder, which a model never changes.
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
        """Make a report from the JSON values of ``dataclasses.asdict``."""
        need(values.keys() == {each.name for each in fields(cls)}, "its report of an erasure is invalid")
        plain: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items()}
        return cls(**plain)


def erase(versions: Versions, nodes: Sequence[Any], *, wait: float = 60.0, device: str = "cpu") -> Erased:
    """Erase nodes, given by their ids, from all versions of a folder."""
    ids = _distinct(nodes)
    versions.current()  # raises an error if the folder holds no model
    with versions.writing(wait) as completed:
        erasure = Erasure(versions, ids, device)
        if completed is not None and not erasure.in_graph.any() and not erasure.scrubber.mentioned:
            # The same call was killed after its transaction, and ``writing`` has just completed it.
            return Erased.from_json(completed)
        erasure.refuse_missing()
        report = erasure.write()
        versions.finish_erasure()
    return report


def dry_erase(versions: Versions, nodes: Sequence[Any], *, device: str = "cpu") -> Erased:
    """Return what :func:`erase` would report; nothing is written."""
    erasure = Erasure(versions, _distinct(nodes), device, dry_run=True)
    erasure.refuse_missing()
    return erasure.rewrite()[1]


def _distinct(nodes: Sequence[Any]) -> list[Any]:
    """Return the ids without repetitions."""
    # The history is searched for one text per id, so floats are replaced by that text.
    plain = [text_of(each) if isinstance(each, float) else each for each in listed(list_of_nodes(nodes))]
    ids = list({normal(text_of(each)): each for each in plain}.values())
    if not ids:
        raise InputError("there is nothing to erase: give at least one node.")
    return ids


class Erasure:
    """An erasure of some nodes from all versions. The constructor reads the versions and writes nothing.

    Args:
        versions: Versions of the folder.
        ids: Ids of the nodes, without repetitions.
        device: PyTorch device that computes.
        dry_run: Compute the report, but write no parts.

    Attributes:
        in_graph: Whether any version has the node, shape (ids,).
        scrubber: Removes the ids from histories and records which ids occurred.
    """

    def __init__(self, versions: Versions, ids: list[Any], device: str, *, dry_run: bool = False) -> None:
        self._versions, self._ids, self._device, self._dry_run = versions, ids, device, dry_run
        self._newest, self._versions_there = versions.current(), versions.numbers()
        self.in_graph, self.scrubber = np.zeros(len(ids), dtype=bool), Scrubber(ids)
        self._labelled: dict[int, set[int]] = {}  # by version that has one of the nodes: numbers of labelled ones
        self._numbers, self._trained = set[int](), set[int]()
        self._folder_nodes = 0  # nodes with smaller numbers are in the graph folder
        # Maps the old parts to the new parts and their history entry: versions with equal parts are rewritten once.
        self._rewritten: dict[str, tuple[dict[str, str], Entry]] = {}
        verified = set[str]()
        self._manifests = {number: self._find_nodes(number, verified) for number in self._versions_there}
        self._pruned = {number: self._scrub_pruned(number) for number in versions.database.numbers(PRUNED)}

    # Read

    def _find_nodes(self, number: int, verified: set[str]) -> Manifest:
        """Find the nodes in a version and in its changes, and return its manifest.

        Raises:
            InputError: If the version is damaged.
        """
        if number == self._newest:
            self._versions.load(number).verify()
        elif not is_whole(self._versions.database, number, verified):
            raise InputError(
                f"{self._versions.path}: version {number} is damaged, so nothing can be erased from it: `graphfcl "
                f"prune --model {self._versions.path} --keep {self._newest - number}` removes it; nothing was erased."
            )
        model = GraphClassifier.from_version(self._versions, number, device=self._device)
        index = model._node_index()
        rows = index.rows_of_ids(self._ids)
        self.in_graph |= rows >= 0
        self._folder_nodes = max(self._folder_nodes, index.folder_nodes)
        if (rows >= 0).any():
            numbers, labels = index.numbers_at(rows[rows >= 0]), model.label_store_
            erased = np.isin(labels.nodes, numbers)
            self._numbers |= set(numbers.tolist())
            self._labelled[number] = set(labels.nodes[erased].tolist())
            self._trained |= set(labels.nodes[erased & (labels.parts <= LabelRole.VALIDATION)].tolist())
        manifest = self._versions.manifest(number)
        for change in manifest["changes"]:
            self.scrubber.scrub(change)
        return manifest

    def _scrub_pruned(self, number: int) -> list[Entry]:
        """Return the changes of a pruned version after removing the nodes from them."""
        try:
            return [self.scrubber.scrub(change) for change in read_pruned(self._versions.database, number)]
        except Damaged as error:
            raise InputError(
                f"{self._versions.path}: the history of version {number}, which was pruned, is damaged ({error}): "
                "save the model to another folder and erase there; nothing was erased."
            ) from error

    def refuse_missing(self) -> None:
        """Raise an InputError if a node is in no version and in no change."""
        mentioned = np.array([normal(text_of(each)) in self.scrubber.mentioned for each in self._ids])
        missing = np.flatnonzero(~self.in_graph & ~mentioned).tolist()
        if missing:
            more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
            raise InputError(
                f"no version of {self._versions.path} has node {quoted(self._ids[missing[0]])}{more}: leave it out; "
                "nothing was erased."
            )

    # Rewrite

    def write(self) -> Erased:
        """Write all versions without the nodes, and a new version that records the erasure, in one transaction."""
        versions, database = self._versions, self._versions.database
        with versions.transaction():
            changed, report = self.rewrite()
            for manifest in (*changed, self._new_version(report)):
                versions.put_manifest({key: value for key, value in manifest.items() if key != "sha256"})
            for number, changes in self._pruned.items():
                database.put_document(PRUNED, number, {"changes": changes})
            database.put_document(ERASURE, 0, {"report": asdict(report)})
            database.keep_chunks(needed_chunks(versions, versions.numbers()))
        return report

    def rewrite(self) -> tuple[list[Manifest], Erased]:
        """Write the new parts of all versions. Return the manifests that change, and the report."""
        rewritten = [self._rewrite_manifest(number) for number in reversed(self._versions_there)]
        changed = [new for new in reversed(rewritten) if new is not self._manifests[new["version"]]]
        return changed, self._report([manifest["version"] for manifest in changed])

    def _rewrite_parts(self, number: int) -> tuple[dict[str, str], Entry] | None:
        """Remove the nodes from a version. Return its new parts and the history entry of the removal.

        Return None if the version has none of the nodes.
        """
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

    def _rewrite_manifest(self, number: int) -> Manifest:
        """Return the manifest of a version without the nodes, or the old manifest itself if nothing changes."""
        old, rewritten = self._manifests[number], self._rewrite_parts(number)
        changes = [self.scrubber.scrub(change) for change in old["changes"]]
        if rewritten is None:
            return old if changes == old["changes"] else {**old, "changes": changes}
        parts, removal = rewritten
        before = len(self._versions.stored_history(old)) - len(changes)
        past = {"changes": before, "accuracy": removal.get("accuracy")}
        return {**old, "parts": parts, "past": past, "changes": changes}

    def _new_version(self, report: Erased) -> Manifest:
        """Return the manifest of a new version that equals the newest one and records the erasure."""
        newest = self._versions.load(self._newest)
        parts, entry = self._rewrite_parts(self._newest) or (newest.manifest["parts"], {})
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
        """Return the report of an erasure that rewrites the versions ``changed``."""
        fits = [entry for entry in self._versions.history() if entry["what"] == "fit"]
        fit_nodes = fits[0].get("nodes", 0) if fits else 0  # nodes of the fit have smaller numbers
        first_labelled = min((number for number, nodes in self._labelled.items() if nodes), default=None)
        exact = all(entry["exact"] for _, entry in self._rewritten.values())
        # Later versions count too, because weights keep the influence of a removed label.
        since = None if exact else first_labelled
        remembering = [] if since is None else [number for number in self._versions_there if number >= since]
        return Erased(
            method=str(self._manifests[self._newest]["values"]["method"]),
            nodes=len(self._ids),
            labels=len(set[int]().union(*self._labelled.values())),
            versions=tuple(changed),
            version=self._newest + 1,
            trained=len(self._trained),
            seen=sum(number < fit_nodes for number in self._numbers),
            remembering=tuple(remembering),
            in_graph_folder=sum(number < self._folder_nodes for number in self._numbers),
        )


class Scrubber:
    """Removes nodes from history entries.

    Ids are compared by their cleaned text, because older versions may have written them in another form.

    Attributes:
        mentioned: Cleaned texts of the ids that the entries scrubbed so far contained.
    """

    def __init__(self, ids: Sequence[Any]) -> None:
        self._texts = {normal(text_of(each)) for each in ids}
        self.mentioned: set[str] = set()

    def scrub(self, entry: Entry) -> Entry:
        """Return the entry without the nodes, or the entry itself if it mentions none of them.

        The key ``erased`` of the new entry counts the ids that were removed from it so far.
        """
        removed: set[str] = set()

        def keeps(node: Any) -> bool:
            text = normal(text_of(node)) if isinstance(node, str | int) and not isinstance(node, bool) else None
            if text in self._texts:
                removed.add(text)
            return text not in self._texts

        def without_nodes(key: str, value: Any) -> Any:
            if key == "supports" and isinstance(value, dict):
                return {name: without_nodes("nodes", nodes) for name, nodes in value.items()}
            if not isinstance(value, list):
                return value
            if key in ID_LISTS:
                return [each for each in value if keeps(each)]
            return [each for each in value if not isinstance(each, dict) or keeps(each.get("node"))]

        values = {key: without_nodes(key, value) for key, value in entry.items()}
        if not removed:
            return entry
        self.mentioned |= removed
        values = {key: value for key, value in values.items() if value != [] or key not in OPTIONAL}
        if "conflicts" not in values:
            values.pop("on_conflict", None)
        return {**values, "erased": entry.get("erased", 0) + len(removed)}
