"""HAG-Meta: Hierarchical-Attention Graph Meta-learning.

Zhen Tan, Kaize Ding, Ruocheng Guo, Huan Liu: Graph Few-shot Class-incremental Learning. WSDM 2022.

HAG-Meta is a prototypical network on a graph encoder g_θ, trained in three stages:

1. Pre-training of g_θ on the base classes (:mod:`graphfcl.methods.shared.supervised_training`).
2. Graph Pseudo Incremental Learning (GPIL): episodes simulate incremental sessions with the pseudo-novel classes
   (:class:`graphfcl.methods.shared.episodes.PseudoIncrementalSampler`). Training runs three times with different
   held-out classes for validation, and is then repeated on all pseudo-novel classes for the median of the best
   numbers of episodes (``refit``).
3. Incremental sessions, each with the number of fine-tuning steps that validation sessions chose, possibly none.

The prototype of a class with few supports is p_k = Σ_{j∈S_k} λ_j z_j with node-level attention λ (NLA, g_ψ). The
prototype of a class with many labels is the mean of its train nodes. Predictions are
p(y = k | q) = softmax_k(−‖z_q − p_k‖²). The loss is −(1/|Q|) Σ_q (1 + w_{y_q}) log p(y_q | q), where w comes from
task-level attention (TLA, g_φ).

Differences from the paper and the authors' code:

- In episodes and fine-tuning steps, base prototypes are means over 20 sampled supports per class, disjoint from the
  queries. At validation and evaluation they are means over all train nodes.
- Fine-tuning in a strict session uses no query label. Its queries are train nodes and the supports themselves, each
  left out of its own prototype.
- Under the track ``isolated``, prototypes are stored and the encoder is not fine-tuned, because old nodes cannot be
  encoded again.

To follow an episode through the code, read this module, ``MetaTraining`` in ``bases/episodic_learner.py``,
``shared/episodes.py``, and ``shared/prototype_network.py``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import nn

from graphfcl.methods.bases.episodic_learner import EpisodicLearner, EpisodicSettings
from graphfcl.methods.settings import Count
from graphfcl.methods.shared.episodes import DeviceEpisode, PseudoIncrementalSampler
from graphfcl.methods.shared.fine_tuning import StepSettings
from graphfcl.methods.shared.parts import OwnAttributes, Part
from graphfcl.methods.shared.prototype_network import NodeLevelAttention, PrototypeNetwork, weighted_cross_entropy
from graphfcl.methods.shared.training_state import check_finite, take_steps
from graphfcl.methods.shared.validation_sessions import KnownClasses
from graphfcl.nn import Encoder, GraphInputs, Linear
from graphfcl.stream.sessions import BaseSession, PaperSession, Session

Loss = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class HagMetaSettings(StepSettings, EpisodicSettings):
    """Settings of HAG-Meta.

    The defaults are the paper's values where the paper states them. Fields of the group ``pretraining`` are set with a
    dot on the command line, ``--set pretraining.epochs=50``.

    Args:
        encoder: Graph encoder, ``gcn`` or ``gat``.
        hidden: Width of the encoder's first layer.
        size: Width of an embedding.
        last_relu: Whether the last encoder layer has a ReLU.
        dropout: Fraction of hidden values that are dropped in training.
        pretraining: Epochs, steps, patience, learning rate and weight decay of the encoder's pre-training.
        learning_rate: Learning rate of Adam in meta-training.
        weight_decay: Weight decay of Adam in meta-training and in fine-tuning.
        episodes: Maximum number of meta-training episodes.
        validate_every: Number of episodes between two validations.
        patience: Number of validations in a row without a better score after which meta-training stops.
        validation_window: Number of latest validations whose mean is the score.
        validation_draws: Number of support draws over which a validation is averaged.
        validation_folds: Number of parts into which the pseudo-novel classes are split; each part is held out once.
        refit: Whether meta-training is repeated on all pseudo-novel classes, including the held-out ones.
        queries: Number of query nodes per class in an episode.
        fine_tuning: Candidate (steps, learning rate) pairs of a session, in addition to no step. Validation sessions
            choose one.
        fine_tuning_steps: Fixed number of fine-tuning steps of a session; None lets validation choose.
        fine_tuning_rate: Learning rate of a fixed number of steps.
        gpil: Whether to meta-train in pseudo-incremental episodes (GPIL).
        nla: Whether to weight supports by node-level attention (NLA).
        tla: Form of task-level attention (TLA), or None for no attention. ``printed`` follows the paper's equations;
            ``invariant`` accepts any number of classes in any order.
        task_weighting: ``printed`` trains the attention with the paper's loss; ``hard`` trains it to give more weight
            to tasks with a larger loss.
        loss: ``softmax`` cross-entropy, or the paper's ``binary`` form.
        base_supports: Number of nodes per base class that form its prototype in an episode.

    Examples:
        >>> from graphfcl import HagMetaSettings
        >>> settings = HagMetaSettings(tla="invariant", episodes=200)
        >>> settings.tla, settings.episodes, settings.size
        ('invariant', 200, 128)
    """

    gpil: bool = True
    """Meta-train in pseudo-incremental episodes (GPIL)."""
    nla: bool = True
    """Weight supports by node-level attention (NLA)."""
    tla: Literal["printed", "invariant"] | None = "printed"
    """Form of task-level attention (TLA): as printed in the paper, invariant to the order of classes, or none."""
    task_weighting: Literal["printed", "hard"] = "printed"
    """Train task-level attention with the paper's loss, or to give more weight to tasks with a larger loss (hard)."""
    loss: Literal["softmax", "binary"] = "softmax"
    """Softmax cross-entropy, or the paper's binary form."""
    base_supports: Count = 20
    """Number of nodes per base class that form its prototype in an episode."""


class HagMetaNetwork(PrototypeNetwork):
    """The network of HAG-Meta.

    Args:
        encoder: Graph encoder g_θ.
        nla: Node-level attention g_ψ, or None.
        tla: Task-level attention g_φ, or None.
        loss: One of ``LOSSES``.
        hard: Whether the attention is trained to give more weight to tasks with a larger loss.
    """

    def __init__(
        self, encoder: Encoder, nla: nn.Module | None, tla: nn.Module | None, loss: Loss, *, hard: bool = False
    ) -> None:
        super().__init__(encoder, nla)
        self.tla, self.weighted_loss, self.hard = tla, loss, hard

    def loss(
        self, distances: torch.Tensor, prototypes: torch.Tensor, shares: torch.Tensor, episode: DeviceEpisode
    ) -> torch.Tensor:
        """Compute the loss of the queries, with classes weighted by the attention to their task."""
        labels, task_of_class = episode.query_classes, episode.task_of_class
        if self.tla is None:
            return self.weighted_loss(distances, labels, prototypes.new_zeros(len(prototypes)), shares)
        task_weights = self.tla(prototypes, episode.tasks, episode.host.base_count, len(episode.tasks))
        weights = class_weights(task_weights, task_of_class)
        if not self.hard:
            return self.weighted_loss(distances, labels, weights, shares)
        teaching = hard_task_loss(distances, labels, task_weights, task_of_class)
        return self.weighted_loss(distances, labels, weights.detach(), shares) + teaching


class PrintedTaskAttention(nn.Module):
    """Task-level attention g_φ as printed in the paper.

    An MLP over the class axis reduces the base task from |C_base| classes to N. A shared layer N → 1 maps the h × N
    prototypes of each task to u ∈ R^h, and w^{i,j} = softmax_j(u^i · u^j). The sizes depend on |C_base| and N, and the
    result depends on the order of the classes.
    """

    def __init__(self, base: int, way: int, size: int, generator: torch.Generator) -> None:  # noqa: ARG002
        super().__init__()
        middle = max(base, way)
        self.base_layers = nn.ModuleList(
            [Linear(base, middle, generator), Linear(middle, middle, generator), Linear(middle, way, generator)]
        )
        self.shared = Linear(way, 1, generator)

    def forward(self, prototypes: torch.Tensor, tasks: torch.Tensor, base: int, current: int) -> torch.Tensor:
        """Compute the (tasks + 1,) weights of the base task and of the later tasks.

        Args:
            prototypes: (classes, h) prototypes, base classes first.
            tasks: (tasks, N) classes of each later task, padded with −1. The mean prototype of the task is used there.
            base: Number of base classes.
            current: Position of the current task; 0 is the base task.
        """
        projected = prototypes[:base].T
        for layer in self.base_layers[:-1]:
            projected = torch.relu(layer(projected))
        projected = self.base_layers[-1](projected)  # (h, N)
        members, present = prototypes[tasks.clamp(min=0)], (tasks >= 0)[:, :, None]  # (tasks, N, h)
        mean = (members * present).sum(dim=1, keepdim=True) / present.sum(dim=1, keepdim=True)
        members = torch.where(present, members, mean)
        matrices = torch.cat([projected.T[None], members])  # (tasks + 1, N, h)
        vectors = (matrices * self.shared.weight[None]).sum(dim=1) + self.shared.bias
        return torch.softmax(vectors @ vectors[current], dim=0)


class InvariantTaskAttention(nn.Module):
    """Task-level attention g_φ with the invariances that the paper's text claims.

    u is the mean over a task's classes of an MLP of their prototypes, so tasks may have any number of classes in any
    order. w^{i,j} = softmax_j(u^i · u^j).
    """

    def __init__(self, base: int, way: int, size: int, generator: torch.Generator) -> None:  # noqa: ARG002
        super().__init__()
        self.layers = nn.ModuleList([Linear(size, size, generator) for _ in range(3)])

    def forward(self, prototypes: torch.Tensor, tasks: torch.Tensor, base: int, current: int) -> torch.Tensor:
        """Compute weights as :class:`PrintedTaskAttention` does; ``tasks`` may have any width."""
        values = prototypes
        for layer in self.layers[:-1]:
            values = torch.relu(layer(values))
        values = self.layers[-1](values)
        present = (tasks >= 0)[:, :, None]
        others = (values[tasks.clamp(min=0)] * present).sum(dim=1) / present.sum(dim=1)
        vectors = torch.cat([values[:base].mean(dim=0, keepdim=True), others])
        return torch.softmax(vectors @ vectors[current], dim=0)


TASK_ATTENTIONS: dict[str, type[PrintedTaskAttention] | type[InvariantTaskAttention]] = {
    "printed": PrintedTaskAttention,
    "invariant": InvariantTaskAttention,
}


def class_weights(task_weights: torch.Tensor, task_of_class: torch.Tensor) -> torch.Tensor:
    """Compute the (classes,) weights W_C: class k of task j gets w^{i,j}/|C^j|."""
    sizes = torch.zeros_like(task_weights).index_add(
        0, task_of_class, torch.ones(task_of_class.shape, dtype=task_weights.dtype, device=task_weights.device)
    )
    return (task_weights / sizes.clamp(min=1))[task_of_class]


def weighted_binary_cross_entropy(
    distances: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor, shares: torch.Tensor
) -> torch.Tensor:
    """Binary loss as printed: −Σ_q share_q Σ_k (1 + w_k) [y_k log p_k + (1 − y_k) log(1 − p_k)]."""
    log_likelihood = torch.log_softmax(-distances, dim=1)
    tiny = torch.finfo(distances.dtype).tiny ** 0.5
    log_opposite = torch.log((-torch.expm1(log_likelihood)).clamp(min=tiny))
    right = torch.zeros_like(distances).scatter(1, labels[:, None], 1.0)
    terms = right * log_likelihood + (1 - right) * log_opposite
    return -(shares.to(distances.dtype)[:, None] * (1 + weights)[None] * terms).sum()


def hard_task_loss(
    distances: torch.Tensor, labels: torch.Tensor, task_weights: torch.Tensor, task_of_class: torch.Tensor
) -> torch.Tensor:
    """Train the attention on hard tasks: the cross-entropy from softmax_j(mean loss of task j) to w.

    Minimising the printed loss moves attention to the *easiest* task. With this term, the weights scale the loss as
    constants, and only this term trains them.
    """
    losses = -torch.log_softmax(-distances.detach(), dim=1).gather(1, labels[:, None]).squeeze(1)
    task = task_of_class[labels]
    total = torch.zeros_like(task_weights).index_add(0, task, losses)
    count = torch.zeros_like(task_weights).index_add(0, task, torch.ones_like(losses))
    mean = torch.where(count > 0, total / count.clamp(min=1), -torch.inf)  # tasks without queries get no weight
    target = torch.softmax(mean, dim=0)
    return -(target * torch.log(task_weights.clamp(min=1e-12))).sum()


LOSSES: dict[str, Loss] = {"softmax": weighted_cross_entropy, "binary": weighted_binary_cross_entropy}


class HagMeta(EpisodicLearner):
    """HAG-Meta, a prototypical network that is meta-trained in pseudo-incremental episodes.

    Tan, Ding, Guo, Liu: Graph Few-shot Class-incremental Learning. WSDM 2022. The docstring of this module states the
    equations and the differences from the paper.

    Args:
        settings: An instance of :class:`HagMetaSettings`; by default the default settings.
        seed: Seed of all random numbers.
        device: PyTorch device for tensors.

    Attributes:
        tasks: Class columns of each task after the base task, oldest first.

    Examples:
        >>> from graphfcl import HagMeta, HagMetaSettings, evaluate, load_dataset, make_stream
        >>> graph, protocol = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> settings = HagMetaSettings(hidden=16, size=8, episodes=2, validation_draws=1, fine_tuning_steps=0)
        >>> learner = HagMeta(settings, seed=0)
        >>> evaluation = evaluate(learner, make_stream(graph, protocol, seed=0))
        >>> len(learner.classes_), len(evaluation.metrics.sessions)
        (6, 3)
    """

    title = "pseudo-incremental meta-training with node-level and task-level attention"
    reference = "Tan, Ding, Guo, Liu: Graph Few-shot Class-incremental Learning. WSDM 2022"
    settings_type = HagMetaSettings
    # Sessions in production have any number of classes, which the printed attention does not support.
    production_settings: ClassVar[dict[str, Any]] = {"tla": "invariant"}
    trains_on_query_labels = True
    records_steps = True
    tunes_on_all_classes = True
    settings: HagMetaSettings
    network: HagMetaNetwork

    def __init__(self, settings: Any = None, *, seed: int = 0, device: str | torch.device = "cpu") -> None:
        super().__init__(settings, seed=seed, device=device)
        self.tasks: list[list[int]] = []

    def parts(self) -> tuple[Part, ...]:
        return (*super().parts(), OwnAttributes(self, "tasks"))

    # Session 0

    def _start(self, base: BaseSession, inputs: GraphInputs) -> None:
        self.tasks = [list(task) for task in base.pseudo_novel_tasks]
        super()._start(base, inputs)

    def _build(self, encoder: Encoder, start: torch.Generator) -> HagMetaNetwork:
        chosen, sizes = self.settings, self.sizes
        nla = NodeLevelAttention(sizes.features, 32, 16, start) if chosen.nla else None
        tla = None
        if chosen.tla is not None:
            tla = TASK_ATTENTIONS[chosen.tla](sizes.base, sizes.way, chosen.size, start)
        return HagMetaNetwork(encoder, nla, tla, LOSSES[chosen.loss], hard=chosen.task_weighting == "hard")

    def _can_meta_train(self, base: BaseSession) -> bool:
        return self.settings.gpil and super()._can_meta_train(base)

    def _sampler(self, base: BaseSession, pseudo_novel: np.ndarray) -> PseudoIncrementalSampler:
        return PseudoIncrementalSampler.of(base, pseudo_novel, self.settings.base_supports, self.settings.queries)

    def _chooses(self, base: BaseSession) -> bool:
        return base.protocol != "paper" and super()._chooses(base)

    def _make_choices(self, base: BaseSession) -> None:
        super()._make_choices(base)
        if base.protocol == "paper" and self.track != "isolated":
            self.fine_tuning.set_choice(1, self.settings.learning_rate)

    # Incremental sessions

    def _learn(self, session: Session, inputs: GraphInputs) -> None:
        if session.new_classes:
            count = len(self.classes_)
            self.tasks.append(list(range(count - len(session.new_classes), count)))
        super()._learn(session, inputs)
        if isinstance(session, PaperSession):
            queries, classes = (session.queries, session.query_labels), self._known_classes(self.tasks)
            episode = classes.with_queries(queries, self.settings.base_supports, self.random)
            loss = self.meta.step(inputs, episode, self.meta.new_optimiser(self.fine_tuning.rate))
            check_finite(loss, "the gradient step of session", session.number)
        else:
            self._fine_tune(inputs, self._known_classes(self.tasks), *self.fine_tuning.choice)

    def _fine_tune(self, inputs: GraphInputs, classes: KnownClasses, *choice: Any) -> None:
        """Take steps on the loss of an episode with equal class weights."""
        steps, rate = choice

        def loss() -> torch.Tensor:
            episode = classes.sample(self.settings.base_supports, self.settings.queries, self.random)
            return self._episode_loss(inputs, episode, by_class=True)

        take_steps(self.meta.new_optimiser(rate), steps, loss)
