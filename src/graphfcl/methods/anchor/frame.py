"""Compute the centred feature blocks f(v) of a node, and from them its whitened unit vector x(v).

The blocks of a node are its rows of XB (own features), Â…ÂXB (propagated features) and Z (encoder output). Each formula
is a function of a chunk of rows, so it can be applied to the tables of large graphs chunk by chunk
(``methods/blocks``). The *frame* is everything that session 0 fixes: the centres, the mean of the class means, the
whitening matrix R and its shrinkage ρ̄.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from graphfcl.graph.interfaces import VisibleNodes
from graphfcl.methods.anchor.class_sums import class_sums
from graphfcl.methods.anchor.metric import CHUNK
from graphfcl.methods.blocks import NodeTables, RowBlock, Table
from graphfcl.methods.blocks.interface import ROWS, TYPES, RowMap
from graphfcl.methods.shared.untrained_features import unit_rows
from graphfcl.methods.state import Labelled, Tensors

FRAME = ("centre.0", "centre.1", "centre.2", "middle", "whitening")
LARGEST = 1e4  # largest entry of a root R, so that it can be stored in 16 bits
TILE = 256  # columns per step in products of symmetric and triangular matrices


@dataclass(frozen=True, eq=False)
class Blocks:
    """The blocks of all nodes.

    Args:
        tables: The tables of the graph.
        table: (n, ΣD) table with the blocks side by side.
        widths: Number of columns of each block.
        weights: Weight of each block in f.
        kind: Number type of f and x, as a numpy type string.
    """

    tables: NodeTables
    table: Table
    widths: tuple[int, ...]
    weights: tuple[float, ...]
    kind: str

    @classmethod
    def of(cls, tables: NodeTables, parts: list[Table], weights: tuple[float, ...], kind: str = "<f4") -> "Blocks":
        """Join the tables of the blocks. ``parts`` may omit the encoder block, which is the last one."""
        widths = [part.columns for part in parts]
        joined = tables.side_by_side([part for part in parts if part.columns], block_kind(tables.visible, kind))
        return cls(tables, joined, (*widths, *[0] * (len(weights) - len(parts))), weights, kind)

    @property
    def values(self) -> dict[str, Any]:
        return {"widths": list(self.widths), "weights": list(self.weights), "vector_kind": self.kind}

    def split(self, rows: torch.Tensor) -> list[torch.Tensor]:
        """Split rows of the table into blocks."""
        return list(rows.split(list(self.widths), dim=1))

    def centres(self) -> Tensors:
        """Compute the means of the blocks over the visible nodes."""
        parts = self.tables.column_means(self.table).split(list(self.widths))
        return {f"centre.{place}": centre for place, centre in enumerate(parts)}

    def frame(self, centres: Tensors, labelled: Labelled, count: int, shrinkage: float) -> Tensors:
        """Compute the frame from the labelled nodes of ``count`` classes."""
        read, values = {"blocks": self.table, "labels": self.tables.labels(labelled)}, self.values
        sums = self.tables.sums("class-sums", _class_sums, tables=read, tensors=centres, count=count, **values)
        within = self.tables.sums("within", _spread, tables=read, tensors={**centres, **sums}, **values)["within"]
        middle = mean_of_means(sums["sums"], sums["counts"])
        return {**centres, "middle": middle, **root_of(within, shrinkage)}

    def mapped(
        self, phase: str, function: RowMap, columns: int, frame: Tensors, more: Tensors | None = None, **options: Any
    ) -> Table:
        """Apply ``function`` to each chunk and return an (n, columns) table. ``more`` adds tensors to the frame."""
        tensors = {**{name: frame[name] for name in FRAME if name in frame}, **(more or {})}
        read = {"blocks": self.table}
        return self.tables.table(phase, function, columns, tables=read, tensors=tensors, **options, **self.values)

    def vectors(self, frame: Tensors, *, last_use: bool = False) -> Table:
        """Compute the (n, D) table of x. With ``last_use`` the blocks are not needed afterwards."""
        done = ("blocks",) * last_use
        return self.mapped("x", whitened_of_block, self.table.columns, frame, kind=self.kind, last_use=done)


def block_kind(visible: VisibleNodes, kind: str) -> str:
    """Return the number type of the blocks, where ``kind`` is the type of f and x.

    Dense features stay in 32 bits because their range may exceed 16 bits.
    """
    return kind if visible.sparse_features and visible.feature_count else "<f4"


def joined(blocks: list[torch.Tensor], frame: Tensors, weights: tuple[float, ...]) -> torch.Tensor:
    """Compute (r, D) f(v): centre each block, scale its rows to unit length, weight it, and join the blocks."""
    parts = [
        weight * unit_rows(block.float() - frame[f"centre.{place}"])
        for place, (block, weight) in enumerate(zip(blocks, weights, strict=True))
    ]
    return torch.cat(parts, dim=1)


def whitened(vectors: torch.Tensor, frame: Tensors, kind: str) -> torch.Tensor:
    """Compute (r, D) x(v) in the number type ``kind`` from (r, D) f(v)."""
    return unit_rows(times_upper(vectors - frame["middle"], frame["whitening"])).to(TYPES[kind])


def whitened_of_block(block: RowBlock) -> torch.Tensor:
    """Compute the (rows, D) vectors x of a chunk from its blocks and the frame."""
    kind = block.values["vector_kind"]
    return _by_rows(block, block.rows("blocks"), lambda some: whitened(_joined(block, some), block.tensors, kind))


def _by_rows(block: RowBlock, rows: torch.Tensor, function: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """Apply a 32-bit function to a few rows at a time. The result has the number type of x."""
    values = torch.empty(rows.shape, dtype=TYPES[block.values["vector_kind"]], device=rows.device)
    for start in range(0, len(rows), ROWS):
        values[start : start + ROWS] = function(rows[start : start + ROWS])
    return values


def _joined(block: RowBlock, rows: torch.Tensor) -> torch.Tensor:
    return joined(list(rows.split(block.values["widths"], dim=1)), block.tensors, tuple(block.values["weights"]))


def _labelled(block: RowBlock) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the vectors f of the labelled rows of a chunk, and their class columns."""
    rows, columns = block.labelled("blocks")
    return _by_rows(block, rows, lambda some: _joined(block, some)), columns


def _class_sums(block: RowBlock) -> Tensors:
    sums, counts = class_sums(*_labelled(block), block.values["count"])
    return {"sums": sums, "counts": counts}


def _spread(block: RowBlock) -> Tensors:
    return {"within": spread(*_labelled(block), block.tensors["sums"], block.tensors["counts"])}


# Closed forms


def whitening(vectors: torch.Tensor, labels: torch.Tensor, count: int, shrinkage: float) -> Tensors:
    """Compute the mean of class means m, the whitening matrix R, and the shrinkage ρ̄.

    R is upper triangular with R Rᵀ = Ŝ⁻¹, Ŝ = S_w + ρ̄ I, ρ̄ = ρ tr(S_w)/D, and comes from a Cholesky decomposition.
    With C₀ classes of two labelled nodes or more, and N₀ = Σ_c (n_c − 1), the within-class covariance is::

        S_w = Σ_c w_c Σ_{v∈c} (f_v − μ_c)(f_v − μ_c)ᵀ,   w_c = ½/N₀ + ½/(C₀ (n_c − 1))

    This is the average of the pooled covariance, in which every label has the same weight, and of the class-balanced
    covariance, in which every class has the same weight. After multiplication by R, the regularised within-class
    covariance is I. R and Ŝ^(−1/2) differ only by a rotation, which changes no angle. If no class has two labelled
    nodes, Ŝ is a multiple of the identity. If an entry of R exceeds 10⁴, as when S_w is almost zero, R is scaled down
    and ρ̄ is scaled up. ρ is multiplied by 10 until the decomposition succeeds.

    Args:
        vectors: (n, D) vectors f of labelled nodes.
        labels: (n,) their class columns.
        count: Number of classes.
        shrinkage: ρ.

    Returns:
        ``middle`` (D,) m, ``whitening`` (D, D) R, and ``shift`` (1,) ρ̄.
    """
    sums, counts = class_sums(vectors, labels, count)
    within = spread(vectors, labels, sums, counts)
    return {"middle": mean_of_means(sums, counts), **root_of(within, shrinkage)}


def spread(vectors: torch.Tensor, labels: torch.Tensor, sums: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """Compute the contribution of these (n, D) vectors f to S_w, as a float64 (D, D) matrix.

    ``sums`` and ``counts`` are the class sums and class sizes of all labelled nodes.
    """
    means = sums / counts.clamp(min=1)[:, None]
    spare = (counts - 1).clamp(min=0)  # a class with one label has no estimate of its covariance
    by_class = 1 / ((spare > 0).sum().clamp(min=1) * spare.clamp(min=1))
    scales = ((1 / spare.sum().clamp(min=1) + by_class) / 2).sqrt()
    size = vectors.shape[1]
    within = torch.zeros(size, size, dtype=torch.float64, device=vectors.device)
    for start in range(0, len(vectors), CHUNK):
        part = slice(start, min(start + CHUNK, len(vectors)))
        centred = torch.empty(part.stop - start, size, device=vectors.device)
        for first in range(0, len(centred), ROWS):  # a whole chunk in 64 bits would take most of the memory
            some = slice(start + first, min(start + first + ROWS, part.stop))
            centred[first : first + ROWS] = (vectors[some] - means[labels[some]]) * scales[labels[some], None]
        within += gram(centred).double()
    return within


def gram(values: torch.Tensor) -> torch.Tensor:
    """Compute (D, D) VᵀV of (n, D) values V. Tiles below the diagonal are copied from those above it."""
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
    """Compute the (n, D) product V R for an upper triangular R, without reading the zeros of R."""
    size = len(upper)
    if size <= TILE or values.is_cuda:
        return values @ upper
    starts = range(0, size, TILE)
    return torch.cat([values[:, : at + TILE] @ upper[: at + TILE, at : at + TILE] for at in starts], dim=1)


def mean_of_means(sums: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """Compute the (D,) mean, in 32 bits, of the means of all classes that have a point."""
    return (sums / counts.clamp(min=1)[:, None])[counts > 0].mean(dim=0).float()


def root_of(within: torch.Tensor, shrinkage: float) -> Tensors:
    """Compute (D, D) R in 32 bits and (1,) ρ̄ from S_w."""
    size = len(within)
    trace = float(within.trace())
    one = torch.eye(size, dtype=torch.float64, device=within.device)
    if not trace > 0:
        within, trace = one, float(size)
    lower, failed = torch.linalg.cholesky_ex(within + shrinkage * trace / size * one)
    while int(failed):  # the shrinkage is smaller than the rounding error of S_w
        shrinkage *= 10
        lower, failed = torch.linalg.cholesky_ex(within + shrinkage * trace / size * one)
    root = torch.linalg.solve_triangular(lower.T, one, upper=True)
    factor = (root.abs().max() / LARGEST).clamp(min=1)  # the scale of R does not matter: x has unit length
    shift = (shrinkage * trace / size * factor**2).reshape(1)
    # Row-major, as it is read from a file: with another memory layout, products differ in their last digits.
    return {"whitening": (root / factor).float().contiguous(), "shift": shift}
