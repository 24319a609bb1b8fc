"""From features to x(v): the blocks of f(v), their centres, the whitening, and class sums of x.

A node's blocks are XB, Â…ÂXB and Z side by side. Every formula here is a function of some rows; tables call it for
blocks of rows (``methods/blocks``).
"""

from dataclasses import dataclass
from typing import Any

import torch

from graphfcl.graph.interfaces import VisibleNodes
from graphfcl.methods.anchor.class_sums import Anchors, class_sums, mean_of_means, root_of, spread
from graphfcl.methods.blocks import NodeTables, RowBlock, Table
from graphfcl.methods.blocks.interface import ROWS, TYPES
from graphfcl.methods.learner import Labelled, Tensors
from graphfcl.methods.shared.untrained_features import unit_rows

FRAME = ("centre.0", "centre.1", "centre.2", "middle", "whitening")


@dataclass(frozen=True, eq=False)
class Blocks:
    """The blocks of all nodes.

    table: (n, ΣD) side by side. widths: columns of each. weights: those in f. kind: the type of f and x.
    """

    table: Table
    widths: tuple[int, ...]
    weights: tuple[float, ...]
    kind: str

    @classmethod
    def of(cls, tables: NodeTables, parts: list[Table], weights: tuple[float, ...], kind: str = "<f4") -> "Blocks":
        """Join tables of blocks, of which the last may be missing."""
        widths = [part.columns for part in parts]
        joined = tables.side_by_side([part for part in parts if part.columns], block_kind(tables.visible, kind))
        return cls(joined, (*widths, *[0] * (len(weights) - len(parts))), weights, kind)

    @property
    def values(self) -> dict[str, Any]:
        return {"widths": list(self.widths), "weights": list(self.weights), "point_kind": self.kind}


def block_kind(visible: VisibleNodes, kind: str) -> str:
    """The type of blocks if f and x have this one. Only words, whose rows have unit length, fit in 16 bits."""
    return kind if visible.sparse_features and visible.feature_count else "<f4"


def centres_of(tables: NodeTables, blocks: Blocks) -> Tensors:
    """The means of the blocks over the visible nodes."""
    parts = tables.column_means(blocks.table).split(list(blocks.widths))
    return {f"centre.{place}": centre for place, centre in enumerate(parts)}


def frame_of(
    tables: NodeTables, blocks: Blocks, centres: Tensors, labelled: Labelled, count: int, shrinkage: float
) -> Tensors:
    """Centres of the blocks, the mean of class means, and R."""
    read = {"blocks": blocks.table, "labels": tables.labels(labelled)}
    found = tables.sums("class-sums", _class_sums, tables=read, given=centres, count=count, **blocks.values)
    within = tables.sums("within", _spread, tables=read, given={**centres, **found}, **blocks.values)["within"]
    middle = mean_of_means(found["sums"], found["counts"])
    return {**centres, "middle": middle, "whitening": root_of(within, shrinkage)}


def vectors_of(tables: NodeTables, blocks: Blocks, frame: Tensors, *, last_use: bool = False) -> Table:
    """(n, D) x of all nodes. last_use: of the blocks."""
    return tables.table(
        "x",
        points_of_block,
        blocks.table.columns,
        kind=blocks.kind,
        tables={"blocks": blocks.table},
        given={name: frame[name] for name in FRAME if name in frame},
        last_use=("blocks",) * last_use,
        **blocks.values,
    )


def sums_of(tables: NodeTables, x: Table, labelled: Labelled, count: int) -> Anchors:
    """Class sums of x over labelled nodes."""
    read = {"x": x, "labels": tables.labels(labelled)}
    found = tables.sums("anchors", _anchor_sums, tables=read, count=count)
    return Anchors(found["sums"], found["counts"])


def joined(blocks: list[torch.Tensor], frame: Tensors, weights: tuple[float, ...]) -> torch.Tensor:
    """(r, D) f(v): the blocks side by side, each centred, of unit length, and weighted."""
    parts = [
        weight * unit_rows(block.float() - frame[f"centre.{place}"])
        for place, (block, weight) in enumerate(zip(blocks, weights, strict=True))
    ]
    return torch.cat(parts, dim=1)


def points(vectors: torch.Tensor, frame: Tensors, kind: str) -> torch.Tensor:
    """(r, D) x(v) of this type, from f(v)."""
    return unit_rows((vectors - frame["middle"]) @ frame["whitening"]).to(TYPES[kind])


def points_of_block(block: RowBlock) -> torch.Tensor:
    """(rows, D) x from the blocks and a frame, a few rows in 32 bits at a time."""
    rows, kind = block.rows("blocks"), block.values["point_kind"]
    found = torch.empty(rows.shape, dtype=TYPES[kind], device=rows.device)
    for start in range(0, len(rows), ROWS):
        found[start : start + ROWS] = points(_joined(block, rows[start : start + ROWS]), block.given, kind)
    return found


def _joined(block: RowBlock, rows: torch.Tensor) -> torch.Tensor:
    return joined(list(rows.split(block.values["widths"], dim=1)), block.given, tuple(block.values["weights"]))


def _labelled(block: RowBlock) -> tuple[torch.Tensor, torch.Tensor]:
    """f of its labelled rows, and their columns."""
    rows, columns = block.labelled("blocks")
    found = torch.empty(rows.shape, dtype=TYPES[block.values["point_kind"]], device=rows.device)
    for start in range(0, len(rows), ROWS):
        found[start : start + ROWS] = _joined(block, rows[start : start + ROWS])
    return found, columns


def _class_sums(block: RowBlock) -> Tensors:
    sums, counts = class_sums(*_labelled(block), block.values["count"])
    return {"sums": sums, "counts": counts}


def _spread(block: RowBlock) -> Tensors:
    return {"within": spread(*_labelled(block), block.given["sums"], block.given["counts"])}


def _anchor_sums(block: RowBlock) -> Tensors:
    sums, counts = class_sums(*block.labelled("x"), block.values["count"])
    return {"sums": sums, "counts": counts}
