"""From features to x(v): the blocks of f(v), their centres, the whitening; and class sums of x with their means.

A node's blocks are XB, Â…ÂXB and Z side by side. Every formula here is a function of some rows; tables call it for
blocks of rows (``methods/blocks``).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from graphfcl.graph.interfaces import VisibleNodes
from graphfcl.methods.anchor.settings import AnchorSettings
from graphfcl.methods.blocks import NodeTables, RowBlock, Table
from graphfcl.methods.blocks.interface import ROWS, TYPES, RowMap
from graphfcl.methods.learner import Labelled, Tensors
from graphfcl.methods.shared.untrained_features import unit_rows

FRAME = ("centre.0", "centre.1", "centre.2", "middle", "whitening")
LARGEST = 1e4  # entry of a root, so that 16 bits hold it
CHUNK = 16_384  # rows that are turned from 16 into 32 bits at a time
TILE = 256  # columns of products that are computed at a time where half of them is known
MIN_LABELS_FOR_LENGTH = 20  # from so many on a class tells how long means are


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
        """Centres of the blocks, the mean of class means, and R."""
        read, values = {"blocks": self.table, "labels": self.tables.labels(labelled)}, self.values
        sums = self.tables.sums("class-sums", _class_sums, tables=read, tensors=centres, count=count, **values)
        within = self.tables.sums("within", _spread, tables=read, tensors={**centres, **sums}, **values)["within"]
        middle = mean_of_means(sums["sums"], sums["counts"])
        return {**centres, "middle": middle, "whitening": root_of(within, shrinkage)}

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


def _anchor_sums(block: RowBlock) -> Tensors:
    sums, counts = class_sums(*block.labelled("x"), block.values["count"])
    return {"sums": sums, "counts": counts}


# Closed forms


def class_sums(points: torch.Tensor, labels: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(count, D) sums in 64 bits and (count,) numbers of points."""
    sums = torch.zeros(count, points.shape[1], dtype=torch.float64, device=points.device)
    for start in range(0, len(points), CHUNK):
        part = slice(start, start + CHUNK)
        sums.index_add_(0, labels[part], points[part].double())
    return sums, torch.bincount(labels, minlength=count).double()


def whitening(
    points: torch.Tensor, labels: torch.Tensor, count: int, shrinkage: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """(D,) the mean of class means m and (D, D) R, upper triangular, with R Rᵀ = Ŝ⁻¹, Ŝ = S_w + ρ tr(S_w)/D · I.

    S_w = (1/C) Σ_c Σ_{v∈c} (f_v − μ_c)(f_v − μ_c)ᵀ / (n_c − 1). (f − m) R has covariance I, as (f − m) Ŝ^(−1/2) has.
    The two differ by a rotation, which changes no angle, and R comes from one Cholesky decomposition. If no class has
    two points nothing is known of the spread, and Ŝ is the identity; if there is hardly any, R is scaled down.
    """
    sums, counts = class_sums(points, labels, count)
    within = spread(points, labels, sums, counts)
    return mean_of_means(sums, counts), root_of(within, shrinkage)


def spread(points: torch.Tensor, labels: torch.Tensor, sums: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """(D, D) in 64 bits: what some points add to S_w. sums, counts: of all labelled points."""
    means = sums / counts.clamp(min=1)[:, None]
    size = points.shape[1]
    within = torch.zeros(size, size, dtype=torch.float64, device=points.device)
    scale = (1 / ((counts - 1).clamp(min=1) * (counts > 0).sum())).sqrt()
    for start in range(0, len(points), CHUNK):
        part = slice(start, min(start + CHUNK, len(points)))
        centred = torch.empty(part.stop - start, size, device=points.device)
        for first in range(0, len(centred), ROWS):  # in 64 bits a chunk takes more memory than all else
            some = slice(start + first, min(start + first + ROWS, part.stop))
            place = labels[some]
            centred[first : first + ROWS] = (points[some] - means[place]) * scale[place][:, None]
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


def root_of(within: torch.Tensor, shrinkage: float) -> torch.Tensor:
    """(D, D) R in 32 bits from S_w."""
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
    root = root / (root.abs().max() / LARGEST).clamp(min=1)  # vectors are made of unit length afterwards
    # In the order in which it is read from a file: products of another one differ in their last digits.
    return root.float().contiguous()


@dataclass(frozen=True, eq=False)
class Anchors:
    """All that is kept of labelled nodes. sums: (C, D) Σ x in 64 bits. counts: (C,) how many. Immutable."""

    sums: torch.Tensor
    counts: torch.Tensor

    @classmethod
    def empty(cls) -> "Anchors":
        return cls(torch.zeros(0, 0, dtype=torch.float64), torch.zeros(0, dtype=torch.float64))

    @classmethod
    def of(cls, tables: NodeTables, x: Table, labelled: Labelled, count: int) -> "Anchors":
        """Class sums of x over labelled nodes."""
        read = {"x": x, "labels": tables.labels(labelled)}
        return cls(**tables.sums("anchors", _anchor_sums, tables=read, count=count))

    def plus(self, points: torch.Tensor, labels: torch.Tensor, count: int) -> "Anchors":
        """With more labelled nodes, of ``count`` classes in all."""
        sums, counts = class_sums(points, labels, count)
        before = len(self.counts)
        if before:
            sums[:before] += self.sums
            counts[:before] += self.counts
        return Anchors(sums, counts)

    def minus(self, points: torch.Tensor, labels: torch.Tensor) -> "Anchors":
        """Without some that were added before."""
        sums, counts = class_sums(points, labels, len(self.counts))
        return Anchors(self.sums - sums, self.counts - counts)

    def logits(self, points: torch.Tensor, settings: AnchorSettings) -> torch.Tensor:
        """(n, C) T x·μ_c/ℓ_c by the sums alone; −∞ for a class without a label."""
        return logits_of(points, self.directions(settings), self.counts, settings.temperature)

    def probabilities(self, points: torch.Tensor, directions: torch.Tensor, temperature: float) -> torch.Tensor:
        """(n, C) softmax of T x·μ_c/ℓ_c by these (C, D) directions; 0 for a class without a label."""
        return torch.softmax(logits_of(points, directions, self.counts, temperature), dim=1)

    def directions(self, settings: AnchorSettings) -> torch.Tensor:
        """(C, D) μ_c/ℓ_c by the sums alone."""
        return directions_of(self._means(), self.counts, settings)

    def _means(self) -> torch.Tensor:
        return self.sums / self.counts.clamp(min=1e-6)[:, None]

    def tensors(self) -> dict[str, torch.Tensor]:
        return {"anchors.sums": self.sums.cpu().clone(), "anchors.counts": self.counts.cpu().clone()}

    @classmethod
    def load(cls, tensors: dict[str, torch.Tensor], device: torch.device) -> "Anchors":
        return cls(tensors["anchors.sums"].to(device), tensors["anchors.counts"].to(device))


def directions_of(means: torch.Tensor, weights: torch.Tensor, settings: AnchorSettings) -> torch.Tensor:
    """(C, D) μ_c/ℓ_c: ℓ² = (|μ|² − 1/n)/(1 − 1/n), shrunk to its mean over well-well_known classes."""
    noise = 1 / weights.clamp(min=1)
    squares = (((means**2).sum(dim=1) - noise) / (1 - noise).clamp(min=0.3)).clamp(0, 1)
    squares = torch.where(weights > 1.5, squares, torch.zeros_like(squares))
    well_known = weights >= MIN_LABELS_FOR_LENGTH
    if not well_known.any():
        well_known = weights > 0
    usual = squares[well_known].mean().clamp(min=1e-4)
    squares = (weights * squares + settings.length_prior * usual) / (weights + settings.length_prior).clamp(min=1e-6)
    return (means / squares.clamp(min=1e-8).sqrt()[:, None]).float()


def logits_of(points: torch.Tensor, directions: torch.Tensor, counts: torch.Tensor, temperature: float) -> torch.Tensor:
    """(n, C) temperature · x·μ_c/ℓ_c; −∞ for a class without a label."""
    parts = [points[start : start + CHUNK].float() @ directions.T for start in range(0, len(points), CHUNK)]
    logits = temperature * (torch.cat(parts) if parts else points.float() @ directions.T)
    return logits.masked_fill(~(counts > 0), -torch.inf)
