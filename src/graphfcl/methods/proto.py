"""Proto-GCN and Proto-GAT: a prototypical network on the pre-trained encoder, and nothing more.

Jake Snell, Kevin Swersky, Richard Zemel: Prototypical Networks for Few-shot Learning. NeurIPS 2017. Encoders: Kipf and
Welling, ICLR 2017; Veličković et al., ICLR 2018.

p_k is the mean embedding of the labelled nodes of class k, p(y = k | q) = softmax_k(−‖z_q − p_k‖²). After pre-training
no weight changes: a session adds prototypes. The labelled nodes are kept, because the growing graph encodes them anew;
under the track ``isolated`` the prototypes are kept instead.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from graphfcl.methods.graph_learner import GraphLearner
from graphfcl.methods.learner import Progress, Tensors
from graphfcl.methods.prototype_memory import PrototypeMemory
from graphfcl.methods.prototype_network import PrototypeNetwork
from graphfcl.methods.settings import MethodSettings
from graphfcl.nn import GraphInputs
from graphfcl.stream import BaseSession, Session


@dataclass(frozen=True)
class ProtoGatSettings(MethodSettings):
    encoder: str = "gat"


class ProtoGcn(GraphLearner):
    """The learner."""

    name: ClassVar[str] = "proto-gcn"
    settings_type = MethodSettings
    network: PrototypeNetwork

    def __init__(self, settings: MethodSettings | None = None, **options: Any) -> None:
        super().__init__(settings, **options)
        self.memory = PrototypeMemory()

    def _begin(self, base: BaseSession) -> None:
        self.memory.train = (base.train, base.train_labels)

    def _build(self, encoder: nn.Module, start: torch.Generator) -> nn.Module:  # noqa: ARG002
        return PrototypeNetwork(encoder)

    def _train(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> None:  # noqa: ARG002
        self.memory.finish(self.network, inputs, self.track, len(self.classes_))

    def _learn(self, session: Session, inputs: GraphInputs) -> None:
        self.memory.learn(self.network, inputs, session, self.sizes["many"], len(self.classes_))

    def _score_all(self, inputs: GraphInputs) -> torch.Tensor:
        return self.memory.scores(self.network, inputs, len(self.classes_))

    def _data_stored(self) -> dict[str, int]:
        return self.memory.stored()

    def _own_tensors(self) -> Tensors:
        return self.memory.tensors()

    def _load_own(self, values: dict[str, Any], tensors: Tensors) -> None:  # noqa: ARG002
        self.memory.load(tensors, self.device)


class ProtoGat(ProtoGcn):
    """The same on a graph attention network."""

    name: ClassVar[str] = "proto-gat"
    settings_type = ProtoGatSettings
