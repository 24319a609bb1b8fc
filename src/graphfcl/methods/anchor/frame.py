"""From features to x(v): the blocks of f(v), their centres, and the whitening.

A node's blocks are XB, Â…ÂXB and Z side by side. Every formula here is a function of some rows; tables call it for
blocks of rows (``methods/blocks``).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from graphfcl.graph.interfaces import VisibleNodes
from graphfcl.methods.anchor.class_sums import CHUNK, class_sums
from graphfcl.methods.blocks import NodeTables, RowBlock, Table
from graphfcl.methods.blocks.interface import ROWS, TYPES, RowMap
from graphfcl.methods.learner import Labelled, Tensors
from graphfcl.methods.shared.untrained_features import unit_rows

FRAME = ("centre.0", "centre.1", "centre.2", "middle", "whitening")
LARGEST = 1e4  # entry of a root, so that 16 bits hold it
TILE = 256  # columns of products that are computed at a time where half of them is known


@dataclass(frozen=True, eq=False)
class Blocks:
    """The blocks of all nodes.

    table: (n, ΣD) side by side. widths: columns of each. weights: those in f. kind: the type of f and x.
    """

    tables: NodeTables
    table: Table
    widths: tuple[int, ...]
    weights: tuple[float, ...]
    kind: str

    @classmethod
    def of(cls, tables: NodeTables, parts: list[Table], weights: tuple[float, ...], kind: str = "<f4") -> "Blocks":
        """Join tables of blocks, of which the last may be missing."""
        widths = [part.columns for part in parts]
        joined = tables.side_by_side([part for part in parts if part.columns], block_kind(tables.visible, kind))
        return cls(tables, joined, (*widths, *[0] * (len(weights) - len(parts))), weights, kind)

    @property
    def values(self) -> dict[str, Any]:
        return {"widths": list(self.widths), "weights": list(self.weights), "point_kind": self.kind}

    def split(self, rows: torch.Tensor) -> list[torch.Tensor]:
        """The blocks of some rows of the table."""
        return list(rows.split(list(self.widths), dim=1))

    def centres(self) -> Tensors:
        """The means of the blocks over the visible nodes."""
        parts = self.tables.column_means(self.table).split(list(self.widths))
        return {f"centre.{place}": centre for place, centre in enumerate(parts)}

    def frame(self, centres: Tensors, labelled: Labelled, count: int, shrinkage: float) -> Tensors:
        """Centres of the blocks, the mean of class means, R and ρ̄."""
        read, values = {"blocks": self.table, "labels": self.tables.labels(labelled)}, self.values
        sums = self.tables.sums("class-sums", _class_sums, tables=read, tensors=centres, count=count, **values)
        within = self.tables.sums("within", _spread, tables=read, tensors={**centres, **sums}, **values)["within"]
        middle = mean_of_means(sums["sums"], sums["counts"])
        return {**centres, "middle": middle, **root_of(within, shrinkage)}

    def mapped(
        self, phase: str, function: RowMap, columns: int, frame: Tensors, more: Tensors | None = None, **options: Any
    ) -> Table:
        """(n, columns) a function of the blocks and a frame. more: further tensors that it reads."""
        tensors = {**{name: frame[name] for name in FRAME if name in frame}, **(more or {})}
        read = {"blocks": self.table}
        return self.tables.table(phase, function, columns, tables=read, tensors=tensors, **options, **self.values)

    def vectors(self, frame: Tensors, *, last_use: bool = False) -> Table:
        """(n, D) x of all nodes. last_use: of the blocks."""
        done = ("blocks",) * last_use
        return self.mapped("x", points_of_block, self.table.columns, frame, kind=self.kind, last_use=done)


def block_kind(visible: VisibleNodes, kind: str) -> str:
    """The type of blocks if f and x have this one. Only words, whose rows have unit length, fit in 16 bits."""
    return kind if visible.sparse_features and visible.feature_count else "<f4"


def joined(blocks: list[torch.Tensor], frame: Tensors, weights: tuple[float, ...]) -> torch.Tensor:
    """(r, D) f(v): the blocks side by side, each centred, of unit length, and weighted."""
    parts = [
        weight * unit_rows(block.float() - frame[f"centre.{place}"])
        for place, (block, weight) in enumerate(zip(blocks, weights, strict=True))
    ]
    return torch.cat(parts, dim=1)


def points(vectors: torch.Tensor, frame: Tensors, kind: str) -> torch.Tensor:
    """(r, D) x(v) of this type, from f(v)."""
    return unit_rows(times_upper(vectors - frame["middle"], frame["whitening"])).to(TYPES[kind])


def points_of_block(block: RowBlock) -> torch.Tensor:
    """(rows, D) x from the blocks and a frame."""
    kind = block.values["point_kind"]
    return _by_rows(block, block.rows("blocks"), lambda some: points(_joined(block, some), block.tensors, kind))


def _by_rows(block: RowBlock, rows: torch.Tensor, function: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """A function of rows of the blocks, of the type of x; a few rows in 32 bits at a time."""
    values = torch.empty(rows.shape, dtype=TYPES[block.values["point_kind"]], device=rows.device)
    for start in range(0, len(rows), ROWS):
        values[start : start + ROWS] = function(rows[start : start + ROWS])
    return values


def _joined(block: RowBlock, rows: torch.Tensor) -> torch.Tensor:
    return joined(list(rows.split(block.values["widths"], dim=1)), block.tensors, tuple(block.values["weights"]))


def _labelled(block: RowBlock) -> tuple[torch.Tensor, torch.Tensor]:
    """f of its labelled rows, and their columns."""
    rows, columns = block.labelled("blocks")
    return _by_rows(block, rows, lambda some: _joined(block, some)), columns


def _class_sums(block: RowBlock) -> Tensors:
    sums, counts = class_sums(*_labelled(block), block.values["count"])
    return {"sums": sums, "counts": counts}


def _spread(block: RowBlock) -> Tensors:
    return {"within": spread(*_labelled(block), block.tensors["sums"], block.tensors["counts"])}


# Closed forms


def whitening(points: torch.Tensor, labels: torch.Tensor, count: int, shrinkage: float) -> Tensors:
    """(D,) the mean of class means m, ρ̄ and (D, D) R, upper triangular: R Rᵀ = Ŝ⁻¹, Ŝ = S_w + ρ̄ I, ρ̄ = ρ tr(S_w)/D.

    S_w = Σ_c w_c Σ_{v∈c} (f_v − μ_c)(f_v − μ_c)ᵀ, w_c = ½/Σ_c(n_c − 1) + ½/(C (n_c − 1)) with C classes of two points
    or more, is the average of the pooled covariance (every label weighs the same) and the class-balanced one (every
    class does). (f − m) R has covariance I, as (f − m) Ŝ^(−1/2) has. The two differ by a rotation, which changes no
    angle, and R comes from one Cholesky decomposition. If no class has two points nothing is known of the spread, and Ŝ
    is a multiple of the identity; if there is hardly any, R is scaled down, and ρ̄ up.
    """
    sums, counts = class_sums(points, labels, count)
    within = spread(points, labels, sums, counts)
    return {"middle": mean_of_means(sums, counts), **root_of(within, shrinkage)}


def spread(points: torch.Tensor, labels: torch.Tensor, sums: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """(D, D) in 64 bits: what some points add to S_w. sums, counts: of all labelled points."""
    means = sums / counts.clamp(min=1)[:, None]
    spare = (counts - 1).clamp(min=0)  # a class with one point says nothing of the spread
    by_class = 1 / ((spare > 0).sum().clamp(min=1) * spare.clamp(min=1))
    scales = ((1 / spare.sum().clamp(min=1) + by_class) / 2).sqrt()
    size = points.shape[1]
    within = torch.zeros(size, size, dtype=torch.float64, device=points.device)
    for start in range(0, len(points), CHUNK):
        part = slice(start, min(start + CHUNK, len(points)))
        centred = torch.empty(part.stop - start, size, device=points.device)
        for first in range(0, len(centred), ROWS):  # in 64 bits a chunk takes more memory than all else
            some = slice(start + first, min(start + first + ROWS, part.stop))
            centred[first : first + ROWS] = (points[some] - means[labels[some]]) * scales[labels[some], None]
        within += gram(centred).double()
    return within


def gram(values: torch.Tensor) -> torch.Tensor:
    """(D, D) VᵀV; tiles below the diagonal are copies of those above."""
    size = values.shape[1]
    if size <= TILE or values.is_cuda:
        return values.T @ values
    whole = values.new_empty(size, size)
    for start in range(0, size, TILE):
        part = slice(start, start + TILE)
        whole[part, start:] = values[:, part].T @ values[:, start:]
        whole[start + TILE :, part] = whole[part, start + TILE :].T
    return whole


def times_upper(values: torch.Tensor, upper: torch.Tensor) -> torch.Tensor:
    """(n, D) V R for an upper triangular R, of which the zeros are not read."""
    size = len(upper)
    if size <= TILE or values.is_cuda:
        return values @ upper
    starts = range(0, size, TILE)
    return torch.cat([values[:, : at + TILE] @ upper[: at + TILE, at : at + TILE] for at in starts], dim=1)


def mean_of_means(sums: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """(D,) in 32 bits, over the classes that have a point."""
    return (sums / counts.clamp(min=1)[:, None])[counts > 0].mean(dim=0).float()


def root_of(within: torch.Tensor, shrinkage: float) -> Tensors:
    """(D, D) R in 32 bits and (1,) ρ̄ from S_w."""
    size = len(within)
    trace = float(within.trace())
    one = torch.eye(size, dtype=torch.float64, device=within.device)
    if not trace > 0:
        within, trace = one, float(size)
    lower, failed = torch.linalg.cholesky_ex(within + shrinkage * trace / size * one)
    while int(failed):  # so little shrinkage is lost in the rounding of S_w
        shrinkage *= 10
        lower, failed = torch.linalg.cholesky_ex(within + shrinkage * trace / size * one)
    root = torch.linalg.solve_triangular(lower.T, one, upper=True)
    factor = (root.abs().max() / LARGEST).clamp(min=1)  # vectors are made of unit length afterwards
    shift = (shrinkage * trace / size * factor**2).reshape(1)
    # In the order in which it is read from a file: products of another one differ in their last digits.
    return {"whitening": (root / factor).float().contiguous(), "shift": shift}
