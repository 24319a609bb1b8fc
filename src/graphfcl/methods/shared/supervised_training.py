"""Supervised node classification: full-batch training of an encoder and a head, stopped by validation nodes.

Methods that share the pre-trained encoder use it for pre-training on the base classes (Section 4.1 of the HAG-Meta
paper). Methods with a head over all classes use it for session 0, and ANCHOR trains an encoder of its own on all
classes of session 0. An epoch is ten full-batch steps. With one step per epoch, patience 10 would stop on a plateau of
ten steps, which on `cora-topics` is at step 15 with 15 % accuracy instead of 80 %.
"""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import nn

from graphfcl.methods.learner import SILENT, Progress
from graphfcl.methods.settings import CheckedSettings, Count, Positive, Weight
from graphfcl.methods.shared.parts import Part
from graphfcl.methods.shared.training_state import (
    Adam,
    EarlyStopping,
    check_finite,
    copy_weights,
    make_adam,
    take_step,
    with_prefix,
    without_prefix,
)
from graphfcl.methods.state import (
    EncoderStore,
    Labelled,
    Tensors,
    select_labelled,
)
from graphfcl.nn import Encoder, GraphInputs, Linear, tensor_of
from graphfcl.stream.sessions import BaseSession

HeadLoss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
ENCODER_SETTINGS = ("encoder", "hidden", "size", "last_relu", "dropout", "pretraining")  # of a pre-trained encoder


@dataclass(frozen=True)
class SupervisedSettings(CheckedSettings):
    """Settings of supervised training with early stopping."""

    prefix = "pretraining."

    epochs: Count = 100
    """Maximum number of epochs."""
    steps_per_epoch: Count = 10
    """Number of full-batch steps between two validations."""
    patience: Count = 10
    """Number of epochs in a row without a better validation accuracy after which training stops."""
    learning_rate: Positive = 0.005
    """Learning rate of Adam."""
    weight_decay: Weight = 0.0005
    """Weight decay of Adam."""


class TrainingLoop(Part):
    """Optimiser steps on an encoder and a head, resumable from a saved state.

    ``stage`` names the loop in progress reports and errors, and ``name`` is the prefix of its values in a state. The
    state does not include the weights of the encoder, which belong to the learner.
    """

    saved: tuple[str, ...] = ("epoch", "seconds", "head_weights", "optimiser")

    def __init__(
        self, encoder: Encoder, head: nn.Module, settings: Any, *, stage: str = "training", name: str = "training"
    ) -> None:
        self.encoder, self.head, self.settings, self.stage, self.name = encoder, head, settings, stage, name
        self.network = nn.ModuleDict({"encoder": encoder, "head": head})
        self.epoch = 0
        self.seconds = 0.0

    @cached_property
    def optimiser(self) -> Adam:
        """Adam, created at the first step so that learners that are only loaded do not import it."""
        return make_adam(self.network.parameters(), self.settings.learning_rate, self.settings.weight_decay)

    @property
    def head_weights(self) -> Tensors:
        return copy_weights(self.head)

    @head_weights.setter
    def head_weights(self, weights: Tensors) -> None:
        self.head.load_state_dict(weights)


class SupervisedTraining(TrainingLoop):
    """Training on labelled nodes with early stopping by the accuracy on validation nodes.

    ``loss`` takes (n, classes) logits and (n,) labels. If ``balanced``, accuracy is the mean recall over classes.
    """

    saved = (*TrainingLoop.saved, "stopping")

    def __init__(
        self,
        encoder: Encoder,
        head: nn.Module,
        settings: SupervisedSettings,
        *,
        loss: HeadLoss = nn.functional.cross_entropy,
        balanced: bool = False,
        **names: str,
    ) -> None:
        super().__init__(encoder, head, settings, **names)
        self.loss, self.balanced = loss, balanced
        self.stopping = EarlyStopping(settings.patience)

    def run(
        self, train: Labelled, validation: Labelled, inputs: GraphInputs, learner: Any, progress: Progress = SILENT
    ) -> None:
        """Train until the accuracy on ``validation`` has not improved for ``patience`` epochs; keep the best weights.

        ``learner`` owns this loop and the random generator of dropout, and is the object of checkpoints.
        """
        self.run_on(*self._repeated(train, inputs), *self._repeated(validation, inputs), learner, progress)

    def run_on(
        self, needed: Any, train: "Places", shown: Any, validation: "Places", learner: Any, progress: Progress
    ) -> None:
        """Train on encoder inputs: ``needed`` for train nodes, and ``shown`` for validation nodes."""
        total = self.settings.epochs
        stop = self.stopping.exhausted or self.epoch >= total
        while not stop:
            start = time.perf_counter()
            value = check_finite(self._epoch(needed, train, learner.generator), self.stage, self.epoch)
            accuracy = self._accuracy(shown, validation)
            stop = self.stopping.check(accuracy, self.epoch, self.network) or self.epoch >= total
            self.seconds += time.perf_counter() - start
            progress.step(self.stage, self.epoch, self.epoch if stop else total, loss=value, score=accuracy)
            progress.checkpoint(learner)
        self.network.load_state_dict(self.stopping.weights)

    def run_base(self, base: BaseSession, inputs: GraphInputs, learner: Any, progress: Progress) -> float:
        """Train on the base classes alone, and return the seconds it took."""
        self.run(*base_part(base), inputs, learner, progress)
        return self.seconds

    def run_epochs(self, train: Labelled, epochs: int, inputs: GraphInputs, generator: torch.Generator) -> None:
        """Train for a number of epochs without validation."""
        needed, places = self._repeated(train, inputs)
        for _ in range(epochs):
            check_finite(self._epoch(needed, places, generator), self.stage, self.epoch)

    def _repeated(self, labelled: Labelled, inputs: GraphInputs) -> tuple[Any, "Places"]:
        """Prepare the encoder inputs of some labelled nodes for all steps, and return the nodes' rows in them."""
        needed, rows = self.encoder.repeated_rows(inputs, inputs.visible.rows(labelled[0]))
        return needed, Places(rows, tensor_of(labelled[1], inputs.device))

    def _epoch(self, needed: Any, train: "Places", generator: torch.Generator) -> torch.Tensor:
        """Take the steps of an epoch, and return the loss of the last one."""
        for _ in range(self.settings.steps_per_epoch):
            loss = take_step(self.optimiser, lambda: self._loss(needed, train, generator))
        self.epoch += 1
        return loss

    def _loss(self, needed: Any, train: "Places", generator: torch.Generator) -> torch.Tensor:
        return self.loss(self.head(self.encoder(needed, generator)[train.rows]), train.labels)

    @torch.no_grad()
    def _accuracy(self, needed: Any, validation: "Places") -> float:
        right = self.head(self.encoder(needed)[validation.rows]).argmax(dim=1) == validation.labels
        return accuracy_of(right, validation.labels, balanced=self.balanced)


class Places(NamedTuple):
    """Labelled nodes on the device: an index of their rows in the encoder's output, and their (n,) class columns."""

    rows: Any
    labels: torch.Tensor

    @classmethod
    def of(cls, labelled: Labelled, inputs: GraphInputs) -> Self:
        rows = torch.from_numpy(inputs.visible.rows(labelled[0])).to(inputs.device)
        return cls(rows, tensor_of(labelled[1], inputs.device))


def accuracy_of(right: torch.Tensor, labels: torch.Tensor, *, balanced: bool) -> float:
    """Compute the fraction of correct nodes, or the mean over classes of this fraction if ``balanced``."""
    if not balanced:
        return float(right.to(torch.float64).mean())
    counts = torch.bincount(labels)
    recalls = torch.bincount(labels, weights=right.to(torch.float64))[counts > 0] / counts[counts > 0]
    return float(recalls.mean())


def class_balanced(loss: HeadLoss) -> HeadLoss:
    """Turn a loss per node into a mean loss with equal class weights."""
    return lambda logits, labels: balanced_mean(loss(logits, labels), labels)


def balanced_mean(losses: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Average the loss of nodes within each class, and then over classes."""
    counts = torch.bincount(labels)
    return (losses / counts[labels]).sum() / (counts > 0).sum()


def base_part(base: BaseSession) -> tuple[Labelled, Labelled]:
    """Return the train and validation nodes of the base classes."""
    both, count = session_zero(base), len(base.base_classes)
    return select_labelled(both[0], both[0][1] < count), select_labelled(both[1], both[1][1] < count)


def session_zero(base: BaseSession) -> tuple[Labelled, Labelled]:
    """Return the train and validation nodes of all classes of session 0."""
    return (base.train, base.train_labels), (base.validation, base.validation_labels)


def cross_entropies(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Compute the (n,) losses −log softmax(logits)[label]."""
    return nn.functional.cross_entropy(logits, labels, reduction="none")


class HeadNetwork(nn.Module):
    """An encoder and a head over all classes."""

    def __init__(self, encoder: Encoder, head: Linear) -> None:
        super().__init__()
        self.encoder, self.head = encoder, head

    def forward(self, needed: Any, generator: torch.Generator | None = None) -> torch.Tensor:
        """Compute (r, classes) logits."""
        return self.head(self.encoder(needed, generator))

    def embed(self, inputs: GraphInputs, rows: np.ndarray | None = None) -> torch.Tensor:
        """Compute the (r, h) embeddings of some rows or of all."""
        return self.encoder(self.encoder.rows(inputs, rows))


def head_training(
    encoder: Encoder, head: Linear, settings: SupervisedSettings, *, stage: str, node_losses: HeadLoss = cross_entropies
) -> SupervisedTraining:
    """Set up training of encoder and head with equal class weights, stopped by the validation nodes.

    ``node_losses`` computes the loss of each node.
    """
    return SupervisedTraining(encoder, head, settings, stage=stage, loss=class_balanced(node_losses), balanced=True)


class OwnEncoder(EncoderStore):
    """An encoder store that returns the same encoder for every request."""

    def __init__(self, weights: Tensors, generator: torch.Generator) -> None:
        self.record = encoder_record(weights, generator, 0.0)

    def get(self, key: dict[str, Any], compute: Callable[[], Tensors]) -> Tensors:  # noqa: ARG002
        return self.record


def encoder_record(weights: Tensors, generator: torch.Generator, seconds: float) -> Tensors:
    """Make the record of an encoder store: weights, the generator's state after training, and seconds of training."""
    return {
        **with_prefix("encoder", weights),
        "generator": generator.get_state(),
        "seconds": torch.tensor(seconds, dtype=torch.float64),
    }


def encoder_key(base: BaseSession, learner: Any) -> dict[str, Any]:
    """Return everything that a pre-trained encoder depends on besides the visible graph and its features."""
    nodes = hashlib.sha256(b"".join(array.tobytes() for labelled in base_part(base) for array in labelled))
    settings = learner.settings_as_json()
    own = {"seed": learner.seed, "device": learner.device.type, "nodes": nodes.hexdigest()}
    return {name: settings[name] for name in ENCODER_SETTINGS} | own | learner._encoder_options(base)


def pretrain(learner: Any, base: BaseSession, inputs: GraphInputs, progress: Progress, encoders: EncoderStore) -> None:
    """Load the encoder's weights from the store, or train the encoder if the store does not have it."""
    encoder, learner.pretraining_reused_ = learner.pretraining.encoder, True

    def compute() -> Tensors:
        learner.pretraining_reused_ = False
        seconds = learner._run_pretraining(base, inputs, progress)
        return encoder_record(copy_weights(encoder), learner.generator, seconds)

    record = encoders.get(encoder_key(base, learner), compute)
    encoder.load_state_dict(without_prefix("encoder", record))
    learner.generator.set_state(record["generator"])
    learner.pretraining_seconds_ = float(record["seconds"])
