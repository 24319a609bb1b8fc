"""Labelled nodes that a learner keeps to train on again."""

from dataclasses import dataclass

import numpy as np
import torch
from scipy import sparse

from graphfcl.arrays import rank_in_run
from graphfcl.graph import Features, VisibleGraph, join_without_edges
from graphfcl.methods.learner import Labelled


@dataclass(frozen=True, eq=False)
class ReplayMemory:
    """Nodes and their columns, in the order in which they came; the first of a class are its most important ones.

    features: their rows, where the graph of a later session will not have them (the track ``isolated``); without edges
        is how they are encoded there.
    """

    nodes: np.ndarray
    labels: np.ndarray
    features: Features | None = None

    @classmethod
    def empty(cls) -> "ReplayMemory":
        return cls(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))

    def with_nodes(
        self, nodes: np.ndarray, labels: np.ndarray, visible: VisibleGraph, *, keep_features: bool
    ) -> "ReplayMemory":
        """The memory with more nodes, which must be visible now; those it has already are not taken twice."""
        new = ~np.isin(nodes, self.nodes)
        nodes, labels = nodes[new], labels[new]
        features = None
        if keep_features:
            features = visible.features[visible.rows(nodes)]
            if self.features is not None:
                stack = np.concatenate if isinstance(features, np.ndarray) else _stack
                features = stack([self.features, features])
        return ReplayMemory(np.concatenate([self.nodes, nodes]), np.concatenate([self.labels, labels]), features)

    def first(self, count: int) -> "ReplayMemory":
        """At most ``count`` nodes of each class, those that came first."""
        order = np.argsort(self.labels, kind="stable")
        ordered = self.labels[order]
        rank = np.empty(order.size, dtype=np.int64)
        rank[order] = rank_in_run(ordered)
        kept = np.flatnonzero(rank < count)
        return ReplayMemory(self.nodes[kept], self.labels[kept], None if self.features is None else self.features[kept])

    def without(self, nodes: np.ndarray) -> "ReplayMemory":
        """The memory without some nodes."""
        kept = np.flatnonzero(~np.isin(self.nodes, nodes))
        return ReplayMemory(self.nodes[kept], self.labels[kept], None if self.features is None else self.features[kept])

    def beside(self, visible: VisibleGraph) -> VisibleGraph:
        """A graph in which the kept nodes exist: those that are not visible any more have no edges."""
        if self.features is None:
            return visible
        absent = np.flatnonzero(~visible.contains(self.nodes))
        return join_without_edges(visible, self.nodes[absent], self.features[absent])

    @property
    def labelled(self) -> Labelled:
        return self.nodes, self.labels

    def stored(self) -> dict[str, int]:
        features = 0
        if isinstance(self.features, np.ndarray):
            features = self.features.nbytes
        elif self.features is not None:
            features = sum(part.nbytes for part in (self.features.data, self.features.indices, self.features.indptr))
        return {"nodes": self.nodes.nbytes + self.labels.nbytes, "features": features}

    def tensors(self) -> dict[str, torch.Tensor]:
        found = {"memory.nodes": torch.from_numpy(self.nodes), "memory.labels": torch.from_numpy(self.labels)}
        if isinstance(self.features, np.ndarray):
            found["memory.features"] = torch.from_numpy(self.features)
        elif self.features is not None:
            found["memory.features.data"] = torch.from_numpy(self.features.data)
            found["memory.features.indices"] = torch.from_numpy(self.features.indices.astype(np.int32))
            found["memory.features.starts"] = torch.from_numpy(self.features.indptr.astype(np.int32))
            found["memory.features.width"] = torch.tensor(self.features.shape[1])
        return found

    @classmethod
    def load(cls, tensors: dict[str, torch.Tensor]) -> "ReplayMemory":
        nodes, labels = tensors["memory.nodes"].numpy(), tensors["memory.labels"].numpy()
        features: Features | None = None
        if "memory.features" in tensors:
            features = tensors["memory.features"].numpy()
        elif "memory.features.data" in tensors:
            parts = (tensors[f"memory.features.{part}"].numpy() for part in ("data", "indices", "starts"))
            shape = (nodes.size, int(tensors["memory.features.width"]))
            features = sparse.csr_array(tuple(parts), shape=shape)
        return cls(nodes, labels, features)


def _stack(parts: list[sparse.csr_array]) -> sparse.csr_array:
    return sparse.csr_array(sparse.vstack(parts, format="csr"))
