"""Learners that meta-train in episodes until held-out classes say stop, several times, and then again on all."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from graphfcl.methods.bases.encoder_learner import EncoderLearner, EncoderSettings, Stage
from graphfcl.methods.learner import Progress
from graphfcl.methods.settings import require_range
from graphfcl.methods.shared.episodes import DeviceEpisode, Episode, Sampler
from graphfcl.methods.shared.memories import PrototypeMemory
from graphfcl.methods.shared.meta_training import CapturedSteps, MetaTraining
from graphfcl.methods.shared.parts import Part
from graphfcl.methods.shared.prototype_network import NodeEmbeddings
from graphfcl.methods.shared.validation_sessions import ValidationSessions, held_out_draws
from graphfcl.nn import GraphInputs
from graphfcl.stream.sessions import BaseSession, Session


@dataclass(frozen=True)
class EpisodicSettings(EncoderSettings):
    """Meta-training in episodes."""

    learning_rate: float = 0.005
    """Adam's rate in meta-training."""
    weight_decay: float = 0.0005
    """Adam's weight decay in meta-training, and in the fine-tuning of sessions."""
    episodes: int = 1000
    """Episodes of meta-training at most."""
    validate_every: int = 20
    """Episodes between two validations."""
    patience: int = 10
    """Validations in a row without a better score that end meta-training."""
    validation_window: int = 5
    """Validations whose mean counts as the score."""
    validation_draws: int = 3
    """Times that a fifth of the pseudo-novel classes is held out anew; with refit off it is once."""
    refit: bool = True
    """Repeat meta-training on all pseudo-novel classes, the held-out ones included."""
    queries: int = 10
    """Nodes per class that an episode asks about."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("validate_every", "patience", "validation_window", "validation_draws", "queries"):
            require_range(name, getattr(self, name), least=1)
        require_range("episodes", self.episodes, least=0)
        require_range("learning_rate", self.learning_rate, above=0)
        require_range("weight_decay", self.weight_decay, least=0)


class EpisodicLearner(EncoderLearner):
    """Three stages after pre-training: meta-training, choosing, refit. Classes are known by their prototypes.

    The first two are repeated for every draw of held-out classes. Then choices are settled by the mean over the draws,
    and the refit takes the middle number of episodes.

    A method says how episodes are drawn (:meth:`_sampler`), what a step minimises (:meth:`_episode_loss`), and what
    else validation sessions choose (:meth:`_try_choices`, :meth:`_settle_choices`).

    records_steps: whether its steps may be recorded on a GPU, which takes a loss that is the network's ``device_loss``.
    """

    records_steps: ClassVar[bool] = False
    meta: MetaTraining
    memory: PrototypeMemory

    def __init__(self, settings: Any = None, *, seed: int = 0, device: str | torch.device = "cpu") -> None:
        super().__init__(settings, seed=seed, device=device)
        self.memory = PrototypeMemory()

    @abstractmethod
    def _sampler(self, base: BaseSession, pseudo_novel: np.ndarray) -> Sampler:
        """Episodes over the base classes and these pseudo-novel columns."""

    @abstractmethod
    def _episode_loss(self, inputs: GraphInputs, episode: Episode, *, by_class: bool = False) -> torch.Tensor:
        """What one optimiser step minimises; by_class: every class counts the same."""

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

    def _try_choices(
        self, base: BaseSession, inputs: GraphInputs, validation: ValidationSessions, progress: Progress
    ) -> None:
        """Score what is left to choose on one draw, with the weights that validation found best."""

    def _settle_choices(self, base: BaseSession) -> None:
        """Choose by the scores of all draws."""

    def _can_meta_train(self, base: BaseSession) -> bool:
        return len(base.pseudo_novel_classes) > 0

    def _finish(self, inputs: GraphInputs) -> None:
        """Last work on session 0, with the final weights."""
        self.memory.finish(self.network, lambda: self._node_embeddings(inputs), self.track, len(self.classes_))

    def _meta_trained(self) -> nn.Module:
        """What the steps of meta-training change."""
        return self.network

    def _least_episodes(self) -> int:
        """Episodes that meta-training takes whatever validation says."""
        return 0

    def parts(self) -> tuple[Part, ...]:
        return (*super().parts(), *(() if self.stage == Stage.NEW else (self.meta,)))

    def _make_network(self) -> None:
        super()._make_network()
        self.meta = MetaTraining(
            self._meta_trained(),
            self.settings,
            self._sampler,
            self._episode_loss,
            make_captured=self._captured_steps,
            least=self._least_episodes(),
        )

    def _train(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> None:
        first = Stage.META_TRAINING if self._can_meta_train(base) else Stage.CHOOSING
        draws = held_out_draws(base, self.seed, self.settings.validation_draws if self.settings.refit else 1)
        if self.stage in (Stage.PRE_TRAINED, Stage.PREPARED):
            self._enter(first, progress)
        while self.stage in (Stage.META_TRAINING, Stage.CHOOSING):
            drawn = draws[len(self.meta.found)]
            validation = ValidationSessions.draw(drawn, self.seed)
            if self.stage == Stage.META_TRAINING:
                self.meta.run(drawn, inputs, self.random, partial(self._validate, inputs, validation), progress, self)
                self._enter(Stage.CHOOSING, progress)
            self._try_choices(drawn, inputs, validation, progress)
            self.meta.next_draw()
            if len(self.meta.found) < len(draws):
                self.network.load_state_dict(self.pretrained)
                self._enter(first, progress)
            else:
                self._settle_choices(base)
                held_out = len(base.validation_columns) > 0
                repeat = self.settings.refit and held_out and first == Stage.META_TRAINING
                self._enter(Stage.REFIT if repeat else Stage.FINISHING, progress)
        if self.stage == Stage.REFIT:
            if self.meta.episode == 0:
                self.network.load_state_dict(self.pretrained)
            self.meta.repeat(base, inputs, self.random, progress, self)
        self._finish(inputs)

    def _enter(self, stage: Stage, progress: Progress) -> None:
        if stage == Stage.READY:
            self.meta.end()
        else:
            self.meta.begin()
        super()._enter(stage, progress)

    # Classes are known by prototypes

    def _node_embeddings(self, inputs: GraphInputs) -> NodeEmbeddings:
        return self.network.node_embeddings(inputs, self.cache.embeddings(inputs))

    def _keeps_weights(self) -> bool:
        return True

    def _learn(self, session: Session, inputs: GraphInputs) -> None:
        count = len(self.classes_)
        self.memory.learn(session, self.network, lambda: self._node_embeddings(inputs), self.sizes.many, count)

    def _score_all(self, inputs: GraphInputs) -> torch.Tensor:
        return self.memory.scores(self.network, self._node_embeddings(inputs), len(self.classes_))
