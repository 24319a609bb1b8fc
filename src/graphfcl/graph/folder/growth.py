"""Nodes and edges that were added to or removed from a graph folder, which itself stays as it is."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from graphfcl.graph.folder.reader import GraphFolder
from graphfcl.graph.graph import Features
from graphfcl.graph.ids import IdIndex
from graphfcl.runtime.files import canonical_json, sha256_of

EDGES = ("first", "second", "weights", "before")


@dataclass(frozen=True, eq=False)
class Growth:
    """The difference between a graph and the graph folder that it began as.

    A row is never used twice: added nodes get the rows after those of the folder, and the row of a removed node stays
    empty. Nothing is kept of a removed node but its row.

    row_count: all rows, those of removed nodes included. places: (m,) int64 rows of the added nodes that are there,
    ascending. ids, features: of these nodes; features are raw. gone: (g,) int64 rows of the folder whose nodes were
    removed, ascending.
    first, second: (e,) int64 rows of the ends of changed edges, first < second, in order, each pair once. weights,
    before: (e,) float32 weight of the pair now, 0 if it was removed, and in the folder, 0 if it is not there.
    edge_change: number of edges more than in the folder.
    """

    row_count: int
    places: np.ndarray
    ids: np.ndarray
    features: Features
    gone: np.ndarray
    first: np.ndarray
    second: np.ndarray
    weights: np.ndarray
    before: np.ndarray
    edge_change: int = 0

    @classmethod
    def none(cls, folder: GraphFolder) -> "Growth":
        """Nothing was changed."""
        nowhere, nothing = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
        ids, features = folder.ids(nowhere), folder.features(0, 0)
        return cls(folder.node_count, nowhere, ids, features, nowhere, nowhere, nowhere, nothing, nothing)

    @property
    def is_empty(self) -> bool:
        return not (self.places.size or self.gone.size or self.first.size)

    @cached_property
    def digest(self) -> str:
        """Differs whenever something else was changed."""
        ids = [str(each) for each in self.ids.tolist()]
        parts = {name: sha256_of(np.ascontiguousarray(array).tobytes()) for name, array in self.arrays().items()}
        return sha256_of(canonical_json([ids, parts, list(self.features.shape)]))

    def arrays(self) -> dict[str, np.ndarray]:
        """All of it but the ids."""
        counts = np.array([self.row_count, self.edge_change], dtype=np.int64)
        found = {name: getattr(self, name) for name in ("places", "gone", *EDGES)} | {"counts": counts}
        if isinstance(self.features, np.ndarray):
            return {**found, "rows": self.features}
        values = {"indptr": self.features.indptr, "indices": self.features.indices, "data": self.features.data}
        return {**found, **values}

    @classmethod
    def of_arrays(cls, ids: np.ndarray, arrays: dict[str, np.ndarray], width: int) -> "Growth":
        """The reverse of :meth:`arrays`. width: columns of features."""
        row_count, edge_change = arrays["counts"].tolist()
        features: Any = arrays.get("rows")
        if features is None:
            parts = (arrays["data"], arrays["indices"], arrays["indptr"])
            features = sparse.csr_array(parts, shape=(ids.size, width))
        rows = {name: arrays[name] for name in ("places", "gone", *EDGES)}
        return cls(row_count=row_count, ids=ids, features=features, edge_change=edge_change, **rows)

    @cached_property
    def index(self) -> IdIndex:
        """How the added nodes are found."""
        return IdIndex(self.ids)

    def shown(self, folder_rows: int) -> np.ndarray | None:
        """(row_count,) bool, whether the node of a row is there; None if all are. folder_rows: those of the folder."""
        if not self.gone.size and self.row_count == folder_rows + self.places.size:
            return None
        mask = np.zeros(self.row_count, dtype=bool)
        mask[:folder_rows] = True
        mask[self.gone] = False
        mask[self.places] = True
        return mask

    # Changes

    def with_nodes(self, ids: np.ndarray, features: Features) -> "Growth":
        """More nodes, in the rows that follow."""
        rows = np.arange(self.row_count, self.row_count + ids.size)
        if isinstance(self.features, np.ndarray):
            stacked: Features = np.concatenate([self.features, np.asarray(features, dtype=np.float32)])
        else:
            stacked = sparse.csr_array(sparse.vstack([self.features, features], format="csr", dtype=np.float32))
        return replace(
            self,
            row_count=self.row_count + ids.size,
            places=np.concatenate([self.places, rows]),
            ids=np.concatenate([self.ids, ids]),
            features=stacked,
        )

    def without_nodes(self, rows: np.ndarray, folder_rows: int, edges: int) -> "Growth":
        """Fewer nodes, their changed edges with them. rows: of nodes that are there. edges: how many they have."""
        kept = ~np.isin(self.places, rows)
        untouched = ~(np.isin(self.first, rows) | np.isin(self.second, rows))
        return replace(
            self,
            places=self.places[kept],
            ids=self.ids[kept],
            features=self.features[np.flatnonzero(kept)],
            gone=np.union1d(self.gone, rows[rows < folder_rows]).astype(np.int64),
            edge_change=self.edge_change - edges,
            **{name: getattr(self, name)[untouched] for name in EDGES},
        )

    def with_weights(
        self, first: np.ndarray, second: np.ndarray, weights: np.ndarray, before: np.ndarray, edge_change: int
    ) -> "Growth":
        """Other weights of some pairs, each once; 0 removes an edge.

        before: (e,) their weights in the folder. edge_change: edges more than now.
        """
        pairs = np.stack([np.concatenate([self.first, first]), np.concatenate([self.second, second])])
        both = np.concatenate([self.weights, weights]), np.concatenate([self.before, before])
        order = np.lexsort((-np.arange(pairs.shape[1]), pairs[1], pairs[0]))  # of a pair the later weight comes first
        pairs, now, then = pairs[:, order], both[0][order], both[1][order]
        kept = np.ones(order.size, dtype=bool)
        kept[1:] = (np.diff(pairs, axis=1) != 0).any(axis=0)
        kept &= now != then
        return replace(
            self,
            first=pairs[0, kept],
            second=pairs[1, kept],
            weights=now[kept].astype(np.float32),
            before=then[kept].astype(np.float32),
            edge_change=self.edge_change + edge_change,
        )
