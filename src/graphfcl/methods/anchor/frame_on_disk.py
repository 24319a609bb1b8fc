"""From tables of blocks to x: centres, whitening, the table of x, and class sums."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from graphfcl.methods.anchor.class_sums import Anchors, class_sums, mean_of_means, root_of, spread
from graphfcl.methods.anchor.vectors import ROWS, joined, points
from graphfcl.methods.blocks.folder_inputs import FolderInputs
from graphfcl.methods.blocks.labelled_rows import label_table, labelled_rows
from graphfcl.methods.blocks.row_phases import RowBlock
from graphfcl.methods.blocks.stored_table import StoredTable
from graphfcl.methods.blocks.work_folder import Arrays
from graphfcl.methods.learner import Labelled, Tensors

NAMES = ("block 0", "block 1", "block 2")


def _nothing() -> None:
    """What computes blocks that are there."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """The blocks of all nodes. weights: theirs in f. kind: to which they are rounded. columns: of each block at most.

    make: computes them, if they were only planned.
    """

    tables: tuple[StoredTable, ...]
    weights: tuple[float, ...]
    kind: str
    columns: int | None = None
    make: Callable[[], object] = _nothing

    @property
    def named(self) -> dict[str, StoredTable]:
        return dict(zip(NAMES, self.tables, strict=False))

    @property
    def values(self) -> dict[str, Any]:
        return {"weights": list(self.weights[: len(self.tables)]), "rounded_to": self.kind, "leading": self.columns}

    @property
    def width(self) -> int:
        """Columns of all blocks together."""
        return sum(min(table.columns, self.columns or table.columns) for table in self.tables)


def frame_of(inputs: FolderInputs, blocks: Blocks, labelled: Labelled, count: int, shrinkage: float) -> Tensors:
    """Centres of the blocks, the mean of class means, and R."""
    shown = blocks.named
    centres = {name: centre[: blocks.columns].numpy() for name, centre in centres_of(inputs, blocks).items()}
    with_labels = {**shown, "labels": label_table(inputs, labelled)}
    found = inputs.rows.sums(
        "class-sums", _class_sums, tables=with_labels, given=centres, before=blocks.make, count=count, **blocks.values
    )
    within = inputs.rows.sums(
        "within", _spread, tables=with_labels, given={**centres, **found}, before=blocks.make, **blocks.values
    )["within"]
    sums, counts = torch.from_numpy(found["sums"]), torch.from_numpy(found["counts"])
    frame = {name: torch.from_numpy(centre) for name, centre in centres.items()}
    if len(blocks.tables) == 2:
        frame["centre.2"] = torch.zeros(0)
    return {**frame, "middle": mean_of_means(sums, counts), "whitening": root_of(torch.from_numpy(within), shrinkage)}


def centres_of(inputs: FolderInputs, blocks: Blocks) -> Tensors:
    """The means of all columns of each block, over visible nodes: a pass for each block, done once for all frames."""
    found = {}
    for place, table in enumerate(blocks.tables):
        only = {NAMES[0]: table}
        total = inputs.rows.sums(
            "centres", _block_sum, tables=only, before=blocks.make, rounded_to=blocks.kind, leading=None
        )["total"]
        found[f"centre.{place}"] = torch.from_numpy((total / max(1, inputs.visible.node_count)).astype("f4"))
    return found


def vectors_of(inputs: FolderInputs, blocks: Blocks, frame: Tensors) -> StoredTable:
    """(n, D) x of all nodes, in 16 bits."""
    return inputs.rows.table(
        "x",
        points_of_block,
        blocks.width,
        kind="<f2",
        tables=blocks.named,
        given=frame_arrays(frame),
        before=blocks.make,
        **blocks.values,
    )


def sums_of(inputs: FolderInputs, vectors: StoredTable, labelled: Labelled, count: int) -> Anchors:
    """Class sums of x over labelled nodes, in one pass."""
    tables = {"x": vectors, "labels": label_table(inputs, labelled)}
    found = inputs.rows.sums("anchors", _anchor_sums, tables=tables, count=count)
    return Anchors(torch.from_numpy(found["sums"]), torch.from_numpy(found["counts"]))


def frame_arrays(frame: Tensors) -> Arrays:
    """What :func:`points_of_block` is given."""
    names = ("centre.0", "centre.1", "centre.2", "middle", "whitening")
    return {name: frame[name].numpy() for name in names if name in frame and frame[name].numel()}


def _rounded(block: RowBlock) -> list[torch.Tensor]:
    """The blocks of its rows, rounded as in a table of all nodes."""
    kind = torch.float16 if block.values["rounded_to"] == "<f2" else torch.float32
    names = [name for name in NAMES if name in block.tables]
    return [block.rows(name, block.values["leading"]).to(kind) for name in names]


def _joined(block: RowBlock, parts: list[torch.Tensor]) -> torch.Tensor:
    return joined(parts, block.given, tuple(block.values["weights"]))


def _block_sum(block: RowBlock) -> Tensors:
    return {"total": block.only_visible(_rounded(block)[0]).double().sum(dim=0)}


def _labelled(block: RowBlock) -> tuple[torch.Tensor, torch.Tensor]:
    """f of its labelled rows in 16 bits, and their columns."""
    columns = block.rows("labels")[:, 0].long()
    chosen = torch.nonzero(columns >= 0)[:, 0]
    parts = [part[chosen] for part in _rounded(block)]
    pieces = [_joined(block, [part[at : at + ROWS] for part in parts]).half() for at in range(0, len(chosen), ROWS)]
    return torch.cat(pieces) if pieces else _joined(block, parts).half(), columns[chosen]


def _class_sums(block: RowBlock) -> Tensors:
    sums, counts = class_sums(*_labelled(block), block.values["count"])
    return {"sums": sums, "counts": counts}


def _spread(block: RowBlock) -> Tensors:
    points, labels = _labelled(block)
    sums, counts = block.given["sums"], block.given["counts"]
    # Few at a time: a whole block in 64 bits takes more memory than all else of a fit.
    parts = [(points[at : at + ROWS], labels[at : at + ROWS]) for at in range(0, max(1, len(points)), ROWS)]
    within = spread(*parts[0], sums, counts)
    for part in parts[1:]:
        within += spread(*part, sums, counts)
    return {"within": within}


def points_of_block(block: RowBlock) -> torch.Tensor:
    """(rows, D) x from the blocks and a frame."""
    parts = _rounded(block)
    rows = block.stop - block.start
    return torch.cat(
        [points(_joined(block, [part[at : at + ROWS] for part in parts]), block.given) for at in range(0, rows, ROWS)]
    )


def _anchor_sums(block: RowBlock) -> Tensors:
    found, labels = labelled_rows(block, "x")
    sums, counts = class_sums(found, labels, block.values["count"])
    return {"sums": sums, "counts": counts}
