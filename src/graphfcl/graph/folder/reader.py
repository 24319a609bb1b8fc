"""A graph that stays on disk and is read in parts, by row or by id."""

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
BYTES_A_COLUMN = 20  # estimated bytes per node and vector column while a method computes all vectors in memory
WIDEST_VECTOR = 2 * 1024 + 128
Folder = TypeVar("Folder", bound="GraphFolder")


class GraphFolder:
    """Graph that stays on disk and is read in blocks.

    Make a folder with :func:`import_graph` and open it with :meth:`open`. It has the attributes of a :class:`Graph`,
    so streams, evaluations and models take it in place of one.

    Nodes are rows of the folder, in a random order that the import drew (:attr:`shuffle`). Each block of a file is
    compared with its checksum when it is first read. Pickling stores only the path; the other process opens the folder
    again.

    Args:
        path: The folder.
        manifest: Content of its manifest.
        files: Reader of each file, by name.
        resources: Memory, workers and work folder for computations. None allows reading only.
        rows: Reader of edges and features. By default it is made from ``files``.

    Attributes:
        rows: Edges and features, the only part that learners receive.
        source: What the folder was imported from.
        stored_values: Number of stored feature values (all values of dense features).
        unsupported_tracks: Tracks of streams that need the graph in memory: ``active``.
        shuffled: True, because rows are in random order, which says nothing about classes.
        component_count: None: counting components needs all edges in memory.

    Examples:
        >>> from graphfcl import GraphFolder, import_graph, load_dataset
        >>> graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> folder = import_graph(graph, "big")
        >>> folder = GraphFolder.open("big")
        >>> folder.node_count, folder.edge_count
        (200, 800)
        >>> folder.features(0, 50).shape
        (50, 30)
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
        """Open a graph folder.

        This reads the manifest and checks the size of each file. Content is read later.

        Args:
            path: The folder.
            resources: Memory, workers and work folder for computations. None allows reading only.

        Returns:
            The graph.

        Raises:
            InputError: If the path is not a graph folder, or the folder is damaged.
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
        """Return the same folder with other resources.

        Args:
            resources: Memory, workers and work folder for computations.

        Returns:
            The folder, which shares its open files with this one.
        """
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
        """Memory, workers and work folder for computations; an InputError if the folder was opened without."""
        if self._resources is None:
            raise InputError(
                f"{self.path} was opened without resources, for reading only: open it with GraphFolder.open(path, "
                "Resources(work, memory)) to compute on it."
            )
        return self._resources

    @property
    def sha256(self) -> str:
        """Fingerprint of counts, names and all checksums. It depends on the order of rows."""
        return self.manifest.digest

    # Edges, features, labels

    def neighbours(self, start: int, stop: int) -> Neighbours:
        """Read the neighbours of a range of rows.

        Args:
            start: First row.
            stop: Row after the last one.

        Returns:
            Neighbours and edge weights in CSR form, in new arrays.
        """
        return self.rows.neighbours(start, stop)

    def neighbour_ranges(self, neighbours: int = STEP) -> list[tuple[int, int]]:
        """Split all rows into ranges with about the same number of neighbours.

        Args:
            neighbours: Number of neighbours in a range. A range has more if a single row has more.

        Returns:
            Ranges ``(start, stop)``, ascending.
        """
        return self.rows.neighbour_ranges(neighbours)

    def degrees(self) -> np.ndarray:
        """Return (n,) float32 sums of the edge weights of each row."""
        return self.rows.degrees()

    def features(self, start: int, stop: int) -> Features:
        """Read the raw features of a range of rows.

        Args:
            start: First row.
            stop: Row after the last one.

        Returns:
            (stop - start, d) float32 matrix, CSR if the folder has sparse features.
        """
        return self.rows.features(start, stop)

    def feature_blocks(self, chosen: np.ndarray) -> Iterator[Features]:
        """Read the raw features of some rows in blocks.

        Args:
            chosen: (n,) bool, True for these rows.

        Returns:
            Iterator over (m, d) features, without empty blocks.
        """
        for start in range(0, self.node_count, ROWS_AT_A_TIME):
            stop = min(start + ROWS_AT_A_TIME, self.node_count)
            if chosen[start:stop].any():
                yield self.features(start, stop)[np.flatnonzero(chosen[start:stop])]

    @cached_property
    def feature_names(self) -> np.ndarray | None:
        """(d,) Names of the feature columns, or None."""
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
        """Return the position of a class in ``class_names``.

        Args:
            label: The class as the user writes it, an integer or a text.

        Returns:
            The position, or None if the graph has no such class.
        """
        return class_position(self.class_names, label)

    @cached_property
    def same_class_share(self) -> float | None:
        """Share of edges within one class, among edges with both labels known (edge homophily)."""
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
        """Compare every file with its checksums; an InputError names the first file that differs."""
        for file in self._files.values():
            file.verify()

    # Ids

    def ids(self, rows: Any) -> np.ndarray:
        """Return the user's ids of some rows.

        Args:
            rows: (m,) Rows, in any order.

        Returns:
            (m,) int64 or texts.
        """
        return self._ids.of(np.asarray(rows, dtype=np.int64))

    def nodes_of(self, ids: Any) -> np.ndarray:
        """Return the rows with these ids.

        Args:
            ids: The user's ids. A number and its text are the same id.

        Returns:
            (m,) int64 Rows; -1 for an id that the graph does not have.
        """
        return self._ids.find(ids)

    @cached_property
    def node_ids(self) -> np.ndarray:
        """(n,) The user's ids, by row."""
        return self.ids(np.arange(self.node_count))

    @cached_property
    def shuffle(self) -> Shuffle:
        """Permutation between rows of the folder and positions in the source, from the key in the folder."""
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

    # Computations

    @property
    def work(self) -> Path:
        """Work folder for intermediate results."""
        return self.resources.work

    def device_for(self, wanted: str) -> str:
        """Return the device to compute on.

        Args:
            wanted: Name of a device: ``cpu`` or ``auto``.

        Returns:
            ``cpu``.

        Raises:
            InputError: If ``wanted`` is a GPU.
        """
        return device_on_disk(wanted)

    @contextmanager
    def with_workers(self: Folder) -> Iterator[Folder]:
        """Return a context with the same graph and workers that run until it ends."""
        with self.resources.at_work() as resources:
            yield self.with_resources(resources)

    def visible(
        self, numbers: np.ndarray, view: FeatureView | None = None, node_of_number: np.ndarray | None = None
    ) -> VisibleFolder:
        """Return the visible graph of some nodes, which also stays on disk.

        Args:
            numbers: (m,) Numbers of the visible nodes, ascending.
            view: Turns raw features into the features that learners see. None keeps raw features.
            node_of_number: (n,) Row for each number. None means that rows and numbers are the same.

        Returns:
            The visible graph, without labels and ids.
        """
        mask = None
        if numbers.size < self.node_count:
            mask = np.zeros(self.node_count, dtype=bool)
            mask[numbers if node_of_number is None else node_of_number[numbers]] = True
        return VisibleFolder.of(self.rows, mask, view, self.resources, node_of_number, len(self.class_names))

    # In memory

    @property
    def bytes_in_memory(self) -> int:
        """Estimate of the memory for a method that computes on the whole graph in memory."""
        edges = 2 * self.edge_count * 8 * 3  # the graph, its visible part, and Â
        width = min(2 * self.feature_count + 128, WIDEST_VECTOR)
        return 2 * self.byte_count + edges + self.node_count * width * BYTES_A_COLUMN

    def loaded(self) -> Graph:
        """Load the graph into memory, with nodes in the order of rows.

        The result has the fingerprint of the folder, so streams draw the same nodes for both, and a stream saved for
        one can be loaded for the other.
        """
        graph = self._in_memory(None, self.neighbours(0, self.node_count).matrix(self.node_count))
        vars(graph)["sha256"] = self.sha256  # fill the cached property; graphs derived from this one compute their own
        return graph

    def graph(self) -> Graph:
        """Load the graph into memory, with nodes in the order of the source."""
        rows, positions = (turn(np.arange(self.node_count)) for turn in (self.shuffle.rows, self.shuffle.positions))
        entries = self.neighbours(0, self.node_count).matrix(self.node_count).tocoo()
        ends = (positions[entries.row], positions[entries.col])
        adjacency = sparse.coo_array((entries.data, ends), shape=entries.shape).tocsr()
        adjacency.sort_indices()
        return self._in_memory(rows, adjacency)

    def _in_memory(self, rows: np.ndarray | None, adjacency: sparse.csr_array) -> Graph:
        """Make a graph with nodes in the order of ``rows`` (None: unchanged) and an adjacency in that order."""
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
