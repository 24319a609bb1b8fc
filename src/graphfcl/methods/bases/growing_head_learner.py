"""Learners with a linear head over all classes: trained on session 0, grown and fine-tuned at every later one."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch

from graphfcl.errors import DivergenceError
from graphfcl.methods.bases.encoder_learner import EncoderLearner, Stage
from graphfcl.methods.bases.settings import HeadSettings
from graphfcl.methods.learner import GivenEncoder, Labelled, Progress
from graphfcl.methods.shared.fine_tuning import FineTuning
from graphfcl.methods.shared.heads import grown
from graphfcl.methods.shared.parts import OwnAttributes, Part
from graphfcl.methods.shared.replay_memory import ReplayMemory
from graphfcl.methods.shared.supervised_training import HeadLoss, SupervisedTraining
from graphfcl.methods.shared.trained_head import HeadNetwork, cross_entropies, head_training
from graphfcl.methods.shared.training_state import check_finite, make_adam, with_prefix, without_prefix
from graphfcl.methods.shared.validation_sessions import STEP_DRAWS, ValidationSessions
from graphfcl.nn import Encoder, GraphInputs, Linear, tensor_of
from graphfcl.stream import BaseSession, Session


class GrowingHeadLearner(EncoderLearner):
    """Session 0 trains encoder and head on all train nodes; a session adds columns and takes some steps. Scores are
    logits.

    Before session 0 is trained, a copy of the learner is fitted without the held-out classes and walked through the
    validation sessions with each candidate for the steps of a session.

    A method says what a step minimises (:meth:`_session_loss`), what a node's loss is at session 0
    (:meth:`_node_losses`), and which nodes it keeps (:meth:`_remember`).

    training: the loop of session 0. memory: nodes to train on again. centre: (h,) mean embedding of session 0, from
    which new columns start.
    """

    settings_type: ClassVar[type[Any]] = HeadSettings
    network: HeadNetwork
    memory: ReplayMemory
    training: SupervisedTraining

    def __init__(self, settings: Any = None, *, seed: int = 0, device: str | torch.device = "cpu") -> None:
        super().__init__(settings, seed=seed, device=device)
        self.memory = ReplayMemory()
        self.fine_tuning = FineTuning(self.settings)
        self.centre = torch.zeros(0)

    @abstractmethod
    def _session_loss(self, before: torch.Tensor, supports: Labelled) -> Callable[[torch.Tensor], torch.Tensor]:
        """The loss of an incremental session, a function of the logits of its supports and of the memory.

        before: (s + m, classes) logits of the supports and of the memory before the first step.
        """

    def _node_losses(self) -> HeadLoss:
        """The loss of each node at session 0."""
        return cross_entropies

    def _remember(self, labelled: Labelled, inputs: GraphInputs) -> None:
        """Keep some of the labelled nodes of a session, session 0 included."""

    def _keep(self, nodes: np.ndarray, labels: np.ndarray, inputs: GraphInputs) -> None:
        self.memory.add(nodes, labels, inputs.visible, keep_features=self.track == "isolated")

    def parts(self) -> tuple[Part, ...]:
        running = (self.training,) if self.stage == Stage.SESSION_ZERO else ()
        return (*super().parts(), *running, self.fine_tuning, OwnAttributes(self, tensors={"centre": "centre"}))

    def stored(self) -> dict[str, int]:
        found = super().stored()
        return {**found, "embeddings": found["embeddings"] + self.centre.nbytes}

    # Session 0

    def _build(self, encoder: Encoder, start: torch.Generator) -> HeadNetwork:
        head = Linear(self.settings.size, len(self.classes_), start).to(self.device)
        self.training = head_training(
            encoder, head, self.settings.pretraining, stage="session 0", node_losses=self._node_losses()
        )
        return HeadNetwork(encoder, head)

    def _train(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> None:
        if self.stage == Stage.PRE_TRAINED:
            self._choose_steps(base, progress)
            self._enter(Stage.SESSION_ZERO, progress)
        train = (base.train, base.train_labels)
        validation = (base.validation, base.validation_labels)
        self.training.run(train, validation, inputs, self.generator, progress, self)
        self._remember(train, inputs)
        with torch.no_grad():
            self.centre = self._embeddings(inputs).mean(dim=0)

    def _choose_steps(self, base: BaseSession, progress: Progress) -> None:
        """Walk a copy that has not seen the held-out classes through the validation sessions."""
        validation = ValidationSessions.draw(base, self.seed)
        self.fine_tuning.take(*(self.fine_tuning.fixed or self.fine_tuning.mildest))
        if self.fine_tuning.fixed is not None or not validation.has_new_classes:
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
                copy.fine_tuning.take(steps, rate)
                try:
                    for session in alone.rehearsal(base)[1]:
                        copy.learn(session)
                except DivergenceError:
                    return -np.inf
                scores.append(alone.score_of(copy.scores(base.visible_graph, alone.asked[0]).argmax(axis=1)))
            return float(np.mean(scores))

        self.fine_tuning.choose(score, progress)

    # Incremental sessions and scores

    def _learn(self, session: Session, inputs: GraphInputs) -> None:
        inputs = self.memory.beside(inputs)
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
        optimiser = make_adam(self.network.parameters(), rate, self.settings.weight_decay) if steps else None
        for number in range(steps):
            assert optimiser is not None
            optimiser.zero_grad(set_to_none=True)
            loss = loss_of(self.network(needed, self.generator))
            loss.backward()
            optimiser.step()
            check_finite(loss, "fine-tuning", number + 1)
        self._remember((session.supports, session.support_labels), inputs)

    def _score_all(self, inputs: GraphInputs) -> torch.Tensor:
        return self.network.head(self._embeddings(inputs))

    @torch.no_grad()
    def _embeddings_of(self, inputs: GraphInputs, nodes: np.ndarray) -> torch.Tensor:
        """(nodes, h) in evaluation mode."""
        rows, known = inputs.visible.rows(nodes), self.cache.embeddings(inputs)
        return self._embed(inputs, rows) if known is None else known[torch.from_numpy(rows).to(self.device)]
