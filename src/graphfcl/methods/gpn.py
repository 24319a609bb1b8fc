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
    """Meta-training in ordinary few-shot tasks."""

    task_way: Annotated[int, Limits(least=2)] = 5
    """Classes of a training task."""


class Gpn(EpisodicLearner):
    """GPN; formulas and deviations in the module docstring."""

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
