"""The two blocks of a node's vector that no label touched, and ridge regression on them, of tables of nodes."""

import numpy as np
import torch

from graphfcl.methods.blocks.interface import Held, NodeTables, RowBlock, Table, Tensors
from graphfcl.methods.learner import Labelled
from graphfcl.methods.shared.ridge import RidgeSums, ridge_scores
from graphfcl.methods.shared.untrained_blocks import HOPS, UntrainedBlocks, centred_rows

BYTES_OF_ASKED = 2  # of a number of f(v)
BYTES_OF_KEPT = 6  # of one that is kept, joined with others and gathered
BYTES_OF_SQUARE = 40  # of a number of the sums: two of them, a scaled one, its factor and what solves it


def fix_blocks(
    blocks: UntrainedBlocks, tables: NodeTables, rank: int, seed: int, *, chosen_on: tuple[int, int]
) -> None:
    """Basis and centres, from the graph of session 0. A limit of memory that is too small for a phase is refused.

    chosen_on: where validation sessions choose, how many vectors are asked about, and how many are kept.
    """
    columns = min(rank, tables.node_count, tables.feature_count)
    _require(tables, columns, _held_by_choice(*chosen_on, 2 * columns))
    blocks.take_basis(*tables.leading_vectors(rank, seed), tables.device)
    own, around = _own_and_around(blocks, tables)
    blocks.centres = (tables.column_means(own), tables.column_means(around))


def _own_and_around(blocks: UntrainedBlocks, tables: NodeTables) -> tuple[Table, Table]:
    own = tables.own(blocks.basis)
    (around,) = tables.hops(own, (HOPS,))
    return own, around


def _require(tables: NodeTables, columns: int, *held: Held) -> None:
    """What is held from features to sums and scores of all nodes. columns: of the basis."""
    widest = max(tables.feature_count, 2 * columns + 1)  # vectors with a label
    tables.require(*held, columns=widest, slice_copies=2)


def _held_by_choice(asked: int, kept: int, columns: int) -> Held:
    held = columns * (asked * BYTES_OF_ASKED + kept * BYTES_OF_KEPT + columns * BYTES_OF_SQUARE)
    return Held(held, f"choosing the penalty on {asked:,} rows of {columns:,} columns")


def vectors_of(blocks: UntrainedBlocks, tables: NodeTables) -> Table:
    """(n, 2k) in 16 bits, of all nodes. A limit of memory that is too small for what follows is refused."""
    own, around = _own_and_around(blocks, tables)
    _require(tables, own.columns)
    return tables.table(
        "vectors",
        _vectors,
        2 * own.columns,
        kind="<f2",
        tables={"own": own, "around": around},
        given={"own": blocks.centres[0], "around": blocks.centres[1]},
        last_use=("around",),
    )


def near_vectors(blocks: UntrainedBlocks, tables: NodeTables, nodes: np.ndarray) -> torch.Tensor:
    """(m, 2k) of a few nodes; only their neighbourhoods are read."""
    return blocks.of(*tables.near(nodes, HOPS))


def plus_rows(sums: RidgeSums, tables: NodeTables, vectors: Table, labelled: Labelled, count: int) -> RidgeSums:
    """The sums with many more labelled nodes, in one pass over the rows."""
    counts = sums.counts_with(torch.from_numpy(labelled[1]), count)
    found = tables.sums(
        "ridge",
        _ridge_sums,
        tables={"vectors": vectors, "labels": tables.labels(labelled)},
        given={"roots": sums.roots_of(counts)},
    )
    return RidgeSums(found["gram"], found["sums"], counts, sums.balanced).with_sums_of(sums)


def scores_of(tables: NodeTables, vectors: Table, weights: torch.Tensor, counts: torch.Tensor) -> Table:
    """(n, C) points · W; −∞ for a class without a point."""
    given = {"weights": weights.float(), "counts": counts}
    return tables.table("scores", _scores, len(counts), tables={"vectors": vectors}, given=given)


def _vectors(block: RowBlock) -> torch.Tensor:
    return torch.cat([centred_rows(block.rows(name), block.given[name]) for name in ("own", "around")], dim=1)


def _ridge_sums(block: RowBlock) -> Tensors:
    points, labels = block.labelled("vectors")
    roots = block.given["roots"]
    size, count = block.tables["vectors"].columns, len(roots)
    gram, sums = (
        torch.zeros(shape, dtype=torch.float64, device=points.device) for shape in ((size, size), (count, size))
    )
    RidgeSums.add(gram, sums, points, labels, roots[labels])
    return {"gram": gram, "sums": sums}


def _scores(block: RowBlock) -> torch.Tensor:
    return ridge_scores(block.rows("vectors"), block.given["weights"], block.given["counts"])
