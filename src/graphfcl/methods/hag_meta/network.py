"""The losses of HAG-Meta (Section 4.2.1 of the paper)."""

import torch


def class_weights(task_weights: torch.Tensor, task_of_class: torch.Tensor) -> torch.Tensor:
    """(classes,) W_C: class k of task j gets w^{i,j}/|C^j|."""
    sizes = torch.zeros_like(task_weights).index_add(
        0, task_of_class, torch.ones(task_of_class.shape, dtype=task_weights.dtype, device=task_weights.device)
    )
    return (task_weights / sizes.clamp(min=1))[task_of_class]


def query_shares(labels: torch.Tensor, classes: int, by_class: bool) -> torch.Tensor:
    """(q,) weights that add up to 1: the same for every query, or for every class that has queries."""
    if not by_class:
        return torch.full(labels.shape, 1 / labels.numel(), device=labels.device)
    counts = torch.zeros(classes, device=labels.device).index_add(
        0, labels, torch.ones(labels.shape, device=labels.device)
    )
    return 1 / (counts[labels] * (counts > 0).sum())


def weighted_cross_entropy(
    distances: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor, shares: torch.Tensor
) -> torch.Tensor:
    """L = −Σ_q share_q (1 + w_{y_q}) log p(y_q | q), p the softmax over negative squared distances."""
    log_likelihood = torch.log_softmax(-distances, dim=1).gather(1, labels[:, None]).squeeze(1)
    return -(shares.to(distances.dtype) * (1 + weights[labels]) * log_likelihood).sum()


def weighted_binary_cross_entropy(
    distances: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor, shares: torch.Tensor
) -> torch.Tensor:
    """The form as printed: −Σ_q share_q Σ_k (1 + w_k) [y_k log p_k + (1 − y_k) log(1 − p_k)]."""
    log_likelihood = torch.log_softmax(-distances, dim=1)
    tiny = torch.finfo(distances.dtype).tiny ** 0.5
    log_opposite = torch.log((-torch.expm1(log_likelihood)).clamp(min=tiny))
    right = torch.zeros_like(distances).scatter(1, labels[:, None], 1.0)
    terms = right * log_likelihood + (1 - right) * log_opposite
    return -(shares.to(distances.dtype)[:, None] * (1 + weights)[None] * terms).sum()


def hard_task_loss(
    distances: torch.Tensor, labels: torch.Tensor, task_weights: torch.Tensor, task_of_class: torch.Tensor
) -> torch.Tensor:
    """Teaches the attention which tasks are hard: cross-entropy from softmax_j(mean loss of task j) to w.

    Minimising the printed loss moves attention to the *easiest* task. Here the weights scale the loss as constants, and
    this term alone trains them.
    """
    losses = -torch.log_softmax(-distances.detach(), dim=1).gather(1, labels[:, None]).squeeze(1)
    task = task_of_class[labels]
    total = torch.zeros_like(task_weights).index_add(0, task, losses)
    count = torch.zeros_like(task_weights).index_add(0, task, torch.ones_like(losses))
    mean = torch.where(count > 0, total / count.clamp(min=1), -torch.inf)  # a task without queries teaches nothing
    target = torch.softmax(mean, dim=0)
    return -(target * torch.log(task_weights.clamp(min=1e-12))).sum()


LOSSES = {"softmax": weighted_cross_entropy, "binary": weighted_binary_cross_entropy}
