"""Meta-GNN: model-agnostic meta-learning on graphs.

Fan Zhou, Chengtai Cao, Kunpeng Zhang, Goce Trajcevski, Ting Zhong, Ji Geng: Meta-GNN: On Few-shot Node Classification
in Graph Meta-learning. CIKM 2019. After Finn, Abbeel, Levine: Model-Agnostic Meta-Learning. ICML 2017.

A task of ``task_way`` classes: the head's columns start at the class means of the supports, weights 2 p_k and biases
−‖p_k‖²; a few inner steps of gradient descent on the supports adapt encoder and head, θ' = θ − α ∇L_S(θ); the loss of
the queries under the adapted weights is what meta-training minimises, differentiated through the inner steps
(``first_order`` leaves their second derivatives out).

A session: the columns of new classes start at the means of their supports, then encoder and head take inner steps on
the supports of the session alone. Only weights are kept between sessions.

Where this departs from the paper: the encoder is the GCN that all methods share, pre-trained as for all; the head
starts at class means, because a session meets classes that no head was trained for; inner rate and steps of a session
are chosen by validation sessions.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn
from torch.func import functional_call

from graphfcl.errors import DivergenceError
from graphfcl.methods.episodes import Episode, TaskSampler
from graphfcl.methods.episodic_learner import EpisodicLearner, choose_steps
from graphfcl.methods.head_learner import HeadNetwork
from graphfcl.methods.heads import head_of
from graphfcl.methods.learner import Progress, Tensors
from graphfcl.methods.prototypes import class_shares, weighted_prototypes
from graphfcl.methods.settings import EpisodicSettings, Steps, check_steps
from graphfcl.methods.supervised import Labelled
from graphfcl.methods.training import check_finite, require_range
from graphfcl.methods.validation import STEP_DRAWS, ValidationSessions
from graphfcl.nn import GraphInputs, Linear
from graphfcl.stream import BaseSession, Session

Head = tuple[torch.Tensor, torch.Tensor]  # weights (h, classes) and biases (classes,)


@dataclass(frozen=True)
class MetaGnnSettings(EpisodicSettings):
    """task_way: classes of a training task. inner_steps, inner_rate: of the adaptation in a task.

    fine_tuning: (steps, rate) candidates for the adaptation of a session, besides (0, 0); validation sessions choose.
    fine_tuning_steps, fine_tuning_rate: fix them instead.
    """

    task_way: int = 5
    inner_steps: int = 5
    inner_rate: float = 0.01
    first_order: bool = False
    fine_tuning: tuple[Steps, ...] = ((5, 0.01), (10, 0.01), (5, 0.1), (10, 0.1))
    fine_tuning_steps: int | None = None
    fine_tuning_rate: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        require_range("task_way", self.task_way, least=2)
        require_range("inner_steps", self.inner_steps, least=1)
        require_range("inner_rate", self.inner_rate, above=0)
        check_steps(self.fine_tuning, self.fine_tuning_steps, self.fine_tuning_rate)


def nearest_mean(prototypes: torch.Tensor) -> Head:
    """The linear head whose softmax is that of −‖z − p_k‖²: weights 2 p_k, biases −‖p_k‖²."""
    return 2 * prototypes.T, -(prototypes**2).sum(dim=1)


def adapted(
    encoder: nn.Module,
    weights: Tensors,
    head: Head,
    needed: Any,
    labels: torch.Tensor,
    steps: int,
    rate: float,
    *,
    create_graph: bool,
) -> tuple[Tensors, Head]:
    """Encoder weights and head after some steps of gradient descent on supports.

    needed: what the encoder needs for the supports. create_graph: the result can be differentiated through the steps.
    """
    for number in range(steps):
        logits = functional_call(encoder, weights, (needed,)) @ head[0] + head[1]
        loss = nn.functional.cross_entropy(logits, labels)
        if not create_graph:
            check_finite(loss, "adaptation", number + 1)
        gradients = torch.autograd.grad(loss, [*weights.values(), *head], create_graph=create_graph, retain_graph=True)
        moved = [value - rate * slope for value, slope in zip([*weights.values(), *head], gradients, strict=True)]
        weights, head = dict(zip(weights, moved, strict=False)), (moved[-2], moved[-1])
    return weights, head


class MetaGnn(EpisodicLearner):
    """The learner."""

    name: ClassVar[str] = "meta-gnn"
    settings_type = MetaGnnSettings
    settings: MetaGnnSettings
    network: HeadNetwork

    def __init__(self, settings: MetaGnnSettings | None = None, **options: Any) -> None:
        super().__init__(settings, **options)
        self.fine_tuning_ = (0, 0.0)  # steps and rate that validation found best

    def _build(self, encoder: nn.Module, start: torch.Generator) -> nn.Module:
        head = Linear(self.settings.size, len(self.classes_), start)
        self.meta = self._meta_training(encoder)
        return HeadNetwork(encoder, head)

    # Session 0

    def _can_meta_train(self, base: BaseSession) -> bool:
        return len(base.classes) > 1

    def _sampler(self, base: BaseSession, pseudo_novel: np.ndarray) -> TaskSampler:
        return TaskSampler.of(base, pseudo_novel, self.settings.task_way, self.settings.queries)

    def _episode_loss(self, inputs: GraphInputs, episode: Episode, *, by_class: bool = False) -> torch.Tensor:  # noqa: ARG002
        encoder, chosen = self.network.encoder, self.settings
        labels, asked = (
            torch.from_numpy(array).to(self.device) for array in (episode.support_classes, episode.query_classes)
        )
        supports, queries = (
            encoder.rows(inputs, inputs.visible.rows(nodes))  # type: ignore[operator]
            for nodes in (episode.supports, episode.queries)
        )
        shares = class_shares(labels, episode.class_count)
        prototypes = weighted_prototypes(encoder(supports), shares, labels, episode.class_count)
        weights, head = adapted(
            encoder,
            dict(encoder.named_parameters()),
            nearest_mean(prototypes),
            supports,
            labels,
            chosen.inner_steps,
            chosen.inner_rate,
            create_graph=not chosen.first_order,
        )
        logits = functional_call(encoder, weights, (queries, self.generator)) @ head[0] + head[1]
        return nn.functional.cross_entropy(logits, asked)

    def _validate(self, inputs: GraphInputs, validation: ValidationSessions) -> float:
        return self._try_steps(inputs, validation, self.settings.inner_steps, self.settings.inner_rate)

    def _try_steps(self, inputs: GraphInputs, validation: ValidationSessions, steps: int, rate: float) -> float:
        """The validation score after sessions with so many steps; −∞ if they diverge."""
        embeddings = self._embed(inputs)
        start = self._mean_head(inputs, embeddings, validation.many, validation.known_count)
        scores = []
        for draw in range(min(STEP_DRAWS, len(validation.supports))):
            alone = validation.only(draw)
            weights: Tensors = dict(self.network.encoder.named_parameters())
            head, count = start, validation.known_count
            try:
                for known in alone.sessions():
                    new = known.support_classes >= count
                    count = known.class_count
                    here = (known.supports[new], known.support_classes[new])
                    weights, head = self._session(inputs, here, count, weights, head, steps, rate)
            except DivergenceError:
                return -np.inf
            with torch.no_grad():
                everything = self.network.encoder.rows(inputs, None)  # type: ignore[operator]
                logits = functional_call(self.network.encoder, weights, (everything,)) @ head[0] + head[1]
            rows = inputs.visible.rows(alone.asked[0])
            found = logits.argmax(dim=1).cpu().numpy()[rows]
            scores.append(alone.score(lambda *_, found=found: found))
        return float(np.mean(scores))

    def _choose(
        self,
        base: BaseSession,  # noqa: ARG002
        inputs: GraphInputs,
        validation: ValidationSessions,
        progress: Progress,
    ) -> None:
        if self.settings.fine_tuning_steps is not None:
            self.fine_tuning_ = (self.settings.fine_tuning_steps, self.settings.fine_tuning_rate)
        elif validation.has_new_classes:

            def score(steps: int, rate: float) -> float:
                return self._try_steps(inputs, validation, steps, rate)

            self.fine_tuning_ = choose_steps(self.settings.fine_tuning, score, progress)

    def _train(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> None:
        super()._train(base, inputs, progress)
        train = (base.train, base.train_labels)
        self.network.head = head_of(*self._mean_head(inputs, self._embed(inputs), train, len(self.classes_)))

    @torch.no_grad()
    def _embed(self, inputs: GraphInputs) -> torch.Tensor:
        return self.network.encoder(self.network.encoder.rows(inputs, None))  # type: ignore[operator]

    def _mean_head(self, inputs: GraphInputs, embeddings: torch.Tensor, labelled: Labelled, count: int) -> Head:
        """The head at the means of all labelled nodes."""
        rows = torch.from_numpy(inputs.visible.rows(labelled[0])).to(self.device)
        labels = torch.from_numpy(labelled[1]).to(self.device)
        return nearest_mean(weighted_prototypes(embeddings[rows], class_shares(labels, count), labels, count))

    # Incremental sessions

    def _session(
        self,
        inputs: GraphInputs,
        labelled: Labelled,
        count: int,
        weights: Tensors,
        head: Head,
        steps: int,
        rate: float,
    ) -> tuple[Tensors, Head]:
        """Grow the head by the new classes, then adapt; neither weights nor head are changed in place."""
        needed = self.network.encoder.rows(inputs, inputs.visible.rows(labelled[0]))  # type: ignore[operator]
        labels = torch.from_numpy(labelled[1]).to(self.device)
        with torch.no_grad():
            embeddings = functional_call(self.network.encoder, weights, (needed,))
            means = weighted_prototypes(embeddings, class_shares(labels, count), labels, count)
            new = nearest_mean(means[head[1].numel() :])
        start = [torch.cat([head[0], new[0]], dim=1), torch.cat([head[1], new[1]])]
        leaves = {name: value.detach().requires_grad_() for name, value in weights.items()}
        columns, biases = (value.detach().requires_grad_() for value in start)
        moved, head = adapted(
            self.network.encoder, leaves, (columns, biases), needed, labels, steps, rate, create_graph=False
        )
        return {name: value.detach() for name, value in moved.items()}, (head[0].detach(), head[1].detach())

    def _learn(self, session: Session, inputs: GraphInputs) -> None:
        head, labelled = self.network.head, (session.supports, session.support_labels)
        weights, grown = self._session(
            inputs,
            labelled,
            len(self.classes_),
            dict(self.network.encoder.named_parameters()),
            (head.weight, head.bias),
            *self.fine_tuning_,
        )
        self.network.encoder.load_state_dict(weights)
        self.network.head = head_of(*grown)

    def _score_all(self, inputs: GraphInputs) -> torch.Tensor:
        return self.network(self.network.encoder.rows(inputs, None))  # type: ignore[operator]

    def chosen(self) -> dict[str, Any]:
        steps, rate = self.fine_tuning_
        return {**super().chosen(), "fine_tuning_steps": steps, "fine_tuning_rate": rate}

    def _own_values(self) -> dict[str, Any]:
        return {**super()._own_values(), "fine_tuning": list(self.fine_tuning_)}

    def _load_own(self, values: dict[str, Any], tensors: Tensors) -> None:
        super()._load_own(values, tensors)
        self.fine_tuning_ = (values["fine_tuning"][0], values["fine_tuning"][1])
