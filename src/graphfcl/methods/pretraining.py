"""Pre-training of the encoder on the base classes, shared by all methods (Section 4.1 of the paper).

Ordinary supervised node classification: a linear head on the embedding, cross-entropy on base/train, until the accuracy
on base/validation has not improved for ``patience`` epochs. An epoch is ten full-batch steps: with one step an epoch,
patience 10 stops on a plateau of ten steps, which on `cora-topics` is at step 15 with 15 % accuracy instead of 80 %.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from graphfcl.methods.learner import SILENT, Learner, Progress
from graphfcl.methods.training import (
    EarlyStopping,
    adam_tensors,
    check_finite,
    load_adam,
    make_adam,
    require_range,
    with_prefix,
    without_prefix,
)
from graphfcl.nn import GraphInputs
from graphfcl.stream import BaseSession


@dataclass(frozen=True)
class PretrainingSettings:
    epochs: int = 100
    steps_per_epoch: int = 10
    patience: int = 10
    learning_rate: float = 0.005
    weight_decay: float = 0.0005

    def __post_init__(self) -> None:
        for name in ("epochs", "steps_per_epoch", "patience"):
            require_range(f"pretraining.{name}", getattr(self, name), least=1)
        require_range("pretraining.learning_rate", self.learning_rate, above=0)
        require_range("pretraining.weight_decay", self.weight_decay, least=0)


class Pretraining:
    """The loop and its state; :meth:`run` goes on from wherever the state stands."""

    def __init__(self, encoder: nn.Module, head: nn.Module, settings: PretrainingSettings) -> None:
        self.network = nn.ModuleDict({"encoder": encoder, "head": head})
        self.settings = settings
        self.optimiser = make_adam(self.network.parameters(), settings.learning_rate, settings.weight_decay)
        self.stopping = EarlyStopping(settings.patience)
        self.epoch = 0

    def run(
        self,
        base: BaseSession,
        inputs: GraphInputs,
        generator: torch.Generator,
        progress: Progress = SILENT,
        learner: Learner | None = None,
    ) -> None:
        """Train, then put the best weights back. Checkpoints are taken of ``learner``, which holds this loop."""
        train, train_labels = _base_part(base, base.train, base.train_labels, inputs)
        validation, validation_labels = _base_part(base, base.validation, base.validation_labels, inputs)
        encoder, head = self.network["encoder"], self.network["head"]
        rows = encoder.rows(inputs, None)  # type: ignore[operator]
        total = self.settings.epochs
        stop = self.stopping.exhausted or self.epoch >= total
        while not stop:
            for _ in range(self.settings.steps_per_epoch):
                self.optimiser.zero_grad(set_to_none=True)
                loss = nn.functional.cross_entropy(head(encoder(rows, generator)[train]), train_labels)
                loss.backward()
                self.optimiser.step()
            self.epoch += 1
            with torch.no_grad():
                right = head(encoder(rows)[validation]).argmax(dim=1) == validation_labels
                accuracy = float(right.to(torch.float64).mean())
            value = check_finite(loss, "pre-training", self.epoch)
            stop = self.stopping.check(accuracy, self.epoch, self.network) or self.epoch >= total
            progress.step("pre-training", self.epoch, total, loss=value, score=accuracy)
            if learner is not None:
                progress.checkpoint(learner)
        self.network.load_state_dict(self.stopping.weights)

    def tensors(self) -> dict[str, torch.Tensor]:
        """State of the loop, with :meth:`values`; the encoder's own weights are its owner's."""
        return {
            **with_prefix("pretraining.best", self.stopping.weights),
            **with_prefix("pretraining.head", dict(self.network["head"].state_dict())),
            **adam_tensors(self.optimiser, "pretraining.optimiser"),
        }

    def values(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "stopping": self.stopping.values()}

    def load(self, values: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
        self.epoch = values["epoch"]
        self.stopping.load(values["stopping"], without_prefix("pretraining.best", tensors))
        self.network["head"].load_state_dict(without_prefix("pretraining.head", tensors))
        load_adam(self.optimiser, tensors, "pretraining.optimiser")


def _base_part(
    base: BaseSession, nodes: np.ndarray, labels: np.ndarray, inputs: GraphInputs
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows and labels of the nodes of base classes."""
    of_base = labels < len(base.base_classes)
    rows = torch.from_numpy(inputs.visible.rows(nodes[of_base]))
    return rows.to(inputs.device), torch.from_numpy(labels[of_base]).to(inputs.device)
