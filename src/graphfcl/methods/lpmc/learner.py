"""LPMC: micro-clusters on a contrastively pre-trained encoder, meta-trained in pseudo-incremental episodes.

LPMC for graph few-shot class-incremental learning, arXiv 2609.25781, and the code that its authors released.

1. Contrastive pre-training of the encoder g on the parts of the graph, without a label (``contrast.py``).
2. Pseudo-incremental episodes with the pseudo-novel classes, as in HAG-Meta; each leaves out half of the base classes
   at random. Validated on held-out classes three times, then repeated on all for the middle number of episodes.
3. A session takes as many steps of the same loss as validation sessions found useful, possibly none. Session 0 ends
   with as many.

A class c is known by micro-clusters (``micro_clusters.py``) with centre c_k, n_k labelled nodes and δ_k = n_k/Σn::

    logit_c(x) = −Σ_k δ_k (1 − cos(x, c_k)/T) = −1 + x̂ · w_c/T,    w_c = Σ_k δ_k ĉ_k

with x̂, ĉ of unit length. The score is linear in x̂: of all its micro-clusters a class needs one vector w_c to be
scored. Their spread is in its length. The loss is::

    L = cross-entropy of the queries + λ (1 − mean over old classes of cos(P_c before, P_c now)),    P_c = Σ_k δ_k c_k

P_c is the mean of the labelled vectors of a class, and "before" is before the session: the second term counts in the
steps of a session alone, since at the first step after "before" its gradient is zero.

Departures, from the paper unless it says the code:

- *Labels.* The released code trains a session on queries with their labels, picks its checkpoint on labelled nodes of
  novel classes, and puts fresh labelled nodes of the test pool into the memory before it scores. Here a session has
  its supports, and steps and rate are chosen in validation sessions as for every method; asking changes nothing.
- *DBSCAN.* In the code, noise points become singletons and, once more, one joint cluster, whose id overwrites the
  newest cluster. Here they are singletons with ids of their own.
- *Memory.* Classes of session 0 are known by all of their train nodes, in chunks of 256 a class; labelled nodes are
  kept and clustered again as the graph grows. Under the track ``isolated`` w_c is kept instead, and more supports of
  a known class become clusters of their own, which never join.
- *Pre-training.* METIS is no dependency: a part is the nodes nearest to one of 300 random seeds. The encoder sees the
  whole graph and not each part by itself, all parts are one batch, and there are 200 steps instead of 1000 epochs.
  The head of the contrast is trained; in the code it is missing from the optimiser (``contrast.train_head=False``),
  which is worse here with an encoder of this width.
- *Encoder.* A GCN as the other methods have, without the last ReLU, which would cost cosines half of their range; the
  paper has a GAT of width 128 (``encoder=gat``).
- *Episodes.* One step on each, where the code takes ten, and 20 supports of a base class, where the code has 5.
  Gradients pass through the centres. A support that is asked about in a session is left out of its own cluster.
- *Session 0* ends with the steps of a session: episodes are stopped where held-out classes fare best, which on some
  graphs is before base classes are learned.
- *λ.* The code leaves it to the caller, its help says 1e-5; here it is 0.1. ρ and the learnable weights that the paper
  mentions are in no formula of the code, and not here.
- *Without pseudo-novel classes* the episodes are tasks over the base classes: no label has touched the encoder yet.
"""

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from graphfcl.methods.bases.encoder_learner import Stage
from graphfcl.methods.bases.episodic_learner import EpisodicLearner, EpisodicSettings
from graphfcl.methods.learner import Labelled, Progress, join_labelled
from graphfcl.methods.lpmc.contrast import ContrastiveTraining, ContrastSettings, ProjectionHead
from graphfcl.methods.lpmc.micro_clusters import MicroClusters
from graphfcl.methods.settings import Count, Positive, Weight
from graphfcl.methods.shared.episodes import Episode, PseudoIncrementalSampler, Sampler, TaskSampler
from graphfcl.methods.shared.fine_tuning import StepSettings
from graphfcl.methods.shared.heads import unit
from graphfcl.methods.shared.parts import Part
from graphfcl.methods.shared.prototype_network import NodeEmbeddings, PrototypeNetwork, class_means, query_shares
from graphfcl.methods.shared.training_state import take_steps
from graphfcl.methods.shared.validation_sessions import KnownClasses
from graphfcl.nn import Encoder, GraphInputs, tensor_of
from graphfcl.stream.sessions import BaseSession, Session


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
        device, count = inputs.device, episode.class_count
        supports, queries, classes, labels = self.encode_episode(inputs, episode, generator)
        clusters = self.clusters(supports, classes)
        vectors = clusters.class_vectors(count)
        logits = self.logits(queries, vectors)
        supporting = np.flatnonzero(episode.own >= 0)
        if supporting.size:
            own = tensor_of(episode.own[supporting], device)
            places = tensor_of(supporting, device)
            without = clusters.vectors_without(own, supports, vectors)
            replaced = (unit(queries[places]) * self._scaled(without)).sum(dim=1) - 1
            logits = logits.index_put((places, labels[places]), replaced)
        losses = nn.functional.cross_entropy(logits, labels, reduction="none")
        loss = (query_shares(labels, count, by_class) * losses).sum()
        if before is None or self.settings.distillation == 0:
            return loss
        old = tensor_of(np.setdiff1d(np.arange(count), episode.tasks), device)  # those of no task of the episode
        then = before.values[before.rows(episode.supports)]
        return loss + self.settings.distillation * turned(then, supports, classes, old)


def turned(then: torch.Tensor, now: torch.Tensor, classes: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
    """1 − mean over old classes of cos(P then, P now), P = Σ_k δ_k c_k: the mean of the labelled vectors of a class."""
    first, second = (class_means(vectors, classes, int(classes.max()) + 1)[old] for vectors in (then, now))
    return 1 - (unit(first) * unit(second)).sum(dim=1).mean()


@dataclass
class PartialSampler(PseudoIncrementalSampler):
    """Episodes with a share of their base classes."""

    share: float

    def sample(self, random: np.random.Generator) -> Episode:
        episode = super().sample(random)
        kept = min(episode.base_count, max(1, round(self.share * episode.base_count)))
        left_out = random.permutation(episode.base_count)[kept:]
        return without_classes(episode, left_out)


def without_classes(episode: Episode, left_out: np.ndarray) -> Episode:
    """The episode without some base classes; the others move up. No query is one of the supports."""
    stays = np.ones(episode.class_count, dtype=bool)
    stays[left_out] = False
    place = np.cumsum(stays) - 1
    supports, queries = stays[episode.support_classes], stays[episode.query_classes]
    return replace(
        episode,
        class_count=int(stays.sum()),
        base_count=episode.base_count - left_out.size,
        supports=episode.supports[supports],
        support_classes=place[episode.support_classes[supports]],
        queries=episode.queries[queries],
        query_classes=place[episode.query_classes[queries]],
        own=episode.own[queries],
        tasks=np.where(episode.tasks >= 0, place[episode.tasks], -1),
    )


class Lpmc(EpisodicLearner):
    """LPMC; formulas and deviations in the module docstring."""

    title = "micro-clusters, contrastive pre-training and pseudo-incremental episodes"
    reference = "LPMC, arXiv 2609.25781"
    settings_type = LpmcSettings
    tunes_on_all_classes = True
    settings: LpmcSettings
    network: LpmcNetwork
    contrast: ContrastiveTraining

    def parts(self) -> tuple[Part, ...]:
        running = (self.contrast,) if self.stage == Stage.PRE_TRAINING else ()
        return (*super().parts(), *running)

    def _build(self, encoder: Encoder, start: torch.Generator) -> LpmcNetwork:
        head = ProjectionHead(self.settings.size, start).to(self.device)
        self.contrast = ContrastiveTraining(
            encoder, head, self.settings.contrast, stage="contrastive pre-training", name="contrast"
        )
        return LpmcNetwork(encoder, self.settings)

    # Session 0

    def _run_pretraining(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> float:
        if self.settings.start != "supervised":
            self.contrast.run(inputs, self, progress)
        supervised = self.settings.start != "contrastive"
        return self.contrast.seconds + (super()._run_pretraining(base, inputs, progress) if supervised else 0.0)

    def _encoder_options(self, base: BaseSession) -> dict[str, Any]:  # noqa: ARG002
        start = self.settings.start
        return {} if start == "supervised" else {"start": start, "contrast": asdict(self.settings.contrast)}

    def _can_meta_train(self, base: BaseSession) -> bool:  # noqa: ARG002
        return True  # without pseudo-novel classes on tasks of base classes: no label has touched the encoder yet

    def _sampler(self, base: BaseSession, pseudo_novel: np.ndarray) -> Sampler:
        chosen = self.settings
        if pseudo_novel.size == 0:
            return TaskSampler.of(base, pseudo_novel, base.shot, chosen.queries)
        return PartialSampler.of(base, pseudo_novel, chosen.base_supports, chosen.queries, chosen.base_share)

    def _finish(self, inputs: GraphInputs) -> None:
        # Held-out classes may like an encoder best that has seen few episodes, and base classes do not.
        self._fine_tune(inputs, self._known_classes([]), *self.fine_tuning.choice)
        super()._finish(inputs)

    # Incremental sessions and scores

    def _learn(self, session: Session, inputs: GraphInputs) -> None:
        super()._learn(session, inputs)
        if self.fine_tuning.steps:
            count = len(self.classes_)
            new = list(range(count - len(session.new_classes), count))
            self._fine_tune(inputs, self._known_classes([new] if new else []), *self.fine_tuning.choice)

    def _fine_tune(self, inputs: GraphInputs, classes: KnownClasses, *choice: Any) -> None:
        """The loss of an episode, averaged by class, and the distillation of the classes of before."""
        steps, rate = choice
        if steps == 0:
            return
        classes, before = replace(classes, tasks=classes.tasks[-1:]), self.network.node_embeddings(inputs)

        def loss() -> torch.Tensor:
            episode = classes.sample(self.settings.base_supports, self.settings.queries, self.random)
            return self.network.episode_loss(inputs, episode, self.generator, by_class=True, before=before)

        take_steps(self.meta.new_optimiser(rate), steps, loss)
