"""Classification heads on embeddings, and their extension by new classes."""

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
    """Add columns to a head so that it has ``count`` classes; existing columns are unchanged.

    The weights of a new class point from the centre c of all nodes of session 0 to the mean p_k of its supports:
    w_k = ℓ (p_k − c)/‖p_k − c‖, where ℓ is the mean length of the existing weights. Its bias is chosen so that its
    logit at the centre is the mean logit of the existing classes. New logits thus have the same scale as trained ones.

    Args:
        head: The existing head.
        embeddings: (s, h) embeddings of the supports.
        labels: (s,) class columns of the supports.
        count: Number of classes of the new head.
        centre: (h,) mean embedding of session 0.
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
    """Make a head from (h, classes) weights and (classes,) biases."""
    head = Linear(weight.shape[0], weight.shape[1], torch.Generator()).to(weight.device)
    head.weight, head.bias = nn.Parameter(weight.detach().clone()), nn.Parameter(bias.detach().clone())
    return head


class CosineHead(nn.Module):
    """A cosine classifier, logits temperature · cos(z, w_k), with random (h, classes) initial weights and no bias."""

    def __init__(self, size: int, classes: int, temperature: float, generator: torch.Generator) -> None:
        super().__init__()
        self.weight = nn.Parameter(Linear(size, classes, generator).weight.detach().clone())
        self.temperature = temperature

    def forward(self, embeddings: torch.Tensor) -> torch.Tensor:
        return self.temperature * unit(embeddings) @ unit(self.weight.T).T


def unit(vectors: torch.Tensor) -> torch.Tensor:
    """Scale rows to unit length; a zero row stays zero."""
    return nn.functional.normalize(vectors, dim=-1)


@dataclass(frozen=True)
class AdjustmentSettings(CheckedSettings):
    """Settings of the logit adjustment by label counts."""

    adjustments: tuple[float, ...] = (0.0,)
    """Candidates for the factor τ of the logit adjustment τ log(n_c/Σn); validation sessions choose one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.adjustments:
            raise InputError("adjustments is empty: give at least one value; 0 means no adjustment.")


class LogitAdjustment(Part):
    """The logit adjustment τ log(n_c/Σn) of a learner.

    Args:
        settings: Settings of the method. If they do not include :class:`AdjustmentSettings`, logits are not adjusted.

    Attributes:
        candidates: Values of τ to choose from; the first one wins a tie.
        strength: The chosen τ.
        counts: (C,) number of labels of each class that were learned.
    """

    name = "logit_adjustment"
    saved = ("strength", "counts")

    def __init__(self, settings: Any = None) -> None:
        self.candidates = settings.adjustments if isinstance(settings, AdjustmentSettings) else (0.0,)
        self.strength = self.candidates[0]
        self.counts = np.zeros(0, dtype=np.int64)

    def add(self, labels: np.ndarray, class_count: int) -> None:
        """Count labels that were learned."""
        counts = np.bincount(labels, minlength=class_count)
        counts[: self.counts.size] += self.counts
        self.counts = counts

    def apply(self, logits: torch.Tensor, strength: float | None = None) -> torch.Tensor:
        """Adjust (n, C) logits by the chosen τ, or by ``strength`` if it is given."""
        tau = self.strength if strength is None else strength
        if tau == 0:
            return logits
        counts = torch.from_numpy(self.counts).to(logits)[: logits.shape[1]].clamp(min=1)
        return logits + tau * torch.log(counts / counts.sum())

    def chosen(self) -> dict[str, Any]:
        return {"logit_adjustment": self.strength} if len(self.candidates) > 1 else {}

    def stored(self) -> dict[str, int]:
        return {"embeddings": self.counts.nbytes}
