"""A random sample of the labelled nodes of each class, for learners whose vectors no session changes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from graphfcl.graph.visible_nodes import VisibleNodes
from graphfcl.methods.learner import Labelled, Tensors
from graphfcl.methods.shared.parts import ClassMemory
from graphfcl.runtime.arrays import rank_in_run

Embed = Callable[[np.ndarray], torch.Tensor]  # node numbers → (nodes, width)


class SampledMemory(ClassMemory):
    """At most ``budget`` nodes of each class, sampled without replacement.

    A node with weight w gets the arrival time −log(u)/w, u uniform and a function of the seed and the node's number.
    The ``budget`` nodes of a class that arrive first are kept. The first of them is node v with probability w_v/Σw, the
    second is drawn from the others in the same way. So nodes that come later join the same sample, and a node that is
    taken back leaves the sample that there would have been without it.

    nodes, labels: numbers and columns, in the order of numbers. arrivals: their times. vectors: (m, width) where a
    later graph will not have the nodes (the track ``isolated``); elsewhere they are made again on the graph of each
    session.
    """

    def __init__(self, budget: int, seed: int) -> None:
        self.budget, self.seed = budget, seed
        self.nodes = np.zeros(0, dtype=np.int64)
        self.labels = np.zeros(0, dtype=np.int64)
        self.arrivals = np.zeros(0)
        self.vectors: torch.Tensor | None = None

    def first(self, labelled: Labelled, weights: np.ndarray) -> np.ndarray:
        """Positions of the nodes to keep if there were no others; changes nothing."""
        return _first_of_each_class(arrival_times(labelled[0], weights, self.seed), labelled[1], self.budget)

    def add(self, labelled: Labelled, weights: np.ndarray, vectors: torch.Tensor | None = None) -> None:
        """More labelled nodes; those that are kept already are not taken twice.

        weights: (s,) above 0. vectors: (s, width), to be kept with the nodes.
        """
        new = np.flatnonzero(~np.isin(labelled[0], self.nodes))
        nodes, labels = (part[new] for part in labelled)
        if vectors is not None:
            vectors = vectors[torch.from_numpy(new).to(vectors.device)]
            vectors = vectors if self.vectors is None else torch.cat([self.vectors, vectors])
        self.vectors = vectors
        self.arrivals = np.concatenate([self.arrivals, arrival_times(nodes, weights[new], self.seed)])
        self.nodes, self.labels = np.concatenate([self.nodes, nodes]), np.concatenate([self.labels, labels])
        self._keep(_first_of_each_class(self.arrivals, self.labels, self.budget))

    def replace(self, labelled: Labelled, weights: np.ndarray) -> None:
        """Sample from exactly these nodes, whatever was kept before."""
        nodes, labels = labelled
        arrivals = arrival_times(nodes, weights, self.seed)
        self.nodes, self.labels, self.arrivals, self.vectors = nodes, labels, arrivals, None
        self._keep(_first_of_each_class(arrivals, labels, self.budget))

    def drop(self, nodes: np.ndarray) -> None:
        self._keep(np.flatnonzero(~np.isin(self.nodes, nodes)))

    def _keep(self, places: np.ndarray) -> None:
        places = places[np.argsort(self.nodes[places])]
        self.nodes, self.labels, self.arrivals = self.nodes[places], self.labels[places], self.arrivals[places]
        if self.vectors is not None:
            self.vectors = self.vectors[torch.from_numpy(places).to(self.vectors.device)]

    def points(self, embed: Embed) -> torch.Tensor:
        """(m, width): the vectors that are kept, or what ``embed`` makes of the nodes."""
        return embed(self.nodes) if self.vectors is None else self.vectors

    # State

    def stored(self) -> dict[str, int]:
        vectors = 0 if self.vectors is None else self.vectors.nbytes
        return {"nodes": self.nodes.nbytes + self.labels.nbytes + self.arrivals.nbytes, "embeddings": vectors}

    def tensors(self) -> Tensors:
        kept = {} if self.vectors is None else {"memory.vectors": self.vectors.cpu().clone()}
        arrays = {"memory.nodes": self.nodes, "memory.labels": self.labels, "memory.arrivals": self.arrivals}
        return {**kept, **{name: torch.tensor(array) for name, array in arrays.items()}}

    def load(self, values: dict[str, Any], tensors: Tensors, device: torch.device) -> None:  # noqa: ARG002
        self.nodes, self.labels = tensors["memory.nodes"].numpy(), tensors["memory.labels"].numpy()
        self.arrivals = tensors["memory.arrivals"].numpy()
        vectors = tensors.get("memory.vectors")
        self.vectors = None if vectors is None else vectors.to(device)


def arrival_times(nodes: np.ndarray, weights: np.ndarray, seed: int) -> np.ndarray:
    """(s,) −log(u)/w with u from a hash of seed and node number (SplitMix64): the same whenever it is asked for."""
    bits = nodes.astype(np.uint64) + np.random.default_rng([seed, 6]).integers(2**63, dtype=np.uint64)
    bits = bits * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    uniform = ((bits ^ (bits >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) + 0.5
    return -np.log(uniform / 2.0**53) / weights


def cover(visible: VisibleNodes, nodes: np.ndarray) -> np.ndarray:
    """(s,) nodes that each covers in one hop: its degree, and itself."""
    return visible.degrees[visible.rows(nodes)].astype(np.float64) + 1


def _first_of_each_class(arrivals: np.ndarray, labels: np.ndarray, budget: int) -> np.ndarray:
    order = np.lexsort((arrivals, labels))
    return order[rank_in_run(labels[order]) < budget]
