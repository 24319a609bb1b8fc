"""Proto-GCN and Proto-GAT: a prototypical network on the pre-trained encoder, and nothing more.

Jake Snell, Kevin Swersky, Richard Zemel: Prototypical Networks for Few-shot Learning. NeurIPS 2017. Encoders: Kipf and
Welling, ICLR 2017; Veličković et al., ICLR 2018.

p_k is the mean embedding of the labelled nodes of class k, p(y = k | q) = softmax_k(−‖z_q − p_k‖²). After pre-training
no weight changes: a session adds prototypes. The labelled nodes are kept, because the growing graph encodes them anew;
under the track ``isolated`` the prototypes are kept instead.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from graphfcl.methods.learner import Progress
from graphfcl.methods.settings import MethodSettings
from graphfcl.methods.shared.fine_tuning import KnowsPrototypes
from graphfcl.methods.shared.prototype_network import PrototypeNetwork
from graphfcl.nn import GraphInputs
from graphfcl.stream import BaseSession


@dataclass(frozen=True)
class ProtoGatSettings(MethodSettings):
    encoder: str = "gat"


class ProtoGcn(KnowsPrototypes):
    """The learner."""

    name: ClassVar[str] = "proto-gcn"
    settings_type = MethodSettings
    network: PrototypeNetwork

    def _build(self, encoder: nn.Module, start: torch.Generator) -> nn.Module:  # noqa: ARG002
        return PrototypeNetwork(encoder)

    def _train(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> None:  # noqa: ARG002
        self.memory.finish(self.network, inputs, self.track, len(self.classes_))


class ProtoGat(ProtoGcn):
    """The same on a graph attention network."""

    name: ClassVar[str] = "proto-gat"
    settings_type = ProtoGatSettings
