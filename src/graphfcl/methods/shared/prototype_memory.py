"""What the classes of a prototypical network are known by between sessions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from graphfcl.methods.learner import Labelled, Tensors
from graphfcl.methods.shared.parts import ClassMemory
from graphfcl.methods.shared.prototype_network import NodeEmbeddings, PrototypeNetwork
from graphfcl.nn import tensor_of
from graphfcl.stream.sessions import BaseSession, Session


def nothing() -> Labelled:
    """No labelled node."""
    return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)


class PrototypeMemory(ClassMemory):
    """Labelled nodes, which every graph encodes again; or, once :meth:`keep` was called, the prototypes themselves.

    train: (nodes, columns) of the classes of session 0. supports: the same of all others. Both are in the order of node
        numbers, so that sums are rounded in the same way in whichever order labels came.
    kept: (classes, h) prototypes, each a mean over ``counts`` nodes that are not kept.
    """

    def __init__(self) -> None:
        self.train: Labelled = nothing()
        self.supports: Labelled = nothing()
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
        self.kept, self.train, self.supports = prototypes, nothing(), nothing()

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
            fresh = network.prototypes(embedding(), nothing(), here, class_count)
            self._add_prototypes(self.kept, fresh, session.support_labels)

    def _add_nodes(self, labelled: Labelled, many: int) -> None:
        """More labels for one of the ``many`` classes of session 0 join its train nodes, all others are supports."""
        of_train = labelled[1] < many
        self.train = _joined(self.train, labelled, of_train)
        self.supports = _joined(self.supports, labelled, ~of_train)

    def _add_prototypes(self, kept: torch.Tensor, fresh: torch.Tensor, columns: np.ndarray) -> None:
        """fresh: (classes, h) prototypes of supports with these columns; a known class's mean moves on."""
        class_count = len(fresh)
        added = np.bincount(columns, minlength=class_count)
        before = np.pad(self.counts, (0, class_count - self.counts.size))
        share = torch.from_numpy(added / np.maximum(1, before + added)).to(fresh)[:, None]
        old = torch.cat([kept, fresh[len(kept) :]])
        self.kept, self.counts = (1 - share) * old + share * fresh, before + added

    def prototypes(self, network: PrototypeNetwork, embedding: NodeEmbeddings, class_count: int) -> torch.Tensor:
        """(classes, h) of all classes."""
        if self.kept is not None:
            return self.kept
        return network.prototypes(embedding, self.train, self.supports, class_count)

    def scores(self, network: PrototypeNetwork, embedding: NodeEmbeddings, class_count: int) -> torch.Tensor:
        """(n, classes) −‖z − p_k‖² of every node."""
        prototypes = self.prototypes(network, embedding, class_count)
        return network.scores(embedding, embedding.visible.nodes, prototypes)

    @property
    def forgets_exactly(self) -> bool:
        return self.kept is None

    def restate(self, train: Labelled, supports: Labelled) -> bool:
        if self.kept is not None:
            return False
        self.train, self.supports = _by_number(train), _by_number(supports)
        return True

    def drop(self, nodes: np.ndarray) -> None:
        self.train, self.supports = (
            (kept[0][stays], kept[1][stays])
            for kept in (self.train, self.supports)
            for stays in (~np.isin(kept[0], nodes),)
        )

    def stored(self) -> dict[str, int]:
        embeddings = 0 if self.kept is None else self.kept.nbytes + self.counts.nbytes
        return {"nodes": sum(array.nbytes for array in (*self.train, *self.supports)), "embeddings": embeddings}

    def tensors(self) -> Tensors:
        kept = {} if self.kept is None else {"kept.prototypes": self.kept.cpu()}
        return {
            **_as_tensors("train", self.train),
            **_as_tensors("supports", self.supports),
            "kept.counts": torch.from_numpy(self.counts),
            **kept,
        }

    def load(self, values: dict[str, Any], tensors: Tensors, device: torch.device) -> None:  # noqa: ARG002
        self.train, self.supports = _as_arrays("train", tensors), _as_arrays("supports", tensors)
        self.counts = tensors["kept.counts"].numpy()
        kept = tensors.get("kept.prototypes")
        self.kept = None if kept is None else kept.to(device)


def _joined(labelled: Labelled, more: Labelled, chosen: np.ndarray) -> Labelled:
    both = zip(labelled, more, strict=True)
    nodes, columns = (np.concatenate([known, new[chosen]]) for known, new in both)
    return _by_number((nodes, columns))


def _by_number(labelled: Labelled) -> Labelled:
    order = np.argsort(labelled[0], kind="stable")
    return labelled[0][order], labelled[1][order]


def _as_tensors(name: str, labelled: Labelled) -> Tensors:
    return {f"{name}.nodes": tensor_of(labelled[0]), f"{name}.labels": tensor_of(labelled[1])}


def _as_arrays(name: str, tensors: Tensors) -> Labelled:
    return tensors[f"{name}.nodes"].numpy(), tensors[f"{name}.labels"].numpy()
