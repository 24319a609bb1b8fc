"""TEEN: prototypes of new classes, calibrated by similar classes of session 0; nothing is trained.

Qi-Wei Wang, Da-Wei Zhou, Yi-Kai Zhang, De-Chuan Zhan, Han-Jia Ye: Few-Shot Class-Incremental Learning via Training-Free
Prototype Calibration. NeurIPS 2023.

A few supports miss the mean of their class, and miss it towards classes of session 0, whose means are known well. With
p̂ the mean vector of a class at unit length, b a class of session 0 and c a later one::

    w_cb = softmax_b( τ p̂_c·p̂_b ),   p_c = (1 − α) p̂_c + α unit( Σ_b w_cb p̂_b ),   score_c(v) = cos( z(v), p_c )

Only classes of session 0 calibrate: later ones are never lent from. α is chosen by validation sessions of the run.

**Departures.**

- z(v) are propagated features without training by default; ``features=encoder`` takes the encoder that all methods
  share, which is trained with a linear head and not with the paper's scaled cosine.
- The paper fixes α by dataset (0.1 or 0.5). It is chosen here, on labels of session 0 alone.
- The classes of session 0 that calibrate are base and pseudo-novel ones: all that have many labels.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch

from graphfcl.methods.bases.closed_form_learner import Choice, ClosedFormLearner, ClosedFormSettings
from graphfcl.methods.blocks import NodeTables
from graphfcl.methods.learner import Tensors
from graphfcl.methods.settings import Positive, Share
from graphfcl.methods.shared.class_statistics import ClassSums, calibrated_prototypes, similarity_weights


@dataclass(frozen=True)
class TeenSettings(ClosedFormSettings):
    """The names of formulas are those of the module docstring."""

    temperature: Positive = 16.0
    """Factor of the cosines between classes (τ)."""
    shares: tuple[Share, ...] = (0.1, 0.0, 0.3, 0.5)
    """Candidates for what similar classes lend to a new one (α); validation sessions choose."""
    share: Share | None = None
    """What similar classes lend (α), instead of choosing it."""


class Teen(ClosedFormLearner):
    """TEEN; formulas and departures in the module docstring."""

    title = "prototypes calibrated by similar classes of session 0; training-free"
    reference = "Wang et al.: Few-Shot Class-Incremental Learning via Training-Free Prototype Calibration. NeurIPS 2023"
    settings_type = TeenSettings
    settings: TeenSettings
    choices: ClassVar[dict[str, str]] = {"share": "shares"}

    def _empty(self, size: int) -> ClassSums:
        return ClassSums.empty(size, self.device)

    def _head(self, statistics: ClassSums, inputs: NodeTables, many: int, choice: Choice) -> Tensors:  # noqa: ARG002
        """prototypes: (C, D) p_c at unit length."""
        means = statistics.means()
        weights = similarity_weights(means, many, self.settings.temperature, statistics.counts)
        return {"prototypes": calibrated_prototypes(means, weights, choice["share"]).float()}

    @staticmethod
    def answers(vectors: torch.Tensor, head: Tensors) -> torch.Tensor:
        """(m, C) cosines: vectors and prototypes have unit length."""
        return vectors @ head["prototypes"].T
