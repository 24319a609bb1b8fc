"""Ordinary supervised node classification: full-batch steps on an encoder and a head, stopped by validation nodes.

Pre-training on the base classes (Section 4.1 of the paper) is one use, shared by all methods; session 0 of methods with
a head over all classes is another. An epoch is ten full-batch steps: with one step per epoch, patience 10 stops on a
plateau of ten steps, which on `cora-topics` is at step 15 with 15 % accuracy instead of 80 %.
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

from graphfcl.methods.learner import SILENT, EncoderStore, Labelled, Progress, Tensors, select_labelled
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
from graphfcl.nn import Encoder, GraphInputs, Linear, tensor_of
from graphfcl.stream.sessions import BaseSession

HeadLoss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
ENCODER_SETTINGS = ("encoder", "hidden", "size", "last_relu", "dropout", "pretraining")  # that an encoder depends on


@dataclass(frozen=True)
class SupervisedSettings(CheckedSettings):
    """Supervised training that validation nodes stop."""

    prefix = "pretraining."

    epochs: Count = 100
    """Epochs at most."""
    steps_per_epoch: Count = 10
    """Full-batch steps between two validations."""
    patience: Count = 10
    """Epochs in a row without a better validation accuracy that end the training."""
    learning_rate: Positive = 0.005
    """Adam's rate."""
    weight_decay: Weight = 0.0005
    """Adam's weight decay."""


class TrainingLoop(Part):
    """Optimiser steps on an encoder and a head; goes on from wherever its state stands.

    stage: what messages call it. name: of its values in a state, which does not have the weights of the encoder: they
    are the learner's.
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
        """Made for the first step: a learner that is only loaded need not wait for the import behind it."""
        return make_adam(self.network.parameters(), self.settings.learning_rate, self.settings.weight_decay)

    @property
    def head_weights(self) -> Tensors:
        return copy_weights(self.head)

    @head_weights.setter
    def head_weights(self, weights: Tensors) -> None:
        self.head.load_state_dict(weights)


class SupervisedTraining(TrainingLoop):
    """Steps on labelled nodes until validation nodes see no gain.

    loss: of (n, classes) logits and (n,) labels. balanced: validation accuracy is the mean recall over classes.
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
        """Train until the accuracy on ``validation`` has not improved for ``patience`` epochs; the best weights stay.

        learner: holds this loop, and the generator that dropout is drawn from. Checkpoints are taken of it.
        """
        self.run_on(*self._repeated(train, inputs), *self._repeated(validation, inputs), learner, progress)

    def run_on(
        self, needed: Any, train: "Places", shown: Any, validation: "Places", learner: Any, progress: Progress
    ) -> None:
        """The same on what the encoder needs: ``needed`` of train nodes, ``shown`` of validation nodes."""
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
        """Train on the base classes alone; the seconds it took."""
        self.run(*base_part(base), inputs, learner, progress)
        return self.seconds

    def run_epochs(self, train: Labelled, epochs: int, inputs: GraphInputs, generator: torch.Generator) -> None:
        """So many epochs, without validation."""
        needed, places = self._repeated(train, inputs)
        for _ in range(epochs):
            check_finite(self._epoch(needed, places, generator), self.stage, self.epoch)

    def _repeated(self, labelled: Labelled, inputs: GraphInputs) -> tuple[Any, "Places"]:
        """What the encoder needs for some labelled nodes in every step, and where they are."""
        needed, rows = self.encoder.repeated_rows(inputs, inputs.visible.rows(labelled[0]))
        return needed, Places(rows, tensor_of(labelled[1], inputs.device))

    def _epoch(self, needed: Any, train: "Places", generator: torch.Generator) -> torch.Tensor:
        """Some steps; the loss of the last."""
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
    """Labelled nodes on the device: their rows among what an encoder answers, an index, and (n,) their columns."""

    rows: Any
    labels: torch.Tensor

    @classmethod
    def of(cls, labelled: Labelled, inputs: GraphInputs) -> Self:
        rows = torch.from_numpy(inputs.visible.rows(labelled[0])).to(inputs.device)
        return cls(rows, tensor_of(labelled[1], inputs.device))


def accuracy_of(right: torch.Tensor, labels: torch.Tensor, *, balanced: bool) -> float:
    """The share of (n,) nodes that are right; balanced: the mean of the shares of the classes."""
    if not balanced:
        return float(right.to(torch.float64).mean())
    counts = torch.bincount(labels)
    recalls = torch.bincount(labels, weights=right.to(torch.float64))[counts > 0] / counts[counts > 0]
    return float(recalls.mean())


def class_balanced(loss: HeadLoss) -> HeadLoss:
    """The loss, every class counting the same; ``loss`` must answer one value for each node."""
    return lambda logits, labels: balanced_mean(loss(logits, labels), labels)


def balanced_mean(losses: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The mean over classes of the mean loss of their nodes."""
    counts = torch.bincount(labels)
    return (losses / counts[labels]).sum() / (counts > 0).sum()


def base_part(base: BaseSession) -> tuple[Labelled, Labelled]:
    """Train and validation nodes of the base classes alone."""
    both, count = session_zero(base), len(base.base_classes)
    return select_labelled(both[0], both[0][1] < count), select_labelled(both[1], both[1][1] < count)


def session_zero(base: BaseSession) -> tuple[Labelled, Labelled]:
    """Train and validation nodes of all classes of session 0."""
    return (base.train, base.train_labels), (base.validation, base.validation_labels)


def cross_entropies(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """(n,) −log softmax(logits)[label]."""
    return nn.functional.cross_entropy(logits, labels, reduction="none")


class HeadNetwork(nn.Module):
    """An encoder and a head over all classes."""

    def __init__(self, encoder: Encoder, head: Linear) -> None:
        super().__init__()
        self.encoder, self.head = encoder, head

    def forward(self, needed: Any, generator: torch.Generator | None = None) -> torch.Tensor:
        """(r, classes) logits."""
        return self.head(self.encoder(needed, generator))

    def embed(self, inputs: GraphInputs, rows: np.ndarray | None = None) -> torch.Tensor:
        """(r, h) embeddings of some rows or of all."""
        return self.encoder(self.encoder.rows(inputs, rows))


def head_training(
    encoder: Encoder, head: Linear, settings: SupervisedSettings, *, stage: str, node_losses: HeadLoss = cross_entropies
) -> SupervisedTraining:
    """Encoder and head on train nodes, every class counting the same, stopped by the validation nodes.

    node_losses: the loss of each node.
    """
    return SupervisedTraining(encoder, head, settings, stage=stage, loss=class_balanced(node_losses), balanced=True)


class OwnEncoder(EncoderStore):
    """A store that has one encoder, whatever is requested."""

    def __init__(self, weights: Tensors, generator: torch.Generator) -> None:
        self.record = encoder_record(weights, generator, 0.0)

    def get(self, key: dict[str, Any], compute: Callable[[], Tensors]) -> Tensors:  # noqa: ARG002
        return self.record


def encoder_record(weights: Tensors, generator: torch.Generator, seconds: float) -> Tensors:
    """What an encoder store keeps: the weights, where the generator stands after training, and the seconds it took."""
    return {
        **with_prefix("encoder", weights),
        "generator": generator.get_state(),
        "seconds": torch.tensor(seconds, dtype=torch.float64),
    }


def encoder_key(base: BaseSession, learner: Any) -> dict[str, Any]:
    """What a pre-trained encoder depends on besides the graph."""
    nodes = hashlib.sha256(b"".join(array.tobytes() for labelled in base_part(base) for array in labelled))
    settings = learner.settings_as_json()
    own = {"seed": learner.seed, "device": learner.device.type, "nodes": nodes.hexdigest()}
    return {name: settings[name] for name in ENCODER_SETTINGS} | own | learner._encoder_options(base)


def pretrain(learner: Any, base: BaseSession, inputs: GraphInputs, progress: Progress, encoders: EncoderStore) -> None:
    """Give the encoder of a learner its weights: those of the store, or trained here."""
    encoder, learner.pretraining_reused_ = learner.pretraining.encoder, True

    def compute() -> Tensors:
        learner.pretraining_reused_ = False
        seconds = learner._run_pretraining(base, inputs, progress)
        return encoder_record(copy_weights(encoder), learner.generator, seconds)

    record = encoders.get(encoder_key(base, learner), compute)
    encoder.load_state_dict(without_prefix("encoder", record))
    learner.generator.set_state(record["generator"])
    learner.pretraining_seconds_ = float(record["seconds"])
