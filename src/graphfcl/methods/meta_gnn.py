"""Meta-GNN: model-agnostic meta-learning on graphs.

Fan Zhou, Chengtai Cao, Kunpeng Zhang, Goce Trajcevski, Ting Zhong, Ji Geng: Meta-GNN: On Few-shot Node Classification
in Graph Meta-learning. CIKM 2019. After Finn, Abbeel, Levine: Model-Agnostic Meta-Learning. ICML 2017.

**A training task** has ``task_way`` classes. The columns of the head start at the class means of the supports, with
weights 2 p_k and biases −‖p_k‖². A few inner steps of gradient descent on the supports adapt encoder and head,
θ' = θ − α ∇L_S(θ). Meta-training minimises the loss of the queries under the adapted weights and differentiates through
the inner steps (``first_order`` omits their second derivatives).

**A session** starts from the meta-trained encoder and a head with columns at all class means, and takes inner steps on
the supports of the session. Every session starts from the meta-trained encoder, so adaptations do not accumulate.
Labelled nodes are kept, and their means are computed on the graph of the session. ``refresh_means=false`` stores the
means instead of nodes.

Differences from the paper: the encoder is the pre-trained GCN that all methods share. The head starts at class means,
because no head was trained for new classes. Validation sessions choose the learning rate and number of steps of a
session.
"""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np
import torch
from torch import nn
from torch.func import functional_call

from graphfcl.errors import DivergenceError
from graphfcl.graph.interfaces import VisibleNodes
from graphfcl.methods.bases.episodic_learner import EpisodicLearner, EpisodicSettings
from graphfcl.methods.learner import Progress
from graphfcl.methods.settings import Count, Limits, Positive
from graphfcl.methods.shared.episodes import Episode, TaskSampler
from graphfcl.methods.shared.fine_tuning import Steps, StepSettings
from graphfcl.methods.shared.parts import OwnAttributes, Part
from graphfcl.methods.shared.prototype_network import NodeEmbeddings, PrototypeNetwork, class_means
from graphfcl.methods.shared.training_state import check_finite
from graphfcl.methods.shared.validation_sessions import ValidationSessions
from graphfcl.methods.state import (
    Labelled,
    Tensors,
    no_labels,
    select_labelled,
)
from graphfcl.nn import Encoder, GraphInputs, tensor_of
from graphfcl.stream.sessions import BaseSession, Session

Head = tuple[torch.Tensor, torch.Tensor]  # weights (h, classes) and biases (classes,)


@dataclass(frozen=True)
class MetaGnnSettings(StepSettings, EpisodicSettings):
    """Settings of Meta-GNN."""

    hidden: int = 64
    """Width of the encoder's first layer."""
    size: int = 64
    """Width of an embedding."""
    task_way: Annotated[int, Limits(least=2)] = 5
    """Number of classes of a training task."""
    inner_steps: Count = 5
    """Number of inner steps in a training task."""
    inner_rate: Positive = 0.01
    """Learning rate of these steps."""
    first_order: bool = False
    """Omit the second derivatives of the inner steps."""
    refresh_means: bool = True
    """Compute class means from labelled nodes on the graph of each session; if false, store the means instead."""
    fine_tuning: tuple[Steps, ...] = ((5, 0.01), (10, 0.01), (5, 0.1), (10, 0.1))
    """Candidate (steps, learning rate) pairs of a session, in addition to no steps; validation sessions choose one."""
    fine_tuning_rate: float = 0.01
    """Learning rate of these steps."""


def nearest_mean(prototypes: torch.Tensor) -> Head:
    """Make the linear head that is equivalent to −‖z − p_k‖² in a softmax: weights 2 p_k, biases −‖p_k‖²."""
    return 2 * prototypes.T, -(prototypes**2).sum(dim=1)


@dataclass(frozen=True, eq=False)
class Step:
    """A step of gradient descent on supports.

    Args:
        encoder: The encoder.
        needed: Input of the encoder for the supports.
        labels: Classes of the supports.
        rate: Learning rate.
        differentiable: Whether the result can be differentiated through the steps.
    """

    encoder: nn.Module
    needed: Any
    labels: torch.Tensor
    rate: float
    differentiable: bool

    def repeat(self, weights: Tensors, head: Head, steps: int) -> tuple[Tensors, Head]:
        """Take a number of steps, and return encoder weights and head."""
        for number in range(steps):
            logits = functional_call(self.encoder, weights, (self.needed,)) @ head[0] + head[1]
            loss = nn.functional.cross_entropy(logits, self.labels)
            if not self.differentiable:
                check_finite(loss, "adaptation", number + 1)
            before = [*weights.values(), *head]
            gradients = torch.autograd.grad(loss, before, create_graph=self.differentiable, retain_graph=True)
            moved = [value - self.rate * slope for value, slope in zip(before, gradients, strict=True)]
            weights, head = dict(zip(weights, moved, strict=False)), (moved[-2], moved[-1])
        return weights, head


class MetaGnn(EpisodicLearner):
    """Meta-GNN; the module docstring states the method and the differences from the paper."""

    title = "MAML: an initialisation that adapts to a few supports"
    reference = "Zhou et al.: Meta-GNN: On Few-shot Node Classification in Graph Meta-learning. CIKM 2019"
    settings_type = MetaGnnSettings
    settings: MetaGnnSettings
    network: PrototypeNetwork

    def __init__(self, settings: Any = None, *, seed: int = 0, device: str | torch.device = "cpu") -> None:
        super().__init__(settings, seed=seed, device=device)
        self.adapted_weights: Tensors = {}  # encoder weights after the last session; empty before the first
        self.adapted_head: Head | None = None

    def parts(self) -> tuple[Part, ...]:
        adapted = OwnAttributes(self, "adapted_weights", "adapted_head", stored_as="weights")
        return (*super().parts(), adapted)

    def _build(self, encoder: Encoder, start: torch.Generator) -> PrototypeNetwork:  # noqa: ARG002
        return PrototypeNetwork(encoder)

    def _meta_trained(self) -> nn.Module:
        return self.network.encoder

    # Session 0

    def _can_meta_train(self, base: BaseSession) -> bool:
        return len(base.classes) > 1

    def _sampler(self, base: BaseSession, pseudo_novel: np.ndarray) -> TaskSampler:
        return TaskSampler.of(base, pseudo_novel, base.shot, self.settings.queries, self.settings.task_way)

    def _episode_loss(self, inputs: GraphInputs, episode: Episode, *, by_class: bool = False) -> torch.Tensor:  # noqa: ARG002
        encoder, chosen = self.network.encoder, self.settings
        labels, targets = (tensor_of(each, self.device) for each in (episode.support_classes, episode.query_classes))
        supports, queries = (
            encoder.rows(inputs, inputs.visible.rows(nodes)) for nodes in (episode.supports, episode.queries)
        )
        head = nearest_mean(class_means(encoder(supports), labels, episode.class_count))
        step = Step(encoder, supports, labels, chosen.inner_rate, differentiable=not chosen.first_order)
        weights, head = step.repeat(dict(encoder.named_parameters()), head, chosen.inner_steps)
        logits = functional_call(encoder, weights, (queries, self.generator)) @ head[0] + head[1]
        return nn.functional.cross_entropy(logits, targets)

    def _validate(self, inputs: GraphInputs, validation: ValidationSessions) -> float:
        embedding, chosen = self.network.node_embeddings(inputs), self.settings
        score = partial(self._score_draw, inputs, embedding, steps=chosen.inner_steps, rate=chosen.inner_rate)
        try:
            return float(np.mean([score(draw) for draw in validation.draws]))  # each draw takes its own inner steps
        except DivergenceError:
            return 0.0

    def _score_draw(
        self, inputs: GraphInputs, embedding: NodeEmbeddings, draw: ValidationSessions, steps: int, rate: float
    ) -> float:
        """Score a draw after its last session, adapted with a number of steps."""
        supports = last = no_labels()
        for classes in draw.sessions():
            supports, new = classes.supports, np.isin(classes.supports[1], classes.tasks[-1])
            last = select_labelled(supports, new)
        prototypes = self.network.prototypes(embedding, draw.train, supports, draw.class_count)
        weights, head = self._adapt(inputs, prototypes, last, steps if last[0].size else 0, rate)
        predicted = self._logits(inputs, weights, head).argmax(dim=1).cpu().numpy()
        return draw.score_of(predicted[inputs.visible.rows(draw.queries[0])])

    def _chooses(self, base: BaseSession) -> bool:  # noqa: ARG002
        return not self.fine_tuning.is_fixed

    def _try_choices(self, inputs: GraphInputs, validation: ValidationSessions, progress: Progress) -> None:
        score = partial(self._score_draw, inputs, self.network.node_embeddings(inputs))
        self.fine_tuning.score_candidates(validation, score, progress)

    def _make_choices(self, base: BaseSession) -> None:  # noqa: ARG002
        self.fine_tuning.choose((self.settings.inner_steps, self.settings.inner_rate))

    def _finish(self, inputs: GraphInputs) -> None:
        if self.settings.refresh_means:
            super()._finish(inputs)
        else:
            self.memory.keep(self.memory.prototypes(self.network, self._node_embeddings(inputs), len(self.classes_)))

    # Incremental sessions

    def _adapt(
        self, inputs: GraphInputs, prototypes: torch.Tensor, labelled: Labelled, steps: int, rate: float
    ) -> tuple[Tensors, Head]:
        """Adapt the meta-trained encoder and a head at the class means by inner steps on supports."""
        encoder = self.network.encoder
        needed = encoder.rows(inputs, inputs.visible.rows(labelled[0]))
        step = Step(encoder, needed, tensor_of(labelled[1], self.device), rate, differentiable=False)
        weights = {name: value.detach().requires_grad_() for name, value in encoder.named_parameters()}
        columns, biases = (value.detach().requires_grad_() for value in nearest_mean(prototypes))
        moved, head = step.repeat(weights, (columns, biases), steps)
        return {name: value.detach() for name, value in moved.items()}, (head[0].detach(), head[1].detach())

    @torch.no_grad()
    def _logits(self, inputs: GraphInputs, weights: Tensors, head: Head) -> torch.Tensor:
        """Compute the (n, classes) logits of all nodes."""
        everything = self.network.encoder.rows(inputs, None)
        return functional_call(self.network.encoder, weights, (everything,)) @ head[0] + head[1]

    def _learn(self, session: Session, inputs: GraphInputs) -> None:
        super()._learn(session, inputs)
        here = (session.supports, session.support_labels)
        steps, rate = self.fine_tuning.steps, self.fine_tuning.rate
        self.adapted_weights, self.adapted_head = self._adapt(inputs, self._means(inputs), here, steps, rate)

    @torch.no_grad()
    def _means(self, inputs: GraphInputs) -> torch.Tensor:
        """Compute the (classes, h) means by the meta-trained encoder without adaptation."""
        if self.memory.kept is not None:
            return self.memory.kept
        return self.memory.prototypes(self.network, self.network.node_embeddings(inputs), len(self.classes_))

    def restate(self, visible: VisibleNodes, train: Labelled, supports: Labelled) -> bool:  # noqa: ARG002
        # The last session was adapted from other means, and the memory does not separate its supports.
        return False

    def _keeps_weights(self) -> bool:
        return False

    def _embed(self, inputs: GraphInputs, rows: np.ndarray | None = None) -> torch.Tensor:
        encoder = self.network.encoder
        weights = self.adapted_weights or dict(encoder.state_dict())
        return functional_call(encoder, weights, (encoder.rows(inputs, rows),))

    def _score_all(self, inputs: GraphInputs) -> torch.Tensor:
        columns, biases = self.adapted_head or nearest_mean(self._means(inputs))
        return self._embeddings(inputs) @ columns + biases
