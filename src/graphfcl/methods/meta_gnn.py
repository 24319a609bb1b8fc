"""Meta-GNN: model-agnostic meta-learning on graphs.

Fan Zhou, Chengtai Cao, Kunpeng Zhang, Goce Trajcevski, Ting Zhong, Ji Geng: Meta-GNN: On Few-shot Node Classification
in Graph Meta-learning. CIKM 2019. After Finn, Abbeel, Levine: Model-Agnostic Meta-Learning. ICML 2017.

A task of ``task_way`` classes: the head's columns start at the class means of the supports, weights 2 p_k and biases
−‖p_k‖²; a few inner steps of gradient descent on the supports adapt encoder and head, θ' = θ − α ∇L_S(θ); the loss of
the queries under the adapted weights is what meta-training minimises, differentiated through the inner steps
(``first_order`` leaves their second derivatives out).

A session: the columns of all classes start at their means, those of the new ones at the means of their supports; from
there and from the learned encoder, inner steps on the supports of the session alone. The next session starts from the
learned encoder again, so that no adaptation piles up on another. Labelled nodes are kept, and their means are computed
again on the graph of the session; ``refresh_means=false`` keeps the means as they were learned, and no node.

Where this departs from the paper: the encoder is the GCN that all methods share, pre-trained as for all; the head
starts at class means, because a session meets classes that no head was trained for; inner rate and steps of a session
are chosen by validation sessions.
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
from graphfcl.methods.learner import Labelled, Progress, Tensors, no_labels, select_labelled
from graphfcl.methods.settings import Count, Limits, Positive
from graphfcl.methods.shared.episodes import Episode, TaskSampler
from graphfcl.methods.shared.fine_tuning import Steps, StepSettings
from graphfcl.methods.shared.parts import OwnAttributes, Part
from graphfcl.methods.shared.prototype_network import NodeEmbeddings, PrototypeNetwork, class_means
from graphfcl.methods.shared.training_state import check_finite
from graphfcl.methods.shared.validation_sessions import ValidationSessions
from graphfcl.nn import Encoder, GraphInputs, tensor_of
from graphfcl.stream.sessions import BaseSession, Session

Head = tuple[torch.Tensor, torch.Tensor]  # weights (h, classes) and biases (classes,)


@dataclass(frozen=True)
class MetaGnnSettings(StepSettings, EpisodicSettings):
    """Meta-training through inner steps."""

    hidden: int = 64
    """Width of the encoder's first layer."""
    size: int = 64
    """Width of an embedding."""
    task_way: Annotated[int, Limits(least=2)] = 5
    """Classes of a training task."""
    inner_steps: Count = 5
    """Steps of the adaptation in a training task."""
    inner_rate: Positive = 0.01
    """Rate of these steps."""
    first_order: bool = False
    """Leave the second derivatives of the inner steps out."""
    refresh_means: bool = True
    """Compute class means again, from labelled nodes, on the graph of each session; off: as they were learned."""
    fine_tuning: tuple[Steps, ...] = ((5, 0.01), (10, 0.01), (5, 0.1), (10, 0.1))
    """(steps, rate) candidates for the adaptation of a session, besides (0, 0); validation sessions choose."""
    fine_tuning_rate: float = 0.01
    """Rate of these steps."""


def nearest_mean(prototypes: torch.Tensor) -> Head:
    """The linear head whose softmax is that of −‖z − p_k‖²: weights 2 p_k, biases −‖p_k‖²."""
    return 2 * prototypes.T, -(prototypes**2).sum(dim=1)


@dataclass(frozen=True, eq=False)
class Step:
    """A step of gradient descent on supports.

    needed: what the encoder needs for the supports. differentiable: the result can be differentiated through the steps.
    """

    encoder: nn.Module
    needed: Any
    labels: torch.Tensor
    rate: float
    differentiable: bool

    def repeat(self, weights: Tensors, head: Head, steps: int) -> tuple[Tensors, Head]:
        """Encoder weights and head after so many steps."""
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
    """Meta-GNN; formulas and deviations in the module docstring."""

    title = "MAML: an initialisation that adapts to a few supports"
    reference = "Zhou et al.: Meta-GNN: On Few-shot Node Classification in Graph Meta-learning. CIKM 2019"
    settings_type = MetaGnnSettings
    settings: MetaGnnSettings
    network: PrototypeNetwork

    def __init__(self, settings: Any = None, *, seed: int = 0, device: str | torch.device = "cpu") -> None:
        super().__init__(settings, seed=seed, device=device)
        self.adapted_weights: Tensors = {}  # of the encoder, at the last session; nothing before the first
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
            return float(np.mean([score(draw) for draw in validation.draws]))  # each takes inner steps of its own
        except DivergenceError:
            return 0.0

    def _score_draw(
        self, inputs: GraphInputs, embedding: NodeEmbeddings, draw: ValidationSessions, steps: int, rate: float
    ) -> float:
        """The score after the last session of a draw with so many steps."""
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
        self.fine_tuning.try_out(validation, score, progress)

    def _settle_choices(self, base: BaseSession) -> None:  # noqa: ARG002
        self.fine_tuning.settle((self.settings.inner_steps, self.settings.inner_rate))

    def _finish(self, inputs: GraphInputs) -> None:
        if self.settings.refresh_means:
            super()._finish(inputs)
        else:
            self.memory.keep(self.memory.prototypes(self.network, self._node_embeddings(inputs), len(self.classes_)))

    # Incremental sessions

    def _adapt(
        self, inputs: GraphInputs, prototypes: torch.Tensor, labelled: Labelled, steps: int, rate: float
    ) -> tuple[Tensors, Head]:
        """Encoder weights and head after inner steps on supports, from the learned encoder and the class means."""
        encoder = self.network.encoder
        needed = encoder.rows(inputs, inputs.visible.rows(labelled[0]))
        step = Step(encoder, needed, tensor_of(labelled[1], self.device), rate, differentiable=False)
        weights = {name: value.detach().requires_grad_() for name, value in encoder.named_parameters()}
        columns, biases = (value.detach().requires_grad_() for value in nearest_mean(prototypes))
        moved, head = step.repeat(weights, (columns, biases), steps)
        return {name: value.detach() for name, value in moved.items()}, (head[0].detach(), head[1].detach())

    @torch.no_grad()
    def _logits(self, inputs: GraphInputs, weights: Tensors, head: Head) -> torch.Tensor:
        """(n, classes) of every node."""
        everything = self.network.encoder.rows(inputs, None)
        return functional_call(self.network.encoder, weights, (everything,)) @ head[0] + head[1]

    def _learn(self, session: Session, inputs: GraphInputs) -> None:
        super()._learn(session, inputs)
        here = (session.supports, session.support_labels)
        steps, rate = self.fine_tuning.steps, self.fine_tuning.rate
        self.adapted_weights, self.adapted_head = self._adapt(inputs, self._means(inputs), here, steps, rate)

    @torch.no_grad()
    def _means(self, inputs: GraphInputs) -> torch.Tensor:
        """(classes, h) by the learned encoder, which no session has adapted."""
        if self.memory.kept is not None:
            return self.memory.kept
        return self.memory.prototypes(self.network, self.network.node_embeddings(inputs), len(self.classes_))

    def restate(self, visible: VisibleNodes, train: Labelled, supports: Labelled) -> bool:  # noqa: ARG002
        # The steps of the last session were taken from other means, and its supports are not known apart.
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
