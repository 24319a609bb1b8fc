"""The part of a graph folder that a learner sees, which stays on disk."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy import sparse

from graphfcl.errors import InputError
from graphfcl.graph.folder.manifest import row_type
from graphfcl.graph.folder.rows import FolderRows
from graphfcl.graph.graph import Features
from graphfcl.graph.views import FeatureView
from graphfcl.graph.visible import RELATIONS, VisibleGraph, find_nearby, require_relation
from graphfcl.runtime.arrays import read_only, sealed_copy
from graphfcl.runtime.files import sha256_of
from graphfcl.runtime.resources import Resources


@dataclass(frozen=True, eq=False)
class VisibleFolder:
    """Visible graph that stays on disk. Hidden rows keep their position and have no edges and no features.

    It shares no arrays with a stream or another visible graph, and gives no access to labels, ids or hidden rows.

    Args:
        reader: Edges and features by row.
        mask: (n,) bool, True for visible rows. None if all are visible.
        view: Turns raw features into the features that learners see.
        resources: Memory, workers and work folder for computations.
        row_of_number: (n,) Row of each node number. None means that numbers and rows are the same.
        class_count: Number of classes of the whole graph, by which memory is planned.
    """

    reader: FolderRows
    mask: np.ndarray | None
    view: FeatureView | None
    resources: Resources
    row_of_number: np.ndarray | None = None
    class_count: int = 0
    relations: ClassVar[tuple[str, ...]] = RELATIONS

    @classmethod
    def of(
        cls,
        rows: FolderRows,
        mask: np.ndarray | None,
        view: FeatureView | None,
        resources: Resources,
        row_of_number: np.ndarray | None = None,
        class_count: int = 0,
    ) -> "VisibleFolder":
        """Make the visible part of a folder, with read-only copies of all arrays."""
        mask = sealed_copy(mask)
        numbers = None if row_of_number is None else sealed_copy(row_of_number.astype(row_type(row_of_number.size)))
        return cls(rows.hiding(mask), mask, sealed_copy(view), resources, numbers, class_count)

    def __repr__(self) -> str:
        return f"VisibleFolder({self.node_count:,} of {self.row_count:,} nodes)"

    @property
    def row_count(self) -> int:
        """Number of rows of the folder, including hidden ones."""
        return self.reader.node_count

    @cached_property
    def node_count(self) -> int:
        return self.row_count if self.mask is None else int(np.count_nonzero(self.mask))

    @cached_property
    def edge_count(self) -> int:
        """Number of undirected edges between visible nodes, counted in one pass over the folder."""
        if self.mask is None:
            return self.reader.edge_count
        return sum(self.reader.neighbours(*each).indices.size for each in self.reader.neighbour_ranges()) // 2

    @cached_property
    def feature_count(self) -> int:
        """Number of feature columns that learners see."""
        return int(self.features_at(np.zeros(0, dtype=np.int64)).shape[1])

    @property
    def sparse_features(self) -> bool:
        return self.reader.sparse_features

    @property
    def weighted(self) -> bool:
        return self.reader.weighted

    @cached_property
    def degrees(self) -> np.ndarray:
        """(n,) float32 sum of the edge weights of each row, from one pass over the folder."""
        return read_only(self.reader.degrees())

    @property
    def nodes(self) -> np.ndarray:
        """(n,) int64 numbers of the visible nodes, ascending."""
        if self.mask is None:
            return np.arange(self.row_count)
        return np.flatnonzero(self.mask if self.row_of_number is None else self.mask[self.row_of_number])

    @cached_property
    def mask_digest(self) -> str:
        """Hash of the set of visible rows; empty if all are visible."""
        return "" if self.mask is None else sha256_of(np.packbits(self.mask).tobytes())

    def contains(self, nodes: np.ndarray) -> np.ndarray:
        """Tell for each node number whether it is visible."""
        nodes = np.asarray(nodes)
        inside = (nodes >= 0) & (nodes < self.row_count)
        if self.mask is not None:
            inside[inside] = self.mask[self._rows(nodes[inside])]
        return inside

    def rows(self, nodes: np.ndarray) -> np.ndarray:
        """Return (m,) int64 rows of node numbers; an InputError if a node is not visible."""
        nodes = np.asarray(nodes)
        visible = self.contains(nodes)
        if not visible.all():
            hidden = nodes[~visible]
            raise InputError(f"node {hidden[0]} is not in the visible graph: ask only for nodes that exist now.")
        return self._rows(nodes)

    def _rows(self, nodes: np.ndarray) -> np.ndarray:
        return nodes if self.row_of_number is None else self.row_of_number[nodes].astype(np.int64)

    def numbers(self, rows: np.ndarray) -> np.ndarray:
        """Return (m,) int64 node numbers of rows, the reverse of :meth:`rows`."""
        return rows if self._number_of_row is None else self._number_of_row[rows]

    @cached_property
    def _number_of_row(self) -> np.ndarray | None:
        return None if self.row_of_number is None else np.argsort(self.row_of_number)

    def row_blocks(self) -> list[tuple[int, int]]:
        """Return ranges of rows that cover the folder, each with a bounded number of edges."""
        return self.reader.neighbour_ranges()

    def features_at(self, rows: np.ndarray) -> Features:
        """Return (m, d) features of rows in any order, as a learner sees them."""
        features = self.reader.features_at(rows)
        return features if self.view is None else self.view.apply(features)

    def neighbours_at(self, rows: np.ndarray, relation: str = RELATIONS[0]) -> sparse.csr_array:
        """Return (m, n) rows of the adjacency in any order, without edges to hidden nodes."""
        require_relation(relation)
        return self.reader.neighbours_at(rows)

    def product(self, values: np.ndarray) -> np.ndarray:
        """Multiply A with values of shape (n,) or (n, k), with one block of A in memory at a time."""
        total = np.empty(values.shape, dtype=np.result_type(values, np.float32))
        for start, stop in self.row_blocks():
            total[start:stop] = self.reader.neighbours(start, stop).matrix(self.row_count) @ values
        return total

    def around(self, rows: np.ndarray, hops: int) -> VisibleGraph:
        """Load the nodes within ``hops`` edges of some rows; see :class:`VisibleNodes`.

        Degrees of all rows are used if they are cached, or follow from the row pointers alone. Otherwise only degrees
        of the loaded nodes are computed.
        """
        nearby = find_nearby(self.neighbours_at, rows, hops, self.row_count)
        if "degrees" in self.__dict__ or (self.mask is None and not self.weighted):
            degrees = self.degrees[nearby.nodes]
        else:
            degrees = np.zeros(nearby.nodes.size, dtype=np.float32)
            outer = self.neighbours_at(nearby.outermost)
            for some, block in ((nearby.inner, nearby.inner_rows), (nearby.outermost, outer)):
                degrees[np.searchsorted(nearby.nodes, some)] = np.asarray(block.sum(axis=1), dtype=np.float32)
        return VisibleGraph(nearby.nodes, nearby.adjacency, self.features_at(nearby.nodes)).with_degrees(degrees)

    def loaded(self) -> VisibleGraph:
        """Load all visible nodes into memory."""
        rows = self.rows(self.nodes)
        adjacency = sparse.csr_array(self.neighbours_at(rows)[:, rows])
        adjacency.sort_indices()
        return VisibleGraph(self.nodes, adjacency, self.features_at(rows))
