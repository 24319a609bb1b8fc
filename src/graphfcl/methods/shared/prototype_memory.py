"""What the classes of a prototypical network are known by between sessions."""

import numpy as np
import torch

from graphfcl.methods.learner import Labelled
from graphfcl.methods.shared.prototype_network import Embedding, PrototypeNetwork
from graphfcl.nn import GraphInputs
from graphfcl.stream import Session


def nothing() -> Labelled:
    return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)


def joined(labelled: Labelled, nodes: np.ndarray, labels: np.ndarray) -> Labelled:
    return np.concatenate([labelled[0], nodes]), np.concatenate([labelled[1], labels])


class PrototypeMemory:
    """Labelled nodes, which every graph encodes anew; or, once :meth:`keep` was called, the prototypes themselves.

    train: (nodes, columns) of the classes of session 0. supports: the same of all others.
    kept: (classes, h) prototypes, each a mean over ``counts`` nodes that are not kept.
    """

    def __init__(self) -> None:
        self.train: Labelled = nothing()
        self.supports: Labelled = nothing()
        self.kept: torch.Tensor | None = None
        self.counts = np.zeros(0, dtype=np.int64)

    def keep(self, prototypes: torch.Tensor) -> None:
        """From now on the prototypes stay as they are, and no node is known any more."""
        self.counts = np.bincount(self.train[1], minlength=len(prototypes))
        self.kept, self.train, self.supports = prototypes, nothing(), nothing()

    def add_nodes(self, session: Session, many: int) -> None:
        """More labels for one of the ``many`` classes of session 0 join its train nodes, all others are supports."""
        of_train = session.support_labels < many
        self.train = joined(self.train, session.supports[of_train], session.support_labels[of_train])
        self.supports = joined(self.supports, session.supports[~of_train], session.support_labels[~of_train])

    def add_prototypes(self, fresh: torch.Tensor, labels: np.ndarray) -> None:
        """fresh: (classes, h) prototypes of the supports with these labels; a known class's mean moves on."""
        assert self.kept is not None
        count = len(fresh)
        added = np.bincount(labels, minlength=count)
        before = np.pad(self.counts, (0, count - self.counts.size))
        share = torch.from_numpy(added / np.maximum(1, before + added)).to(fresh)[:, None]
        old = torch.cat([self.kept, fresh[len(self.kept) :]])
        self.kept, self.counts = (1 - share) * old + share * fresh, before + added

    def prototypes(self, network: PrototypeNetwork, embedding: Embedding, count: int) -> torch.Tensor:
        """(count, h) of all classes."""
        if self.kept is not None:
            return self.kept
        return network.prototypes(embedding, self.train, self.supports, count)

    def finish(self, network: PrototypeNetwork, inputs: GraphInputs, track: str, count: int) -> None:
        """Session 0 is learned: under ``isolated`` nothing old could be encoded again, so the prototypes are kept."""
        if track == "isolated":
            self.keep(self.prototypes(network, network.embed(inputs), count))

    def learn(self, network: PrototypeNetwork, inputs: GraphInputs, session: Session, many: int, count: int) -> None:
        """Add the supports of a session, in whichever form classes are known by."""
        if self.kept is None:
            self.add_nodes(session, many)
            return
        here = (session.supports, session.support_labels)
        self.add_prototypes(network.prototypes(network.embed(inputs), nothing(), here, count), session.support_labels)

    def scores(self, network: PrototypeNetwork, inputs: GraphInputs, count: int) -> torch.Tensor:
        """(n, count) −‖z − p_k‖² of every node."""
        embedding = network.embed(inputs)
        return network.scores(embedding, inputs.visible.nodes, self.prototypes(network, embedding, count))

    def stored(self) -> dict[str, int]:
        embeddings = 0 if self.kept is None else self.kept.nbytes + self.counts.nbytes
        return {"nodes": sum(array.nbytes for array in (*self.train, *self.supports)), "embeddings": embeddings}

    def tensors(self) -> dict[str, torch.Tensor]:
        kept = {} if self.kept is None else {"kept.prototypes": self.kept.cpu()}
        return {
            **labelled_tensors("train", self.train),
            **labelled_tensors("supports", self.supports),
            "kept.counts": torch.from_numpy(self.counts),
            **kept,
        }

    def load(self, tensors: dict[str, torch.Tensor], device: torch.device) -> None:
        self.train, self.supports = labelled_arrays("train", tensors), labelled_arrays("supports", tensors)
        self.counts = tensors["kept.counts"].numpy()
        kept = tensors.get("kept.prototypes")
        self.kept = None if kept is None else kept.to(device)


def labelled_tensors(name: str, labelled: Labelled) -> dict[str, torch.Tensor]:
    return {f"{name}.nodes": torch.from_numpy(labelled[0]), f"{name}.labels": torch.from_numpy(labelled[1])}


def labelled_arrays(name: str, tensors: dict[str, torch.Tensor]) -> Labelled:
    return tensors[f"{name}.nodes"].numpy(), tensors[f"{name}.labels"].numpy()
