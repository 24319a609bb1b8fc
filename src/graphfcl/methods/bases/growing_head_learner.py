"""Learners with a linear head over all classes, trained on session 0, and extended and fine-tuned at each session."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from graphfcl.methods.bases.encoder_learner import EncoderLearner, EncoderSettings, Stage
from graphfcl.methods.learner import Progress
from graphfcl.methods.settings import Weight
from graphfcl.methods.shared.fine_tuning import FineTuning, StepSettings, choose_on_copy
from graphfcl.methods.shared.heads import AdjustmentSettings, LogitAdjustment, grown
from graphfcl.methods.shared.memories import ReplayMemory
from graphfcl.methods.shared.parts import OwnAttributes, Part
from graphfcl.methods.shared.supervised_training import (
    HeadLoss,
    HeadNetwork,
    SupervisedTraining,
    cross_entropies,
    head_training,
    session_zero,
)
from graphfcl.methods.shared.training_state import make_adam, take_steps
from graphfcl.methods.state import Labelled
from graphfcl.nn import Encoder, GraphInputs, Linear, tensor_of
from graphfcl.stream.sessions import BaseSession, Session


@dataclass(frozen=True)
class HeadSettings(StepSettings, EncoderSettings):
    """Settings of a growing head. ``pretraining`` also applies to the training of session 0."""

    weight_decay: Weight = 0.0005
    """Weight decay of Adam in the fine-tuning steps of a session."""


@dataclass(frozen=True)
class LogitHeadSettings(AdjustmentSettings, HeadSettings):
    """Settings of a growing head whose logits are the scores."""


class GrowingHeadLearner(EncoderLearner):
    """A learner whose scores are the logits of a linear head over all classes.

    Session 0 trains encoder and head on all train nodes. Each later session adds columns to the head and takes some
    fine-tuning steps. Before session 0 is trained, a copy of the learner is fitted to the base classes and learns
    validation sessions in which all pseudo-novel classes arrive. They choose the fine-tuning steps and, for methods
    with :class:`LogitHeadSettings`, the logit adjustment.

    A method defines the loss of a session (:meth:`_session_loss`), the loss of a node at session 0
    (:meth:`_node_losses`), and which nodes it keeps (:meth:`_remember`).

    Attributes:
        training: Training loop of session 0.
        memory: Nodes for replay.
        centre: (h,) mean embedding of session 0, which determines initial columns of new classes.
        adjustment: Logit adjustment by label counts.
    """

    settings_type = HeadSettings
    network: HeadNetwork
    memory: ReplayMemory
    training: SupervisedTraining

    def __init__(self, settings: Any = None, *, seed: int = 0, device: str | torch.device = "cpu") -> None:
        super().__init__(settings, seed=seed, device=device)
        self.memory = ReplayMemory()
        self.fine_tuning = FineTuning(self.settings)
        self.adjustment = LogitAdjustment(self.settings)
        self.centre = torch.zeros(0)

    @abstractmethod
    def _session_loss(self, before: torch.Tensor, supports: Labelled) -> Callable[[torch.Tensor], torch.Tensor]:
        """Return the loss of an incremental session as a function of the logits of its supports and of the memory.

        ``before`` are the (s + m, classes) logits of supports and memory before the first step.
        """

    def _node_losses(self) -> HeadLoss:
        """Return the loss function of nodes at session 0."""
        return cross_entropies

    def _remember(self, labelled: Labelled, inputs: GraphInputs) -> None:
        """Store some of the labelled nodes of a session, including session 0."""

    def _keep(self, nodes: np.ndarray, labels: np.ndarray, inputs: GraphInputs) -> None:
        self.memory.add(nodes, labels, inputs.visible, keep_features=self.track == "isolated")

    def parts(self) -> tuple[Part, ...]:
        running = (self.training,) if self.stage == Stage.SESSION_ZERO else ()
        own = OwnAttributes(self, "centre", stored_as="embeddings")
        return (*super().parts(), *running, self.fine_tuning, self.adjustment, own)

    # Session 0

    def _build(self, encoder: Encoder, start: torch.Generator) -> HeadNetwork:
        head = Linear(self.settings.size, len(self.classes_), start).to(self.device)
        self.training = head_training(
            encoder, head, self.settings.pretraining, stage="session 0", node_losses=self._node_losses()
        )
        return HeadNetwork(encoder, head)

    def _train(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> None:
        if self.stage == Stage.PRE_TRAINED:
            choose_on_copy(self, base, progress)
            self._enter(Stage.SESSION_ZERO, progress)
        train, validation = session_zero(base)
        self.training.run(train, validation, inputs, self, progress)
        self._remember(train, inputs)
        self.adjustment.add(base.train_labels, len(self.classes_))
        with torch.no_grad():
            self.centre = self._embeddings(inputs).mean(dim=0)

    # Incremental sessions and scores

    def _learn(self, session: Session, inputs: GraphInputs) -> None:
        inputs = self.memory.graph_with_nodes(inputs)
        nodes = np.concatenate([session.supports, self.memory.nodes])
        needed = self.network.encoder.rows(inputs, inputs.visible.rows(nodes))
        support_columns = tensor_of(session.support_labels, self.device)
        with torch.no_grad():
            embeddings = self.network.encoder(needed)
            before = self.network.head(embeddings)
        self.network.head = grown(
            self.network.head, embeddings[: support_columns.numel()], support_columns, len(self.classes_), self.centre
        )
        steps, rate = self.fine_tuning.steps, self.fine_tuning.rate
        loss_of = self._session_loss(before, (session.supports, session.support_labels))
        if steps:
            optimiser = make_adam(self.network.parameters(), rate, self.settings.weight_decay)
            take_steps(optimiser, steps, lambda: loss_of(self.network(needed, self.generator)))
        self._remember((session.supports, session.support_labels), inputs)
        self.adjustment.add(session.support_labels, len(self.classes_))

    def _score_all(self, inputs: GraphInputs) -> torch.Tensor:
        return self.adjustment.apply(self.network.head(self._embeddings(inputs)))

    @torch.no_grad()
    def _embeddings_of(self, inputs: GraphInputs, nodes: np.ndarray) -> torch.Tensor:
        """Compute (nodes, h) embeddings in evaluation mode."""
        rows, embeddings = inputs.visible.rows(nodes), self.cache.embeddings(inputs)
        return self._embed(inputs, rows) if embeddings is None else embeddings[torch.from_numpy(rows).to(self.device)]
