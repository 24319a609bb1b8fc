"""Learners that meta-train in episodes until held-out classes say stop, several times, and then again on all."""

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
from graphfcl.methods.learner import Labelled, Progress, Tensors
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
from graphfcl.nn import GraphInputs
from graphfcl.stream.sessions import BaseSession, Session


@dataclass(frozen=True)
class EpisodicSettings(EncoderSettings):
    """Meta-training in episodes."""

    learning_rate: Positive = 0.005
    """Adam's rate in meta-training."""
    weight_decay: Weight = 0.0005
    """Adam's weight decay in meta-training, and in the fine-tuning of sessions."""
    episodes: Number = 1000
    """Episodes of meta-training at most."""
    validate_every: Count = 20
    """Episodes between two validations."""
    patience: Count = 10
    """Validations in a row without a better score that end meta-training."""
    validation_window: Count = 5
    """Validations whose mean counts as the score."""
    validation_draws: Count = 10
    """Draws of the supports of held-out classes whose mean score is that of a validation."""
    validation_folds: Count = 3
    """Parts of the pseudo-novel classes, each held out once; with 1, or with refit off, one of two is."""
    refit: bool = True
    """Repeat meta-training on all pseudo-novel classes, the held-out ones included."""
    queries: Count = 10
    """Nodes per class that an episode asks about."""


class EpisodicLearner(EncoderLearner):
    """Three stages after pre-training: meta-training, choosing, refit. Classes are known by their prototypes.

    The first two are repeated for every part of the pseudo-novel classes. Then choices are settled by the mean over the
    parts, and the refit takes the median of their numbers of episodes.

    A method says how episodes are drawn (:meth:`_sampler`), what a step minimises (:meth:`_episode_loss`), and, if its
    settings have steps for incremental sessions, how these are taken (:meth:`_fine_tune`).

    records_steps: whether its steps may be recorded on a GPU, which takes a loss that is the network's ``device_loss``.
    tunes_on_all_classes: whether every class must have a labelled node for the steps of a session.
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
        """Episodes over the base classes and these pseudo-novel columns."""

    def _episode_loss(self, inputs: GraphInputs, episode: Episode, *, by_class: bool = False) -> torch.Tensor:
        """What one optimiser step minimises; by_class: every class counts the same."""
        return self.network.episode_loss(inputs, episode, self.generator, by_class=by_class)

    def _captured_steps(self, inputs: GraphInputs, optimiser: torch.optim.Adam) -> CapturedSteps | None:
        """Steps of meta-training that a GPU records and replays; None if they are taken launch by launch."""
        if not self.records_steps or not self.network.computes_whole(inputs):
            return None

        def loss(graph: GraphInputs, episode: DeviceEpisode) -> torch.Tensor:
            return self.network.device_loss(graph, episode, self.generator)

        return CapturedSteps(loss, optimiser, self.generator)

    def _validate(self, inputs: GraphInputs, validation: ValidationSessions) -> float:
        """Score of the validation sessions with the weights as they are."""
        return self.network.validate(inputs, validation)

    def _fine_tune(self, inputs: GraphInputs, classes: KnownClasses, *choice: Any) -> None:
        """The steps of an incremental session, on episodes over all known classes. choice: a candidate."""

    def _chooses(self, base: BaseSession) -> bool:  # noqa: ARG002
        """Whether validation sessions choose the steps of a session; none is taken where old nodes are gone."""
        return self.track != "isolated" and len(self.fine_tuning.candidates) > 1

    def _try_choices(self, inputs: GraphInputs, validation: ValidationSessions, progress: Progress) -> None:
        """Score what is left to choose on one part, with the weights that validation found best."""
        start = copy_weights(self.network)

        def score(draw: ValidationSessions, *choice: Any) -> float:
            self.network.load_state_dict(start)
            for classes in draw.sessions():
                self._fine_tune(inputs, classes, *choice)
            return self._validate(inputs, draw)

        self.fine_tuning.try_out(validation, score, progress)
        self.network.load_state_dict(start)

    def _settle_choices(self, base: BaseSession) -> None:  # noqa: ARG002
        """Choose by the scores of all parts."""
        if self.track == "isolated":
            self.fine_tuning.take(0, 0.0)
        else:
            self.fine_tuning.settle()

    def _can_meta_train(self, base: BaseSession) -> bool:
        return len(base.pseudo_novel_classes) > 0

    def _finish(self, inputs: GraphInputs) -> None:
        """Last work on session 0, with the final weights."""
        self.memory.finish(self.network, lambda: self._node_embeddings(inputs), self.track, len(self.classes_))

    def _meta_trained(self) -> nn.Module:
        """What the steps of meta-training change."""
        return self.network

    def _least_episodes(self) -> int:
        """Episodes that meta-training takes before validation may stop it or choose among them."""
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
                self._settle_choices(base)
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

    # Classes are known by prototypes

    def _node_embeddings(self, inputs: GraphInputs) -> NodeEmbeddings:
        return self.network.node_embeddings(inputs, self.cache.embeddings(inputs))

    def _keeps_weights(self) -> bool:
        return self.fine_tuning.steps == 0

    def restate(self, visible: VisibleNodes, train: Labelled, supports: Labelled) -> bool:
        # A class without a node has no place in the episodes of fine-tuning.
        labelled = np.unique(np.concatenate([train[1], supports[1]]))
        if self.tunes_on_all_classes and self.fine_tuning.steps and labelled.size < len(self.classes_):
            return False
        return super().restate(visible, train, supports)

    def _learn(self, session: Session, inputs: GraphInputs) -> None:
        count = len(self.classes_)
        self.memory.learn(session, self.network, lambda: self._node_embeddings(inputs), self.sizes.many, count)

    def _known_classes(self, tasks: list[list[int]]) -> KnownClasses:
        """What fine-tuning sees of all classes. tasks: columns of each task after the base task, oldest first."""
        sizes, memory = self.sizes, self.memory
        return KnownClasses(memory.train, memory.supports, tasks, sizes.base, sizes.many, len(self.classes_), sizes.way)

    def _score_all(self, inputs: GraphInputs) -> torch.Tensor:
        return self.memory.scores(self.network, self._node_embeddings(inputs), len(self.classes_))


class MetaTraining(Part):
    """Meta-training (Section 4.1 of the paper): draw an episode, take one step, again and again.

    :meth:`run` and :meth:`repeat` go on from wherever the state stands; the network's weights are the learner's.

    place: where the sampler stands. best_by_fold: for each part that was held out so far, how many episodes were best
    for validation.
    best_episodes: the middle one of these, all that is kept once meta-training has ended.
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
        """Start from episode 0, with a new optimiser and nothing known; or end."""
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
        """A sampler that stands where a loaded state left it."""
        sampler = self.learner._sampler(base, pseudo_novel)
        if self.place:
            sampler.load(self.place)
        return sampler

    def step(
        self, inputs: GraphInputs, episode: Episode, optimiser: torch.optim.Adam, *, by_class: bool = False
    ) -> torch.Tensor:
        """One optimiser step on one episode; its loss."""
        return take_step(optimiser, lambda: self.learner._episode_loss(inputs, episode, by_class=by_class))

    def run(
        self,
        base: BaseSession,
        held_out: Sequence[int],
        inputs: GraphInputs,
        validate: Callable[[], float],
        progress: Progress,
    ) -> None:
        """Train on the classes that are not held out until validation no longer improves.

        The best weights are put back; the weights at the start count as 0 episodes, if so few are allowed.
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
        """One part of the classes is done: note what it found, and forget its validations."""
        self.best_by_fold.append(self.stopping.step)
        self.best_episodes = int(np.median(self.best_by_fold))
        self.stopping = self._new_stopping()

    def repeat(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> None:
        """As many episodes as were best, on all pseudo-novel classes."""
        sampler = self._sampler(base, np.array(base.pseudo_novel_columns, dtype=np.int64))
        while self.episode < self.best_episodes:
            loss = self._train(sampler, inputs, self.best_episodes, "refit")
            progress.step("refit", self.episode, self.best_episodes, loss=loss)
            progress.checkpoint(self.learner)

    def _train(self, sampler: Sampler, inputs: GraphInputs, total: int, stage: str) -> float:
        """The episodes up to the next validation; their mean loss."""
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
