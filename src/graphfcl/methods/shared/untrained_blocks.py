"""The two blocks of a node's vector that no label ever touched: its own features, and those around it."""

from typing import Any, Self

import numpy as np
import torch

from graphfcl.graph import VisibleGraph
from graphfcl.methods.learner import Tensors
from graphfcl.methods.shared.parts import Part
from graphfcl.methods.shared.untrained_features import (
    around_rows,
    leading_vectors,
    prepare,
    propagated,
    unit_rows,
)
from graphfcl.nn import GraphInputs

HOPS = 2


class UntrainedBlocks(Part):
    """[ n(XB) , n(ÂÂXB) ], n(·): minus the mean of session 0, then of unit length.

    X: features with rows of unit length. B: the leading right singular vectors of session 0's X, rounded to 8 bits.
    """

    def __init__(self) -> None:
        self.basis = torch.zeros(0, 0)
        self.scales = torch.zeros(0)
        self.centres: tuple[torch.Tensor, ...] = ()

    @property
    def is_fixed(self) -> bool:
        return bool(self.centres)

    @property
    def width(self) -> int:
        """Columns of both blocks together."""
        return 2 * self.basis.shape[1]

    @torch.no_grad()
    def fix(self, inputs: GraphInputs, rank: int, seed: int) -> None:
        """Basis and centres, from the graph of session 0."""
        self.take_basis(*leading_vectors(inputs, rank, seed), inputs.device)
        self.centres = tuple(block.mean(dim=0) for block in self._raw(inputs, None))

    def take_basis(self, steps: torch.Tensor, scales: torch.Tensor, device: torch.device) -> None:
        """B, in 8 bits with the scales of its columns."""
        self.scales = scales.to(device)
        self.basis = steps.to(device) * self.scales

    @torch.no_grad()
    def of(self, inputs: GraphInputs, rows: np.ndarray | None = None) -> torch.Tensor:
        """(r, 2k) in 16 bits, of all nodes or of some: then only their neighbourhoods are read."""
        blocks = zip(self._raw(inputs, rows), self.centres, strict=True)
        return torch.cat([centred_rows(block, centre) for block, centre in blocks], dim=1)

    def weighted(self, hop_weight: float) -> torch.Tensor:
        """(2k,) 64 bits: 1 for the columns of the first block, a for those of the second."""
        size = self.basis.shape[1]
        weights = torch.ones(2 * size, dtype=torch.float64, device=self.basis.device)
        weights[size:] = hop_weight
        return weights

    def _raw(self, inputs: GraphInputs, rows: np.ndarray | None) -> tuple[torch.Tensor, torch.Tensor]:
        if rows is None:
            own = inputs.raw() @ self.basis
            return own, propagated(inputs, own, HOPS)
        return inputs.raw(rows) @ self.basis, around_rows(inputs.visible, rows, HOPS, self.basis)

    # State

    def tensors(self) -> Tensors:
        if not self.is_fixed:
            return {}
        steps = (self.basis / self.scales).round().to(torch.int8)
        kept = {"basis": steps, "scales": self.scales, "own": self.centres[0], "around": self.centres[1]}
        return {f"blocks.{name}": tensor.cpu().clone() for name, tensor in kept.items()}

    def load(self, values: dict[str, Any], tensors: Tensors, device: torch.device) -> None:  # noqa: ARG002
        if "blocks.basis" not in tensors:
            self.become(type(self)(), device)
            return
        self.take_basis(tensors["blocks.basis"], tensors["blocks.scales"], device)
        self.centres = (tensors["blocks.own"].to(device), tensors["blocks.around"].to(device))

    def become(self, other: Self, device: torch.device) -> None:  # noqa: ARG002
        self.basis, self.scales, self.centres = other.basis, other.scales, other.centres

    def stored(self) -> dict[str, int]:
        return {"weights": sum(tensor.nbytes for tensor in self.tensors().values())}


def centred_rows(block: torch.Tensor, centre: torch.Tensor) -> torch.Tensor:
    """n(·) in 16 bits: minus the mean, then of unit length."""
    return unit_rows(block - centre).half()


def prepared_inputs(visible: VisibleGraph, device: torch.device, seed: int, *, sparing: bool = False) -> GraphInputs:
    """A graph on the device, its features with rows of unit length."""
    return GraphInputs(visible.with_features(prepare(visible.features, seed)), device, sparing=sparing)
