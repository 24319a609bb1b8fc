"""The two blocks of a node's vector that no label ever touched: its own features, and those around it."""

from typing import Any, Self

import numpy as np
import torch

from graphfcl.methods.blocks import Held, NodeTables, RowBlock, Table
from graphfcl.methods.learner import Tensors
from graphfcl.methods.shared.parts import Part
from graphfcl.methods.shared.untrained_features import around_rows, unit_rows

HOPS = 2


class UntrainedBlocks(Part):
    """[ n(XB) , n(ÂÂXB) ], n(·): minus the mean of session 0, then of unit length.

    X: features with rows of unit length. B: the leading right singular vectors of session 0's X, rounded to 8 bits.

    basis: (d, k) B, which is saved as ``steps`` in 8 bits and (k,) ``scales``. centres: (k,) of both blocks.
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
        """Columns of both blocks together."""
        return 2 * self.basis.shape[1]

    @torch.no_grad()
    def fix(self, tables: NodeTables, rank: int, seed: int, *held: Held) -> None:
        """Basis and centres, from the graph of session 0. held: what the caller will need memory for besides."""
        self._require(tables, min(rank, tables.node_count, tables.feature_count), *held)
        self.steps, self.scales = (part.to(tables.device) for part in tables.leading_vectors(rank, seed))
        self.basis = self.steps * self.scales
        sums = (tables.sums("centre", _column_sums, tables={"values": block})["total"] for block in self._raw(tables))
        self.centres = tuple((total / max(1, tables.node_count)).float() for total in sums)

    @staticmethod
    def _require(tables: NodeTables, columns: int, *held: Held) -> None:
        """Refuse a limit of memory that is too small for any pass, before the first one. columns: of the basis."""
        tables.require(*held, columns=max(tables.feature_count, 2 * columns), slice_copies=2)

    def _raw(self, tables: NodeTables) -> list[Table]:
        """XB and ÂÂXB."""
        own = tables.own(self.basis)
        return [own, *tables.hops(own, (HOPS,))]

    @torch.no_grad()
    def table(self, tables: NodeTables) -> Table:
        """(n, 2k) in 16 bits, of all nodes."""
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
    def near(self, tables: NodeTables, nodes: np.ndarray) -> torch.Tensor:
        """(m, 2k) of some nodes; only their neighbourhoods are read."""
        inputs, rows = tables.near(nodes, HOPS)
        raw = (inputs.raw(rows) @ self.basis, around_rows(inputs.visible, rows, HOPS, self.basis))
        return torch.cat([_centred(block, centre) for block, centre in zip(raw, self.centres, strict=True)], dim=1)

    @torch.no_grad()
    def of_features(self, tables: NodeTables, node: int, direction: torch.Tensor) -> list[np.ndarray]:
        """Two (d,) w: x·w of the features x of a node, and (ÂÂX)·w, are its blocks times a direction, up to a constant.

        The constant of each block is that of the centre. direction: (2k,).
        """
        inputs, rows = tables.near(np.array([node]), HOPS)
        raw = (inputs.raw(rows) @ self.basis, around_rows(inputs.visible, rows, HOPS, self.basis))
        lengths = ((block - centre).norm().clamp(min=1e-8) for block, centre in zip(raw, self.centres, strict=True))
        parts = zip(direction.float().chunk(2), lengths, strict=True)
        return [(self.basis @ part / length).cpu().numpy() for part, length in parts]

    def weighted(self, own: float, around: float) -> torch.Tensor:
        """(2k,) 64 bits: the weights of both blocks, column by column."""
        weights = torch.tensor([own, around], dtype=torch.float64, device=self.basis.device)
        return weights.repeat_interleave(self.basis.shape[1])

    def become(self, other: Self, device: torch.device) -> None:  # noqa: ARG002
        self.steps, self.scales, self.centres, self.basis = other.steps, other.scales, other.centres, other.basis

    def load(self, values: dict[str, Any], tensors: Tensors, device: torch.device) -> None:
        super().load(values, tensors, device)
        self.basis = self.steps * self.scales

    def stored(self) -> dict[str, int]:
        return {"weights": sum(tensor.nbytes for tensor in self.tensors().values())}


def _column_sums(block: RowBlock) -> Tensors:
    """(k,) of the visible rows; in 32 bits within a block, which are enough for so many rows."""
    return {"total": block.only_visible(block.rows("values")).sum(dim=0)}


def _vectors(block: RowBlock) -> torch.Tensor:
    return torch.cat([_centred(block.rows(name), block.tensors[name]) for name in ("own", "around")], dim=1)


def _centred(block: torch.Tensor, centre: torch.Tensor) -> torch.Tensor:
    """n(·) in 16 bits: minus the mean, then of unit length."""
    return unit_rows(block - centre).half()
