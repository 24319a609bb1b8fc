"""Memories of labelled nodes between sessions: prototypes, replay nodes, and a random sample."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from scipy import sparse

from graphfcl.graph.views import Features
from graphfcl.graph.visible import VisibleGraph, join_without_edges
from graphfcl.methods.shared.exemplar_selection import first_of_each_class
from graphfcl.methods.shared.parts import ClassMemory
from graphfcl.methods.shared.prototype_network import NodeEmbeddings, PrototypeNetwork
from graphfcl.methods.state import (
    Labelled,
    join_labelled,
    no_labels,
    select_labelled,
)
from graphfcl.nn import GraphInputs
from graphfcl.runtime.arrays import rank_in_run
from graphfcl.stream.sessions import BaseSession, PooledSession, Session


def pool_among_supports(session: Session) -> Session:
    """Move the nodes of a session's pool, if it has one, to its supports."""
    if not isinstance(session, PooledSession):
        return session
    nodes, columns = join_labelled((session.supports, session.support_labels), (session.pool, session.pool_labels))
    none, of_none = no_labels()
    return replace(session, supports=nodes, support_labels=columns, pool=none, pool_labels=of_none)


class PrototypeMemory(ClassMemory):
    """A memory of labelled nodes, or of prototypes once :meth:`keep` was called.

    Labelled nodes are encoded again on every graph, while stored prototypes stay as they are.

    Attributes:
        train: (nodes, columns) of the classes of session 0, ordered by node number so that rounding does not depend on
            the order in which labels arrive.
        supports: (nodes, columns) of all later classes, in the same order.
        kept: (classes, h) stored prototypes, each a mean over ``counts`` nodes, or None.
        counts: (classes,) number of nodes behind each stored prototype.
    """

    saved = ("train", "supports", "kept", "counts")

    def __init__(self) -> None:
        self.train: Labelled = no_labels()
        self.supports: Labelled = no_labels()
        self.kept: torch.Tensor | None = None
        self.counts = np.zeros(0, dtype=np.int64)

    def begin(self, base: BaseSession) -> None:
        self.train = (base.train, base.train_labels)

    def finish(
        self, network: PrototypeNetwork, embedding: Callable[[], NodeEmbeddings], track: str, class_count: int
    ) -> None:
        """Complete session 0: under the track ``isolated``, store prototypes, since old nodes disappear."""
        if track == "isolated":
            self.keep(self.prototypes(network, embedding(), class_count))

    def keep(self, prototypes: torch.Tensor) -> None:
        """Store prototypes and forget all nodes."""
        self.counts = np.bincount(self.train[1], minlength=len(prototypes))
        self.kept, self.train, self.supports = prototypes, no_labels(), no_labels()

    def learn(
        self,
        session: Session,
        network: PrototypeNetwork,
        embedding: Callable[[], NodeEmbeddings],
        many: int,
        class_count: int,
    ) -> None:
        """Add the supports of a session as nodes or to the stored prototypes.

        ``many`` is the number of classes of session 0, and ``class_count`` the number of classes including new ones.
        """
        here = (session.supports, session.support_labels)
        if self.kept is None:
            self._add_nodes(here, many)
        else:
            fresh = network.prototypes(embedding(), no_labels(), here, class_count)
            self.add_prototypes(fresh, session.support_labels)

    def _add_nodes(self, labelled: Labelled, many: int) -> None:
        """Add labels of the ``many`` classes of session 0 to the train nodes, and all other labels to the supports."""
        of_train = labelled[1] < many
        self.train = _by_number(join_labelled(self.train, select_labelled(labelled, of_train)))
        self.supports = _by_number(join_labelled(self.supports, select_labelled(labelled, ~of_train)))

    def add_prototypes(self, fresh: torch.Tensor, columns: np.ndarray) -> None:
        """Add (classes, h) prototypes of new supports with these columns. The means of known classes are updated."""
        assert self.kept is not None
        class_count = len(fresh)
        added = np.bincount(columns, minlength=class_count)
        before = np.pad(self.counts, (0, class_count - self.counts.size))
        share = torch.from_numpy(added / np.maximum(1, before + added)).to(fresh)[:, None]
        old = torch.cat([self.kept, fresh[len(self.kept) :]])
        self.kept, self.counts = (1 - share) * old + share * fresh, before + added

    def prototypes(self, network: PrototypeNetwork, embedding: NodeEmbeddings, class_count: int) -> torch.Tensor:
        """Return the (classes, h) prototypes of all classes."""
        if self.kept is not None:
            return self.kept
        return network.prototypes(embedding, self.train, self.supports, class_count)

    def scores(self, network: PrototypeNetwork, embedding: NodeEmbeddings, class_count: int) -> torch.Tensor:
        """Compute the (n, classes) scores of all nodes."""
        return network.scores(embedding.values, self.prototypes(network, embedding, class_count))

    @property
    def forgets_exactly(self) -> bool:
        return self.kept is None

    def restate(self, train: Labelled, supports: Labelled, many: int) -> bool:
        if self.kept is not None:
            return False
        self.train, self.supports = no_labels(), no_labels()
        self._add_nodes(join_labelled(train, supports), many)
        return True

    def drop(self, nodes: np.ndarray) -> None:
        self.train, self.supports = (
            select_labelled(kept, ~np.isin(kept[0], nodes)) for kept in (self.train, self.supports)
        )

    def stored(self) -> dict[str, int]:
        embeddings = 0 if self.kept is None else self.kept.nbytes + self.counts.nbytes
        return {"nodes": sum(array.nbytes for array in (*self.train, *self.supports)), "embeddings": embeddings}


def _by_number(labelled: Labelled) -> Labelled:
    return select_labelled(labelled, np.argsort(labelled[0], kind="stable"))


class NodeMemory(ClassMemory):
    """A memory of node numbers and class columns. ``rows`` names the attributes with one row per node."""

    rows: tuple[str, ...] = ("nodes", "labels")

    def __init__(self) -> None:
        self.nodes, self.labels = no_labels()

    @property
    def labelled(self) -> Labelled:
        return self.nodes, self.labels

    def drop(self, nodes: np.ndarray) -> None:
        self._keep(np.flatnonzero(~np.isin(self.nodes, nodes)))

    def _append(self, *values: Any) -> None:
        """Append rows to each attribute; None for an attribute that is not kept."""
        for name, value in zip(self.rows, values, strict=True):
            setattr(self, name, _stacked(getattr(self, name), value))

    def _keep(self, places: np.ndarray) -> None:
        for name in self.rows:
            value = getattr(self, name)
            setattr(self, name, None if value is None else value[places])


def _stacked(first: Any, second: Any) -> Any:
    """Stack two arrays or tensors; return the second one if either is None."""
    if first is None or second is None:
        return second
    if isinstance(second, torch.Tensor):
        return torch.cat([first, second])
    if isinstance(second, np.ndarray):
        return np.concatenate([first, second])
    return sparse.csr_array(sparse.vstack([first, second], format="csr"))


class ReplayMemory(NodeMemory):
    """Nodes for replay, in order of arrival. The first nodes of a class are its most important ones.

    ``features`` holds the nodes' feature rows under the track ``isolated``, where later graphs do not contain the
    nodes. They are then encoded without edges.
    """

    saved = rows = ("nodes", "labels", "features")

    def __init__(self) -> None:
        super().__init__()
        self.features: Features | None = None

    def add(self, nodes: np.ndarray, labels: np.ndarray, visible: VisibleGraph, *, keep_features: bool) -> None:
        """Add visible nodes that are not in the memory yet."""
        new = ~np.isin(nodes, self.nodes)
        features = visible.features[visible.rows(nodes[new])] if keep_features else None
        self._append(nodes[new], labels[new], features)

    def keep_first(self, count: int) -> None:
        """Keep the first ``count`` nodes of each class."""
        order = np.argsort(self.labels, kind="stable")
        rank = np.empty(order.size, dtype=np.int64)
        rank[order] = rank_in_run(self.labels[order])
        self._keep(np.flatnonzero(rank < count))

    def graph_with_nodes(self, inputs: GraphInputs) -> GraphInputs:
        """Return a graph that contains the kept nodes; nodes that are no longer visible have no edges."""
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


class SampledMemory(NodeMemory):
    """At most ``budget`` nodes of each class, sampled without replacement with probabilities proportional to weights.

    A node with weight w gets the arrival time −log(u)/w, where u is a uniform number derived from the seed and the
    node number. The ``budget`` nodes of a class with the smallest arrival times are kept. This equals drawing the first
    node v with probability w_v/Σw, the second one from the remaining nodes in the same way, and so on. The sample does
    not depend on the order in which nodes arrive, and removing a node gives the sample without it.

    Attributes:
        nodes: Node numbers in ascending order.
        labels: Their class columns.
        arrivals: Their arrival times.
        vectors: (m, width) vectors under the track ``isolated``, where later graphs do not contain the nodes; otherwise
            None, and vectors are computed on the graph of each session.
    """

    saved: tuple[str, ...] = ("nodes", "labels", "arrivals", "vectors")
    rows = saved

    def __init__(self, budget: int, seed: int) -> None:
        super().__init__()
        self.budget, self.seed = budget, seed
        self.arrivals = np.zeros(0)
        self.vectors: torch.Tensor | None = None

    def add(self, labelled: Labelled, weights: np.ndarray, vectors: torch.Tensor | None = None) -> None:
        """Add labelled nodes that are not in the memory yet.

        ``weights`` are (s,) positive sampling weights, and ``vectors`` are (s, width) vectors to store with the nodes.
        """
        new = np.flatnonzero(~np.isin(labelled[0], self.nodes))
        nodes, labels = select_labelled(labelled, new)
        vectors = None if vectors is None else vectors[torch.from_numpy(new).to(vectors.device)]
        self._append(nodes, labels, arrival_times(nodes, weights[new], self.seed), vectors)
        self._keep(first_of_each_class(-self.arrivals, self.labels, self.budget))

    def _keep(self, places: np.ndarray) -> None:
        super()._keep(places[np.argsort(self.nodes[places])])

    def points(self, embed: Callable[[np.ndarray], torch.Tensor]) -> torch.Tensor:
        """Return the (m, width) stored vectors, or compute them from the nodes with ``embed``."""
        return embed(self.nodes) if self.vectors is None else self.vectors

    def stored(self) -> dict[str, int]:
        vectors = 0 if self.vectors is None else self.vectors.nbytes
        return {"nodes": self.nodes.nbytes + self.labels.nbytes + self.arrivals.nbytes, "embeddings": vectors}


def arrival_times(nodes: np.ndarray, weights: np.ndarray, seed: int) -> np.ndarray:
    """Compute (s,) arrival times −log(u)/w, with u from a hash of seed and node number (SplitMix64)."""
    bits = nodes.astype(np.uint64) + np.random.default_rng([seed, 6]).integers(2**63, dtype=np.uint64)
    bits = bits * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    uniform = ((bits ^ (bits >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) + 0.5
    return -np.log(uniform / 2.0**53) / weights
