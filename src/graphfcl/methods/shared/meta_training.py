"""Meta-training in episodes (Section 4.1 of the paper): the loop, and its state."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from graphfcl.methods.learner import Learner, Progress
from graphfcl.methods.settings import EpisodicSettings
from graphfcl.methods.shared.episodes import Episode, Sampler
from graphfcl.methods.shared.training_state import (
    EarlyStopping,
    adam_tensors,
    check_finite,
    load_adam,
    make_adam,
    with_prefix,
    without_prefix,
)
from graphfcl.nn import GraphInputs
from graphfcl.stream import BaseSession

Step = Callable[[GraphInputs, Episode, torch.optim.Adam], torch.Tensor]


MakeSampler = Callable[[BaseSession, np.ndarray], Sampler]


class MetaTraining:
    """Episodes, an optimiser step each; :meth:`run` and :meth:`repeat` go on from wherever the state stands.

    make_sampler: from session 0 and the pseudo-novel columns to train on to a row of episodes.
    """

    def __init__(self, network: nn.Module, settings: EpisodicSettings, make_sampler: MakeSampler) -> None:
        self.network, self.settings, self.make_sampler = network, settings, make_sampler
        self.stopping = EarlyStopping(settings.patience, window=settings.validation_window)
        self.begin()

    def begin(self) -> None:
        """Start from episode 0, with a new optimiser and nothing known."""
        self.episode = 0
        self.optimiser: torch.optim.Adam | None = None
        self.sampler: Sampler | None = None
        self._place: dict[str, Any] | None = None

    def new_optimiser(self, rate: float) -> torch.optim.Adam:
        return make_adam(self.network.parameters(), rate, self.settings.weight_decay)

    def prepare(self, base: BaseSession, pseudo_novel: np.ndarray) -> None:
        """Sampler and optimiser; a loaded state may have brought their contents."""
        self.sampler = self.make_sampler(base, pseudo_novel)
        if self._place is not None:
            self.sampler.load(self._place)
        if self.optimiser is None:
            self.optimiser = self.new_optimiser(self.settings.learning_rate)

    def run(
        self,
        base: BaseSession,
        inputs: GraphInputs,
        step: Step,
        random: np.random.Generator,
        validate: Callable[[], float],
        progress: Progress,
        learner: Learner,
    ) -> int:
        """Train on the classes that are not held out until validation no longer improves.

        The best weights are put back, and their number of episodes is returned; the weights at the start count as 0.
        """
        self.prepare(base, np.setdiff1d(_pseudo_novel(base), base.validation_columns))
        total = self.settings.episodes
        if self.episode == 0:
            self.stopping.check(validate(), 0, self.network)
        stop = self.stopping.exhausted or self.episode >= total
        while not stop:
            loss = self._train(inputs, step, random, total, "meta-training")
            score = validate()
            stop = self.stopping.check(score, self.episode, self.network) or self.episode >= total
            progress.step("meta-training", self.episode, total, loss=loss, score=score)
            progress.checkpoint(learner)
        self.network.load_state_dict(self.stopping.weights)
        return self.stopping.step

    def repeat(
        self,
        base: BaseSession,
        inputs: GraphInputs,
        step: Step,
        random: np.random.Generator,
        episodes: int,
        progress: Progress,
        learner: Learner,
    ) -> None:
        """So many episodes on all pseudo-novel classes."""
        self.prepare(base, _pseudo_novel(base))
        while self.episode < episodes:
            loss = self._train(inputs, step, random, episodes, "refit")
            progress.step("refit", self.episode, episodes, loss=loss)
            progress.checkpoint(learner)

    def _train(self, inputs: GraphInputs, step: Step, random: np.random.Generator, total: int, stage: str) -> float:
        """The episodes up to the next validation; their mean loss."""
        assert self.sampler is not None
        assert self.optimiser is not None
        count = min(self.settings.validate_every, total - self.episode)
        losses = torch.zeros((), device=inputs.device)
        for _ in range(count):
            losses += step(inputs, self.sampler.sample(random), self.optimiser)
        self.episode += count
        return check_finite(losses / count, stage, self.episode)

    def tensors(self) -> dict[str, torch.Tensor]:
        """State of the loop, with :meth:`values`; the network's own weights are its owner's."""
        moments = {} if self.optimiser is None else adam_tensors(self.optimiser, "meta.optimiser")
        return {**with_prefix("meta.best", self.stopping.weights), **moments}

    def values(self) -> dict[str, Any]:
        return {
            "episode": self.episode,
            "stopping": self.stopping.values(),
            "sampler": self._place if self.sampler is None else self.sampler.values(),
        }

    def load(self, values: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
        self.begin()
        self.episode = values["episode"]
        self.stopping.load(values["stopping"], without_prefix("meta.best", tensors))
        self._place = values["sampler"]
        if any(name.startswith("meta.optimiser.") for name in tensors):
            self.optimiser = self.new_optimiser(self.settings.learning_rate)
            load_adam(self.optimiser, tensors, "meta.optimiser")


def _pseudo_novel(base: BaseSession) -> np.ndarray:
    return np.arange(len(base.base_classes), len(base.classes))
