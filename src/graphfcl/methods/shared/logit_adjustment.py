"""Logit adjustment: classes with many labels against classes with few.

Menon et al.: Long-tail learning via logit adjustment. ICLR 2021. A head trained on many labels of some classes and a
handful of others may favour either. With n_c labels learned of class c::

    score_c = logit_c + τ log(n_c / Σ_k n_k)

τ = 0 leaves the logits as they are; τ > 0 favours classes with many labels, τ < 0 those with few.
"""

from typing import Any

import numpy as np
import torch

from graphfcl.methods.learner import Tensors
from graphfcl.methods.shared.parts import Part


class LogitAdjustment(Part):
    """How many labels of each class were learned, and the τ that validation sessions chose.

    candidates: values of τ to choose from; the first wins a draw. With one of them there is no choice.
    """

    def __init__(self, candidates: tuple[float, ...]) -> None:
        self.candidates = candidates
        self.strength = candidates[0]
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

    def values(self) -> dict[str, Any]:
        return {"logit_adjustment": self.strength}

    def tensors(self) -> Tensors:
        return {"learned.counts": torch.from_numpy(self.counts)}

    def load(self, values: dict[str, Any], tensors: Tensors, device: torch.device) -> None:  # noqa: ARG002
        self.strength = values["logit_adjustment"]
        self.counts = tensors["learned.counts"].numpy() if "learned.counts" in tensors else self.counts
