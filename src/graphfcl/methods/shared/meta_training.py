"""Meta-training in episodes (Section 4.1 of the paper): draw an episode, take one step, again and again."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn

from graphfcl.methods.learner import Learner, Progress, Tensors
from graphfcl.methods.shared.episodes import DeviceEpisode, Episode, Sampler
from graphfcl.methods.shared.parts import Part
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
from graphfcl.stream.sessions import BaseSession

BEFORE = 2  # steps of a shape that are taken before one is recorded
MOST = 64  # shapes that are recorded

DeviceLoss = Callable[[GraphInputs, DeviceEpisode], torch.Tensor]


@dataclass(frozen=True, eq=False)
class _Recorded:
    """graph: the launches. numbers: where they read the episode. loss: where they leave its loss."""

    graph: torch.cuda.CUDAGraph
    numbers: torch.Tensor
    loss: torch.Tensor


class CapturedSteps:
    """Steps of one optimiser on one graph. generator: what dropout is drawn from."""

    def __init__(self, loss: DeviceLoss, optimiser: torch.optim.Adam, generator: torch.Generator) -> None:
        self.loss, self.optimiser, self.generator = loss, optimiser, generator
        self._seen: Counter[tuple[int, ...]] = Counter()
        self._recorded: dict[tuple[int, ...], _Recorded] = {}

    def step(self, inputs: GraphInputs, episode: DeviceEpisode) -> torch.Tensor:
        """One step; its loss, which the next step may overwrite."""
        shape = episode.signature
        recorded = self._recorded.get(shape)
        if recorded is None:
            self._seen[shape] += 1
            if self._seen[shape] <= BEFORE or len(self._recorded) >= MOST:
                return self._taken(inputs, episode)
            recorded = self._recorded[shape] = self._record(inputs, episode)
        recorded.numbers.copy_(episode.numbers)
        recorded.graph.replay()
        return recorded.loss

    def _taken(self, inputs: GraphInputs, episode: DeviceEpisode) -> torch.Tensor:
        self.optimiser.zero_grad(set_to_none=True)
        loss = self.loss(inputs, episode)
        loss.backward()
        self.optimiser.step()
        return loss.detach()

    def _record(self, inputs: GraphInputs, episode: DeviceEpisode) -> _Recorded:
        numbers = episode.numbers.clone()
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self.generator)
        self.optimiser.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            loss = self._taken(inputs, episode.over(numbers))
        self.optimiser.zero_grad(set_to_none=True)  # these gradients are the recording's
        return _Recorded(graph, numbers, loss)


MakeSampler = Callable[[BaseSession, np.ndarray], Sampler]


MakeCaptured = Callable[[GraphInputs, torch.optim.Adam], CapturedSteps | None]


class EpisodeLoss(Protocol):
    """What one step minimises; by_class: every class counts the same."""

    def __call__(self, inputs: GraphInputs, episode: Episode, *, by_class: bool = False) -> torch.Tensor: ...


class MetaTraining(Part):
    """Episodes, an optimiser step each; :meth:`run` and :meth:`repeat` go on from wherever the state stands.

    network: what the steps change. settings: ``EpisodicSettings``.
    make_sampler: from session 0 and the pseudo-novel columns to train on to a row of episodes.
    make_captured: steps that are recorded, or None where they are not.
    least: episodes that are taken before validation may stop them or choose among them.
    found: for each draw of held-out classes so far, how many episodes validation found best.
    best_episodes: the middle one of these.
    """

    def __init__(
        self,
        network: nn.Module,
        settings: Any,
        make_sampler: MakeSampler,
        episode_loss: EpisodeLoss,
        *,
        make_captured: MakeCaptured = lambda inputs, optimiser: None,  # noqa: ARG005
        least: int = 0,
    ) -> None:
        self.network, self.settings = network, settings
        self.least = min(least, settings.episodes)
        self.make_sampler, self.episode_loss, self.make_captured = make_sampler, episode_loss, make_captured
        self.stopping = self._new_stopping()
        self.found: list[int] = []
        self.best_episodes = 0
        self.ended = False
        self.begin()

    def _new_stopping(self) -> EarlyStopping:
        return EarlyStopping(self.settings.patience, window=self.settings.validation_window)

    def begin(self) -> None:
        """Start from episode 0, with a new optimiser and nothing known."""
        self.episode = 0
        self.optimiser: torch.optim.Adam | None = None
        self.sampler: Sampler | None = None
        self._place: dict[str, Any] | None = None
        self._captured: CapturedSteps | None = None

    def end(self) -> None:
        """Meta-training is over: only ``best_episodes`` belongs to the state from now on."""
        self.begin()
        self.ended = True

    def new_optimiser(self, rate: float) -> torch.optim.Adam:
        return make_adam(self.network.parameters(), rate, self.settings.weight_decay)

    def prepare(self, base: BaseSession, pseudo_novel: np.ndarray) -> None:
        """Sampler and optimiser; a loaded state may have brought their contents."""
        self.sampler = self.make_sampler(base, pseudo_novel)
        if self._place is not None:
            self.sampler.load(self._place)
        if self.optimiser is None:
            self.optimiser = self.new_optimiser(self.settings.learning_rate)

    def step(
        self, inputs: GraphInputs, episode: Episode, optimiser: torch.optim.Adam, *, by_class: bool = False
    ) -> torch.Tensor:
        """One optimiser step on one episode; its loss."""
        optimiser.zero_grad(set_to_none=True)
        loss = self.episode_loss(inputs, episode, by_class=by_class)
        loss.backward()
        optimiser.step()
        return loss.detach()

    def run(
        self,
        base: BaseSession,
        inputs: GraphInputs,
        random: np.random.Generator,
        validate: Callable[[], float],
        progress: Progress,
        learner: Learner,
    ) -> None:
        """Train on the classes that are not held out until validation no longer improves.

        The best weights are put back; the weights at the start count as 0 episodes, if so few are allowed.
        """
        self.prepare(base, np.setdiff1d(_pseudo_novel(base), base.validation_columns))
        total = self.settings.episodes
        if self.episode == 0 and self.least == 0:
            self.stopping.check(validate(), 0, self.network)
        stop = self.stopping.exhausted or self.episode >= total
        while not stop:
            loss = self._train(inputs, random, total, "meta-training")
            score = validate()
            enough = self.episode >= self.least and self.stopping.check(score, self.episode, self.network)
            stop = enough or self.episode >= total
            progress.step("meta-training", self.episode, self.episode if stop else total, loss=loss, score=score)
            progress.checkpoint(learner)
        self.network.load_state_dict(self.stopping.weights)

    def next_draw(self) -> None:
        """One draw of held-out classes is done: note what it found, and forget its validations."""
        self.found.append(self.stopping.step)
        self.best_episodes = int(np.median(self.found))
        self.stopping = self._new_stopping()

    def repeat(
        self,
        base: BaseSession,
        inputs: GraphInputs,
        random: np.random.Generator,
        progress: Progress,
        learner: Learner,
    ) -> None:
        """As many episodes as were best, on all pseudo-novel classes."""
        self.prepare(base, _pseudo_novel(base))
        while self.episode < self.best_episodes:
            loss = self._train(inputs, random, self.best_episodes, "refit")
            progress.step("refit", self.episode, self.best_episodes, loss=loss)
            progress.checkpoint(learner)

    def _train(self, inputs: GraphInputs, random: np.random.Generator, total: int, stage: str) -> float:
        """The episodes up to the next validation; their mean loss."""
        assert self.sampler is not None
        assert self.optimiser is not None
        count = min(self.settings.validate_every, total - self.episode)
        captured = self._captured_steps(inputs, self.optimiser)
        losses = torch.zeros((), device=inputs.device)
        for _ in range(count):
            episode = self.sampler.sample(random)
            if captured is None:
                losses += self.step(inputs, episode, self.optimiser)
            else:
                losses += captured.step(inputs, DeviceEpisode.of(episode, inputs))
        self.episode += count
        return check_finite(losses / count, stage, self.episode)

    def _captured_steps(self, inputs: GraphInputs, optimiser: torch.optim.Adam) -> CapturedSteps | None:
        if self._captured is None:
            self._captured = self.make_captured(inputs, optimiser)
        return self._captured

    def chosen(self) -> dict[str, Any]:
        return {"episodes": self.best_episodes}

    def tensors(self) -> Tensors:
        """The network's own weights are its owner's."""
        if self.ended:
            return {}
        moments = {} if self.optimiser is None else adam_tensors(self.optimiser, "meta.optimiser")
        return {**with_prefix("meta.best", self.stopping.weights), **moments}

    def values(self) -> dict[str, Any]:
        if self.ended:
            return {"meta_episodes": self.best_episodes}
        running = {
            "episode": self.episode,
            "found": list(self.found),
            "stopping": self.stopping.values(),
            "sampler": self._place if self.sampler is None else self.sampler.values(),
        }
        return {"meta_episodes": self.best_episodes, "meta": running}

    def load(self, values: dict[str, Any], tensors: Tensors, device: torch.device) -> None:  # noqa: ARG002
        self.begin()
        self.best_episodes, self.ended = values["meta_episodes"], "meta" not in values
        if self.ended:
            return
        running = values["meta"]
        self.episode, self._place = running["episode"], running["sampler"]
        self.found = list(running.get("found", []))
        self.stopping.load(running["stopping"], without_prefix("meta.best", tensors))
        if any(name.startswith("meta.optimiser.") for name in tensors):
            self.optimiser = self.new_optimiser(self.settings.learning_rate)
            load_adam(self.optimiser, tensors, "meta.optimiser")


def _pseudo_novel(base: BaseSession) -> np.ndarray:
    return np.arange(len(base.base_classes), len(base.classes))
