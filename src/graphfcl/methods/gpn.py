"""GPN: graph prototypical networks.

Kaize Ding, Jianling Wang, Jundong Li, Kai Shu, Chenghao Liu, Huan Liu: Graph Prototypical Networks for Few-shot
Learning on Attributed Networks. CIKM 2020.

A node valuator scores each support, s̃_j = σ(log(degree_j + ε) · s_j) with s from two graph convolutions, and
p_k = Σ_{j∈S_k} (s̃_j / Σ_{i∈S_k} s̃_i) z_j. Encoder and valuator are trained in ordinary few-shot tasks of ``task_way``
classes of session 0. A session adds prototypes; nothing is updated.

Where this departs from the paper: the encoder starts from the pre-training that all methods share; classes with many
labels have the plain mean of their train nodes as prototype.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import nn

from graphfcl.methods.bases.episodic_learner import EpisodicLearner
from graphfcl.methods.settings import EpisodicSettings
from graphfcl.methods.shared.episodes import Episode, TaskSampler
from graphfcl.methods.shared.fine_tuning import KnowsPrototypes
from graphfcl.methods.shared.prototype_network import PrototypeNetwork
from graphfcl.methods.shared.training_state import require_range
from graphfcl.methods.shared.validation_sessions import ValidationSessions
from graphfcl.nn import GraphInputs, NodeLevelAttention
from graphfcl.stream import BaseSession


@dataclass(frozen=True)
class GpnSettings(EpisodicSettings):
    """task_way: classes of a training task."""

    task_way: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        require_range("task_way", self.task_way, least=2)


class Gpn(KnowsPrototypes, EpisodicLearner):
    """The learner."""

    name: ClassVar[str] = "gpn"
    settings_type = GpnSettings
    settings: GpnSettings
    network: PrototypeNetwork

    def _build(self, encoder: nn.Module, start: torch.Generator) -> nn.Module:
        valuator = NodeLevelAttention(self.sizes["features"], 32, 16, start)
        network = PrototypeNetwork(encoder, valuator, softmax=False).to(self.device)
        self.meta = self._meta_training(network)
        return network

    def _can_meta_train(self, base: BaseSession) -> bool:
        return len(base.classes) > 1

    def _sampler(self, base: BaseSession, pseudo_novel: np.ndarray) -> TaskSampler:
        return TaskSampler.of(base, pseudo_novel, self.settings.task_way, self.settings.queries)

    def _episode_loss(self, inputs: GraphInputs, episode: Episode, *, by_class: bool = False) -> torch.Tensor:
        return self.network.episode_loss(inputs, episode, self.generator, by_class=by_class)

    def _validate(self, inputs: GraphInputs, validation: ValidationSessions) -> float:
        return self.network.validate(inputs, validation)

    def _finish(self, inputs: GraphInputs) -> None:
        self.memory.finish(self.network, inputs, self.track, len(self.classes_))
