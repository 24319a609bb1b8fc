"""Learners with a linear head over all classes: trained on session 0, grown and fine-tuned at every later one."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from graphfcl.errors import DivergenceError
from graphfcl.methods.bases.episodic_learner import choose_steps
from graphfcl.methods.learner import GivenEncoder, Labelled, Progress, Tensors
from graphfcl.methods.settings import STEP_CANDIDATES, MethodSettings, Steps, check_steps
from graphfcl.methods.shared.fine_tuning import FineTunes
from graphfcl.methods.shared.heads import grown
from graphfcl.methods.shared.trained_head import TrainedHead
from graphfcl.methods.shared.training_state import check_finite, make_adam, require_range, with_prefix, without_prefix
from graphfcl.methods.shared.validation_sessions import STEP_DRAWS, ValidationSessions
from graphfcl.nn import GraphInputs
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


class HeadLearner(FineTunes, TrainedHead):
    """Before session 0 is trained, a copy of the learner is fitted without the held-out classes and walked through the
    validation sessions with each candidate for the steps of a session.

    A method says what a step minimises (:meth:`_session_loss`).
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.centre = torch.zeros(0)  # (h,) mean embedding of session 0, from which new columns start

    @abstractmethod
    def _session_loss(self, before: torch.Tensor, supports: Labelled) -> Callable[[torch.Tensor], torch.Tensor]:
        """The loss of an incremental session, a function of the logits of its supports and of the memory.

        before: (s + m, classes) logits of the supports and of the memory before the first step.
        """

    def _train(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> None:
        if self.stage == "pre-trained":
            self._choose(base, progress)
        super()._train(base, inputs, progress)
        with torch.no_grad():
            self.centre = self._embed_all(inputs).mean(dim=0)

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

    def _data_stored(self) -> dict[str, int]:
        return {**super()._data_stored(), "embeddings": self.centre.nbytes}

    def _own_tensors(self) -> Tensors:
        return {**super()._own_tensors(), "centre": self.centre.cpu()}

    def _load_own(self, values: dict[str, Any], tensors: Tensors) -> None:
        super()._load_own(values, tensors)
        self.centre = tensors["centre"].to(self.device)
