"""An encoder of stored propagated features: it reads a node's row of [XB, ÂXB, ÂÂXB] and no other node.

Z = GELU([u(XB), u(ÂXB), u(ÂÂXB)] W₁ + b₁) W₂ + b₂, where u(·) scales rows to unit length. The encoder is trained with
mini-batches on some nodes of each class of session 0, so neither training nor inference needs the graph in memory. GELU
is smooth. With ReLU, the last digits in which rows in memory and on disk differ would lead to different weights.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import gelu

from graphfcl.methods.blocks import NodeTables, RowBlock, Table
from graphfcl.methods.blocks.interface import ROWS
from graphfcl.methods.learner import Progress
from graphfcl.methods.shared.supervised_training import (
    Places,
    SupervisedSettings,
    SupervisedTraining,
    class_balanced,
    cross_entropies,
)
from graphfcl.methods.shared.training_state import Adam, make_adam
from graphfcl.methods.shared.untrained_features import around_rows, unit_rows
from graphfcl.methods.state import Labelled
from graphfcl.nn import Encoder, GraphInputs, Linear, tensor_of
from graphfcl.nn.encoders import dropout

HOPS = (1, 2)  # in addition to the node's own features
BATCH = 4096  # nodes per training step
EPSILON = 1e-5  # ε of Adam


def hop_table(tables: NodeTables, basis: torch.Tensor) -> Table:
    """Compute the (n, 3k) table of XB, ÂXB and ÂÂXB side by side."""
    own = tables.own(basis)
    return tables.side_by_side([own, *tables.hops(own, HOPS)])


def hop_rows(rows: torch.Tensor) -> torch.Tensor:
    """Scale the three blocks of (r, 3k) rows of :func:`hop_table` to unit length, as the encoder expects."""
    return torch.cat([unit_rows(block) for block in rows.chunk(1 + len(HOPS), dim=1)], dim=1)


def _codes(block: RowBlock) -> torch.Tensor:
    codes = torch.empty(len(block), len(block.tensors["second.bias"]), device=block.tensors["second.bias"].device)
    rows = block.rows("hops")
    for start in range(0, len(block), ROWS):
        part = hop_rows(rows[start : start + ROWS])
        hidden = gelu(part @ block.tensors["first.weight"] + block.tensors["first.bias"])
        codes[start : start + ROWS] = hidden @ block.tensors["second.weight"] + block.tensors["second.bias"]
    return codes


class HopEncoder(Encoder):
    """The encoder described in the module docstring. ``basis`` returns B, which session 0 determines."""

    def __init__(
        self,
        inputs: int,
        hidden: int,
        size: int,
        generator: torch.Generator,
        *,
        dropout: float,
        basis: Callable[[], torch.Tensor],
    ) -> None:
        super().__init__()
        self.size, self.dropout, self._basis = size, dropout, basis
        self.first = Linear(inputs, hidden, generator)
        self.second = Linear(hidden, size, generator)

    def rows(self, graph: GraphInputs, rows: np.ndarray | None, lead: int = 0) -> torch.Tensor:  # noqa: ARG002
        basis = self._basis()
        rows = np.arange(graph.visible.node_count) if rows is None else rows
        blocks = [graph.raw(rows) @ basis, *(around_rows(graph.visible, rows, hops, basis) for hops in HOPS)]
        return hop_rows(torch.cat(blocks, dim=1))

    def table(self, tables: NodeTables) -> Table:
        """Compute the (n, h) table of Z."""
        tensors = {name: weight.detach() for name, weight in self.state_dict().items()}
        read = {"hops": hop_table(tables, self._basis())}
        return tables.table("codes", _codes, self.size, tables=read, tensors=tensors, last_use=("hops",))

    def forward(self, rows: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
        hidden = dropout(gelu(self.first(rows)), self.dropout, generator)
        return self.second(hidden)


class AnchorNetwork(nn.Module):
    """A network that consists of the encoder alone."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder


class NoEncoder(Encoder):
    """An encoder of width 0: a node's vector then has two blocks."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.size = 0
        self.first = Linear(1, 0, generator)

    def rows(self, graph: GraphInputs, rows: np.ndarray | None, lead: int = 0) -> torch.Tensor:  # noqa: ARG002
        count = graph.visible.node_count if rows is None else rows.size
        return torch.zeros(count, 0, device=graph.device)

    def forward(self, rows: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:  # noqa: ARG002
        return rows


def row_training(encoder: Encoder, head: Linear, settings: SupervisedSettings, *, stage: str) -> "RowTraining":
    """Set up training of encoder and head with equal class weights, stopped by validation nodes."""
    return RowTraining(encoder, head, settings, stage=stage, loss=class_balanced(cross_entropies), balanced=True)


class RowTraining(SupervisedTraining):
    """Mini-batch training on rows that are in memory."""

    @cached_property
    def optimiser(self) -> Adam:
        """Adam with a larger ε, so that the rounding errors of tiny gradients do not move weights.

        The rounding errors depend on the order of the nodes.
        """
        adam = make_adam(self.network.parameters(), self.settings.learning_rate, self.settings.weight_decay)
        for group in adam.param_groups:
            group["eps"] = EPSILON
        return adam

    def run_nodes(
        self, parts: Sequence[Labelled], hops: Table, tables: NodeTables, progress: Progress, learner: Any
    ) -> None:
        """Train until the balanced accuracy on validation nodes stops improving, and keep the best weights.

        ``parts`` are train and validation nodes, and ``hops`` is the table of :func:`hop_table`.
        """
        with torch.no_grad():
            rows = tables.visible.rows(np.concatenate([nodes for nodes, _ in parts]))
            points = hop_rows(hops.rows_at(rows)).split([len(nodes) for nodes, _ in parts])
        train, validation = (Places(slice(None), tensor_of(columns, tables.device)) for _, columns in parts)
        self.run_on(points[0], train, points[1], validation, learner, progress)

    def _loss(self, needed: Any, train: Places, generator: torch.Generator) -> torch.Tensor:
        """Compute the loss of a mini-batch of the rows ``needed``."""
        rows, labels = train
        if len(labels) > BATCH:
            rows = torch.randperm(len(labels), generator=generator, device=generator.device)[:BATCH]
        return self.loss(self.head(self.encoder(needed[rows], generator)), labels[rows])
