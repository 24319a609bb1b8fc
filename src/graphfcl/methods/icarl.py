"""iCaRL: incremental classifier and representation learning.

Sylvestre-Alvise Rebuffi, Alexander Kolesnikov, Georg Sperl, Christoph Lampert: iCaRL: Incremental Classifier and
Representation Learning. CVPR 2017.

- Outputs are sigmoids. Session 0 minimises the binary cross-entropy against one-hot labels, summed over classes.
- A session trains on its supports and on all exemplars. The targets of old classes are the outputs before the session
  (distillation), and the targets of new classes are one-hot.
- Exemplars are selected by herding on embeddings of unit length. There are M in total, M/classes per class, and at
  least one. When classes are added, the exemplars that were selected last are dropped.
- A node gets the class with the nearest mean of exemplars, on embeddings of unit length.

Differences from the paper: as in the paper, the head only serves to train the encoder, but the column of a new class is
initialised with the mean of its supports. Under the track ``isolated``, class means are stored.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from graphfcl.methods.bases.growing_head_learner import GrowingHeadLearner, HeadSettings
from graphfcl.methods.settings import Count
from graphfcl.methods.shared.exemplar_selection import herding
from graphfcl.methods.shared.heads import unit
from graphfcl.methods.shared.parts import OwnAttributes, Part
from graphfcl.methods.shared.prototype_network import class_means, squared_distances
from graphfcl.methods.shared.supervised_training import HeadLoss
from graphfcl.methods.state import Labelled
from graphfcl.nn import GraphInputs


@dataclass(frozen=True)
class ICarlSettings(HeadSettings):
    """Settings of iCaRL."""

    hidden: int = 64
    """Width of the encoder's first layer."""
    size: int = 64
    """Width of an embedding."""
    exemplars: Count = 2000
    """Total number of exemplars (M)."""


def one_hot_losses(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Compute (n,) binary cross-entropies against one-hot labels, summed over classes."""
    targets = torch.zeros_like(logits).scatter(1, labels[:, None], 1.0)
    return nn.functional.binary_cross_entropy_with_logits(logits, targets, reduction="none").sum(dim=1)


def distillation_targets(before: torch.Tensor, labels: torch.Tensor, count: int) -> torch.Tensor:
    """Compute (n, count) targets: sigmoids of the old logits for old classes, one-hot labels for new ones."""
    old = before.shape[1]
    targets = torch.zeros(len(before), count, dtype=before.dtype, device=before.device)
    targets.scatter_(1, labels[:, None], 1.0)
    targets[:, :old] = torch.sigmoid(before)
    return targets


class ICarl(GrowingHeadLearner):
    """iCaRL; the module docstring states the method and the differences from the paper."""

    name = "icarl"
    title = "herded exemplars, distillation, nearest mean of exemplars"
    reference = (
        "Rebuffi, Kolesnikov, Sperl, Lampert: iCaRL: Incremental Classifier and Representation Learning. CVPR 2017"
    )
    settings_type = ICarlSettings
    settings: ICarlSettings

    def __init__(self, settings: Any = None, *, seed: int = 0, device: str | torch.device = "cpu") -> None:
        super().__init__(settings, seed=seed, device=device)
        self.means: torch.Tensor | None = None  # (classes, h) stored under ``isolated``

    def parts(self) -> tuple[Part, ...]:
        return (*super().parts(), OwnAttributes(self, "means", stored_as="embeddings"))

    def _node_losses(self) -> HeadLoss:
        return one_hot_losses

    def _session_loss(self, before: torch.Tensor, supports: Labelled) -> Callable[[torch.Tensor], torch.Tensor]:
        labels = torch.from_numpy(np.concatenate([supports[1], self.memory.labels])).to(self.device)
        targets = distillation_targets(before, labels, len(self.classes_))

        def loss(logits: torch.Tensor) -> torch.Tensor:
            each = nn.functional.binary_cross_entropy_with_logits(logits, targets, reduction="none")
            return each.sum(dim=1).mean()

        return loss

    def _remember(self, labelled: Labelled, inputs: GraphInputs) -> None:
        nodes, labels = labelled
        each = max(1, self.settings.exemplars // len(self.classes_))
        chosen = herding(unit(self._embeddings_of(inputs, nodes)).cpu().numpy(), labels, each)
        self._keep(nodes[chosen], labels[chosen], inputs)
        self.memory.keep_first(each)
        if self.track == "isolated":
            self._keep_means(inputs, np.unique(labels))

    def _exemplar_means(self, inputs: GraphInputs) -> torch.Tensor:
        """Compute the (classes, h) means of exemplars at unit length."""
        labels, count = torch.from_numpy(self.memory.labels).to(self.device), len(self.classes_)
        points = unit(self._embeddings_of(inputs, self.memory.nodes))
        return unit(class_means(points, labels, count))

    def _keep_means(self, inputs: GraphInputs, columns: np.ndarray) -> None:
        """Store the means of this session's classes while their edges are visible; other means stay."""
        fresh = self._exemplar_means(inputs)
        if self.means is None:
            self.means = fresh
            return
        here = torch.from_numpy(columns).to(self.device)
        means = torch.cat([self.means, fresh[len(self.means) :]])
        means[here] = fresh[here]
        self.means = means

    def _score_all(self, inputs: GraphInputs) -> torch.Tensor:
        points = unit(self._embeddings(inputs))
        return -squared_distances(points, self._exemplar_means(inputs) if self.means is None else self.means)
