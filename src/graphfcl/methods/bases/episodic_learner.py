"""Learners that meta-train in episodes: held-out classes stop the training, then it is repeated on all classes."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from graphfcl.methods.bases.encoder_learner import GraphLearner
from graphfcl.methods.learner import Progress, Tensors
from graphfcl.methods.settings import Steps
from graphfcl.methods.shared.episodes import Episode, Sampler
from graphfcl.methods.shared.meta_training import MetaTraining
from graphfcl.methods.shared.validation_sessions import ValidationSessions
from graphfcl.nn import GraphInputs
from graphfcl.stream import BaseSession


class EpisodicLearner(GraphLearner):
    """Three stages after pre-training: meta-training, choosing, refit.

    A method says how episodes are drawn (:meth:`_sampler`), what a step does (:meth:`_step`), how held-out classes are
    recognised (:meth:`_validate`), and what else validation sessions choose (:meth:`_choose`).
    """

    meta: MetaTraining

    @abstractmethod
    def _sampler(self, base: BaseSession, pseudo_novel: np.ndarray) -> Sampler:
        """Episodes over the base classes and these pseudo-novel columns."""

    @abstractmethod
    def _episode_loss(self, inputs: GraphInputs, episode: Episode, *, by_class: bool = False) -> torch.Tensor:
        """What one optimiser step minimises; by_class: every class counts the same."""

    @abstractmethod
    def _validate(self, inputs: GraphInputs, validation: ValidationSessions) -> float:
        """Score of the validation sessions with the weights as they are."""

    def _choose(
        self, base: BaseSession, inputs: GraphInputs, validation: ValidationSessions, progress: Progress
    ) -> None:
        """Choose what is left to choose with the weights that validation found best."""

    def _can_meta_train(self, base: BaseSession) -> bool:
        return len(base.pseudo_novel_classes) > 0

    def _finish(self, inputs: GraphInputs) -> None:
        """Last work on session 0, with the final weights."""

    def _meta_training(self, network: nn.Module) -> MetaTraining:
        self.meta_episodes_ = 0  # as many as validation found best
        return MetaTraining(network, self.settings, self._sampler)

    def _train(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> None:
        validation = ValidationSessions.draw(base, self.seed)
        if self.stage in ("pre-trained", "prepared"):
            self._enter("meta-training" if self._can_meta_train(base) else "choosing", progress)
        if self.stage == "meta-training":
            self.meta_episodes_ = self.meta.run(
                base, inputs, self._step, self.random, lambda: self._validate(inputs, validation), progress, self
            )
            self._enter("choosing", progress)
        if self.stage == "choosing":
            self._choose(base, inputs, validation, progress)
            held_out = len(base.validation_columns) > 0
            repeat = self.settings.refit and held_out and self.meta_episodes_ > 0
            self._enter("refit" if repeat else "finishing", progress)
        if self.stage == "refit":
            if self.meta.episode == 0:
                self.network.load_state_dict(self.pretrained)
            self.meta.repeat(base, inputs, self._step, self.random, self.meta_episodes_, progress, self)
        self._finish(inputs)

    def _enter(self, stage: str, progress: Progress) -> None:
        self.meta.begin()
        super()._enter(stage, progress)

    def _step(
        self, inputs: GraphInputs, episode: Episode, optimiser: torch.optim.Adam, *, by_class: bool = False
    ) -> torch.Tensor:
        optimiser.zero_grad(set_to_none=True)
        loss = self._episode_loss(inputs, episode, by_class=by_class)
        loss.backward()
        optimiser.step()
        return loss.detach()

    def chosen(self) -> dict[str, Any]:
        return {"episodes": self.meta_episodes_}

    def _own_values(self) -> dict[str, Any]:
        meta = {} if self.stage == "ready" else {"meta": self.meta.values()}
        return {"meta_episodes": self.meta_episodes_, **meta}

    def _own_tensors(self) -> Tensors:
        return {} if self.stage == "ready" else self.meta.tensors()

    def _load_own(self, values: dict[str, Any], tensors: Tensors) -> None:
        self.meta_episodes_ = values["meta_episodes"]
        if self.stage != "ready":
            self.meta.load(values["meta"], tensors)


def choose_steps(candidates: tuple[Steps, ...], score: Callable[[int, float], float], progress: Progress) -> Steps:
    """The (steps, rate) of an incremental session that validation sessions like best.

    No step at all comes first and wins a draw.
    """
    best, chosen = -np.inf, (0, 0.0)
    for number, (steps, rate) in enumerate(((0, 0.0), *candidates)):
        found = score(steps, rate)
        if found > best:
            best, chosen = found, (steps, rate)
        progress.step("choosing fine-tuning", number + 1, len(candidates) + 1, score=best)
    return chosen
