"""Nodes and edges that were added to a graph folder, which itself stays as it is."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from graphfcl.files import canonical_json, sha256_of
from graphfcl.graph.folder.reader import GraphFolder
from graphfcl.graph.graph import Features
from graphfcl.graph.id_index import IdIndex


@dataclass(frozen=True, eq=False)
class Growth:
    """ids, features: of the (m,) added nodes, whose rows follow those of the folder; features are raw.

    first, second: (e,) int64 rows of the ends of added edges, first < second, in order, each pair once. weights,
    before: (e,) float32 what the pair weighs, and what it weighs in the folder: 0 if it is not there.
    """

    ids: np.ndarray
    features: Features
    first: np.ndarray
    second: np.ndarray
    weights: np.ndarray
    before: np.ndarray

    @classmethod
    def none(cls, folder: GraphFolder) -> "Growth":
        """Nothing was added."""
        nowhere, nothing = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
        return cls(folder.ids(nowhere), folder.features(0, 0), nowhere, nowhere, nothing, nothing)

    @property
    def is_empty(self) -> bool:
        return not self.ids.size and not self.first.size

    @property
    def edge_count(self) -> int:
        """Pairs that the folder does not have."""
        return int(np.count_nonzero(self.before == 0))

    @cached_property
    def digest(self) -> str:
        """Differs whenever something else was added."""
        ids = [str(each) for each in self.ids.tolist()]
        parts = {name: sha256_of(np.ascontiguousarray(array).tobytes()) for name, array in self.arrays().items()}
        return sha256_of(canonical_json([ids, parts, list(self.features.shape)]))

    def arrays(self) -> dict[str, np.ndarray]:
        """All of it but the ids."""
        found = {name: getattr(self, name) for name in ("first", "second", "weights", "before")}
        if isinstance(self.features, np.ndarray):
            return {**found, "rows": self.features}
        values = {"indptr": self.features.indptr, "indices": self.features.indices, "data": self.features.data}
        return {**found, **values}

    @classmethod
    def of_arrays(cls, ids: np.ndarray, arrays: dict[str, np.ndarray], width: int) -> "Growth":
        """The reverse of :meth:`arrays`. width: columns of features."""
        edges = (arrays[name] for name in ("first", "second", "weights", "before"))
        features: Any = arrays.get("rows")
        if features is None:
            parts = (arrays["data"], arrays["indices"], arrays["indptr"])
            features = sparse.csr_array(parts, shape=(ids.size, width))
        return cls(ids, features, *edges)

    @cached_property
    def index(self) -> IdIndex:
        """How the added nodes are found."""
        return IdIndex(self.ids)

    def with_nodes(self, ids: np.ndarray, features: Features) -> "Growth":
        """More nodes."""
        if isinstance(self.features, np.ndarray):
            stacked: Features = np.concatenate([self.features, np.asarray(features, dtype=np.float32)])
        else:
            stacked = sparse.csr_array(sparse.vstack([self.features, features], format="csr", dtype=np.float32))
        return replace(self, ids=np.concatenate([self.ids, ids]), features=stacked)

    def with_edges(self, first: np.ndarray, second: np.ndarray, weights: np.ndarray, before: np.ndarray) -> "Growth":
        """More edges, each pair once; one that was added before gets the larger weight."""
        pairs = np.stack([np.concatenate([self.first, first]), np.concatenate([self.second, second])])
        both = np.concatenate([self.weights, weights]), np.concatenate([self.before, before])
        order = np.lexsort((-both[0], pairs[1], pairs[0]))
        pairs = pairs[:, order]
        kept = np.ones(order.size, dtype=bool)
        kept[1:] = (np.diff(pairs, axis=1) != 0).any(axis=0)
        return replace(
            self,
            first=pairs[0, kept],
            second=pairs[1, kept],
            weights=both[0][order][kept].astype(np.float32),
            before=both[1][order][kept].astype(np.float32),
        )
