"""Heads on an embedding, and how they grow by the classes of a session."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from graphfcl.errors import InputError
from graphfcl.methods.settings import CheckedSettings
from graphfcl.methods.shared.parts import Part
from graphfcl.methods.shared.prototype_network import class_means
from graphfcl.nn import Linear


def grown(head: Linear, embeddings: torch.Tensor, labels: torch.Tensor, count: int, centre: torch.Tensor) -> Linear:
    """The head with columns for ``count`` classes; the old ones are unchanged.

    A new class starts at the mean p_k of its supports as seen from the centre c of all nodes of session 0: weights
    w_k = ℓ (p_k − c)/‖p_k − c‖ with ℓ the mean length of the weights there are, and a bias that makes its logit at the
    centre the mean of the others there. Among trained classes it is then neither louder nor fainter than they are.

    embeddings: (s, h) of the supports, labels: (s,) their columns, centre: (h,).
    """
    old = head.weight.shape[1]
    if count == old:
        return head
    with torch.no_grad():
        means = class_means(embeddings, labels, count)[old:]
        columns = unit(means - centre) * head.weight.norm(dim=0).mean()
        biases = head(centre[None]).mean() - columns @ centre
        return head_of(torch.cat([head.weight, columns.T], dim=1), torch.cat([head.bias, biases]))


def head_of(weight: torch.Tensor, bias: torch.Tensor) -> Linear:
    """A head with these weights (h, classes) and biases (classes,)."""
    head = Linear(weight.shape[0], weight.shape[1], torch.Generator()).to(weight.device)
    head.weight, head.bias = nn.Parameter(weight.detach().clone()), nn.Parameter(bias.detach().clone())
    return head


class CosineHead(nn.Module):
    """temperature · cos(z, w_k): weights (h, classes) drawn from a generator, no bias."""

    def __init__(self, size: int, classes: int, temperature: float, generator: torch.Generator) -> None:
        super().__init__()
        self.weight = nn.Parameter(Linear(size, classes, generator).weight.detach().clone())
        self.temperature = temperature

    def forward(self, embeddings: torch.Tensor) -> torch.Tensor:
        return self.temperature * unit(embeddings) @ unit(self.weight.T).T


def unit(vectors: torch.Tensor) -> torch.Tensor:
    """Each row divided by its length; a zero row stays zero."""
    return nn.functional.normalize(vectors, dim=-1)


@dataclass(frozen=True)
class AdjustmentSettings(CheckedSettings):
    """Logits that are adjusted by the numbers of labels."""

    adjustments: tuple[float, ...] = (0.0,)
    """Candidates for τ of the logit adjustment τ log(n_c/Σn); validation sessions choose."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.adjustments:
            raise InputError("adjustments is empty: give at least one value, 0 to adjust nothing.")


class LogitAdjustment(Part):
    """How many labels of each class were learned, and the τ that validation sessions chose.

    settings: those of a method; without :class:`AdjustmentSettings` logits stay as they are.
    candidates: values of τ to choose from; the first wins a draw. With one of them there is no choice.
    """

    name = "logit_adjustment"
    saved = ("strength", "counts")

    def __init__(self, settings: Any = None) -> None:
        self.candidates = settings.adjustments if isinstance(settings, AdjustmentSettings) else (0.0,)
        self.strength = self.candidates[0]
        self.counts = np.zeros(0, dtype=np.int64)

    def add(self, labels: np.ndarray, class_count: int) -> None:
        """More labels were learned."""
        counts = np.bincount(labels, minlength=class_count)
        counts[: self.counts.size] += self.counts
        self.counts = counts

    def apply(self, logits: torch.Tensor, strength: float | None = None) -> torch.Tensor:
        """(n, C) adjusted by the τ that was chosen, or by another."""
        tau = self.strength if strength is None else strength
        if tau == 0:
            return logits
        counts = torch.from_numpy(self.counts).to(logits)[: logits.shape[1]].clamp(min=1)
        return logits + tau * torch.log(counts / counts.sum())

    def chosen(self) -> dict[str, Any]:
        return {"logit_adjustment": self.strength} if len(self.candidates) > 1 else {}

    def stored(self) -> dict[str, int]:
        return {"embeddings": self.counts.nbytes}
