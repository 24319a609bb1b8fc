"""Labelled nodes that a learner keeps to train on again."""

from typing import Any

import numpy as np
import torch
from scipy import sparse

from graphfcl.graph.views import Features
from graphfcl.graph.visible import VisibleGraph, join_without_edges
from graphfcl.methods.learner import Labelled, Tensors
from graphfcl.methods.shared.parts import ClassMemory
from graphfcl.nn import GraphInputs
from graphfcl.runtime.arrays import rank_in_run


class ReplayMemory(ClassMemory):
    """Nodes and their columns, in the order in which they came; the first of a class are its most important ones.

    features: their rows, where the graph of a later session will not have them (the track ``isolated``); there they
        are encoded without edges.
    """

    def __init__(self) -> None:
        self.nodes = np.zeros(0, dtype=np.int64)
        self.labels = np.zeros(0, dtype=np.int64)
        self.features: Features | None = None

    @property
    def labelled(self) -> Labelled:
        return self.nodes, self.labels

    def add(self, nodes: np.ndarray, labels: np.ndarray, visible: VisibleGraph, *, keep_features: bool) -> None:
        """More nodes, which must be visible now; those that are kept already are not taken twice."""
        new = ~np.isin(nodes, self.nodes)
        nodes, labels = nodes[new], labels[new]
        features = None
        if keep_features:
            features = visible.features[visible.rows(nodes)]
            if self.features is not None:
                stack = np.concatenate if isinstance(features, np.ndarray) else _stack
                features = stack([self.features, features])
        self.features = features
        self.nodes, self.labels = np.concatenate([self.nodes, nodes]), np.concatenate([self.labels, labels])

    def keep_first(self, count: int) -> None:
        """Keep at most ``count`` nodes of each class, those that came first."""
        order = np.argsort(self.labels, kind="stable")
        rank = np.empty(order.size, dtype=np.int64)
        rank[order] = rank_in_run(self.labels[order])
        self._keep(rank < count)

    def drop(self, nodes: np.ndarray) -> None:
        self._keep(~np.isin(self.nodes, nodes))

    def _keep(self, chosen: np.ndarray) -> None:
        kept = np.flatnonzero(chosen)
        self.nodes, self.labels = self.nodes[kept], self.labels[kept]
        self.features = None if self.features is None else self.features[kept]

    def beside(self, inputs: GraphInputs) -> GraphInputs:
        """A graph in which the kept nodes exist: those that are not visible any more have no edges."""
        if self.features is None:
            return inputs
        absent = np.flatnonzero(~inputs.visible.contains(self.nodes))
        visible = join_without_edges(inputs.visible, self.nodes[absent], self.features[absent])
        return inputs if visible is inputs.visible else GraphInputs(visible, inputs.device)

    def stored(self) -> dict[str, int]:
        features = 0
        if isinstance(self.features, np.ndarray):
            features = self.features.nbytes
        elif self.features is not None:
            features = sum(part.nbytes for part in (self.features.data, self.features.indices, self.features.indptr))
        return {"nodes": self.nodes.nbytes + self.labels.nbytes, "features": features}

    def tensors(self) -> Tensors:
        found = {"memory.nodes": torch.from_numpy(self.nodes), "memory.labels": torch.from_numpy(self.labels)}
        if isinstance(self.features, np.ndarray):
            found["memory.features"] = torch.from_numpy(self.features)
        elif self.features is not None:
            found["memory.features.data"] = torch.from_numpy(self.features.data)
            found["memory.features.indices"] = torch.from_numpy(self.features.indices.astype(np.int32))
            found["memory.features.starts"] = torch.from_numpy(self.features.indptr.astype(np.int32))
            found["memory.features.width"] = torch.tensor(self.features.shape[1])
        return found

    def load(self, values: dict[str, Any], tensors: Tensors, device: torch.device) -> None:  # noqa: ARG002
        self.nodes, self.labels = tensors["memory.nodes"].numpy(), tensors["memory.labels"].numpy()
        self.features = None
        if "memory.features" in tensors:
            self.features = tensors["memory.features"].numpy()
        elif "memory.features.data" in tensors:
            parts = (tensors[f"memory.features.{part}"].numpy() for part in ("data", "indices", "starts"))
            shape = (self.nodes.size, int(tensors["memory.features.width"]))
            self.features = sparse.csr_array(tuple(parts), shape=shape)


def _stack(parts: list[sparse.csr_array]) -> sparse.csr_array:
    return sparse.csr_array(sparse.vstack(parts, format="csr"))
