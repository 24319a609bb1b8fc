"""The two blocks of a node's vector that depend on no label: its own features, and its propagated features."""

from typing import Any, Self

import numpy as np
import torch

from graphfcl.methods.blocks import MemoryNeed, NodeTables, RowBlock, Table
from graphfcl.methods.shared.parts import Part
from graphfcl.methods.shared.untrained_features import around_rows, unit_rows
from graphfcl.methods.state import Tensors

HOPS = 2


class UntrainedBlocks(Part):
    """The blocks [ n(XB) , n(ÂÂXB) ], where n(·) subtracts the mean of session 0 and scales rows to unit length.

    X are the features with rows of unit length. B are the leading right singular vectors of X in session 0.

    Attributes:
        basis: (d, k) B.
        steps: (d, k) B quantised to 8-bit integers, so that ``basis = steps * scales``.
        scales: (k,) quantisation step of each column.
        centres: The (k,) means of both blocks over session 0; empty before session 0.
    """

    name = "blocks"
    saved = ("steps", "scales", "centres")

    def __init__(self) -> None:
        self.basis, self.steps, self.scales = torch.zeros(0, 0), torch.zeros(0, 0, dtype=torch.int8), torch.zeros(0)
        self.centres: tuple[torch.Tensor, ...] = ()

    @property
    def is_fixed(self) -> bool:
        return bool(self.centres)

    @property
    def width(self) -> int:
        """Number of columns of both blocks together."""
        return 2 * self.basis.shape[1]

    @torch.no_grad()
    def fit(self, tables: NodeTables, rank: int, seed: int, *reserved: MemoryNeed) -> None:
        """Compute basis and centres from the graph of session 0.

        ``reserved`` is the memory to reserve for later steps of the caller.
        """
        self._require(tables, min(rank, tables.node_count, tables.feature_count), *reserved)
        self.steps, self.scales = (part.to(tables.device) for part in tables.leading_vectors(rank, seed))
        self.basis = self.steps * self.scales
        sums = (tables.sums("centre", _column_sums, tables={"values": block})["total"] for block in self._raw(tables))
        self.centres = tuple((total / max(1, tables.node_count)).float() for total in sums)

    @staticmethod
    def _require(tables: NodeTables, columns: int, *reserved: MemoryNeed) -> None:
        """Raise an error if the memory limit is too small for a pass with ``columns`` basis columns."""
        tables.require(*reserved, columns=max(tables.feature_count, 2 * columns), slice_copies=2)

    def _raw(self, tables: NodeTables) -> list[Table]:
        """Compute XB and ÂÂXB."""
        own = tables.own(self.basis)
        return [own, *tables.hops(own, (HOPS,))]

    @torch.no_grad()
    def table(self, tables: NodeTables) -> Table:
        """Compute the (n, 2k) table of both blocks in 16 bits."""
        self._require(tables, self.basis.shape[1])
        own, around = self._raw(tables)
        tensors = dict(zip(("own", "around"), self.centres, strict=True))
        return tables.table(
            "vectors",
            _vectors,
            self.width,
            tables={"own": own, "around": around},
            tensors=tensors,
            kind="<f2",
            last_use=("around",),
        )

    @torch.no_grad()
    def vectors_of(self, tables: NodeTables, nodes: np.ndarray) -> torch.Tensor:
        """Compute the (m, 2k) blocks of m nodes from the neighbourhoods of these nodes."""
        inputs, rows = tables.neighbourhood(nodes, HOPS)
        raw = (inputs.raw(rows) @ self.basis, around_rows(inputs.visible, rows, HOPS, self.basis))
        return torch.cat([_centred(block, centre) for block, centre in zip(raw, self.centres, strict=True)], dim=1)

    @torch.no_grad()
    def feature_directions(self, tables: NodeTables, node: int, direction: torch.Tensor) -> list[np.ndarray]:
        """Translate a (2k,) direction in the blocks of a node to two (d,) directions in feature space.

        Let w₀ and w₂ be the results. Then x·w₀ and (ÂÂX)·w₂ equal the product of each block of the node with its part
        of the direction, up to a constant that comes from the centres.
        """
        inputs, rows = tables.neighbourhood(np.array([node]), HOPS)
        raw = (inputs.raw(rows) @ self.basis, around_rows(inputs.visible, rows, HOPS, self.basis))
        lengths = ((block - centre).norm().clamp(min=1e-8) for block, centre in zip(raw, self.centres, strict=True))
        parts = zip(direction.float().chunk(2), lengths, strict=True)
        return [(self.basis @ part / length).cpu().numpy() for part, length in parts]

    def weighted(self, own: float, around: float) -> torch.Tensor:
        """Expand the weights of both blocks to one float64 weight per column, shape (2k,)."""
        weights = torch.tensor([own, around], dtype=torch.float64, device=self.basis.device)
        return weights.repeat_interleave(self.basis.shape[1])

    def copy_from(self, other: Self, device: torch.device) -> None:  # noqa: ARG002
        self.steps, self.scales, self.centres, self.basis = other.steps, other.scales, other.centres, other.basis

    def load(self, values: dict[str, Any], tensors: Tensors, device: torch.device) -> None:
        super().load(values, tensors, device)
        self.basis = self.steps * self.scales

    def stored(self) -> dict[str, int]:
        return {"weights": sum(tensor.nbytes for tensor in self.tensors().values())}


def _column_sums(block: RowBlock) -> Tensors:
    """Sum the visible rows of a chunk. A chunk has so few rows that 32 bits are precise enough."""
    return {"total": block.only_visible(block.rows("values")).sum(dim=0)}


def _vectors(block: RowBlock) -> torch.Tensor:
    return torch.cat([_centred(block.rows(name), block.tensors[name]) for name in ("own", "around")], dim=1)


def _centred(block: torch.Tensor, centre: torch.Tensor) -> torch.Tensor:
    """Apply n(·): subtract the mean, scale to unit length, and round to 16 bits."""
    return unit_rows(block - centre).half()
