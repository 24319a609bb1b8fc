"""Fine-tuning: the simplest thing that can be done.

A linear head over all classes. At a session it grows by the new classes and encoder and head take a few steps of
cross-entropy on the supports alone, as many as validation sessions chose, possibly none. Nothing of earlier sessions is
kept but the weights, the number of labels of each class, and the mean embedding of session 0, from which new columns
start. Labels of known classes act through these steps and through the numbers of labels alone: where no steps were
chosen, a session without a new class leaves the weights as they are, on every track.
"""

from collections.abc import Callable

import torch

from graphfcl.methods.bases.growing_head_learner import GrowingHeadLearner, LogitHeadSettings
from graphfcl.methods.learner import Labelled
from graphfcl.methods.shared.supervised_training import cross_entropies
from graphfcl.nn import tensor_of


class Finetune(GrowingHeadLearner):
    """Fine-tuning; what it does and keeps in the module docstring."""

    title = "a growing linear head, fine-tuned on supports alone"
    reference = "baseline"
    settings_type = LogitHeadSettings

    def _session_loss(self, before: torch.Tensor, supports: Labelled) -> Callable[[torch.Tensor], torch.Tensor]:  # noqa: ARG002
        labels = tensor_of(supports[1], self.device)
        return lambda logits: cross_entropies(logits, labels).mean()
