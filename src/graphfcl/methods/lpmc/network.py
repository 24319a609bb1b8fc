"""The encoder of LPMC, the class vectors of its micro-clusters, and the loss of an episode."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from torch import nn

from graphfcl.methods.bases.episodic_learner import EpisodicSettings
from graphfcl.methods.learner import Labelled, join_labelled
from graphfcl.methods.lpmc.contrast import ContrastSettings
from graphfcl.methods.lpmc.micro_clusters import MicroClusters
from graphfcl.methods.settings import Count, Positive, Weight
from graphfcl.methods.shared.episodes import Episode
from graphfcl.methods.shared.fine_tuning import StepSettings
from graphfcl.methods.shared.heads import unit
from graphfcl.methods.shared.prototype_network import (
    NodeEmbeddings,
    PrototypeNetwork,
    class_shares,
    query_shares,
    weighted_prototypes,
)
from graphfcl.nn import Encoder, GraphInputs, tensor_of


@dataclass(frozen=True)
class LpmcSettings(StepSettings, EpisodicSettings):
    """All settings; the defaults are the paper's where it names them."""

    hidden: int = 64
    """Width of the encoder's first layer."""
    size: int = 64
    """Width of an embedding."""
    last_relu: bool = False
    """ReLU on the last encoder layer, which leaves cosines between 0 and 1."""
    start: Literal["contrastive", "both", "supervised"] = "contrastive"
    """What episodes start from: contrastive pre-training, supervised training after it, or supervised alone."""
    contrast: ContrastSettings = field(default_factory=ContrastSettings)
    """Contrastive pre-training."""
    eps: Positive = 0.5
    """Cosine distance up to which two nodes of a class are neighbours in DBSCAN."""
    min_points: Count = 5
    """Neighbours, itself included, that make a node a core point of a micro-cluster."""
    temperature: Positive = 0.07
    """Cosines are divided by it (T)."""
    unit_length: bool = False
    """Class vectors of unit length; as printed, classes of many micro-clusters have shorter ones."""
    distillation: Weight = 0.1
    """Weight of how far the class means of before turn in the steps of a session (λ)."""
    base_share: Positive = 0.5
    """Share of the base classes that an episode has; the others are left out at random."""
    base_supports: Count = 20
    """Nodes of a base class that make its micro-clusters in an episode."""
    queries: int = 20
    """Nodes per class that an episode asks about."""


class LpmcNetwork(PrototypeNetwork):
    """Its prototypes are the class vectors Σ_k δ_k ĉ_k."""

    def __init__(self, encoder: Encoder, settings: LpmcSettings) -> None:
        super().__init__(encoder)
        self.settings = settings

    def clusters(self, vectors: torch.Tensor, classes: torch.Tensor) -> MicroClusters:
        """The micro-clusters of (n, h) labelled vectors."""
        return MicroClusters.of(vectors, classes, self.settings.eps, self.settings.min_points)

    def logits(self, vectors: torch.Tensor, class_vectors: torch.Tensor) -> torch.Tensor:
        """(n, C): −1 + x̂ · (1/T) Σ_k δ_k ĉ_k, which is −Σ_k δ_k (1 − cos(x, c_k)/T)."""
        return unit(vectors) @ self._scaled(class_vectors).T - 1

    @torch.no_grad()
    def scores(self, values: torch.Tensor, prototypes: torch.Tensor) -> torch.Tensor:
        return self.logits(values, prototypes)

    def _scaled(self, class_vectors: torch.Tensor) -> torch.Tensor:
        """w/T, with w of unit length if the settings want it."""
        return (unit(class_vectors) if self.settings.unit_length else class_vectors) / self.settings.temperature

    @torch.no_grad()
    def prototypes(
        self, embedding: NodeEmbeddings, train: Labelled, supports: Labelled, class_count: int
    ) -> torch.Tensor:
        """(C, h) class vectors of these labelled nodes."""
        nodes, columns = join_labelled(train, supports)
        order = np.argsort(nodes, kind="stable")  # who comes in which chunk must not depend on the order of labels
        rows, classes = embedding.rows(nodes[order]), tensor_of(columns[order], embedding.values.device)
        return self.clusters(embedding.values[rows], classes).class_vectors(class_count)

    def episode_loss(
        self,
        inputs: GraphInputs,
        episode: Episode,
        generator: torch.Generator | None,
        *,
        by_class: bool = False,
        before: NodeEmbeddings | None = None,
    ) -> torch.Tensor:
        """Cross-entropy of the queries; with ``before``, what was before a session, also how far old classes turn."""
        device, count, first = inputs.device, episode.class_count, episode.supports.size
        rows = inputs.visible.rows(np.concatenate([episode.supports, episode.queries]))
        embeddings = self.encoder(self.encoder.rows(inputs, rows), generator)
        supports, queries = embeddings[:first], embeddings[first:]
        classes, labels = (tensor_of(a, device) for a in (episode.support_classes, episode.query_classes))
        clusters = self.clusters(supports, classes)
        vectors = clusters.class_vectors(count)
        logits = self.logits(queries, vectors)
        asked = np.flatnonzero(episode.own >= 0)
        if asked.size:
            own = tensor_of(episode.own[asked], device)
            places = tensor_of(asked, device)
            without = clusters.vectors_without(own, supports, vectors)
            replaced = (unit(queries[places]) * self._scaled(without)).sum(dim=1) - 1
            logits = logits.index_put((places, labels[places]), replaced)
        losses = nn.functional.cross_entropy(logits, labels, reduction="none")
        loss = (query_shares(labels, count, by_class) * losses).sum()
        if before is None or self.settings.distillation == 0:
            return loss
        then = before.values[before.rows(episode.supports)]
        return loss + self.settings.distillation * turned(then, supports, classes, old_classes(episode, device))


def old_classes(episode: Episode, device: torch.device) -> torch.Tensor:
    """(old,) the classes that are not of the episode's tasks."""
    return tensor_of(np.setdiff1d(np.arange(episode.class_count), episode.tasks), device)


def turned(then: torch.Tensor, now: torch.Tensor, classes: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
    """1 − mean over old classes of cos(P then, P now), P = Σ_k δ_k c_k: the mean of the labelled vectors of a class."""
    count = int(classes.max()) + 1
    shares = class_shares(classes, count)
    first, second = (weighted_prototypes(vectors, shares, classes, count)[old] for vectors in (then, now))
    return 1 - (unit(first) * unit(second)).sum(dim=1).mean()
