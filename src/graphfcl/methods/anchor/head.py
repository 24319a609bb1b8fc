"""A softmax head for the classes of session 0, averaged with the classifier of means.

Classes with hundreds of labels tell more than their means. A linear softmax head on x, h(v) = softmax(W x(v)), starts
as the rule of the means, W_c = T times the direction of c, and is trained on the train nodes of session 0, every class
counting the same, until its balanced accuracy on the validation nodes gets no better. The probabilities of new classes
stay as they are, and so does the total of the classes of session 0; the head changes how that total is divided. Because
the head is more confident than the means, it raises the likeliest class of session 0, which moves some borderline nodes
from new classes to it. With M the classes of session 0 and P the posterior of means and neighbours::

    P'_c = P_M · q_c / Σ_M q,   q_c = P_c^(1−γ) h_c^γ   for c in M,   P_M = Σ_M P;      P'_c = P_c for new classes
"""

import torch
from torch import nn

from graphfcl.methods.anchor.class_sums import log_probabilities, probabilities
from graphfcl.methods.learner import Progress
from graphfcl.methods.shared.supervised_training import class_balanced, cross_entropies
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
) -> tuple[torch.Tensor, int]:
    """(M, D) W in 16 bits and the number of steps it took: the best at a check, the start included.

    Full-batch from ``start``. train, validation: (n, D) points and (n,) columns.
    """
    training, stopping, done = HeadTraining(start, train, rate), EarlyStopping(PATIENCE), 0
    points = validation[0].float()
    while True:
        score = _balanced_accuracy(training.head, points, validation[1])
        stop = stopping.check(score, done, training.head) or done >= steps
        progress.step("head", done, done if stop else steps, score=score)
        if stop:
            return stopping.weights["weight"].to(start.device).half(), stopping.step
        training.run(min(STEPS_BETWEEN_CHECKS, steps - done))
        done = min(done + STEPS_BETWEEN_CHECKS, steps)


def retrained_head(start: torch.Tensor, train: LabelledPoints, steps: int, rate: float) -> torch.Tensor:
    """(M, D) W in 16 bits after so many steps: session 0 again with other labels."""
    training = HeadTraining(start, train, rate)
    training.run(steps)
    return training.head.weight.detach().half()


class HeadTraining:
    """The head and its full-batch steps, every class with a label counting the same."""

    def __init__(self, start: torch.Tensor, train: LabelledPoints, rate: float) -> None:
        self.head, self.loss = Head(start), class_balanced(cross_entropies)
        self.points, self.labels = train[0].float(), train[1]
        self.optimiser = make_adam(self.head.parameters(), rate, 0.0)

    def run(self, steps: int) -> None:
        with torch.enable_grad():
            for step in range(steps):
                self.optimiser.zero_grad(set_to_none=True)
                value = self.loss(self.head(self.points), self.labels)
                value.backward()
                self.optimiser.step()
                check_finite(value, "head", step)


@torch.no_grad()
def _balanced_accuracy(head: Head, points: torch.Tensor, labels: torch.Tensor) -> float:
    right = (head(points).argmax(dim=1) == labels).double()
    counts = torch.bincount(labels)
    return float((torch.bincount(labels, weights=right)[counts > 0] / counts[counts > 0]).mean())


def shared_out(posterior: torch.Tensor, points: torch.Tensor, weight: torch.Tensor, share: float) -> torch.Tensor:
    """(n, C) P' from (n, C) P, (n, D) points and (M, D) W; ``share`` is γ. A class without a label keeps P = 0."""
    if not share > 0 or not len(weight):
        return posterior
    shared, count, wide = posterior.clone(), len(weight), weight.float()
    for start in range(0, len(points), CHUNK):
        part = slice(start, start + CHUNK)
        of_base = posterior[part, :count]
        mixed = (1 - share) * torch.log(of_base) + share * log_probabilities(points[part].float() @ wide.T)
        mass = of_base.sum(dim=1, keepdim=True)
        shared[part, :count] = torch.where(mass > 0, mass * probabilities(mixed), of_base)
    return shared
