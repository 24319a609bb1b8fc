"""What learners keep of labelled nodes between sessions: prototypes, nodes to replay, a random sample."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from scipy import sparse

from graphfcl.graph.views import Features
from graphfcl.graph.visible import VisibleGraph, join_without_edges
from graphfcl.methods.learner import Labelled, join_labelled, no_labels, select_labelled
from graphfcl.methods.shared.exemplar_selection import first_of_each_class
from graphfcl.methods.shared.parts import ClassMemory
from graphfcl.methods.shared.prototype_network import NodeEmbeddings, PrototypeNetwork
from graphfcl.nn import GraphInputs
from graphfcl.runtime.arrays import rank_in_run
from graphfcl.stream.sessions import BaseSession, PooledSession, Session


def pool_among_supports(session: Session) -> Session:
    """The session with the nodes of its pool moved to the supports, where it has one."""
    if not isinstance(session, PooledSession):
        return session
    nodes, columns = join_labelled((session.supports, session.support_labels), (session.pool, session.pool_labels))
    none, of_none = no_labels()
    return replace(session, supports=nodes, support_labels=columns, pool=none, pool_labels=of_none)


class PrototypeMemory(ClassMemory):
    """Labelled nodes, which every graph encodes again; or, once :meth:`keep` was called, the prototypes themselves.

    train: (nodes, columns) of the classes of session 0. supports: the same of all others. Both are in the order of node
        numbers, so that sums are rounded in the same way in whichever order labels came.
    kept: (classes, h) prototypes, each a mean over ``counts`` nodes that are not kept.
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
        """Session 0 is learned: under ``isolated`` nothing old could be encoded again, so the prototypes are kept."""
        if track == "isolated":
            self.keep(self.prototypes(network, embedding(), class_count))

    def keep(self, prototypes: torch.Tensor) -> None:
        """From now on the prototypes stay as they are, and no node is known any more."""
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
        """Add the supports of a session, in whichever form classes are known by.

        many: classes of session 0. class_count: all classes, the session's included.
        """
        here = (session.supports, session.support_labels)
        if self.kept is None:
            self._add_nodes(here, many)
        else:
            fresh = network.prototypes(embedding(), no_labels(), here, class_count)
            self.add_prototypes(fresh, session.support_labels)

    def _add_nodes(self, labelled: Labelled, many: int) -> None:
        """More labels for one of the ``many`` classes of session 0 join its train nodes, all others are supports."""
        of_train = labelled[1] < many
        self.train = _by_number(join_labelled(self.train, select_labelled(labelled, of_train)))
        self.supports = _by_number(join_labelled(self.supports, select_labelled(labelled, ~of_train)))

    def add_prototypes(self, fresh: torch.Tensor, columns: np.ndarray) -> None:
        """fresh: (classes, h) prototypes of supports with these columns; a known class's mean moves on."""
        assert self.kept is not None
        class_count = len(fresh)
        added = np.bincount(columns, minlength=class_count)
        before = np.pad(self.counts, (0, class_count - self.counts.size))
        share = torch.from_numpy(added / np.maximum(1, before + added)).to(fresh)[:, None]
        old = torch.cat([self.kept, fresh[len(self.kept) :]])
        self.kept, self.counts = (1 - share) * old + share * fresh, before + added

    def prototypes(self, network: PrototypeNetwork, embedding: NodeEmbeddings, class_count: int) -> torch.Tensor:
        """(classes, h) of all classes."""
        if self.kept is not None:
            return self.kept
        return network.prototypes(embedding, self.train, self.supports, class_count)

    def scores(self, network: PrototypeNetwork, embedding: NodeEmbeddings, class_count: int) -> torch.Tensor:
        """(n, classes) of every node."""
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
    """Some labelled nodes. nodes, labels: numbers and columns. rows: the attributes that have a row for each node."""

    rows: tuple[str, ...] = ("nodes", "labels")

    def __init__(self) -> None:
        self.nodes, self.labels = no_labels()

    @property
    def labelled(self) -> Labelled:
        return self.nodes, self.labels

    def drop(self, nodes: np.ndarray) -> None:
        self._keep(np.flatnonzero(~np.isin(self.nodes, nodes)))

    def _append(self, *values: Any) -> None:
        """More rows of each of the attributes; None for one that is not kept."""
        for name, value in zip(self.rows, values, strict=True):
            setattr(self, name, _stacked(getattr(self, name), value))

    def _keep(self, places: np.ndarray) -> None:
        for name in self.rows:
            value = getattr(self, name)
            setattr(self, name, None if value is None else value[places])


def _stacked(first: Any, second: Any) -> Any:
    """The rows of both, arrays or tensors; those of the second alone if either is None."""
    if first is None or second is None:
        return second
    if isinstance(second, torch.Tensor):
        return torch.cat([first, second])
    if isinstance(second, np.ndarray):
        return np.concatenate([first, second])
    return sparse.csr_array(sparse.vstack([first, second], format="csr"))


class ReplayMemory(NodeMemory):
    """Nodes to train on again, in the order in which they came; the first of a class are its most important ones.

    features: their rows, where the graph of a later session will not have them (the track ``isolated``); there they
        are encoded without edges.
    """

    saved = rows = ("nodes", "labels", "features")

    def __init__(self) -> None:
        super().__init__()
        self.features: Features | None = None

    def add(self, nodes: np.ndarray, labels: np.ndarray, visible: VisibleGraph, *, keep_features: bool) -> None:
        """More nodes, which must be visible now; those that are kept already are not taken twice."""
        new = ~np.isin(nodes, self.nodes)
        features = visible.features[visible.rows(nodes[new])] if keep_features else None
        self._append(nodes[new], labels[new], features)

    def keep_first(self, count: int) -> None:
        """Keep at most ``count`` nodes of each class, those that came first."""
        order = np.argsort(self.labels, kind="stable")
        rank = np.empty(order.size, dtype=np.int64)
        rank[order] = rank_in_run(self.labels[order])
        self._keep(np.flatnonzero(rank < count))

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


class SampledMemory(NodeMemory):
    """At most ``budget`` nodes of each class, sampled without replacement.

    A node with weight w gets the arrival time −log(u)/w, u uniform and a function of the seed and the node's number.
    The ``budget`` nodes of a class that arrive first are kept. The first of them is node v with probability w_v/Σw, the
    second is drawn from the others in the same way. So nodes that come later join the same sample, and a node that is
    taken back leaves the sample that there would have been without it.

    nodes, labels: numbers and columns, in the order of numbers. arrivals: their times. vectors: (m, width) where a
    later graph will not have the nodes (the track ``isolated``); elsewhere they are made again on the graph of each
    session.
    """

    saved: tuple[str, ...] = ("nodes", "labels", "arrivals", "vectors")
    rows = saved

    def __init__(self, budget: int, seed: int) -> None:
        super().__init__()
        self.budget, self.seed = budget, seed
        self.arrivals = np.zeros(0)
        self.vectors: torch.Tensor | None = None

    def add(self, labelled: Labelled, weights: np.ndarray, vectors: torch.Tensor | None = None) -> None:
        """More labelled nodes; those that are kept already are not taken twice.

        weights: (s,) above 0. vectors: (s, width), to be kept with the nodes.
        """
        new = np.flatnonzero(~np.isin(labelled[0], self.nodes))
        nodes, labels = select_labelled(labelled, new)
        vectors = None if vectors is None else vectors[torch.from_numpy(new).to(vectors.device)]
        self._append(nodes, labels, arrival_times(nodes, weights[new], self.seed), vectors)
        self._keep(first_of_each_class(-self.arrivals, self.labels, self.budget))

    def _keep(self, places: np.ndarray) -> None:
        super()._keep(places[np.argsort(self.nodes[places])])

    def points(self, embed: Callable[[np.ndarray], torch.Tensor]) -> torch.Tensor:
        """(m, width): the vectors that are kept, or what ``embed`` makes of the nodes."""
        return embed(self.nodes) if self.vectors is None else self.vectors

    def stored(self) -> dict[str, int]:
        vectors = 0 if self.vectors is None else self.vectors.nbytes
        return {"nodes": self.nodes.nbytes + self.labels.nbytes + self.arrivals.nbytes, "embeddings": vectors}


def arrival_times(nodes: np.ndarray, weights: np.ndarray, seed: int) -> np.ndarray:
    """(s,) −log(u)/w with u from a hash of seed and node number (SplitMix64): the same whenever it is asked for."""
    bits = nodes.astype(np.uint64) + np.random.default_rng([seed, 6]).integers(2**63, dtype=np.uint64)
    bits = bits * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    uniform = ((bits ^ (bits >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) + 0.5
    return -np.log(uniform / 2.0**53) / weights
