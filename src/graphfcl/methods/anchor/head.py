"""A softmax head for the classes of session 0, averaged with the classifier of means.

Hundreds of labels per class contain more information than the class means. A linear softmax head on x,
h(v) = softmax(W x(v)), starts as the classifier of means, W_c = T times the direction of c. It is trained on the train
nodes of session 0 with equal class weights until its balanced accuracy on the validation nodes stops improving. The
head only changes how the total probability of the classes of session 0 is divided among them; the probabilities of new
classes do not change. Because the head is more confident than the means, it raises the most likely class of session 0,
which moves some borderline nodes from new classes to it. Let M be the classes of session 0, and P the posterior of
means and neighbours::

    P'_c = P_M · q_c / Σ_M q,   q_c = P_c^(1−γ) h_c^γ   for c in M,   P_M = Σ_M P;      P'_c = P_c for new classes
"""

import torch
from torch import nn

from graphfcl.methods.anchor.metric import log_probabilities, probabilities
from graphfcl.methods.learner import Progress
from graphfcl.methods.shared.supervised_training import class_balanced, cross_entropies
from graphfcl.methods.shared.training_state import EarlyStopping, check_finite, make_adam

STEPS_BETWEEN_CHECKS = 5
PATIENCE = 6  # checks in a row without improvement that end the training
CHUNK = 16_384  # rows that are converted from 16 to 32 bits at a time

LabelledPoints = tuple[torch.Tensor, torch.Tensor]


class Head(nn.Module):
    """A linear layer without bias, (n, D) x to (n, M) logits W x."""

    def __init__(self, start: torch.Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(start.clone())

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        return points @ self.weight.T


def trained_head(
    start: torch.Tensor, train: LabelledPoints, validation: LabelledPoints, steps: int, rate: float, progress: Progress
) -> tuple[torch.Tensor, int]:
    """Train the head by full-batch steps and keep the best weights.

    Args:
        start: (M, D) initial weights, which are among the candidates.
        train: (n, D) points and (n,) class columns.
        validation: (n, D) points and (n,) class columns that the best weights are selected on.
        steps: Maximum number of steps.
        rate: Learning rate of Adam.
        progress: Receives the steps.

    Returns:
        (M, D) W in 16 bits, and the number of steps after which it was reached.
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
    """Repeat the training of session 0 with other labels for a fixed number of steps; return (M, D) W in 16 bits."""
    training = HeadTraining(start, train, rate)
    training.run(steps)
    return training.head.weight.detach().half()


class HeadTraining:
    """Full-batch training of the head, with equal weights for all classes that have a label."""

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


def mix_with_head(posterior: torch.Tensor, points: torch.Tensor, weight: torch.Tensor, share: float) -> torch.Tensor:
    """Compute (n, C) P' from (n, C) P, (n, D) points, (M, D) W and γ. A class without a label keeps P = 0."""
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
