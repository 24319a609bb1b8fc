"""Joint training: the upper reference, which is allowed what no other method is.

At every session encoder and head are trained again, from the pre-trained encoder, on *all* training data of *all*
classes seen: the train nodes of session 0, the supports of novel classes, and the labels of their pool, which no other
method ever receives. Its results are marked "uses pool labels". Every class counts the same in the loss. The number of
epochs is the one that was best on the validation nodes of session 0.
"""

from typing import Any, ClassVar

import numpy as np
import torch

from graphfcl.methods.bases.encoder_learner import EncoderLearner, Stage
from graphfcl.methods.learner import Labelled, Progress, Tensors
from graphfcl.methods.shared.parts import Part
from graphfcl.methods.shared.replay_memory import ReplayMemory
from graphfcl.methods.shared.supervised_training import SupervisedTraining
from graphfcl.methods.shared.trained_head import HeadNetwork, head_training
from graphfcl.methods.shared.training_state import with_prefix, without_prefix
from graphfcl.nn import Encoder, GraphInputs, Linear
from graphfcl.stream import BaseSession, PooledSession, Session


class Retraining(Part):
    """From which encoder every session starts, and for how many epochs it trains."""

    def __init__(self) -> None:
        self.epochs = 0
        self.encoder: Tensors = {}

    def chosen(self) -> dict[str, Any]:
        return {"epochs": self.epochs}

    def stored(self) -> dict[str, int]:
        return {"weights": sum(value.nbytes for value in self.encoder.values())}

    def values(self) -> dict[str, Any]:
        return {"epochs": self.epochs}

    def tensors(self) -> Tensors:
        return with_prefix("start", self.encoder)

    def load(self, values: dict[str, Any], tensors: Tensors, device: torch.device) -> None:  # noqa: ARG002
        self.epochs, self.encoder = values["epochs"], without_prefix("start", tensors)


class Joint(EncoderLearner):
    """Joint training; what it is allowed in the module docstring."""

    name: ClassVar[str] = "joint"
    title: ClassVar[str] = "retrained at each session on all labels of all classes (uses pool labels)"
    reference: ClassVar[str] = "upper reference"
    uses_pool_labels: ClassVar[bool] = True
    network: HeadNetwork
    memory: ReplayMemory
    training: SupervisedTraining

    def __init__(self, settings: Any = None, *, seed: int = 0, device: str | torch.device = "cpu") -> None:
        super().__init__(settings, seed=seed, device=device)
        self.memory = ReplayMemory()
        self.retraining = Retraining()

    def parts(self) -> tuple[Part, ...]:
        running = (self.training,) if self.stage == Stage.SESSION_ZERO else ()
        return (*super().parts(), *running, self.retraining)

    def _build(self, encoder: Encoder, start: torch.Generator) -> HeadNetwork:
        head = Linear(self.settings.size, len(self.classes_), start).to(self.device)
        self.training = head_training(encoder, head, self.settings.pretraining, stage="session 0")
        return HeadNetwork(encoder, head)

    def _train(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> None:
        self.retraining.encoder = without_prefix("encoder", self.pretrained)
        if self.stage == Stage.PRE_TRAINED:
            self._enter(Stage.SESSION_ZERO, progress)
        train, validation = (base.train, base.train_labels), (base.validation, base.validation_labels)
        self.training.run(train, validation, inputs, self.generator, progress, self)
        self._keep(train, inputs)
        self.retraining.epochs = self.training.stopping.step

    def _keep(self, labelled: Labelled, inputs: GraphInputs) -> None:
        self.memory.add(*labelled, inputs.visible, keep_features=self.track == "isolated")

    def _learn(self, session: Session, inputs: GraphInputs) -> None:
        labelled = (session.supports, session.support_labels)
        if isinstance(session, PooledSession):
            pool = (session.pool, session.pool_labels)
            labelled = (np.concatenate([labelled[0], pool[0]]), np.concatenate([labelled[1], pool[1]]))
        self._keep(labelled, inputs)
        encoder = self.network.encoder
        encoder.load_state_dict(self.retraining.encoder)
        start = torch.Generator().manual_seed(self.seed)
        head = Linear(self.settings.size, len(self.classes_), start).to(self.device)
        training = head_training(encoder, head, self.settings.pretraining, stage=f"session {session.number}")
        beside = self.memory.beside(inputs)
        training.run_epochs(self.memory.labelled, self.retraining.epochs, beside, self.generator)
        self.network = HeadNetwork(encoder, head)

    def _score_all(self, inputs: GraphInputs) -> torch.Tensor:
        return self.network.head(self._embeddings(inputs))
