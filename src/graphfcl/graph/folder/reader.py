"""A graph that lies on the disk, read in parts."""

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from graphfcl.errors import InputError
from graphfcl.graph.folder.blocks import BlockReader
from graphfcl.graph.folder.manifest import (
    FEATURE_VALUES,
    FORMAT,
    ID_KEYS,
    ID_ORDER,
    ID_STARTS,
    ID_TEXT,
    IDS,
    INDICES,
    INDPTR,
    LABELS,
    MANIFEST,
    NAME_STARTS,
    NAME_TEXT,
    ORDER_KEY,
    ROWS,
    Manifest,
    read_manifest,
)
from graphfcl.graph.folder.permutation import Shuffle
from graphfcl.graph.folder.rows import STEP, FolderRows, Neighbours, misfit
from graphfcl.graph.folder.stored_ids import KeyIndex, NumberIds, RangeIds, StoredIds, TextIds
from graphfcl.graph.folder.text_keys import unpack_texts
from graphfcl.graph.graph import UNKNOWN, Features, Graph, TextSettings
from graphfcl.graph.ids import text_array
from graphfcl.graph.tables.columns import ReadColumns

ALWAYS = (INDPTR, INDICES, LABELS)  # files of every graph folder, by which one with a damaged manifest is known


class GraphFolder:
    """A graph folder, opened to be read. Its rows are in an order of their own (:attr:`shuffle`); ids are the user's.

    Every block of a file is compared with its checksum when it is first read. Another process opens the folder again:
    what is pickled is the path.

    rows: its edges and features alone.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path, self.manifest = path, manifest
        self._files = {name: BlockReader(path / name, entry) for name, entry in manifest.files.items()}
        self.rows = FolderRows.of(path, manifest, self._files)

    @classmethod
    def open(cls, path: str | Path) -> "GraphFolder":
        """Read the manifest and look at the size of every file; no content is read."""
        if not (Path(path) / MANIFEST).is_file():
            if is_graph_folder(path):
                raise InputError(
                    f"{path} is a damaged graph folder (it has no {MANIFEST}): copy it again or import the graph again."
                )
            raise InputError(f"{path} is not a graph folder (it has no {MANIFEST}): make one with `data import`.")
        return cls(Path(path), read_manifest(Path(path)))

    def __reduce__(self) -> tuple[Any, tuple[Path]]:
        return GraphFolder.open, (self.path,)

    def __repr__(self) -> str:
        return (
            f"GraphFolder({str(self.path)!r}, {self.node_count:,} nodes, {self.edge_count:,} edges, "
            f"{self.feature_count:,} features, {len(self.class_names)} classes)"
        )

    @property
    def name(self) -> str:
        return self.manifest.name

    @property
    def node_count(self) -> int:
        return self.manifest.nodes

    @property
    def edge_count(self) -> int:
        """Undirected edges: each pair of nodes counts once."""
        return self.manifest.edges

    @property
    def feature_count(self) -> int:
        return self.manifest.features

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.manifest.class_names

    @property
    def integer_classes(self) -> bool:
        """Whether the user's labels are integers; the names are these as texts."""
        return self.manifest.integer_classes

    @property
    def weighted(self) -> bool:
        return self.manifest.weighted

    @property
    def sparse_features(self) -> bool:
        return self.manifest.sparse_features

    @property
    def text(self) -> TextSettings | None:
        """Set if the features are word counts."""
        if self.manifest.min_nodes is None:
            return None
        return TextSettings(self.manifest.min_nodes, self.manifest.beside)

    @property
    def columns(self) -> ReadColumns | None:
        """Those of the tables that the graph was read from."""
        return None if self.manifest.columns is None else ReadColumns.from_json(self.manifest.columns)

    @property
    def digest(self) -> str:
        """SHA-256 of counts, names and all checksums."""
        return self.manifest.digest

    @property
    def byte_count(self) -> int:
        """Bytes of all files."""
        return self.manifest.byte_count

    @property
    def stored_values(self) -> int:
        """How many values of features are stored: all, or those that are not zero."""
        return self.manifest.files[FEATURE_VALUES if self.sparse_features else ROWS].items

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

    @cached_property
    def labels(self) -> np.ndarray:
        """(n,) int32 positions in ``class_names``; ``UNKNOWN`` (-1) where the class is not known."""
        labels = self._files[LABELS].read(0, self.node_count)
        if labels.size and not UNKNOWN <= int(labels.min()) <= int(labels.max()) < len(self.class_names):
            raise misfit(self.path / LABELS)
        labels.flags.writeable = False
        return labels

    @cached_property
    def class_sizes(self) -> np.ndarray:
        """(classes,) number of nodes of each class."""
        return np.bincount(self.labels[self.labels >= 0], minlength=len(self.class_names))

    @cached_property
    def feature_names(self) -> np.ndarray | None:
        """(d,) texts, if the features have names."""
        if not self.manifest.feature_names:
            return None
        content, starts = (file.read(0, file.entry.items) for file in map(self._files.get, (NAME_TEXT, NAME_STARTS)))  # type: ignore[union-attr]
        return text_array(unpack_texts(content, starts))

    def ids(self, rows: Any) -> np.ndarray:
        """(m,) the user's ids of some rows: int64 or texts."""
        return self._ids.of(np.asarray(rows, dtype=np.int64))

    def rows_of(self, ids: Any) -> np.ndarray:
        """(m,) the rows of the user's ids; -1 where there is none. A number and its text are one id."""
        return self._ids.find(ids)

    @cached_property
    def shuffle(self) -> Shuffle:
        """Rows of the folder ↔ positions in the source, by the key that the import left in the folder."""
        file = self._files[ORDER_KEY]
        return Shuffle(self.node_count, int.from_bytes(file.read(0, file.entry.items).tobytes(), "big"))

    @cached_property
    def _ids(self) -> StoredIds:
        if self.manifest.ids == "range":
            return RangeIds(self.shuffle)
        index = KeyIndex(self._files[ID_KEYS], self._files[ID_ORDER])
        if self.manifest.ids == "numbers":
            return NumberIds(self._files[IDS], index)
        return TextIds(self._files[ID_TEXT], self._files[ID_STARTS], index, self.manifest.hash_seed)

    def same_class_share(self) -> float | None:
        """Share of edges, among those with both labels known, whose ends are of one class; in blocks."""
        same, known = 0, 0
        for start, stop in self.neighbour_ranges():
            part = self.neighbours(start, stop)
            first = np.repeat(self.labels[start:stop], np.diff(part.indptr))
            second = self.labels[part.indices]
            both = (first >= 0) & (second >= 0)
            known += int(both.sum())
            same += int((both & (first == second)).sum())
        return same / known if known else None

    def verify(self) -> None:
        """Compare every file with its checksums; the first that differs is named."""
        for file in self._files.values():
            file.verify()

    def graph(self) -> Graph:
        """The whole graph in memory, with its nodes in the order of the source."""
        count = self.node_count
        rows = self.shuffle.rows(np.arange(count))
        positions = self.shuffle.positions(np.arange(count))
        part = self.neighbours(0, count)
        weights = np.ones(part.indices.size, dtype=np.float32) if part.weights is None else part.weights
        sources = positions[np.repeat(np.arange(count), np.diff(part.indptr))]
        adjacency = sparse.coo_array((weights, (sources, positions[part.indices])), shape=(count, count)).tocsr()
        adjacency.sort_indices()
        return Graph(
            adjacency=adjacency,
            features=self.features(0, count)[rows],
            labels=self.labels[rows].astype(np.int64),
            class_names=self.class_names,
            integer_classes=self.integer_classes,
            node_ids=self.ids(np.arange(count))[rows],
            feature_names=self.feature_names,
            text=self.text,
            name=self.name,
            notes=self.manifest.notes,
            cleaned=self.manifest.cleaned,
            columns=self.columns,
            column_min_nodes=self.manifest.column_min_nodes,
        )


def is_graph_folder(path: str | Path) -> bool:
    """Whether ``path`` is a folder whose manifest or files say so; whether it is whole is another matter."""
    try:
        with open(Path(path) / MANIFEST, "rb") as file:
            if FORMAT.encode() in file.read(256):
                return True
    except OSError:
        pass
    return all((Path(path) / name).is_file() for name in ALWAYS)
