"""One version of a model in a folder; what it consists of is read when it is first asked for."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import graphfcl.production.codec as codec
from graphfcl.devices import device_on_disk
from graphfcl.errors import GraphfclError, InputError
from graphfcl.methods import Learner
from graphfcl.production.answers import Answers
from graphfcl.production.answers_on_disk import AnswersOnDisk
from graphfcl.production.calibration import Calibration
from graphfcl.production.folder_codec import counts_of, decode_folder_graph, digest_of
from graphfcl.production.graph_codec import decode_ids, decode_nodes
from graphfcl.production.graph_place import FolderUse, find_graph
from graphfcl.production.ledger import Ledger
from graphfcl.production.model_parts import Configuration, ModelParts
from graphfcl.production.node_names import NodeNames
from graphfcl.production.storage.block_arrays import BlockArrays, checked
from graphfcl.production.storage.damage import UNFIT, Damaged, first_line, need
from graphfcl.production.storage.manifests import ON_DISK, Manifest
from graphfcl.production.storage.trees import read_tree
from graphfcl.production.version_cache import OpenCache, VersionCache, cache_keys


class StoredVersion:
    """A version of a folder.

    folder: of the model. refuse: makes the error that names the version and what is wrong with it.
    """

    def __init__(
        self,
        folder: Path,
        manifest: Manifest,
        arrays: BlockArrays,
        cache: VersionCache,
        refuse: Callable[[str], InputError],
        device: str,
        use: FolderUse = FolderUse(),  # noqa: B008  # it is frozen
    ) -> None:
        self.manifest, self.version = manifest, int(manifest["version"])
        self._folder, self._arrays, self._refuse = folder, arrays, refuse
        self._device = device_on_disk(device) if self.on_disk else device
        self._use = use
        self._lock = threading.RLock()
        self._read: dict[str, Any] = {}
        self._ids: np.ndarray | None = None
        configuration, calibration, self._names = self._checked(self._answers)
        self.parts = ModelParts.from_source(configuration, calibration, self)
        self.keys = cache_keys(manifest, configuration.method)
        self.cache: OpenCache | None = None
        if not self.on_disk:
            self.cache = cache.open(self.keys.scores, len(self._names.names))

    # What a model asks for

    @property
    def names(self) -> Ledger:
        """A ledger that has the names of the classes, and no labelled nodes."""
        return self._names

    @property
    def on_disk(self) -> bool:
        """Whether its graph is a graph folder that stays on the disk."""
        return self.manifest["format"] == ON_DISK

    def answers_on_disk(self) -> AnswersOnDisk | None:
        """What it says of every node, if that was computed before and is in the work folder."""
        graph = self.part("graph")
        columns = len(self._names.names)
        return AnswersOnDisk.find(graph.means.work, self.keys.readings, graph.node_count, columns)

    def part(self, name: str) -> Any:
        """``graph``, ``learner`` or ``ledger``; the same object every time."""
        with self._lock:
            if name not in self._read:
                read = {"graph": self._graph, "learner": self._learner, "ledger": self._ledger}
                self._read[name] = self._checked(read[name])
            return self._read[name]

    @contextmanager
    def using_learner(self) -> Iterator[None]:
        """Where the learner that was read computes: one that cannot is damaged. What is asked of it was checked."""
        try:
            yield
        except GraphfclError:
            raise
        except UNFIT as error:
            raise self._refuse(f"its learner cannot be used ({first_line(error)})") from error

    def ids(self) -> np.ndarray:
        """(n,) the user's ids, without the rest of the graph."""
        with self._lock:
            if "graph" in self._read or self.on_disk:
                return self.part("graph").ids
            if self._ids is None:
                self._ids = self._checked(lambda: decode_ids(self._tree("nodes"), self._arrays))
            return self._ids

    def node_names(self) -> NodeNames:
        """Numbers and ids of the nodes, without the rest of the graph."""
        with self._lock:
            if "graph" in self._read or self.on_disk:
                return self.part("graph").names
            numbers, _, ids = self._checked(lambda: decode_nodes(self._tree("nodes"), self._arrays))
            return NodeNames(numbers, ids)

    def counts(self) -> tuple[int, int]:
        """How many nodes and edges there are; of them only an index is read."""
        with self._lock:
            if "graph" in self._read:
                graph = self.part("graph")
                return graph.node_count, graph.edge_count
            if self.on_disk:
                return self._checked(lambda: counts_of(self.manifest["trees"], self._arrays))
            return self._checked(lambda: (self._rows("nodes", "numbers"), self._rows("edges", "others")))

    def graph_digest(self) -> str:
        """Of a version on a graph folder: the digest of that, which is not opened."""
        return self._checked(lambda: digest_of(self.manifest["trees"], self._arrays))

    def _rows(self, tree: str, array: str) -> int:
        _, shape, _ = checked(self._tree(tree).index(array))
        need(len(shape) == 1, f"its {tree} are no row of numbers")
        return int(shape[0])

    def compute_scores(self) -> np.ndarray:
        """(n, columns) of every node; a learner that cannot give them is damaged."""
        return self._checked(self._scores)

    @property
    def has_numbers(self) -> bool:
        """Whether the cache knows nodes by whole numbers."""
        return self.cache is not None and self.cache.of_numbers

    def cached_scores(self) -> np.ndarray | None:
        """(n, columns) of every node, if they are in the cache."""
        found = None if self.cache is None else self.cache.scores()
        return found if found is not None and len(found) == len(self.ids()) and self._are_scores(found) else None

    def cached_answers(self, nodes: Sequence[Any]) -> Answers | None:
        """What the version says of some nodes, if the cache knows them by exactly these ids."""
        rows = None if self.cache is None else self.cache.rows_of_ids(nodes)
        if self.cache is None or rows is None:
            return None
        scores, readings = self.cache.scores_of(rows), self.cache.readings_of(self.keys.readings, rows)
        if scores is None or readings is None or not self._are_scores(scores):
            return None
        return Answers(scores, readings.strangeness, readings.temperatures)

    def verify(self) -> None:
        """Read everything."""
        for name in ("graph", "learner", "ledger"):
            self.part(name)

    # How it is read

    def _checked(self, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except Damaged as error:
            raise self._refuse(str(error)) from error

    def _tree(self, name: str) -> Any:
        return read_tree(self._arrays.objects, self.manifest["trees"].get(name))

    @cached_property
    def _values(self) -> dict[str, Any]:
        return self._tree("answers").values

    def _answers(self) -> tuple[Configuration, Calibration, Ledger]:
        values, names = self._values, codec.decode_names(self._values)
        need(codec.named_twice(names) == values.get("united"), "two of its classes have one name")
        configuration = codec.decode_configuration(values)
        need(self.manifest["values"].get("method") == configuration.method, "its manifest names another method")
        return configuration, codec.decode_calibration(values), names

    def _graph(self) -> Any:
        if self.on_disk:
            trees = self.manifest["trees"]
            folder, means = find_graph(self._folder, digest_of(trees, self._arrays), self._use)
            return decode_folder_graph(trees, self._arrays, folder, means)
        return codec.decode_graph(self.manifest["trees"], self._arrays)

    def _learner(self) -> Learner:
        configuration = self.parts.configuration
        learner = codec.decode_learner(self.manifest["trees"], self._arrays, configuration, self._device)
        need(len(learner.classes_) == len(self._names.names), "its learner and its classes differ in number")
        graph = self.part("graph")
        table = None if self.cache is None else self.cache.table()
        if table is not None and len(table) == graph.node_count:
            with self.using_learner():
                one = learner.embeddings_of_rows(graph.visible, np.arange(min(1, graph.node_count)))
                if (table.dtype, table.shape[1:]) == (one.dtype, one.shape[1:]):
                    learner.use_embeddings(graph.visible, table)
        return learner

    def _ledger(self) -> Ledger:
        ledger = codec.decode_ledger(self.manifest["trees"], self._arrays, self._names)
        codec.refuse_strange_nodes(ledger, self._numbers())
        return ledger

    def _numbers(self) -> np.ndarray | range:
        """The numbers of its nodes, without the rest of the graph."""
        if self.on_disk:
            return range(self.counts()[0])
        if "graph" in self._read:
            return self.part("graph").numbers
        return self._arrays.read(self._tree("nodes").index("numbers"))

    def _scores(self) -> np.ndarray:
        parts = self.parts
        parts.learner, parts.graph  # noqa: B018 - what is wrong with them is said in their own words
        try:
            scores = parts.compute_scores()
            need(scores.shape == (parts.graph.node_count, len(self._names.names)), "its learner gives other scores")
        except (InputError, Damaged):
            raise
        except UNFIT as error:
            raise Damaged(f"its learner cannot answer ({first_line(error)})") from error
        need(self._are_scores(scores), "its learner gives scores that are no numbers")
        return scores

    def _are_scores(self, scores: np.ndarray) -> bool:
        """Whether every node has a highest score; a class that is out of the question may have −∞."""
        used = [column for column, name in enumerate(self._names.names) if name is not None]
        return bool(np.isfinite(scores[:, used].max(axis=1)).all())
