"""Learners with a linear head over all classes: trained on session 0, grown and fine-tuned at every later one."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from graphfcl.errors import DivergenceError
from graphfcl.methods.episodic_learner import choose_steps
from graphfcl.methods.heads import grown
from graphfcl.methods.learner import GivenEncoder, Progress, Tensors
from graphfcl.methods.memory import ReplayMemory
from graphfcl.methods.settings import STEP_CANDIDATES, MethodSettings, Steps, check_steps
from graphfcl.methods.supervised import HeadLoss, Labelled, SupervisedTraining, class_balanced
from graphfcl.methods.training import check_finite, make_adam, require_range, with_prefix, without_prefix
from graphfcl.methods.traits import FineTunes
from graphfcl.methods.validation import STEP_DRAWS, ValidationSessions
from graphfcl.nn import GraphInputs, Linear
from graphfcl.stream import BaseSession, Session


@dataclass(frozen=True)
class HeadSettings(MethodSettings):
    """``pretraining`` holds for the training of session 0 too.

    weight_decay: of the steps of a session.
    fine_tuning: (steps, rate) candidates of an incremental session, besides (0, 0); validation sessions choose.
    fine_tuning_steps, fine_tuning_rate: fix the steps instead of choosing them.
    """

    weight_decay: float = 0.0005
    fine_tuning: tuple[Steps, ...] = STEP_CANDIDATES
    fine_tuning_steps: int | None = None
    fine_tuning_rate: float = 0.005

    def __post_init__(self) -> None:
        super().__post_init__()
        require_range("weight_decay", self.weight_decay, least=0)
        check_steps(self.fine_tuning, self.fine_tuning_steps, self.fine_tuning_rate)


def cross_entropies(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """(n,) −log softmax(logits)[label]."""
    return nn.functional.cross_entropy(logits, labels, reduction="none")


class HeadNetwork(nn.Module):
    def __init__(self, encoder: nn.Module, head: Linear) -> None:
        super().__init__()
        self.encoder, self.head = encoder, head

    def forward(self, needed: Any, generator: torch.Generator | None = None) -> torch.Tensor:
        """(r, classes) logits."""
        return self.head(self.encoder(needed, generator))


class HeadLearner(FineTunes):
    """Session 0 after pre-training, in two stages:

    1. choosing: a copy of the learner is fitted without the held-out classes and walked through the validation
       sessions with each candidate for the steps of a session;
    2. session 0: encoder and head on all train nodes, every class counting the same, stopped by the validation nodes.

    A method says what a step minimises (:meth:`_session_loss`) and what it keeps (:meth:`_remember`).
    """

    settings: Any
    network: HeadNetwork

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.memory = ReplayMemory.empty()
        self.centre = torch.zeros(0)  # (h,) mean embedding of session 0

    # What a method says

    def _node_losses(self) -> HeadLoss:
        """The loss of each node at session 0."""
        return cross_entropies

    @abstractmethod
    def _session_loss(self, before: torch.Tensor, supports: Labelled) -> Callable[[torch.Tensor], torch.Tensor]:
        """The loss of an incremental session, a function of the logits of its supports and of the memory.

        before: (s + m, classes) logits of the supports and of the memory before the first step.
        """

    def _remember(self, labelled: Labelled, inputs: GraphInputs) -> None:
        """Keep some of the labelled nodes of a session, session 0 included."""

    # Session 0

    def _build(self, encoder: nn.Module, start: torch.Generator) -> nn.Module:
        head = Linear(self.settings.size, len(self.classes_), start).to(self.device)
        self.training = SupervisedTraining(
            encoder,
            head,
            self.settings.pretraining,
            stage="session 0",
            loss=class_balanced(self._node_losses()),
            balanced=True,
        )
        return HeadNetwork(encoder, head)

    def _train(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> None:
        if self.stage == "pre-trained":
            self._choose(base, progress)
            self._enter("session 0", progress)
        train = (base.train, base.train_labels)
        validation = (base.validation, base.validation_labels)
        self.training.run(train, validation, inputs, self.generator, progress, self)
        with torch.no_grad():
            self.centre = self.network.encoder(self.network.encoder.rows(inputs, None)).mean(dim=0)  # type: ignore[operator]
        self._remember(train, inputs)

    def _choose(self, base: BaseSession, progress: Progress) -> None:
        validation = ValidationSessions.draw(base, self.seed)
        self.fine_tuning_ = self._fixed_steps() or self._mildest_steps()
        if self._fixed_steps() is not None or not validation.has_new_classes:
            return
        copy = type(self)(replace(self.settings, fine_tuning_steps=0), seed=self.seed, device=self.device)
        encoder = without_prefix("encoder", self.pretrained)
        reduced, _ = validation.rehearsal(base)
        given = {**with_prefix("encoder", encoder), "generator": self.generator.get_state()}
        copy.fit(reduced, encoders=GivenEncoder({**given, "seconds": torch.zeros(())}))
        start = copy.state()

        def score(steps: int, rate: float) -> float:
            scores = []
            for draw in range(STEP_DRAWS):
                alone = validation.only(draw)
                copy.load_state(start)
                copy.fine_tuning_ = (steps, rate)
                try:
                    for session in alone.rehearsal(base)[1]:
                        copy.learn(session)
                except DivergenceError:
                    return -np.inf
                scores.append(alone.score_of(copy.scores(base.visible_graph, alone.asked[0]).argmax(axis=1)))
            return float(np.mean(scores))

        self.fine_tuning_ = choose_steps(self.settings.fine_tuning, score, progress)

    # Incremental sessions

    def _learn(self, session: Session, inputs: GraphInputs) -> None:
        inputs = self._with_memory(session, inputs)
        nodes = np.concatenate([session.supports, self.memory.nodes])
        needed = self.network.encoder.rows(inputs, inputs.visible.rows(nodes))  # type: ignore[operator]
        supports = torch.from_numpy(session.support_labels).to(self.device)
        with torch.no_grad():
            embeddings = self.network.encoder(needed)
            before = self.network.head(embeddings)
        self.network.head = grown(
            self.network.head, embeddings[: supports.numel()], supports, len(self.classes_), self.centre
        )
        steps, rate = self.fine_tuning_
        loss_of = self._session_loss(before, (session.supports, session.support_labels))
        optimiser = make_adam(self.network.parameters(), rate, self.settings.weight_decay) if steps else None
        for number in range(steps):
            assert optimiser is not None
            optimiser.zero_grad(set_to_none=True)
            loss = loss_of(self.network(needed, self.generator))
            loss.backward()
            optimiser.step()
            check_finite(loss, "fine-tuning", number + 1)
        self._remember((session.supports, session.support_labels), inputs)

    def _with_memory(self, session: Session, inputs: GraphInputs) -> GraphInputs:
        """The session's graph, with the nodes in memory beside it where they are not in it."""
        visible = self.memory.beside(session.visible_graph)
        return inputs if visible is session.visible_graph else GraphInputs(visible, self.device)

    def _keep(self, nodes: np.ndarray, labels: np.ndarray, inputs: GraphInputs) -> None:
        isolated = self.track == "isolated"
        self.memory = self.memory.with_nodes(nodes, labels, inputs.visible, keep_features=isolated)

    def _score_all(self, inputs: GraphInputs) -> torch.Tensor:
        return self.network(self.network.encoder.rows(inputs, None))  # type: ignore[operator]

    @torch.no_grad()
    def _embed(self, inputs: GraphInputs, nodes: np.ndarray) -> torch.Tensor:
        """(nodes, h) in evaluation mode."""
        return self.network.encoder(self.network.encoder.rows(inputs, inputs.visible.rows(nodes)))  # type: ignore[operator]

    def _data_stored(self) -> dict[str, int]:
        return {**self.memory.stored(), "embeddings": self.centre.nbytes}

    # State

    def _own_values(self) -> dict[str, Any]:
        training = {"training": self.training.values()} if self.stage == "session 0" else {}
        return {**super()._own_values(), **training}

    def _own_tensors(self) -> Tensors:
        training = self.training.tensors() if self.stage == "session 0" else {}
        return {**super()._own_tensors(), **self.memory.tensors(), "centre": self.centre.cpu(), **training}

    def _load_own(self, values: dict[str, Any], tensors: Tensors) -> None:
        super()._load_own(values, tensors)
        self.memory = ReplayMemory.load(tensors)
        self.centre = tensors["centre"].to(self.device)
        if self.stage == "session 0":
            self.training.load(values["training"], tensors)
