"""Joint training: the upper reference, which is allowed what no other method is.

At every session encoder and head are trained anew, from the pre-trained encoder, on *all* training data of *all*
classes seen: the train nodes of session 0, the supports of novel classes, and the labels of their pool, which no other
method ever receives. Its results are marked "uses pool labels". Every class counts the same in the loss. The number of
epochs is the one that was best on the validation nodes of session 0.
"""

from typing import Any, ClassVar

import numpy as np
import torch

from graphfcl.methods.learner import Labelled, Progress, Tensors
from graphfcl.methods.settings import MethodSettings
from graphfcl.methods.shared.trained_head import HeadNetwork, TrainedHead
from graphfcl.methods.shared.training_state import with_prefix, without_prefix
from graphfcl.nn import GraphInputs, Linear
from graphfcl.stream import BaseSession, PooledSession, Session


class Joint(TrainedHead):
    """The learner."""

    name: ClassVar[str] = "joint"
    settings_type = MethodSettings
    uses_pool_labels: ClassVar[bool] = True

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.epochs_ = 0
        self.encoder_start: Tensors = {}  # the pre-trained encoder, from which every session starts

    def _train(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> None:
        self.encoder_start = without_prefix("encoder", self.pretrained)
        super()._train(base, inputs, progress)
        self.epochs_ = self.training.stopping.step

    def _remember(self, labelled: Labelled, inputs: GraphInputs) -> None:
        self._keep(*labelled, inputs)

    def _learn(self, session: Session, inputs: GraphInputs) -> None:
        labelled = (session.supports, session.support_labels)
        if isinstance(session, PooledSession):
            pool = (session.pool, session.pool_labels)
            labelled = (np.concatenate([labelled[0], pool[0]]), np.concatenate([labelled[1], pool[1]]))
        self._remember(labelled, inputs)
        inputs = self._with_memory(session, inputs)
        encoder = self.network.encoder
        encoder.load_state_dict(self.encoder_start)
        start = torch.Generator().manual_seed(self.seed)
        head = Linear(self.settings.size, len(self.classes_), start).to(self.device)
        training = self._training(encoder, head, f"session {session.number}")
        training.run_epochs(self.memory.labelled, self.epochs_, inputs, self.generator)
        self.network = HeadNetwork(encoder, head)

    def chosen(self) -> dict[str, Any]:
        return {"epochs": self.epochs_}

    def stored(self) -> dict[str, int]:
        found = super().stored()
        found["weights"] += sum(value.nbytes for value in self.encoder_start.values())
        return found

    def _own_values(self) -> dict[str, Any]:
        return {**super()._own_values(), "epochs": self.epochs_}

    def _own_tensors(self) -> Tensors:
        return {**super()._own_tensors(), **with_prefix("start", self.encoder_start)}

    def _load_own(self, values: dict[str, Any], tensors: Tensors) -> None:
        super()._load_own(values, tensors)
        self.epochs_ = values["epochs"]
        self.encoder_start = without_prefix("start", tensors)
