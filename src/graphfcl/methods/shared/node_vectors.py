"""The vector of a node that closed forms work on: what an encoder makes of it, or propagated features."""

from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
import torch

from graphfcl.methods.learner import Tensors
from graphfcl.methods.shared.parts import Part
from graphfcl.methods.shared.untrained_blocks import UntrainedBlocks
from graphfcl.methods.shared.untrained_features import unit_rows
from graphfcl.nn import GraphInputs

Kind = Literal["propagated", "encoder"]
KINDS: tuple[Kind, ...] = ("propagated", "encoder")
Embed = Callable[[GraphInputs, np.ndarray | None], torch.Tensor]


class NodeVectors(Part):
    """z(v), of unit length::

        propagated   [ n(XB)_v , a n(ÂÂXB)_v ] / √(1 + a²)      the blocks of ``UntrainedBlocks``
        encoder      unit( g_θ(v) )                             g_θ: the pre-trained encoder

    n(·): minus the mean over session 0's visible graph, then of unit length. a: hop_weight.

    Between graph and vector stands the *embedding*, which is what is kept of a graph: z without a, and of propagated
    features in 16 bits.
    """

    def __init__(self, kind: Kind, rank: int, hop_weight: float) -> None:
        self.kind, self.rank, self.hop_weight = kind, rank, hop_weight
        self.blocks = UntrainedBlocks()

    def fix(self, inputs: GraphInputs, seed: int) -> None:
        """Basis and centres of propagated features, from the graph of session 0."""
        if self.kind == "propagated":
            self.blocks.fix(inputs, self.rank, seed)

    @torch.no_grad()
    def embedded(self, inputs: GraphInputs, embed: Embed, rows: np.ndarray | None = None) -> torch.Tensor:
        """(r, D) embeddings of some rows or of all. embed: the encoder, which ``propagated`` never asks."""
        if self.kind == "propagated":
            return self.blocks.of(inputs, rows)
        return unit_rows(embed(inputs, rows))

    def of(self, embeddings: torch.Tensor) -> torch.Tensor:
        """(r, D) vectors z, in 32 bits."""
        if self.kind == "encoder":
            return embeddings
        scales = self.blocks.weighted(self.hop_weight) / (1 + self.hop_weight**2) ** 0.5
        return embeddings.float() * scales.float()

    # State

    def tensors(self) -> Tensors:
        return self.blocks.tensors()

    def load(self, values: dict[str, Any], tensors: Tensors, device: torch.device) -> None:
        self.blocks.load(values, tensors, device)

    def become(self, other: Self, device: torch.device) -> None:
        self.blocks.become(other.blocks, device)

    def stored(self) -> dict[str, int]:
        return self.blocks.stored()
