"""The documents that the database stores for a version, and a version whose parts are read when they are needed.

========  =======================================================================================
version   manifest of a version, by its number: parts by checksum, changes, method
pruned    changes of a version that was pruned
erasure   number 0, while an erasure is not complete: its report
========  =======================================================================================
"""

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.methods import Learner
from graphfcl.production.answers.answers import Answers, ModelAnswers
from graphfcl.production.answers.row_values import RowValues
from graphfcl.production.answers.version_cache import OpenCache, VersionCache, cache_keys
from graphfcl.production.graph import ModelGraph, NodeIndex, StoredGraph, stored_graph
from graphfcl.production.graph.place import AS_BEFORE, FolderUse
from graphfcl.production.labels.label_store import LabelStore
from graphfcl.production.model.codec import PARTS, decode_answers, decode_label_store, decode_learner, label_source
from graphfcl.production.model.label_gain import SUMS
from graphfcl.production.model.parts import ModelParts
from graphfcl.production.store.checks import Damaged, need, need_usable, whole_number
from graphfcl.production.store.database import Database
from graphfcl.production.store.parts import Parts, PartSource, read_part

VERSION, PRUNED, ERASURE = "version", "pruned", "erasure"
NAME = re.compile(r"[0-9a-f]{64}")

Manifest = dict[str, Any]


def read_manifest(database: Database, version: int) -> Manifest:
    """Read and verify the manifest of a version; ``sha256`` is its checksum."""
    manifest, digest = database.document(VERSION, version)
    need(
        whole_number(manifest.get("version"), "its version", 1, 10**15 - 1) == version, "it belongs to another version"
    )
    parent, parts, past = (manifest.get(key) for key in ("parent", "parts", "past"))
    need(parent is None or type(parent) is int, "its parent is invalid")
    need(isinstance(manifest.get("values"), dict), "it lacks its values")
    check_changes(manifest.get("changes"))
    if not isinstance(parts, dict) or not all(NAME.fullmatch(str(parts.get(name))) for name in PARTS):
        raise Damaged("it does not name all of its parts")
    if not isinstance(past, dict):
        raise Damaged("it lacks its number of earlier changes")
    whole_number(past.get("changes"), "the number of changes before it")
    _check_accuracy(past.get("accuracy"))
    need(past.get("accuracy") is None or "classes" in past["accuracy"], "it lacks the accuracy of its classes")
    return {**manifest, "sha256": digest}


def read_pruned(database: Database, version: int) -> list[dict[str, Any]]:
    """Read the changes of a version that was pruned."""
    changes = database.document(PRUNED, version)[0].get("changes")
    check_changes(changes)
    return changes  # type: ignore[return-value]


def chunks_of(database: Database, manifest: Manifest) -> dict[str, int]:
    """Return names of all chunks that a version needs, with their bytes; -1 for the descriptions of its parts."""
    chunks = {manifest["parts"][name]: -1 for name in PARTS}
    for name in list(chunks):
        chunks |= read_part(database, name).chunks()
    return chunks


def is_whole(database: Database, version: int, verified: set[str]) -> bool:
    """Return whether a version matches its checksums. ``verified`` collects the chunks that do."""
    try:
        for name in chunks_of(database, read_manifest(database, version)).keys() - verified:
            database.chunk(name)
            verified.add(name)
    except Damaged:
        return False
    return True


def check_changes(changes: Any) -> None:
    """Refuse a value that is not a list of history entries."""
    need(isinstance(changes, list) and all(isinstance(entry, dict) for entry in changes), "it lacks its changes")
    for entry in changes:
        need("what" in entry and "when" in entry, "one of its changes is invalid")
        texts = (entry.get(key, "") for key in ("what", "when", "warning"))
        need(all(isinstance(text, str) for text in texts), "one of its changes is invalid")
        _check_accuracy(entry.get("accuracy"))


def _check_accuracy(accuracy: Any) -> None:
    if accuracy is None:
        return
    if not isinstance(accuracy, dict) or not isinstance(accuracy.get("classes", {}), dict):
        raise Damaged("one of its accuracies is invalid")
    means, sums = (accuracy.get("validation"), accuracy.get("leave_one_out")), accuracy.get(SUMS) or {}
    pairs = isinstance(sums, dict) and all(isinstance(pair, list) and len(pair) == 2 for pair in sums.values())
    need(pairs, "one of its accuracies is invalid")
    numbers = [*accuracy.get("classes", {}).values(), *(mean for mean in means if mean is not None)]
    numbers += [number for pair in sums.values() for number in pair]
    need({int, float}.issuperset(map(type, numbers)), "one of its accuracies is invalid")
    fits = not numbers or -1e300 < min(numbers) <= max(numbers) < 1e300  # JSON has no NaN
    need(fits, "one of its accuracies is invalid")


class StoredVersion:
    """A version of a folder, whose parts are read when they are needed.

    Args:
        folder: Folder of the model.
        manifest: Verified manifest.
        stored: Parts in the database.
        cache: Cache of the folder.
        refuse: Makes the error that names the version and what is wrong with it.
        device: PyTorch device that computes.
        use: Changes to where the graph folder of the model is and to the resources that may be used.
    """

    def __init__(
        self,
        folder: Path,
        manifest: dict[str, Any],
        stored: Parts,
        cache: VersionCache,
        refuse: Callable[[str], InputError],
        device: str,
        use: FolderUse = AS_BEFORE,
    ) -> None:
        self.manifest, self.version = manifest, int(manifest["version"])
        self._folder, self._stored, self._refuse = folder, stored, refuse
        self._device, self._use = device, use
        self._lock = threading.RLock()
        self._read: dict[str, Any] = {}
        self._part = lru_cache(lambda name: read_part(stored.database, manifest["parts"][name]))
        configuration, calibration, self._names = self._checked(lambda: decode_answers(self._part))
        if manifest["values"].get("method") != configuration.method:
            raise refuse("its manifest and its configuration name different methods")
        self.parts = ModelParts.lazy(configuration, calibration, self.part)
        self.keys = cache_keys(manifest)
        self.cache: OpenCache | None = cache.open(self.keys.scores, len(self._names.names))
        if device not in ("auto", "cpu"):
            self.graph.device(device)  # refuses a device on which this kind of graph cannot be computed

    # Parts

    @property
    def names(self) -> LabelStore:
        """Label store with the names of the classes and without labelled nodes."""
        return self._names

    @cached_property
    def graph(self) -> StoredGraph:
        """The graph, of which almost nothing is read yet."""
        return self._checked(lambda: stored_graph(self._part, self._folder, self._use, self._remember))

    def part(self, name: str) -> Any:
        """Return ``graph``, ``learner`` or ``label_store``; the same object every time."""
        with self._lock:
            if name not in self._read:
                read = {"graph": self.graph.read, "learner": self._learner, "label_store": self._label_store}
                self._read[name] = self._checked(read[name])
            return self._read[name]

    @contextmanager
    def using_learner(self) -> Iterator[None]:
        """Report errors of the stored learner inside as damage, because the arguments of its methods were checked."""
        try:
            with need_usable("its learner cannot be used"):
                yield
        except Damaged as error:
            raise self._refuse(str(error)) from error

    def node_index(self) -> NodeIndex:
        """Return the index of the nodes, without the rest of the graph where that is possible."""
        with self._lock:
            return self._checked(self.graph.index)

    def counts(self) -> tuple[int, int]:
        """Return the numbers of nodes and edges without reading these."""
        return self._checked(self.graph.counts)

    def verify(self) -> None:
        """Read everything."""
        for name in ("graph", "learner", "label_store"):
            self.part(name)

    # Answers

    def answers(self) -> ModelAnswers | None:
        """Return the answers about all nodes if they are stored; None otherwise."""
        scores = self._cached_scores()
        readings = None if scores is None or self.cache is None else self.cache.readings(self.keys.readings)
        if readings is not None:
            return ModelAnswers(scores, readings, self.parts.calibration)
        return self._checked(lambda: self.graph.find_answers(self.keys, len(self._names.names)))

    def cached_answers(self, nodes: Sequence[Any]) -> tuple[np.ndarray, Answers] | None:
        """Return ids of some nodes and the answers about them, if the cache has exactly these ids."""
        place = None if self.cache is None else self.cache.find(nodes)
        if self.cache is None or place is None:
            return None
        ids, rows = place
        scores, readings = self.cache.scores(rows), self.cache.readings(self.keys.readings, rows)
        if scores is None or readings is None or not self._are_scores(scores):
            return None
        return ids, Answers(scores, readings)

    def cached_ood_score(self) -> np.ndarray | None:
        """Return (n,) OOD scores of all nodes, if the cache has them."""
        readings = None if self.cache is None else self.cache.readings(self.keys.readings)
        return None if readings is None else readings[:, 0]

    def scores(self, compute: Callable[[], Any]) -> Any:
        """Return (n, columns) scores of all nodes, cached or computed. A learner that fails is damaged."""
        cached = self._cached_scores()
        return self._checked(lambda: self._computed_scores(compute)) if cached is None else cached

    def _cached_scores(self) -> np.ndarray | None:
        scores = None if self.cache is None else self.cache.scores()
        return scores if scores is not None and len(scores) == self.counts()[0] and self._are_scores(scores) else None

    def _computed_scores(self, compute: Callable[[], Any]) -> Any:
        with need_usable("its learner cannot answer"):
            scores = compute()
            shape = (self.part("graph").visible.row_count, len(self._names.names))
            need(RowValues.of(scores).shape == shape, "its learner gives scores of a wrong shape")
        need(self._are_scores(scores), "its learner gives scores that are not finite")
        return scores

    def _are_scores(self, scores: Any) -> bool:
        """Return whether every node has a finite highest score; a class that is excluded may have −∞."""
        used = np.array([column for column, name in enumerate(self._names.names) if name is not None])
        return all(bool(np.isfinite(block.max(axis=1)).all()) for block in RowValues.of(scores, used).blocks())

    # Read

    def _checked(self, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except Damaged as error:
            raise self._refuse(str(error)) from error

    def _remember(self, sources: Mapping[str, PartSource]) -> None:
        """Note that parts were read from the database, so that they are not written again."""
        for name, source in sources.items():
            self._stored.remember(source.made_of, self.manifest["parts"][name])

    def _learner(self) -> Learner:
        learner = decode_learner(self._part, self.parts.configuration, self.graph.device(self._device))
        need(len(learner.classes_) == len(self._names.names), "its learner and its classes differ in number")
        graph: ModelGraph = self.part("graph")
        table = None if self.cache is None else self.cache.table()
        if table is not None and len(table) == graph.node_count:
            with self.using_learner():
                one = learner.embeddings_of_rows(graph.visible, np.arange(min(1, graph.node_count)))
                if (table.dtype, table.shape[1:]) == (one.dtype, one.shape[1:]):
                    learner.use_embeddings(graph.visible, table)
        return learner

    def _label_store(self) -> LabelStore:
        store = decode_label_store(self._part, self._names, self.graph.contains)
        self._remember({"label_store": label_source(store)})
        return store
