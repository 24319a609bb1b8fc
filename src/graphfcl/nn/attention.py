"""The two attentions of HAG-Meta."""

import torch
from torch import nn

from graphfcl.nn.encoders import Linear
from graphfcl.nn.inputs import GcnRows


class NodeLevelAttention(nn.Module):
    """g_ψ: how much each support counts in its class's prototype.

    λ_j = MLP(h_j) with h two graph convolutions of X (d → 32 → 16, ReLU on both); λ̃_j = σ(log(degree_j + ε) · λ_j);
    the weights are softmax(λ̃) over the supports of the class.
    """

    def __init__(self, features: int, hidden: int, size: int, generator: torch.Generator) -> None:
        super().__init__()
        self.first = Linear(features, hidden, generator)
        self.second = Linear(hidden, size, generator)
        self.last = Linear(size, 1, generator)

    def forward(self, rows: GcnRows) -> torch.Tensor:
        """(r,) λ̃ of the rows, each in (0, 1)."""
        hidden = torch.relu(rows.inputs @ self.first.weight + self.first.bias)
        hidden = torch.relu(rows.aggregate(hidden @ self.second.weight) + self.second.bias)
        value = self.last(hidden).squeeze(1)
        return torch.sigmoid(rows.log_degrees.to(value.dtype) * value)


class PrintedTaskAttention(nn.Module):
    """g_φ as printed: an MLP over the class axis brings the base task from |C_base| classes to N, then one shared layer
    N → 1 turns the h × N prototypes of every task into u ∈ R^h; w^{i,j} = softmax_j(u^i · u^j).

    Its sizes depend on |C_base| and N, and it is not invariant to the order of the classes.
    """

    def __init__(self, base: int, way: int, size: int, generator: torch.Generator) -> None:  # noqa: ARG002
        super().__init__()
        self.way = way
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
        self.way = way
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
