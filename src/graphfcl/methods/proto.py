"""Proto-GCN and Proto-GAT: a prototypical network on the pre-trained encoder.

Jake Snell, Kevin Swersky, Richard Zemel: Prototypical Networks for Few-shot Learning. NeurIPS 2017. Encoders: Kipf and
Welling, ICLR 2017; Veličković et al., ICLR 2018.

The prototype p_k is the mean embedding of the labelled nodes of class k. A node with the embedding z has the class k
with probability softmax_k(−‖z − p_k‖²). After pre-training no weight changes. The labelled nodes are stored and their
embeddings computed again on each visible graph. Under the track ``isolated``, prototypes are stored instead.
"""

from dataclasses import dataclass
from typing import Any

import torch

from graphfcl.methods.bases.encoder_learner import EncoderLearner, EncoderSettings
from graphfcl.methods.learner import Progress
from graphfcl.methods.shared.memories import PrototypeMemory
from graphfcl.methods.shared.prototype_network import NodeEmbeddings, PrototypeNetwork
from graphfcl.nn import Encoder, GraphInputs
from graphfcl.stream.sessions import BaseSession, Session


@dataclass(frozen=True)
class ProtoGatSettings(EncoderSettings):
    """Settings of Proto-GAT."""

    encoder: str = "gat"
    hidden: int = 64
    """Width of the encoder's first layer."""
    size: int = 64
    """Width of an embedding."""


class ProtoGcn(EncoderLearner):
    """A prototypical network on a pre-trained GCN."""

    title = "prototypes on the pre-trained GCN"
    reference = "Snell, Swersky, Zemel: Prototypical Networks for Few-shot Learning. NeurIPS 2017"
    network: PrototypeNetwork
    memory: PrototypeMemory

    def __init__(self, settings: Any = None, *, seed: int = 0, device: str | torch.device = "cpu") -> None:
        super().__init__(settings, seed=seed, device=device)
        self.memory = PrototypeMemory()

    def _build(self, encoder: Encoder, start: torch.Generator) -> PrototypeNetwork:  # noqa: ARG002
        return PrototypeNetwork(encoder)

    def _train(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> None:  # noqa: ARG002
        self.memory.finish(self.network, lambda: self._node_embeddings(inputs), self.track, len(self.classes_))

    def _keeps_weights(self) -> bool:
        return True

    def _learn(self, session: Session, inputs: GraphInputs) -> None:
        count = len(self.classes_)
        self.memory.learn(session, self.network, lambda: self._node_embeddings(inputs), self.sizes.many, count)

    def _score_all(self, inputs: GraphInputs) -> torch.Tensor:
        return self.memory.scores(self.network, self._node_embeddings(inputs), len(self.classes_))

    def _node_embeddings(self, inputs: GraphInputs) -> NodeEmbeddings:
        return self.network.node_embeddings(inputs, self.cache.embeddings(inputs))


class ProtoGat(ProtoGcn):
    """A prototypical network on a pre-trained graph attention network."""

    title = "prototypes on a pre-trained GAT"
    reference = "Snell et al. 2017, with Veličković et al.: Graph Attention Networks. ICLR 2018"
    settings_type = ProtoGatSettings
