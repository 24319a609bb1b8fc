"""HAG-Meta's network: a prototypical network whose loss task-level attention weighs (Section 4.2 of the paper)."""

from collections.abc import Callable

import torch
from torch import nn

from graphfcl.methods.shared.device_episode import DeviceEpisode
from graphfcl.methods.shared.prototype_network import PrototypeNetwork
from graphfcl.methods.shared.prototypes import weighted_cross_entropy
from graphfcl.nn import Encoder, Linear

Loss = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


class HagMetaNetwork(PrototypeNetwork):
    """Encoder g_θ, node-level attention g_ψ and task-level attention g_φ; either attention may be None.

    loss: one of ``LOSSES``. hard: attention is taught the harder tasks.
    """

    def __init__(
        self, encoder: Encoder, nla: nn.Module | None, tla: nn.Module | None, loss: Loss, *, hard: bool = False
    ) -> None:
        super().__init__(encoder, nla)
        self.tla, self.weighted_loss, self.hard = tla, loss, hard

    def loss(
        self,
        distances: torch.Tensor,
        prototypes: torch.Tensor,
        labels: torch.Tensor,
        shares: torch.Tensor,
        episode: DeviceEpisode,
    ) -> torch.Tensor:
        """The loss of the queries, each class weighed by the attention to its task."""
        device = distances.device
        if self.tla is None:
            return self.weighted_loss(distances, labels, torch.zeros(episode.class_count, device=device), shares)
        task_of_class = episode.task_of_class
        task_weights = self.tla(prototypes, episode.tasks, episode.base_count, episode.shape[0])
        weights = class_weights(task_weights, task_of_class)
        if not self.hard:
            return self.weighted_loss(distances, labels, weights, shares)
        teaching = hard_task_loss(distances, labels, task_weights, task_of_class)
        return self.weighted_loss(distances, labels, weights.detach(), shares) + teaching


class PrintedTaskAttention(nn.Module):
    """g_φ as printed: an MLP over the class axis brings the base task from |C_base| classes to N, then one shared layer
    N → 1 turns the h × N prototypes of every task into u ∈ R^h; w^{i,j} = softmax_j(u^i · u^j).

    Its sizes depend on |C_base| and N, and it is not invariant to the order of the classes.
    """

    def __init__(self, base: int, way: int, size: int, generator: torch.Generator) -> None:  # noqa: ARG002
        super().__init__()
        middle = max(base, way)
        self.base_layers = nn.ModuleList(
            [Linear(base, middle, generator), Linear(middle, middle, generator), Linear(middle, way, generator)]
        )
        self.shared = Linear(way, 1, generator)

    def forward(self, prototypes: torch.Tensor, tasks: torch.Tensor, base: int, current: int) -> torch.Tensor:
        """(tasks + 1,) weights of the base task and of the others.

        prototypes: (classes, h), the ``base`` classes first. tasks: (tasks, N) classes of each later task, -1 where it
        has fewer than N: its mean prototype stands there. current: position of the current task, 0 being the base.
        """
        projected = prototypes[:base].T
        for layer in self.base_layers[:-1]:
            projected = torch.relu(layer(projected))
        projected = self.base_layers[-1](projected)  # (h, N)
        members, present = prototypes[tasks.clamp(min=0)], (tasks >= 0)[:, :, None]  # (tasks, N, h)
        mean = (members * present).sum(dim=1, keepdim=True) / present.sum(dim=1, keepdim=True)
        members = torch.where(present, members, mean)
        matrices = torch.cat([projected.T[None], members])  # (tasks + 1, N, h)
        vectors = (matrices * self.shared.weight[None]).sum(dim=1) + self.shared.bias
        return torch.softmax(vectors @ vectors[current], dim=0)


class InvariantTaskAttention(nn.Module):
    """g_φ with the two properties that the text claims: an MLP for each class prototype, then the mean over a task's
    classes is u; any number of classes, in any order. w^{i,j} = softmax_j(u^i · u^j).
    """

    def __init__(self, base: int, way: int, size: int, generator: torch.Generator) -> None:  # noqa: ARG002
        super().__init__()
        self.layers = nn.ModuleList([Linear(size, size, generator) for _ in range(3)])

    def forward(self, prototypes: torch.Tensor, tasks: torch.Tensor, base: int, current: int) -> torch.Tensor:
        """As in :class:`PrintedTaskAttention`; ``tasks`` may have any width."""
        values = prototypes
        for layer in self.layers[:-1]:
            values = torch.relu(layer(values))
        values = self.layers[-1](values)
        present = (tasks >= 0)[:, :, None]
        others = (values[tasks.clamp(min=0)] * present).sum(dim=1) / present.sum(dim=1)
        vectors = torch.cat([values[:base].mean(dim=0, keepdim=True), others])
        return torch.softmax(vectors @ vectors[current], dim=0)


TASK_ATTENTIONS: dict[str, type[PrintedTaskAttention] | type[InvariantTaskAttention]] = {
    "printed": PrintedTaskAttention,
    "invariant": InvariantTaskAttention,
}


def class_weights(task_weights: torch.Tensor, task_of_class: torch.Tensor) -> torch.Tensor:
    """(classes,) W_C: class k of task j gets w^{i,j}/|C^j|."""
    sizes = torch.zeros_like(task_weights).index_add(
        0, task_of_class, torch.ones(task_of_class.shape, dtype=task_weights.dtype, device=task_weights.device)
    )
    return (task_weights / sizes.clamp(min=1))[task_of_class]


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


LOSSES: dict[str, Loss] = {"softmax": weighted_cross_entropy, "binary": weighted_binary_cross_entropy}
