"""Fine-tuning: the simplest baseline.

The method has a linear head over all classes. A session adds columns for the new classes, and takes a few cross-entropy
steps of encoder and head on its supports. Validation sessions choose the number of steps, possibly zero. Between
sessions it only keeps the weights, the number of labels of each class, and the mean embedding of session 0, from which
new columns are initialised. Labels of known classes have an effect only through the steps and the label counts: with
zero steps, a session without new classes does not change the weights.
"""

from collections.abc import Callable

import torch

from graphfcl.methods.bases.growing_head_learner import GrowingHeadLearner, LogitHeadSettings
from graphfcl.methods.shared.supervised_training import cross_entropies
from graphfcl.methods.state import Labelled
from graphfcl.nn import tensor_of


class Finetune(GrowingHeadLearner):
    """Fine-tuning of a growing head; the module docstring describes the method."""

    title = "a growing linear head, fine-tuned on supports alone"
    reference = "baseline"
    settings_type = LogitHeadSettings

    def _session_loss(self, before: torch.Tensor, supports: Labelled) -> Callable[[torch.Tensor], torch.Tensor]:  # noqa: ARG002
        labels = tensor_of(supports[1], self.device)
        return lambda logits: cross_entropies(logits, labels).mean()
