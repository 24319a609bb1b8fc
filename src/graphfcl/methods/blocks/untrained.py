"""The two blocks of a node's vector that no label touched, and ridge regression on them, of a graph folder."""

import numpy as np
import torch

from graphfcl.graph.visible_folder import Need
from graphfcl.methods.blocks.column_phases import need_of_slice
from graphfcl.methods.blocks.folder_inputs import FolderInputs
from graphfcl.methods.blocks.labelled_rows import label_table, labelled_rows
from graphfcl.methods.blocks.row_phases import RowBlock, Tensors, need_of_rows
from graphfcl.methods.blocks.stored_table import StoredTable
from graphfcl.methods.learner import Labelled
from graphfcl.methods.shared.ridge import RidgeSums, ridge_scores
from graphfcl.methods.shared.untrained_blocks import HOPS, UntrainedBlocks, centred_rows
from graphfcl.nn import GraphInputs

BYTES_OF_ASKED = 2  # of a number of f(v)
BYTES_OF_KEPT = 6  # of one that is kept, joined with others and gathered
BYTES_OF_SQUARE = 40  # of a number of the sums: two of them, a scaled one, its factor and what solves it


def fix_blocks(
    blocks: UntrainedBlocks, inputs: FolderInputs, rank: int, seed: int, *, chosen_on: tuple[int, int]
) -> None:
    """Basis and centres, from the graph of session 0. A limit of memory that is too small for a phase is refused.

    chosen_on: where validation sessions choose, how many vectors are asked about, and how many are kept.
    """
    columns = min(rank, inputs.visible.node_count, inputs.feature_count)
    needs = (*_needs_of_pass(inputs, columns), _need_of_choice(*chosen_on, 2 * columns))
    inputs.means.require(inputs.source.rows, *needs)
    blocks.take_basis(*inputs.leading_vectors(rank, seed), inputs.device)
    own = inputs.own(blocks.basis, compute=False)
    (around,) = inputs.hops(own, (HOPS,), compute=False)
    blocks.centres = (
        inputs.column_means(own, before=lambda: inputs.own(blocks.basis)),
        inputs.column_means(around, before=lambda: inputs.hops(inputs.own(blocks.basis), (HOPS,))),
    )


def _needs_of_pass(inputs: FolderInputs, columns: int) -> tuple[Need, Need]:
    """What is held from features to sums and scores of all nodes. columns: of the basis."""
    rows, widest = inputs.source.rows, max(inputs.feature_count, 2 * columns + 1)  # vectors with a label
    return need_of_slice(rows, buffers=2), need_of_rows(rows, widest)


def _need_of_choice(asked: int, kept: int, columns: int) -> Need:
    held = columns * (asked * BYTES_OF_ASKED + kept * BYTES_OF_KEPT + columns * BYTES_OF_SQUARE)
    return Need(held, f"choosing the penalty on {asked:,} rows of {columns:,} columns", here=True)


def vectors_of(blocks: UntrainedBlocks, inputs: FolderInputs) -> StoredTable:
    """(n, 2k) in 16 bits, of all nodes."""
    own = inputs.own(blocks.basis, compute=False)
    (around,) = inputs.hops(own, (HOPS,), compute=False)

    def make() -> None:
        """A limit of memory that is too small for what follows is refused here, before anything is computed."""
        inputs.means.require(inputs.source.rows, *_needs_of_pass(inputs, own.columns))
        inputs.hops(inputs.own(blocks.basis), (HOPS,))

    found = inputs.rows.table(
        "vectors",
        _vectors,
        2 * own.columns,
        kind="<f2",
        tables={"own": own, "around": around},
        given={"own": blocks.centres[0].numpy(), "around": blocks.centres[1].numpy()},
        before=make,
    )
    around.remove()
    return found


def near_vectors(blocks: UntrainedBlocks, inputs: FolderInputs, nodes: np.ndarray) -> torch.Tensor:
    """(m, 2k) of a few nodes; only their neighbourhoods are read."""
    near, rows = inputs.near(nodes, HOPS)
    return blocks.of(GraphInputs(near, inputs.device, sparing=True), rows)


def plus_rows(sums: RidgeSums, inputs: FolderInputs, vectors: StoredTable, labelled: Labelled, count: int) -> RidgeSums:
    """The sums with many more labelled nodes, in one pass over the rows."""
    counts = sums.counts_with(torch.from_numpy(labelled[1]), count)
    found = inputs.rows.sums(
        "ridge",
        _ridge_sums,
        tables={"vectors": vectors, "labels": label_table(inputs, labelled)},
        given={"roots": sums.roots_of(counts).numpy()},
    )
    more = RidgeSums(torch.from_numpy(found["gram"]), torch.from_numpy(found["sums"]), counts, sums.balanced)
    return more.with_sums_of(sums)


def scores_of(inputs: FolderInputs, vectors: StoredTable, weights: torch.Tensor, counts: torch.Tensor) -> StoredTable:
    """(n, C) points · W; −∞ for a class without a point."""
    given = {"weights": weights.float().numpy(), "counts": counts.numpy()}
    return inputs.rows.table("scores", _scores, len(counts), tables={"vectors": vectors}, given=given)


def _vectors(block: RowBlock) -> torch.Tensor:
    return torch.cat([centred_rows(block.rows(name), block.given[name]) for name in ("own", "around")], dim=1)


def _ridge_sums(block: RowBlock) -> Tensors:
    points, labels = labelled_rows(block, "vectors")
    roots = block.given["roots"]
    size, count = block.tables["vectors"].columns, len(roots)
    gram, sums = (torch.zeros(shape, dtype=torch.float64) for shape in ((size, size), (count, size)))
    RidgeSums.add(gram, sums, points, labels, roots[labels])
    return {"gram": gram, "sums": sums}


def _scores(block: RowBlock) -> torch.Tensor:
    return ridge_scores(block.rows("vectors"), block.given["weights"], block.given["counts"])
