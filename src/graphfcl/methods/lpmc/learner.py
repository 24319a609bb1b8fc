"""LPMC: micro-clusters on a contrastively pre-trained encoder, meta-trained in pseudo-incremental episodes.

LPMC for graph few-shot class-incremental learning, arXiv 2609.25781, and the code that its authors released.

1. The encoder g is pre-trained by contrast on the parts of the graph, without labels (``contrast.py``).
2. It is meta-trained in pseudo-incremental episodes with the pseudo-novel classes, as in HAG-Meta. Each episode leaves
   out a random half of the base classes. Training runs three times with different held-out classes for validation, and
   is then repeated on all classes for the median of the best numbers of episodes.
3. A session takes steps on the same loss. Validation sessions choose their number, possibly zero. Session 0 ends with
   the same number of steps.

A class c is represented by micro-clusters (``micro_clusters.py``) with centres c_k, n_k labelled nodes, and
δ_k = n_k/Σn::

    logit_c(x) = −Σ_k δ_k (1 − cos(x, c_k)/T) = −1 + x̂ · w_c/T,    w_c = Σ_k δ_k ĉ_k

with x̂, ĉ of unit length. The score is linear in x̂, so scoring needs a single vector w_c per class, whose length
reflects the spread of the micro-clusters. The loss is::

    L = cross-entropy of the queries + λ (1 − mean over old classes of cos(P_c before, P_c now)),    P_c = Σ_k δ_k c_k

P_c is the mean of the labelled vectors of a class, and "before" is before the session. The second term only affects the
steps of a session, since its gradient is zero at the first step after "before".

Differences from the paper, or from the released code where stated:

- *Labels.* The released code trains a session on queries with their labels, selects its checkpoint on labelled nodes of
  novel classes, and adds new labelled nodes of the test pool to the memory before scoring. Here a session uses its
  supports only, validation sessions choose steps and learning rate as for every method, and scoring changes nothing.
- *DBSCAN.* In the code, noise points become singletons and also one joint cluster, whose id overwrites the newest
  cluster. Here they are singletons with separate ids.
- *Memory.* Classes of session 0 are represented by all of their train nodes, in chunks of 256 per class. Labelled nodes
  are kept and clustered again as the graph grows. Under the track ``isolated``, w_c is stored instead, and further
  supports of a known class form separate clusters.
- *Pre-training.* To avoid a dependency on METIS, a part consists of the nodes nearest to one of 300 random seeds. The
  encoder reads the whole graph instead of each part separately, all parts form one batch, and there are 200 steps
  instead of 1000 epochs. The projection head is trained; in the code it is missing from the optimiser
  (``contrast.train_head=False``), which is worse with an encoder of this width.
- *Encoder.* A GCN as in the other methods, without the last ReLU, which would restrict cosines to half of their range.
  The paper uses a GAT of width 128 (``encoder=gat``).
- *Episodes.* One step per episode instead of ten in the code, and 20 supports per base class instead of 5. Gradients
  pass through the centres. A support that is a query is left out of its own cluster.
- *Session 0* ends with the steps of a session, because the best number of episodes for held-out classes is, on some
  graphs, too small for the base classes.
- *λ* is 0.1. The code requires it as an argument, and its help text says 1e-5. ρ and the learnable weights that the
  paper mentions appear in no formula of the code, and are not implemented.
- *Without pseudo-novel classes*, episodes are tasks over the base classes, because pre-training uses no labels.
"""

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from graphfcl.methods.bases.encoder_learner import Stage
from graphfcl.methods.bases.episodic_learner import EpisodicLearner, EpisodicSettings
from graphfcl.methods.learner import Progress
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
from graphfcl.methods.state import Labelled, join_labelled
from graphfcl.nn import Encoder, GraphInputs, tensor_of
from graphfcl.stream.sessions import BaseSession, Session


@dataclass(frozen=True)
class LpmcSettings(StepSettings, EpisodicSettings):
    """Settings of LPMC. The defaults are the paper's values where the paper states them."""

    hidden: int = 64
    """Width of the encoder's first layer."""
    size: int = 64
    """Width of an embedding."""
    last_relu: bool = False
    """Apply a ReLU to the last encoder layer, which restricts cosines to [0, 1]."""
    start: Literal["contrastive", "both", "supervised"] = "contrastive"
    """Training before the episodes: contrastive, contrastive and then supervised (both), or supervised."""
    contrast: ContrastSettings = field(default_factory=ContrastSettings)
    """Contrastive pre-training."""
    eps: Positive = 0.5
    """Cosine distance up to which two nodes of a class are neighbours in DBSCAN."""
    min_points: Count = 5
    """Minimum number of neighbours, including the node itself, of a core point of a micro-cluster."""
    temperature: Positive = 0.07
    """Temperature of the logits (T)."""
    unit_length: bool = False
    """Scale class vectors to unit length. As printed, classes with more spread have shorter vectors."""
    distillation: Weight = 0.1
    """Weight of the loss on the change of direction of old class means in a session (λ)."""
    base_share: Positive = 0.5
    """Fraction of the base classes in an episode; the others are left out at random."""
    base_supports: Count = 20
    """Number of nodes per base class that form its micro-clusters in an episode."""
    queries: int = 20
    """Number of query nodes per class in an episode."""


class LpmcNetwork(PrototypeNetwork):
    """A prototypical network whose prototypes are the class vectors w_c = Σ_k δ_k ĉ_k."""

    def __init__(self, encoder: Encoder, settings: LpmcSettings) -> None:
        super().__init__(encoder)
        self.settings = settings

    def clusters(self, vectors: torch.Tensor, classes: torch.Tensor) -> MicroClusters:
        """Cluster (n, h) labelled vectors."""
        return MicroClusters.of(vectors, classes, self.settings.eps, self.settings.min_points)

    def logits(self, vectors: torch.Tensor, class_vectors: torch.Tensor) -> torch.Tensor:
        """Compute (n, C) logits −1 + x̂ · w_c/T, which equal −Σ_k δ_k (1 − cos(x, c_k)/T)."""
        return unit(vectors) @ self._scaled(class_vectors).T - 1

    @torch.no_grad()
    def scores(self, values: torch.Tensor, prototypes: torch.Tensor) -> torch.Tensor:
        return self.logits(values, prototypes)

    def _scaled(self, class_vectors: torch.Tensor) -> torch.Tensor:
        """Compute w/T, with w scaled to unit length if ``unit_length`` is set."""
        return (unit(class_vectors) if self.settings.unit_length else class_vectors) / self.settings.temperature

    @torch.no_grad()
    def prototypes(
        self, embedding: NodeEmbeddings, train: Labelled, supports: Labelled, class_count: int
    ) -> torch.Tensor:
        """Compute the (C, h) class vectors of labelled nodes."""
        nodes, columns = join_labelled(train, supports)
        order = np.argsort(nodes, kind="stable")  # chunks must not depend on the order of labels
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
        """Compute the loss; the second term needs ``before``, the embeddings before the session."""
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
        old = tensor_of(np.setdiff1d(np.arange(count), episode.tasks), device)  # classes in no task of the episode
        then = before.values[before.rows(episode.supports)]
        return loss + self.settings.distillation * turned(then, supports, classes, old)


def turned(then: torch.Tensor, now: torch.Tensor, classes: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
    """Compute 1 − mean over old classes of cos(P then, P now), where P is the mean of a class's labelled vectors."""
    first, second = (class_means(vectors, classes, int(classes.max()) + 1)[old] for vectors in (then, now))
    return 1 - (unit(first) * unit(second)).sum(dim=1).mean()


@dataclass
class PartialSampler(PseudoIncrementalSampler):
    """Pseudo-incremental episodes with a random fraction of the base classes."""

    share: float

    def sample(self, random: np.random.Generator) -> Episode:
        episode = super().sample(random)
        kept = min(episode.base_count, max(1, round(self.share * episode.base_count)))
        left_out = random.permutation(episode.base_count)[kept:]
        return without_classes(episode, left_out)


def without_classes(episode: Episode, left_out: np.ndarray) -> Episode:
    """Remove base classes from an episode, and renumber the others. No query may be a support."""
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
    """LPMC; the module docstring states the formulas and the differences from the paper."""

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
        return True  # without pseudo-novel classes, episodes are tasks of base classes

    def _sampler(self, base: BaseSession, pseudo_novel: np.ndarray) -> Sampler:
        chosen = self.settings
        if pseudo_novel.size == 0:
            return TaskSampler.of(base, pseudo_novel, base.shot, chosen.queries)
        return PartialSampler.of(base, pseudo_novel, chosen.base_supports, chosen.queries, chosen.base_share)

    def _finish(self, inputs: GraphInputs) -> None:
        # The best number of episodes for held-out classes may be too small for the base classes.
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
        """Take steps on the loss of an episode with equal class weights, and on the change of old class means."""
        steps, rate = choice
        if steps == 0:
            return
        classes, before = replace(classes, tasks=classes.tasks[-1:]), self.network.node_embeddings(inputs)

        def loss() -> torch.Tensor:
            episode = classes.sample(self.settings.base_supports, self.settings.queries, self.random)
            return self.network.episode_loss(inputs, episode, self.generator, by_class=True, before=before)

        take_steps(self.meta.new_optimiser(rate), steps, loss)
