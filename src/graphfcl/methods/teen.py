"""TEEN: prototypes of new classes, calibrated by similar classes of session 0; nothing is trained.

Qi-Wei Wang, Da-Wei Zhou, Yi-Kai Zhang, De-Chuan Zhan, Han-Jia Ye: Few-Shot Class-Incremental Learning via Training-Free
Prototype Calibration. NeurIPS 2023.

The mean of a few supports is biased towards similar classes of session 0, whose means are known well. Let p̂ be the
mean vector of a class at unit length, b a class of session 0, and c a later class::

    w_cb = softmax_b( τ p̂_c·p̂_b ),   p_c = (1 − α) p̂_c + α unit( Σ_b w_cb p̂_b ),   score_c(v) = cos( z(v), p_c )

Only classes of session 0 are used for calibration. Validation sessions choose α.

**Differences from the paper.**

- z(v) are propagated features without training by default. ``features=encoder`` uses the encoder that all methods
  share, which is trained with a linear head instead of the paper's scaled cosine.
- The paper fixes α per dataset (0.1 or 0.5). Here it is chosen, with labels of session 0 alone.
- Base and pseudo-novel classes calibrate, that is, all classes with many labels.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch

from graphfcl.methods.bases.closed_form_learner import Choice, ClosedFormLearner, ClosedFormSettings
from graphfcl.methods.blocks import NodeTables
from graphfcl.methods.settings import Positive, Share
from graphfcl.methods.shared.class_statistics import ClassSums, calibrated_prototypes, similarity_weights
from graphfcl.methods.state import Tensors


@dataclass(frozen=True)
class TeenSettings(ClosedFormSettings):
    """Settings of TEEN. Symbols in brackets refer to the formulas in the module docstring."""

    temperature: Positive = 16.0
    """Factor of the cosines between classes in the softmax (τ)."""
    shares: tuple[Share, ...] = (0.1, 0.0, 0.3, 0.5)
    """Candidates for the share of similar classes in a new prototype (α); validation sessions choose one."""
    share: Share | None = None
    """Fixed share of similar classes (α); none lets validation choose."""


class Teen(ClosedFormLearner):
    """TEEN; the module docstring states the formulas and the differences from the paper."""

    title = "prototypes calibrated by similar classes of session 0; training-free"
    reference = "Wang et al.: Few-Shot Class-Incremental Learning via Training-Free Prototype Calibration. NeurIPS 2023"
    settings_type = TeenSettings
    settings: TeenSettings
    choices: ClassVar[dict[str, str]] = {"share": "shares"}

    def _empty(self, size: int) -> ClassSums:
        return ClassSums.empty(size, self.device)

    def _head(self, statistics: ClassSums, inputs: NodeTables, many: int, choice: Choice) -> Tensors:  # noqa: ARG002
        """Compute ``prototypes``, (C, D) p_c at unit length."""
        means = statistics.means()
        weights = similarity_weights(means, many, self.settings.temperature, statistics.counts)
        return {"prototypes": calibrated_prototypes(means, weights, choice["share"]).float()}

    @staticmethod
    def answers(vectors: torch.Tensor, head: Tensors) -> torch.Tensor:
        """Compute (m, C) cosines; vectors and prototypes have unit length."""
        return vectors @ head["prototypes"].T
