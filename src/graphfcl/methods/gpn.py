"""GPN: graph prototypical networks.

Kaize Ding, Jianling Wang, Jundong Li, Kai Shu, Chenghao Liu, Huan Liu: Graph Prototypical Networks for Few-shot
Learning on Attributed Networks. CIKM 2020.

A node valuator scores each support, s̃_j = σ(log(degree_j + ε) · s_j), where s is computed by two graph convolutions.
Prototypes are p_k = Σ_{j∈S_k} (s̃_j / Σ_{i∈S_k} s̃_i) z_j. Encoder and valuator are trained in few-shot tasks of
``task_way`` classes of session 0. A session adds prototypes and changes no weights.

Differences from the paper: the encoder starts from the pre-training that all methods share. The prototype of a class
with many labels is the plain mean of its train nodes.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch

from graphfcl.methods.bases.episodic_learner import EpisodicLearner, EpisodicSettings
from graphfcl.methods.settings import Limits
from graphfcl.methods.shared.episodes import TaskSampler
from graphfcl.methods.shared.prototype_network import NodeLevelAttention, PrototypeNetwork
from graphfcl.nn import Encoder
from graphfcl.stream.sessions import BaseSession


@dataclass(frozen=True)
class GpnSettings(EpisodicSettings):
    """Settings of GPN."""

    task_way: Annotated[int, Limits(least=2)] = 5
    """Number of classes of a training task."""


class Gpn(EpisodicLearner):
    """GPN; the module docstring states the formulas and the differences from the paper."""

    title = "prototypes of supports that a node valuator weights"
    reference = "Ding et al.: Graph Prototypical Networks for Few-shot Learning on Attributed Networks. CIKM 2020"
    settings_type = GpnSettings
    records_steps = True
    settings: GpnSettings
    network: PrototypeNetwork

    def _build(self, encoder: Encoder, start: torch.Generator) -> PrototypeNetwork:
        valuator = NodeLevelAttention(self.sizes.features, 32, 16, start)
        return PrototypeNetwork(encoder, valuator, softmax=False)

    def _can_meta_train(self, base: BaseSession) -> bool:
        return len(base.classes) > 1

    def _sampler(self, base: BaseSession, pseudo_novel: np.ndarray) -> TaskSampler:
        return TaskSampler.of(base, pseudo_novel, base.shot, self.settings.queries, self.settings.task_way)
