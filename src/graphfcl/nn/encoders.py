"""Graph encoders g_θ: rows of a graph to rows of an embedding."""

from abc import abstractmethod
from typing import Any

import numpy as np
import torch
from torch import nn

from graphfcl.nn.edges import EdgePattern, chosen
from graphfcl.nn.inputs import GatRows, GcnRows, GraphInputs

HEADS = 4  # of the first layer of graph attention
MANY_NODES = 10_000  # from which the rows of Â that a training reads are worth a matrix of their own


class Encoder(nn.Module):
    """What an encoder is: it says what it needs for some rows, and turns that into their embeddings."""

    size: int

    @abstractmethod
    def rows(self, graph: GraphInputs, rows: Any, lead: int = 0) -> Any:
        """What :meth:`forward` needs for the rows, an array (None: all of the graph)."""

    def repeated_rows(self, graph: GraphInputs, rows: np.ndarray) -> tuple[Any, Any]:
        """What :meth:`forward` needs for rows that every step of a training reads, and where they are in its answer.

        Dropout is drawn for all nodes.
        """
        return self.rows(graph, None), torch.from_numpy(rows).to(graph.device)

    @abstractmethod
    def forward(self, rows: Any, generator: torch.Generator | None = None) -> torch.Tensor:
        """(r, size) embeddings; dropout is drawn from ``generator`` and off without one."""


def dropout(values: torch.Tensor, share: float, generator: torch.Generator | None) -> torch.Tensor:
    """Set a share of the values to zero and scale up the others; the identity without a generator.

    Each value takes 16 random bits: four times fewer draws than with a random float each.
    """
    if generator is None or share == 0:
        return values
    words = torch.empty((values.numel() + 3) // 4, dtype=torch.int64, device=values.device)
    bits = words.random_(-(2**63), 2**63 - 1, generator=generator).view(torch.int16)[: values.numel()]
    kept = bits.view(values.shape) >= round(share * 2**16) - 2**15
    return values * kept.to(values.dtype).div_(1 - share)


class Linear(nn.Module):
    """x W + b with weights (in, out) drawn from a generator; in a graph convolution the caller aggregates."""

    def __init__(self, inputs: int, outputs: int, generator: torch.Generator) -> None:
        super().__init__()
        bound = (6 / (inputs + outputs)) ** 0.5  # Glorot
        self.weight = nn.Parameter((torch.rand(inputs, outputs, generator=generator) * 2 - 1) * bound)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return values @ self.weight + self.bias


class TwoLayerEncoder(Encoder):
    """Two layers with a ReLU after each. ``last_relu=False`` leaves out the second, as the authors' code does."""

    def __init__(
        self,
        features: int,
        hidden: int,
        size: int,
        generator: torch.Generator,
        *,
        dropout: float = 0.0,
        last_relu: bool = True,
    ) -> None:
        super().__init__()
        self.size, self.dropout, self.last_relu = size, dropout, last_relu
        self._make_layers(features, hidden, generator)

    @abstractmethod
    def _make_layers(self, features: int, hidden: int, generator: torch.Generator) -> None:
        """``first`` and ``second``."""

    def _output(self, values: torch.Tensor) -> torch.Tensor:
        return torch.relu(values) if self.last_relu else values


class GcnEncoder(TwoLayerEncoder):
    """Two graph convolutions (Kipf and Welling, 2017): Z = ReLU(Â · ReLU(Â X W₁ + b₁) W₂ + b₂)."""

    def _make_layers(self, features: int, hidden: int, generator: torch.Generator) -> None:
        self.first = Linear(features, hidden, generator)
        self.second = Linear(hidden, self.size, generator)

    def rows(self, graph: GraphInputs, rows: np.ndarray | torch.Tensor | None, lead: int = 0) -> GcnRows:
        return graph.all_gcn_rows if rows is None else graph.gcn_rows(rows, lead)

    def repeated_rows(self, graph: GraphInputs, rows: np.ndarray) -> tuple[GcnRows, torch.Tensor | slice]:
        if graph.visible.node_count < MANY_NODES:
            return super().repeated_rows(graph, rows)
        return graph.rows_of_whole_graph(rows), slice(None)

    def forward(self, rows: GcnRows, generator: torch.Generator | None = None) -> torch.Tensor:
        # In place: on large neighbourhoods fresh memory costs more than the arithmetic.
        hidden = (rows.inputs @ self.first.weight).add_(self.first.bias).relu_()
        hidden = dropout(hidden, self.dropout, generator)
        return self._output(rows.aggregate(hidden @ self.second.weight) + self.second.bias)


class GatLayer(nn.Module):
    """Graph attention (Veličković et al., 2018), heads side by side.

    e_{ij} = LeakyReLU(a·[W h_i ‖ W h_j]), α = softmax over the neighbours j of i, output Σ_j α_{ij} W h_j.
    """

    def __init__(self, inputs: int, heads: int, outputs: int, generator: torch.Generator) -> None:
        super().__init__()
        self.heads, self.outputs = heads, outputs
        bound = (6 / (inputs + heads * outputs)) ** 0.5
        self.weight = nn.Parameter((torch.rand(inputs, heads * outputs, generator=generator) * 2 - 1) * bound)
        bound = (6 / (outputs + 1)) ** 0.5
        self.target = nn.Parameter((torch.rand(heads, outputs, generator=generator) * 2 - 1) * bound)
        self.source = nn.Parameter((torch.rand(heads, outputs, generator=generator) * 2 - 1) * bound)
        self.bias = nn.Parameter(torch.zeros(heads * outputs))

    def forward(self, projected: torch.Tensor, edges: EdgePattern, own: torch.Tensor) -> torch.Tensor:
        """projected: (n, heads·outputs) W h of the sources; own: (targets,) where the targets stand among them."""
        values = projected.view(-1, self.heads, self.outputs).transpose(0, 1).contiguous()  # (heads, n, outputs)
        to_source = (values @ self.source[:, :, None]).squeeze(2)
        to_target = chosen((values @ self.target[:, :, None]).squeeze(2), own)
        score = nn.functional.leaky_relu(edges.sums(to_target, to_source), 0.2)
        weight = torch.exp(score - chosen(edges.maxima(score), edges.targets))
        sums = edges.gather(
            weight, torch.cat([values, values.new_ones(*values.shape[:2], 1)], dim=2)
        )  # numerators, and the sum of weights
        return (sums[:, :, :-1] / sums[:, :, -1:]).transpose(0, 1).flatten(1) + self.bias


class GatEncoder(TwoLayerEncoder):
    """Two attention layers, 4 heads × 8 and then one head, ReLU on both as in the GCN encoder."""

    def _make_layers(self, features: int, hidden: int, generator: torch.Generator) -> None:
        self.first = GatLayer(features, HEADS, hidden // HEADS, generator)
        self.second = GatLayer(hidden // HEADS * HEADS, 1, self.size, generator)

    def rows(self, graph: GraphInputs, rows: np.ndarray | None, lead: int = 0) -> GatRows:  # noqa: ARG002
        return graph.all_gat_rows if rows is None else graph.gat_rows(rows)

    def forward(self, rows: GatRows, generator: torch.Generator | None = None) -> torch.Tensor:
        (outer, own_outer), (inner, own_inner) = rows.hops
        hidden = torch.relu(self.first(rows.features @ self.first.weight, outer, own_outer))
        hidden = dropout(hidden, self.dropout, generator)
        return self._output(self.second(hidden @ self.second.weight, inner, own_inner))


ENCODERS: dict[str, type[GcnEncoder] | type[GatEncoder]] = {"gcn": GcnEncoder, "gat": GatEncoder}
