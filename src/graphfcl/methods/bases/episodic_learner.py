"""Learners that are meta-trained in episodes, with early stopping on held-out classes and a final refit on all."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from graphfcl.graph.interfaces import VisibleNodes
from graphfcl.methods.bases.encoder_learner import EncoderLearner, EncoderSettings, Stage
from graphfcl.methods.learner import Progress
from graphfcl.methods.settings import Count, Number, Positive, Weight
from graphfcl.methods.shared.episodes import DeviceEpisode, Episode, Sampler
from graphfcl.methods.shared.fine_tuning import FineTuning
from graphfcl.methods.shared.memories import PrototypeMemory
from graphfcl.methods.shared.parts import Part
from graphfcl.methods.shared.prototype_network import NodeEmbeddings
from graphfcl.methods.shared.training_state import (
    Adam,
    CapturedSteps,
    EarlyStopping,
    check_finite,
    copy_weights,
    make_adam,
    take_step,
)
from graphfcl.methods.shared.validation_sessions import KnownClasses, ValidationSessions, held_out_folds
from graphfcl.methods.state import Labelled, Tensors
from graphfcl.nn import GraphInputs
from graphfcl.stream.sessions import BaseSession, Session


@dataclass(frozen=True)
class EpisodicSettings(EncoderSettings):
    """Settings of meta-training in episodes."""

    learning_rate: Positive = 0.005
    """Learning rate of Adam in meta-training."""
    weight_decay: Weight = 0.0005
    """Weight decay of Adam in meta-training and in the fine-tuning of sessions."""
    episodes: Number = 1000
    """Maximum number of meta-training episodes."""
    validate_every: Count = 20
    """Number of episodes between two validations."""
    patience: Count = 10
    """Number of validations in a row without a better score after which meta-training stops."""
    validation_window: Count = 5
    """Number of latest validations whose mean is the score."""
    validation_draws: Count = 10
    """Number of support draws over which a validation is averaged."""
    validation_folds: Count = 3
    """Number of parts of the pseudo-novel classes, each held out once; with 1, or without refit, one of two is."""
    refit: bool = True
    """Repeat meta-training on all pseudo-novel classes, the held-out ones included."""
    queries: Count = 10
    """Number of query nodes per class in an episode."""


class EpisodicLearner(EncoderLearner):
    """A meta-trained learner that represents classes by prototypes.

    After pre-training there are three stages: meta-training, choosing, and refit. The first two are repeated with each
    part of the pseudo-novel classes held out. Choices are then made by the mean score over the parts, and the refit
    trains on all pseudo-novel classes for the median of the best numbers of episodes.

    A method defines the episodes (:meth:`_sampler`), the loss of a step (:meth:`_episode_loss`) and, if its settings
    have fine-tuning steps, how they are taken (:meth:`_fine_tune`).

    Attributes:
        records_steps: Whether training steps may be recorded on a GPU. Their loss must be the network's
            ``device_loss``.
        tunes_on_all_classes: Whether fine-tuning needs a labelled node of every class.
    """

    records_steps: ClassVar[bool] = False
    tunes_on_all_classes: ClassVar[bool] = False
    meta: "MetaTraining"
    memory: PrototypeMemory

    def __init__(self, settings: Any = None, *, seed: int = 0, device: str | torch.device = "cpu") -> None:
        super().__init__(settings, seed=seed, device=device)
        self.memory = PrototypeMemory()
        self.fine_tuning = FineTuning(self.settings)

    @abstractmethod
    def _sampler(self, base: BaseSession, pseudo_novel: np.ndarray) -> Sampler:
        """Make a sampler of episodes over the base classes and these pseudo-novel columns."""

    def _episode_loss(self, inputs: GraphInputs, episode: Episode, *, by_class: bool = False) -> torch.Tensor:
        """Compute the loss of an optimiser step. With ``by_class``, all classes have the same weight."""
        return self.network.episode_loss(inputs, episode, self.generator, by_class=by_class)

    def _captured_steps(self, inputs: GraphInputs, optimiser: torch.optim.Adam) -> CapturedSteps | None:
        """Return recorded steps for meta-training on a GPU, or None if steps cannot be recorded."""
        if not self.records_steps or not self.network.computes_whole(inputs):
            return None

        def loss(graph: GraphInputs, episode: DeviceEpisode) -> torch.Tensor:
            return self.network.device_loss(graph, episode, self.generator)

        return CapturedSteps(loss, optimiser, self.generator)

    def _validate(self, inputs: GraphInputs, validation: ValidationSessions) -> float:
        """Score the validation sessions with the current weights."""
        return self.network.validate(inputs, validation)

    def _fine_tune(self, inputs: GraphInputs, classes: KnownClasses, *choice: Any) -> None:
        """Take the fine-tuning steps of a session on episodes over all known classes. ``choice`` is a candidate."""

    def _chooses(self, base: BaseSession) -> bool:  # noqa: ARG002
        """Whether validation sessions choose the fine-tuning steps; under the track ``isolated`` there are none."""
        return self.track != "isolated" and len(self.fine_tuning.candidates) > 1

    def _try_choices(self, inputs: GraphInputs, validation: ValidationSessions, progress: Progress) -> None:
        """Score the candidates on one part of the held-out classes, with the best weights of meta-training."""
        start = copy_weights(self.network)

        def score(draw: ValidationSessions, *choice: Any) -> float:
            self.network.load_state_dict(start)
            for classes in draw.sessions():
                self._fine_tune(inputs, classes, *choice)
            return self._validate(inputs, draw)

        self.fine_tuning.score_candidates(validation, score, progress)
        self.network.load_state_dict(start)

    def _make_choices(self, base: BaseSession) -> None:  # noqa: ARG002
        """Choose a candidate by its scores on all parts."""
        if self.track == "isolated":
            self.fine_tuning.set_choice(0, 0.0)
        else:
            self.fine_tuning.choose()

    def _can_meta_train(self, base: BaseSession) -> bool:
        return len(base.pseudo_novel_classes) > 0

    def _finish(self, inputs: GraphInputs) -> None:
        """Complete session 0 with the final weights."""
        self.memory.finish(self.network, lambda: self._node_embeddings(inputs), self.track, len(self.classes_))

    def _meta_trained(self) -> nn.Module:
        """Return the module that meta-training changes."""
        return self.network

    def _least_episodes(self) -> int:
        """Minimum number of episodes before validation may stop meta-training."""
        return 0

    def parts(self) -> tuple[Part, ...]:
        return (*super().parts(), self.fine_tuning, *(() if self.stage == Stage.NEW else (self.meta,)))

    def _make_network(self) -> None:
        super()._make_network()
        self.meta = MetaTraining(self)

    def _train(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> None:
        first = Stage.META_TRAINING if self._can_meta_train(base) else Stage.CHOOSING
        folds = held_out_folds(base, self.seed, self.settings.validation_folds if self.settings.refit else 1)
        if self.stage in (Stage.PRE_TRAINED, Stage.PREPARED):
            self._enter(first, progress)
        while self.stage in (Stage.META_TRAINING, Stage.CHOOSING):
            held_out = folds[len(self.meta.best_by_fold)]
            validation = ValidationSessions.draw(base, held_out, self.seed, self.settings.validation_draws)
            if self.stage == Stage.META_TRAINING:
                self.meta.run(base, held_out, inputs, partial(self._validate, inputs, validation), progress)
                self._enter(Stage.CHOOSING, progress)
            if self._chooses(base) and validation.has_new_classes:
                self._try_choices(inputs, validation, progress)
            self.meta.next_fold()
            if len(self.meta.best_by_fold) < len(folds):
                self.network.load_state_dict(self.pretrained)
                self._enter(first, progress)
            else:
                self._make_choices(base)
                repeat = self.settings.refit and held_out and first == Stage.META_TRAINING
                self._enter(Stage.REFIT if repeat else Stage.FINISHING, progress)
        if self.stage == Stage.REFIT:
            if self.meta.episode == 0:
                self.network.load_state_dict(self.pretrained)
            self.meta.repeat(base, inputs, progress)
        self._finish(inputs)

    def _enter(self, stage: Stage, progress: Progress) -> None:
        self.meta.begin(ended=stage == Stage.READY)
        super()._enter(stage, progress)

    # Prototypes

    def _node_embeddings(self, inputs: GraphInputs) -> NodeEmbeddings:
        return self.network.node_embeddings(inputs, self.cache.embeddings(inputs))

    def _keeps_weights(self) -> bool:
        return self.fine_tuning.steps == 0

    def restate(self, visible: VisibleNodes, train: Labelled, supports: Labelled) -> bool:
        # A class without a labelled node cannot take part in the episodes of fine-tuning.
        labelled = np.unique(np.concatenate([train[1], supports[1]]))
        if self.tunes_on_all_classes and self.fine_tuning.steps and labelled.size < len(self.classes_):
            return False
        return super().restate(visible, train, supports)

    def _learn(self, session: Session, inputs: GraphInputs) -> None:
        count = len(self.classes_)
        self.memory.learn(session, self.network, lambda: self._node_embeddings(inputs), self.sizes.many, count)

    def _known_classes(self, tasks: list[list[int]]) -> KnownClasses:
        """Collect the labelled nodes of all classes for fine-tuning. ``tasks`` are columns by task, oldest first."""
        sizes, memory = self.sizes, self.memory
        return KnownClasses(memory.train, memory.supports, tasks, sizes.base, sizes.many, len(self.classes_), sizes.way)

    def _score_all(self, inputs: GraphInputs) -> torch.Tensor:
        return self.memory.scores(self.network, self._node_embeddings(inputs), len(self.classes_))


class MetaTraining(Part):
    """Meta-training: draw an episode and take an optimiser step, repeatedly (Section 4.1 of the HAG-Meta paper).

    :meth:`run` and :meth:`repeat` continue from a loaded state. The weights of the network belong to the learner.

    Attributes:
        place: Position of the sampler.
        best_by_fold: Best number of episodes for each part that was held out so far.
        best_episodes: Median of these, the only value that is kept after meta-training.
    """

    name = "meta"
    saved_while_running = ("best_episodes", "best_by_fold", "episode", "stopping", "place", "optimiser")
    saved_at_the_end = ("best_episodes",)

    def __init__(self, learner: EpisodicLearner) -> None:
        self.learner, self.settings, self.network = learner, learner.settings, learner._meta_trained()
        self.least = min(learner._least_episodes(), self.settings.episodes)
        self.stopping = self._new_stopping()
        self.best_by_fold: list[int] = []
        self.best_episodes = 0
        self.begin()

    def _new_stopping(self) -> EarlyStopping:
        return EarlyStopping(self.settings.patience, window=self.settings.validation_window)

    def begin(self, *, ended: bool = False) -> None:
        """Reset to episode 0 with a new optimiser. With ``ended``, only the final values are saved from now on."""
        self.saved = self.saved_at_the_end if ended else self.saved_while_running
        self.episode = 0
        self.place: dict[str, Any] = {}
        self._captured: CapturedSteps | None = None
        vars(self).pop("optimiser", None)

    @cached_property
    def optimiser(self) -> Adam:
        return self.new_optimiser(self.settings.learning_rate)

    def new_optimiser(self, rate: float) -> Adam:
        return make_adam(self.network.parameters(), rate, self.settings.weight_decay)

    def _sampler(self, base: BaseSession, pseudo_novel: np.ndarray) -> Sampler:
        """Make a sampler at the position of a loaded state."""
        sampler = self.learner._sampler(base, pseudo_novel)
        if self.place:
            sampler.load(self.place)
        return sampler

    def step(
        self, inputs: GraphInputs, episode: Episode, optimiser: torch.optim.Adam, *, by_class: bool = False
    ) -> torch.Tensor:
        """Take an optimiser step on an episode, and return its loss."""
        return take_step(optimiser, lambda: self.learner._episode_loss(inputs, episode, by_class=by_class))

    def run(
        self,
        base: BaseSession,
        held_out: Sequence[int],
        inputs: GraphInputs,
        validate: Callable[[], float],
        progress: Progress,
    ) -> None:
        """Train on the classes that are not held out until validation no longer improves, and restore the best weights.

        The initial weights are a candidate with 0 episodes, unless there is a minimum number of episodes.
        """
        sampler = self._sampler(
            base, np.array([c for c in base.pseudo_novel_columns if c not in held_out], dtype=np.int64)
        )
        total = self.settings.episodes
        if self.episode == 0 and self.least == 0:
            self.stopping.check(validate(), 0, self.network)
        stop = self.stopping.exhausted or self.episode >= total
        while not stop:
            loss = self._train(sampler, inputs, total, "meta-training")
            score = validate()
            enough = self.episode >= self.least and self.stopping.check(score, self.episode, self.network)
            stop = enough or self.episode >= total
            progress.step("meta-training", self.episode, self.episode if stop else total, loss=loss, score=score)
            progress.checkpoint(self.learner)
        self.network.load_state_dict(self.stopping.weights)

    def next_fold(self) -> None:
        """Record the best number of episodes of a part, and reset early stopping."""
        self.best_by_fold.append(self.stopping.step)
        self.best_episodes = int(np.median(self.best_by_fold))
        self.stopping = self._new_stopping()

    def repeat(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> None:
        """Train on all pseudo-novel classes for the median of the best numbers of episodes."""
        sampler = self._sampler(base, np.array(base.pseudo_novel_columns, dtype=np.int64))
        while self.episode < self.best_episodes:
            loss = self._train(sampler, inputs, self.best_episodes, "refit")
            progress.step("refit", self.episode, self.best_episodes, loss=loss)
            progress.checkpoint(self.learner)

    def _train(self, sampler: Sampler, inputs: GraphInputs, total: int, stage: str) -> float:
        """Train until the next validation, and return the mean loss of the episodes."""
        if self._captured is None:
            self._captured = self.learner._captured_steps(inputs, self.optimiser)
        count = min(self.settings.validate_every, total - self.episode)
        losses = torch.zeros((), device=inputs.device)
        for _ in range(count):
            episode = sampler.sample(self.learner.random)
            if self._captured is None:
                losses += self.step(inputs, episode, self.optimiser)
            else:
                losses += self._captured.step(inputs, DeviceEpisode.of(episode, inputs))
        self.episode, self.place = self.episode + count, sampler.values()
        return check_finite(losses / count, stage, self.episode)

    def chosen(self) -> dict[str, Any]:
        return {"episodes": self.best_episodes}

    # State

    def load(self, values: dict[str, Any], tensors: Tensors, device: torch.device) -> None:
        self.begin(ended="meta.episode" not in values)
        super().load(values, tensors, device)
