"""A linear head over all classes of session 0, trained with the encoder on all of their train nodes."""

from typing import Any

import numpy as np
import torch
from torch import nn

from graphfcl.methods.shared.supervised_training import HeadLoss, SupervisedSettings, SupervisedTraining, class_balanced
from graphfcl.nn import Encoder, GraphInputs, Linear


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
