"""Graph encoders g_θ, which map rows of a graph to embeddings."""

from abc import abstractmethod
from typing import Any

import numpy as np
import torch
from torch import nn

from graphfcl.nn.edges import EdgePattern, chosen
from graphfcl.nn.inputs import GatRows, GcnRows, GraphInputs

HEADS = 4  # attention heads of the first GAT layer
MANY_NODES = 10_000  # for graphs of at least this size, training extracts the rows of Â that it reads


class Encoder(nn.Module):
    """Interface of encoders: :meth:`rows` collects the inputs for some rows, :meth:`forward` computes embeddings."""

    size: int

    @abstractmethod
    def rows(self, graph: GraphInputs, rows: Any, lead: int = 0) -> Any:
        """Collect the inputs of :meth:`forward` for an array of rows; None means all rows of the graph."""

    def repeated_rows(self, graph: GraphInputs, rows: np.ndarray) -> tuple[Any, Any]:
        """Collect inputs for rows that each training step reads; return them and the positions of rows in the output.

        By default the embeddings, and dropout, are computed for all nodes.
        """
        return self.rows(graph, None), torch.from_numpy(rows).to(graph.device)

    @abstractmethod
    def forward(self, rows: Any, generator: torch.Generator | None = None) -> torch.Tensor:
        """Compute (r, size) embeddings, with dropout drawn from ``generator``, or without dropout if it is None."""


def dropout(values: torch.Tensor, share: float, generator: torch.Generator | None) -> torch.Tensor:
    """Set a share of the values to zero and scale up the others; do nothing without a generator.

    Each value uses 16 random bits, which takes four times fewer draws than one random float per value.
    """
    if generator is None or share == 0:
        return values
    words = torch.empty((values.numel() + 3) // 4, dtype=torch.int64, device=values.device)
    bits = words.random_(-(2**63), 2**63 - 1, generator=generator).view(torch.int16)[: values.numel()]
    kept = bits.view(values.shape) >= round(share * 2**16) - 2**15
    return values * kept.to(values.dtype).div_(1 - share)


class Linear(nn.Module):
    """Linear layer x W + b with Glorot-initialised weights (in, out) from a generator."""

    def __init__(self, inputs: int, outputs: int, generator: torch.Generator) -> None:
        super().__init__()
        bound = (6 / (inputs + outputs)) ** 0.5
        self.weight = nn.Parameter((torch.rand(inputs, outputs, generator=generator) * 2 - 1) * bound)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return values @ self.weight + self.bias


class TwoLayerEncoder(Encoder):
    """Two layers, each followed by a ReLU. ``last_relu=False`` leaves out the second, as the HAG-Meta code does."""

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
        """Set the layers ``first`` and ``second``."""

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
        # In place, because for large neighbourhoods allocating memory costs more than the arithmetic.
        hidden = (rows.inputs @ self.first.weight).add_(self.first.bias).relu_()
        hidden = dropout(hidden, self.dropout, generator)
        return self._output(rows.aggregate(hidden @ self.second.weight) + self.second.bias)


class GatLayer(nn.Module):
    """Graph attention layer (Veličković et al., 2018), whose heads are concatenated.

    For node i and its neighbours j: e_ij = LeakyReLU(a·[W h_i ‖ W h_j]), α_ij = softmax_j(e_ij), and the output is
    Σ_j α_ij W h_j + b.
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
        """Compute (targets, heads · outputs).

        Args:
            projected: (n, heads · outputs) Values W h of the source nodes.
            edges: Edges from sources to targets.
            own: (targets,) Positions of the targets among the sources.
        """
        values = projected.view(-1, self.heads, self.outputs).transpose(0, 1).contiguous()  # (heads, n, outputs)
        to_source = (values @ self.source[:, :, None]).squeeze(2)
        to_target = chosen((values @ self.target[:, :, None]).squeeze(2), own)
        score = nn.functional.leaky_relu(edges.sums(to_target, to_source), 0.2)
        weight = torch.exp(score - chosen(edges.maxima(score), edges.targets))
        # The last column sums the weights themselves: the denominator of the softmax.
        sums = edges.gather(weight, torch.cat([values, values.new_ones(*values.shape[:2], 1)], dim=2))
        return (sums[:, :, :-1] / sums[:, :, -1:]).transpose(0, 1).flatten(1) + self.bias


class GatEncoder(TwoLayerEncoder):
    """Two graph attention layers: four heads with ``hidden // 4`` columns each, then one head; ReLU after each."""

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
