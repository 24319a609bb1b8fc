"""A graph that stays on disk: read in parts, by row and by id."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from scipy import sparse

from graphfcl.errors import InputError
from graphfcl.graph.folder.blocks import BlockReader
from graphfcl.graph.folder.manifest import (
    FEATURE_VALUES,
    ID_KEYS,
    ID_ORDER,
    ID_STARTS,
    ID_TEXT,
    IDS,
    LABELS,
    MANIFEST,
    NAME_STARTS,
    NAME_TEXT,
    ORDER_KEY,
    ROWS,
    Manifest,
    is_graph_folder,
    read_manifest,
)
from graphfcl.graph.folder.permutation import Shuffle
from graphfcl.graph.folder.rows import STEP, FolderRows, Neighbours, misfit
from graphfcl.graph.folder.stored_ids import KeyIndex, NumberIds, RangeIds, StoredIds, TextIds
from graphfcl.graph.folder.visible import VisibleFolder
from graphfcl.graph.graph import UNKNOWN, Features, Graph, TextSettings
from graphfcl.graph.ids import ClassLabel, class_label, class_position, unpack_texts
from graphfcl.graph.tables.columns import ReadColumns
from graphfcl.graph.views import FeatureView
from graphfcl.runtime.devices import device_on_disk
from graphfcl.runtime.resources import Resources

ROWS_AT_A_TIME = 16_384
BYTES_A_COLUMN = 20  # of a node's vector while a method in memory makes all of them
WIDEST_VECTOR = 2 * 1024 + 128
Folder = TypeVar("Folder", bound="GraphFolder")


class GraphFolder:
    """A graph folder as an :class:`~graphfcl.graph.interfaces.AnyGraph`: nodes are its rows, which stay on disk.

    Rows are in an order of their own (:attr:`shuffle`); ids are the user's. Every block of a file is compared with its
    checksum when it is first read. Another process opens the folder again: what is pickled is the path.

    rows: its edges and features alone, which is all that learners are handed. resources: what may be used to compute
    on it; None if it is only read. source: what the folder was imported from.
    unsupported_tracks: of streams; strategies of the track ``active`` compare all nodes in memory. shuffled: rows are
    in the order of a secret key of the folder, which says nothing about classes. component_count: not counted, because
    that needs all edges in memory. stored_values: all values of dense features.
    The other attributes are those of a :class:`~graphfcl.graph.graph.Graph`.
    """

    unsupported_tracks: ClassVar[tuple[str, ...]] = ("active",)
    shuffled: ClassVar[bool] = True
    component_count: ClassVar[None] = None

    def __init__(
        self,
        path: Path,
        manifest: Manifest,
        files: Mapping[str, BlockReader],
        resources: Resources | None = None,
        rows: FolderRows | None = None,
    ) -> None:
        self.path, self.manifest = path, manifest
        self._files, self._resources = files, resources
        self.rows = rows or FolderRows.of(path, manifest, files)
        self.node_count, self.edge_count = self.rows.node_count, self.rows.edge_count
        self.feature_count, self.sparse_features = self.rows.feature_count, self.rows.sparse_features
        self.weighted = self.rows.weighted
        self.name, self.source = manifest.name, manifest.source
        self.notes, self.cleaned = manifest.notes, manifest.cleaned
        self.class_names, self.integer_classes = manifest.class_names, manifest.integer_classes
        self.class_labels = tuple(class_label(name, self.integer_classes) for name in self.class_names)
        self.text = None if manifest.min_nodes is None else TextSettings(manifest.min_nodes, manifest.beside)
        self.column_min_nodes = manifest.column_min_nodes
        self.columns = None if manifest.columns is None else ReadColumns.from_json(manifest.columns)
        self.byte_count = manifest.byte_count
        self.stored_values = manifest.files[FEATURE_VALUES if self.sparse_features else ROWS].items

    @classmethod
    def open(cls, path: str | Path, resources: Resources | None = None) -> "GraphFolder":
        """Read the manifest and look at the size of every file; no content is read.

        resources: what may be used to compute on it; without them it can only be read.
        """
        path = Path(path)
        if not (path / MANIFEST).is_file():
            if is_graph_folder(path):
                raise InputError(
                    f"{path} is a damaged graph folder (it has no {MANIFEST}): copy it again or import the graph again."
                )
            raise InputError(f"{path} is not a graph folder (it has no {MANIFEST}): make one with `data import`.")
        manifest = read_manifest(path)
        files = {name: BlockReader(path / name, entry) for name, entry in manifest.files.items()}
        return GraphFolder(path, manifest, files, resources)

    def with_resources(self: Folder, resources: Resources) -> Folder:
        """The same folder, and what may be used to compute on it."""
        other = copy(self)
        other._resources = resources
        return other

    def __copy__(self: Folder) -> Folder:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return GraphFolder.open, (self.path, self._resources)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({str(self.path)!r}, {self.node_count:,} nodes, {self.edge_count:,} edges, "
            f"{self.feature_count:,} features, {len(self.class_names)} classes)"
        )

    @property
    def resources(self) -> Resources:
        """What may be used to compute on it."""
        if self._resources is None:
            raise InputError(
                f"{self.path} was opened to be read alone: open it with GraphFolder.open(path, Resources(work, memory))"
                " to compute on it."
            )
        return self._resources

    @property
    def sha256(self) -> str:
        """A fingerprint of counts, names and all checksums; the order of rows is part of it."""
        return self.manifest.digest

    # Edges, features, labels

    def neighbours(self, start: int, stop: int) -> Neighbours:
        """The neighbours of rows ``start`` to ``stop`` - 1, read into fresh arrays."""
        return self.rows.neighbours(start, stop)

    def neighbour_ranges(self, neighbours: int = STEP) -> list[tuple[int, int]]:
        """Ranges of rows that cover the graph, each with about so many neighbours (more if a single row has more)."""
        return self.rows.neighbour_ranges(neighbours)

    def degrees(self) -> np.ndarray:
        """(n,) float32 sums of the weights of a row's edges."""
        return self.rows.degrees()

    def features(self, start: int, stop: int) -> Features:
        """(stop - start, d) float32, a CSR matrix if the folder has sparse features."""
        return self.rows.features(start, stop)

    def feature_blocks(self, chosen: np.ndarray) -> Iterator[Features]:
        """The raw features of the rows where ``chosen`` (n,) is true, in blocks that are not empty."""
        for start in range(0, self.node_count, ROWS_AT_A_TIME):
            stop = min(start + ROWS_AT_A_TIME, self.node_count)
            if chosen[start:stop].any():
                yield self.features(start, stop)[np.flatnonzero(chosen[start:stop])]

    @cached_property
    def feature_names(self) -> np.ndarray | None:
        """(d,) texts, if the features have names."""
        if not self.manifest.feature_names:
            return None
        content, starts = (file.read(0, file.entry.items) for file in map(self._files.get, (NAME_TEXT, NAME_STARTS)))  # type: ignore[union-attr]
        return unpack_texts(content, starts)

    @cached_property
    def labels(self) -> np.ndarray:
        """(n,) int32 positions in ``class_names``; ``UNKNOWN`` (-1) where the class is not known."""
        labels = self._files[LABELS].read(0, self.manifest.nodes)
        if labels.size and not UNKNOWN <= int(labels.min()) <= int(labels.max()) < len(self.class_names):
            raise misfit(self.path / LABELS)
        labels.flags.writeable = False
        return labels

    @cached_property
    def class_sizes(self) -> np.ndarray:
        """(classes,) number of nodes of each class."""
        return np.bincount(self.labels[self.labels >= 0], minlength=len(self.class_names))

    def class_number(self, label: ClassLabel) -> int | None:
        """The position of a class, or None."""
        return class_position(self.class_names, label)

    @cached_property
    def same_class_share(self) -> float | None:
        """Share of edges, among those with both labels known, whose ends are of one class; counted in blocks."""
        same, labelled = 0, 0
        for start, stop in self.neighbour_ranges():
            part = self.neighbours(start, stop)
            first = np.repeat(self.labels[start:stop], np.diff(part.indptr))
            second = self.labels[part.indices]
            both = (first >= 0) & (second >= 0)
            labelled += int(both.sum())
            same += int((both & (first == second)).sum())
        return same / labelled if labelled else None

    @property
    def isolated_node_count(self) -> int:
        return int((self.degrees() == 0).sum())

    def verify(self) -> None:
        """Compare every file with its checksums; the first that differs is named."""
        for file in self._files.values():
            file.verify()

    # Ids

    def ids(self, rows: Any) -> np.ndarray:
        """(m,) the user's ids of some rows: int64 or texts."""
        return self._ids.of(np.asarray(rows, dtype=np.int64))

    def nodes_of(self, ids: Any) -> np.ndarray:
        """(m,) the rows of the user's ids; -1 where there is none. A number and its text are one id."""
        return self._ids.find(ids)

    @cached_property
    def node_ids(self) -> np.ndarray:
        """(n,) the user's ids, by row."""
        return self.ids(np.arange(self.node_count))

    @cached_property
    def shuffle(self) -> Shuffle:
        """Rows of the folder ↔ positions in the source, by the key that the import left in the folder."""
        file = self._files[ORDER_KEY]
        return Shuffle(self.manifest.nodes, int.from_bytes(file.read(0, file.entry.items).tobytes(), "big"))

    @cached_property
    def _ids(self) -> StoredIds:
        if self.manifest.ids == "range":
            return RangeIds(self.shuffle)
        index = KeyIndex(self._files[ID_KEYS], self._files[ID_ORDER])
        if self.manifest.ids == "numbers":
            return NumberIds(self._files[IDS], index)
        return TextIds(self._files[ID_TEXT], self._files[ID_STARTS], index, self.manifest.hash_seed)

    # Computing on it

    @property
    def work(self) -> Path:
        return self.resources.work

    def device_for(self, wanted: str) -> str:
        """The CPU; a GPU is refused."""
        return device_on_disk(wanted)

    @contextmanager
    def with_workers(self: Folder) -> Iterator[Folder]:
        """The same graph, with workers that run until the context ends."""
        with self.resources.at_work() as resources:
            yield self.with_resources(resources)

    def visible(
        self, numbers: np.ndarray, view: FeatureView | None = None, node_of_number: np.ndarray | None = None
    ) -> VisibleFolder:
        """The part that has some nodes; see :class:`~graphfcl.graph.interfaces.AnyGraph`."""
        mask = None
        if numbers.size < self.node_count:
            mask = np.zeros(self.node_count, dtype=bool)
            mask[numbers if node_of_number is None else node_of_number[numbers]] = True
        return VisibleFolder.of(self.rows, mask, view, self.resources, node_of_number, len(self.class_names))

    # In memory

    @property
    def bytes_in_memory(self) -> int:
        """About what a method takes that computes on all of it in memory."""
        edges = 2 * self.edge_count * 8 * 3  # the graph, what of it is visible, and Â
        width = min(2 * self.feature_count + 128, WIDEST_VECTOR)
        return 2 * self.byte_count + edges + self.node_count * width * BYTES_A_COLUMN

    def loaded(self) -> Graph:
        """The graph in memory; a stream of it has the same nodes in the same parts as one of the folder.

        So it has the folder's fingerprint, and a stream that was saved for one serves for the other.
        """
        graph = self._in_memory(None, self.neighbours(0, self.node_count).matrix(self.node_count))
        vars(graph)["sha256"] = self.sha256  # in place of a cached one: a graph that is made of this one has its own
        return graph

    def graph(self) -> Graph:
        """The whole graph in memory, with its nodes in the order of the source."""
        rows, positions = (turn(np.arange(self.node_count)) for turn in (self.shuffle.rows, self.shuffle.positions))
        entries = self.neighbours(0, self.node_count).matrix(self.node_count).tocoo()
        ends = (positions[entries.row], positions[entries.col])
        adjacency = sparse.coo_array((entries.data, ends), shape=entries.shape).tocsr()
        adjacency.sort_indices()
        return self._in_memory(rows, adjacency)

    def _in_memory(self, rows: np.ndarray | None, adjacency: sparse.csr_array) -> Graph:
        """rows: (n,) of the nodes in their order; None: as they are. adjacency: in the same order."""
        features, labels, ids = self.features(0, self.node_count), self.labels, self.node_ids
        if rows is not None:
            features, labels, ids = features[rows], labels[rows], ids[rows]
        return Graph(
            adjacency=adjacency,
            features=features,
            labels=labels.astype(np.int64),
            class_names=self.class_names,
            integer_classes=self.integer_classes,
            node_ids=ids,
            feature_names=self.feature_names,
            text=self.text,
            name=self.name,
            notes=self.notes,
            cleaned=self.cleaned,
            columns=self.columns,
            column_min_nodes=self.column_min_nodes,
        )
