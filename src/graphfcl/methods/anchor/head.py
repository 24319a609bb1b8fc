"""What session 0 teaches about its own classes beyond their means: a softmax head, which has half of the say.

Classes with hundreds of labels deserve more than a mean. A linear softmax head on x, h(v) = softmax(W x(v)), starts as
the rule of the means, W_c = T μ_c/ℓ_c, and is trained on the train nodes of session 0, every class counting the same,
until its balanced accuracy on the validation nodes falls. It never decides between a class of session 0 and a new one,
of which it knows nothing. With M the classes of session 0 and P what means and neighbours say::

    P'_c = P_M · q_c / Σ_M q,   q_c = P_c^(1−γ) h_c^γ   for c in M,   P_M = Σ_M P;      P'_c = P_c for new classes
"""

import torch
from torch import nn

from graphfcl.methods.learner import Progress
from graphfcl.methods.shared.supervised_training import class_balanced
from graphfcl.methods.shared.trained_head import cross_entropies
from graphfcl.methods.shared.training_state import EarlyStopping, check_finite, make_adam

STEPS_BETWEEN_CHECKS = 5
PATIENCE = 6  # checks in a row that bring nothing better
CHUNK = 16_384  # rows that are turned from 16 into 32 bits at a time

LabelledPoints = tuple[torch.Tensor, torch.Tensor]


class Head(nn.Module):
    """(n, M) logits W x. weight: (M, D) in 32 bits."""

    def __init__(self, start: torch.Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(start.clone())

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        return points @ self.weight.T


def trained_head(
    start: torch.Tensor, train: LabelledPoints, validation: LabelledPoints, steps: int, rate: float, progress: Progress
) -> torch.Tensor:
    """(M, D) W in 16 bits, full-batch from ``start``; the best at a check, the start included.

    train, validation: (n, D) points and (n,) columns.
    """
    head, loss = Head(start), class_balanced(cross_entropies)
    optimiser, stopping = make_adam(head.parameters(), rate, 0.0), EarlyStopping(PATIENCE)
    points, labels = train[0].float(), train[1]
    asked = validation[0].float()
    for step in range(0, steps + 1, STEPS_BETWEEN_CHECKS):
        score = _balanced_accuracy(head, asked, validation[1])
        progress.step("head", step, steps, score=score)
        if stopping.check(score, step, head) or step >= steps:
            break
        with torch.enable_grad():
            for _ in range(min(STEPS_BETWEEN_CHECKS, steps - step)):
                optimiser.zero_grad(set_to_none=True)
                value = loss(head(points), labels)
                value.backward()
                optimiser.step()
        check_finite(value, "head", step)
    return stopping.weights["weight"].to(start.device).half()


@torch.no_grad()
def _balanced_accuracy(head: Head, points: torch.Tensor, labels: torch.Tensor) -> float:
    right = (head(points).argmax(dim=1) == labels).double()
    counts = torch.bincount(labels)
    return float((torch.bincount(labels, weights=right)[counts > 0] / counts[counts > 0]).mean())


def shared_out(posterior: torch.Tensor, points: torch.Tensor, weight: torch.Tensor, share: float) -> torch.Tensor:
    """(n, C) P' from (n, C) P, (n, D) points and (M, D) W; ``share`` is γ. A class without a label keeps P = 0."""
    if not share > 0 or not len(weight):
        return posterior
    found, count, wide = posterior.clone(), len(weight), weight.float()
    for start in range(0, len(points), CHUNK):
        part = slice(start, start + CHUNK)
        known = posterior[part, :count]
        mixed = (1 - share) * torch.log(known) + share * torch.log_softmax(points[part].float() @ wide.T, dim=1)
        mass = known.sum(dim=1, keepdim=True)
        found[part, :count] = torch.where(mass > 0, mass * torch.softmax(mixed, dim=1), known)
    return found
