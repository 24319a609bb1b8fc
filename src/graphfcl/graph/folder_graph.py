"""A graph folder as streams know graphs: names, labels and ids; nodes are its rows, and edges stay on the disk."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy import sparse

from graphfcl.graph.folder.reader import GraphFolder
from graphfcl.graph.folder.visible import VisibleFolder
from graphfcl.graph.graph import Features, Graph, TextSettings
from graphfcl.graph.ids import ClassLabel, class_label, normal, text_of
from graphfcl.graph.tables.columns import ReadColumns
from graphfcl.graph.views import FeatureView, Standardisation, TextWeights
from graphfcl.runtime.devices import device_on_disk
from graphfcl.runtime.resources import Resources

ROWS_AT_A_TIME = 16_384
BYTES_A_COLUMN = 20  # of a node's vector while a method in memory makes all of them
WIDEST_VECTOR = 2 * 1024 + 128


@dataclass(frozen=True, eq=False)
class FolderGraph:
    """A graph folder, and what may be used to compute on it."""

    folder: GraphFolder
    means: Resources

    def __repr__(self) -> str:
        return repr(self.folder)

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def node_count(self) -> int:
        return self.folder.node_count

    @property
    def edge_count(self) -> int:
        return self.folder.edge_count

    @property
    def labels(self) -> np.ndarray:
        return self.folder.labels

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.folder.class_names

    @property
    def integer_classes(self) -> bool:
        return self.folder.integer_classes

    @property
    def class_labels(self) -> tuple[ClassLabel, ...]:
        """The classes as the user writes them: integers or texts."""
        return tuple(class_label(name, self.integer_classes) for name in self.class_names)

    @property
    def class_sizes(self) -> np.ndarray:
        return self.folder.class_sizes

    @property
    def text(self) -> TextSettings | None:
        return self.folder.text

    @property
    def cleaned(self) -> int:
        return self.folder.manifest.cleaned

    @property
    def notes(self) -> tuple[str, ...]:
        return self.folder.manifest.notes

    @property
    def source(self) -> str:
        """What the folder was imported from."""
        return self.folder.manifest.source

    @property
    def columns(self) -> ReadColumns | None:
        """Of the tables that it was imported from."""
        return self.folder.columns

    @property
    def column_min_nodes(self) -> int:
        return self.folder.manifest.column_min_nodes

    @property
    def sha256(self) -> str:
        """A fingerprint of the folder, its order of nodes included."""
        return self.folder.digest

    @cached_property
    def node_ids(self) -> np.ndarray:
        """(n,) the user's ids, by row."""
        return self.folder.ids(np.arange(self.node_count))

    def nodes_of(self, ids: "list[str] | list[int] | np.ndarray") -> np.ndarray:
        """Rows of the user's ids; -1 for an id the folder does not have."""
        return self.folder.rows_of(ids)

    def class_number(self, label: ClassLabel) -> int | None:
        """The position of a class, or None."""
        name = text_of(label)
        numbers = {known: number for number, known in enumerate(self.class_names)}
        return numbers.get(name, numbers.get(normal(name)))

    @property
    def feature_count(self) -> int:
        return self.folder.feature_count

    @property
    def sparse_features(self) -> bool:
        return self.folder.sparse_features

    @property
    def stored_values(self) -> int:
        return self.folder.stored_values

    @property
    def weighted(self) -> bool:
        return self.folder.weighted

    @property
    def byte_count(self) -> int:
        """Bytes of all files."""
        return self.folder.byte_count

    @cached_property
    def same_class_share(self) -> float | None:
        """Share of edges, among those with both labels known, whose ends are of one class; counted in blocks."""
        return self.folder.same_class_share()

    @property
    def isolated_node_count(self) -> int:
        return int((self.folder.degrees() == 0).sum())

    @property
    def component_count(self) -> None:
        """Not counted: that needs all edges in memory."""
        return None

    @property
    def unsupported_tracks(self) -> tuple[str, ...]:
        """Strategies of the track ``asked`` compare all nodes in memory."""
        return ("asked",)

    @property
    def shuffled(self) -> bool:
        """Rows are in the order of a secret key of the folder."""
        return True

    @property
    def work(self) -> Path:
        return self.means.work

    def device_for(self, wanted: str) -> str:
        """The CPU; a GPU is refused."""
        return device_on_disk(wanted)

    @contextmanager
    def with_workers(self) -> "Iterator[FolderGraph]":
        """The same graph, with workers that run until the context ends."""
        with self.means.at_work() as means:
            yield replace(self, means=means)

    def visible(
        self, numbers: np.ndarray, view: FeatureView | None = None, node_of_number: np.ndarray | None = None
    ) -> VisibleFolder:
        """The part that has some nodes; see :class:`~graphfcl.graph.interfaces.AnyGraph`."""
        mask = None
        if numbers.size < self.node_count:
            mask = np.zeros(self.node_count, dtype=bool)
            mask[numbers if node_of_number is None else node_of_number[numbers]] = True
        return VisibleFolder.of(self.folder, mask, view, self.means, node_of_number)

    # Views of features, fitted in blocks

    def standardisation(self, chosen: np.ndarray) -> Standardisation:
        """Of the rows where ``chosen`` (n,) is true."""
        return Standardisation.fit_blocks(lambda: self.feature_blocks(chosen))

    def text_weights(self, chosen: np.ndarray, settings: TextSettings) -> TextWeights:
        """TF-IDF, and the numbers beside the words, fitted on these rows."""
        return TextWeights.fit_blocks(lambda: self.feature_blocks(chosen), settings.min_nodes, settings.beside)

    def feature_blocks(self, chosen: np.ndarray) -> Iterator[Features]:
        """The raw features of the rows where ``chosen`` (n,) is true, in blocks that are not empty."""
        for start in range(0, self.node_count, ROWS_AT_A_TIME):
            stop = min(start + ROWS_AT_A_TIME, self.node_count)
            if chosen[start:stop].any():
                yield self.folder.features(start, stop)[np.flatnonzero(chosen[start:stop])]

    # In memory

    @property
    def bytes_in_memory(self) -> int:
        """About what a method takes that computes on all of it in memory."""
        folder = self.folder
        edges = 2 * folder.edge_count * 8 * 3  # the graph, what of it is visible, and Â
        width = min(2 * folder.feature_count + 128, WIDEST_VECTOR)
        return 2 * folder.byte_count + edges + folder.node_count * width * BYTES_A_COLUMN

    def loaded(self) -> Graph:
        """The graph in memory; a stream of it has the same nodes in the same parts as one of the folder.

        So it has the folder's fingerprint, and a stream that was saved for one serves for the other.
        """
        folder, count = self.folder, self.node_count
        part = folder.neighbours(0, count)
        weights = np.ones(part.indices.size, dtype=np.float32) if part.weights is None else part.weights
        found = Graph(
            adjacency=sparse.csr_array((weights, part.indices, part.indptr), shape=(count, count)),
            features=folder.features(0, count),
            labels=self.labels.astype(np.int64),
            class_names=self.class_names,
            integer_classes=self.integer_classes,
            node_ids=self.node_ids,
            feature_names=folder.feature_names,
            text=folder.text,
            name=self.name,
            notes=self.notes,
            cleaned=self.cleaned,
            columns=self.columns,
            column_min_nodes=self.column_min_nodes,
        )
        vars(found)["sha256"] = self.sha256  # in place of a cached one: a graph that is made of this one has its own
        return found


def open_graph(path: str | Path, means: Resources | None = None) -> FolderGraph:
    """Open a graph folder. means: what may be used to compute on it; without them it is only looked at."""
    return FolderGraph(GraphFolder.open(path), Resources(Path(), 0) if means is None else means)
