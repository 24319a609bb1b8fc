"""CEC: continually evolved classifiers.

Chi Zhang, Nan Song, Guosheng Lin, Yun Zheng, Pan Pan, Yinghui Xu: Few-Shot Incremental Learning with Continually
Evolved Classifiers. CVPR 2021.

1. The encoder is trained on the base classes with a cosine head, logits 16 · cos(z, w_k).
2. Pseudo-incremental episodes train a self-attention layer over the prototypes and the query, {p_1 … p_C, z_q}. Each
   token becomes LayerNorm(x + W_o · attention(x)), and the logits are 16 · cos of the query's and the prototypes'
   tokens. On graphs, pseudo-novel classes replace the paper's rotated images.
3. The encoder is frozen. A session adds the mean embeddings of its supports. Only prototypes are kept.

Differences from the paper: step 1 starts from the pre-training that all methods share. The encoder is also trained in
step 2, as in the authors' code (``train_encoder``). W_o is initialised with zeros, so the layer initially computes the
cosine of centred embeddings.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from graphfcl.methods.bases.encoder_learner import Stage
from graphfcl.methods.bases.episodic_learner import EpisodicLearner, EpisodicSettings
from graphfcl.methods.learner import Progress
from graphfcl.methods.settings import Count, Positive
from graphfcl.methods.shared.episodes import Episode, PseudoIncrementalSampler
from graphfcl.methods.shared.heads import CosineHead, unit
from graphfcl.methods.shared.parts import Part
from graphfcl.methods.shared.prototype_network import PrototypeNetwork, class_means
from graphfcl.methods.shared.supervised_training import SupervisedTraining
from graphfcl.methods.shared.training_state import copy_weights
from graphfcl.methods.state import LearnerState
from graphfcl.nn import Encoder, GraphInputs, Linear
from graphfcl.stream.sessions import BaseSession

CHUNK = 8192  # number of queries that are scored at a time


@dataclass(frozen=True)
class CecSettings(EpisodicSettings):
    """Settings of CEC."""

    base_supports: Count = 20
    """Number of nodes per base class that form its prototype in an episode."""
    temperature: Positive = 16.0
    """Factor of the cosines."""
    train_encoder: bool = True
    """Train the encoder in the episodes too."""


class ClassifierAttention(nn.Module):
    """Single-head self-attention with residual and LayerNorm over {p_1 … p_C, z_q}, separately for each query q.

    The attention of token p_i to the prototypes is shared by all queries. With scores s_ij among prototypes and s_iq to
    the query, Z_i = Σ_j exp(s_ij) and A_i = Σ_j exp(s_ij) v_j / Z_i, the attention of p_i is (1 − a) A_i + a v_q,
    a = σ(s_iq − log Z_i). Q queries thus cost Q·C·h operations instead of Q·C²·h.
    """

    def __init__(self, size: int, generator: torch.Generator) -> None:
        super().__init__()
        self.query, self.key, self.value = (Linear(size, size, generator) for _ in range(3))
        self.out = Linear(size, size, generator)
        nn.init.zeros_(self.out.weight)
        self.norm = nn.LayerNorm(size)
        self.scale = size**-0.5

    def forward(self, prototypes: torch.Tensor, queries: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Compute (q, C, h) tokens of the prototypes and (q, h) tokens of the queries."""
        among = self.query(prototypes) @ self.key(prototypes).T * self.scale  # s_ij
        shared = torch.softmax(among, dim=1) @ self.value(prototypes)  # A_i
        values = self.value(queries)
        to_query = (self.query(prototypes) @ self.key(queries).T).T * self.scale  # (q, C): s_iq
        share = torch.sigmoid(to_query - torch.logsumexp(among, dim=1)[None])[:, :, None]
        # W_o is linear, so it can be applied to A and v before they are mixed.
        mixed = (1 - share) * (shared @ self.out.weight)[None] + share * (values @ self.out.weight)[:, None]
        classes = self.norm(prototypes[None] + mixed + self.out.bias)

        from_query = self.query(queries) @ self.key(prototypes).T * self.scale
        itself = (self.query(queries) * self.key(queries)).sum(dim=1, keepdim=True) * self.scale
        weights = torch.softmax(torch.cat([from_query, itself], dim=1), dim=1)
        attended = weights[:, :-1] @ self.value(prototypes) + weights[:, -1:] * values
        return classes, self.norm(queries + self.out(attended))


class CecNetwork(PrototypeNetwork):
    """Encoder and self-attention. Prototypes are plain means."""

    def __init__(self, encoder: Encoder, attention: ClassifierAttention, temperature: float) -> None:
        super().__init__(encoder)
        self.attention, self.temperature = attention, temperature

    def logits(self, queries: torch.Tensor, prototypes: torch.Tensor) -> torch.Tensor:
        """Compute (q, C) logits, temperature · cos of the tokens."""
        classes, tokens = self.attention(prototypes, queries)
        return self.temperature * (unit(classes) * unit(tokens)[:, None]).sum(dim=2)

    @torch.no_grad()
    def scores(self, values: torch.Tensor, prototypes: torch.Tensor) -> torch.Tensor:
        """Compute logits in chunks of queries."""
        return torch.cat([self.logits(part, prototypes) for part in values.split(CHUNK)])


class Cec(EpisodicLearner):
    """CEC; the module docstring states the method and the differences from the paper."""

    title = "self-attention over prototypes and query, frozen encoder"
    reference = "Zhang et al.: Few-Shot Incremental Learning with Continually Evolved Classifiers. CVPR 2021"
    settings_type = CecSettings
    settings: CecSettings
    network: CecNetwork

    def _build(self, encoder: Encoder, start: torch.Generator) -> CecNetwork:
        chosen = self.settings
        head = CosineHead(chosen.size, self.sizes.base, chosen.temperature, start).to(self.device)
        self.cosine_training = SupervisedTraining(encoder, head, chosen.pretraining, stage="cosine head", name="cosine")
        return CecNetwork(encoder, ClassifierAttention(chosen.size, start), chosen.temperature)

    def _meta_trained(self) -> nn.Module:
        return self.network if self.settings.train_encoder else self.network.attention

    def parts(self) -> tuple[Part, ...]:
        running = (self.cosine_training,) if self.stage == Stage.COSINE_HEAD else ()
        return (*super().parts(), *running)

    # Session 0

    def _train(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> None:
        if self.stage == Stage.PRE_TRAINED:
            self._enter(Stage.COSINE_HEAD, progress)
        if self.stage == Stage.COSINE_HEAD:
            self.cosine_training.run_base(base, inputs, self, progress)
            self.pretrained = copy_weights(self.network)
            self._enter(Stage.PREPARED, progress)
        super()._train(base, inputs, progress)

    def _sampler(self, base: BaseSession, pseudo_novel: np.ndarray) -> PseudoIncrementalSampler:
        return PseudoIncrementalSampler.of(base, pseudo_novel, self.settings.base_supports, self.settings.queries)

    def _episode_loss(self, inputs: GraphInputs, episode: Episode, *, by_class: bool = False) -> torch.Tensor:  # noqa: ARG002
        with torch.set_grad_enabled(self.settings.train_encoder):
            supports, queries, classes, labels = self.network.encode_episode(inputs, episode, self.generator)
        prototypes = class_means(supports, classes, episode.class_count)
        return nn.functional.cross_entropy(self.network.logits(queries, prototypes), labels)

    def _finish(self, inputs: GraphInputs) -> None:
        self.memory.keep(self.memory.prototypes(self.network, self._node_embeddings(inputs), len(self.classes_)))
        self.network.requires_grad_(False)

    def load_state(self, state: LearnerState) -> None:
        super().load_state(state)
        if self.stage == Stage.READY:
            self.network.requires_grad_(False)
