"""From the blocks of all nodes to x(v), in as little memory as a table in 16 bits takes.

Blocks are made for a slice of columns at a time, and whitened for a chunk of rows at a time, in place: the table and
what one slice or chunk takes are all there is at once. Numbers have a table in 32 bits first.
"""

import numpy as np
import torch

from graphfcl.methods.learner import Tensors
from graphfcl.methods.shared.untrained_features import propagated, unit_rows
from graphfcl.nn import GraphInputs

COLUMNS = 128  # of the basis that are propagated at a time
ROWS = 4096  # that are whitened at a time


def block_table(
    inputs: GraphInputs, basis: torch.Tensor, hops: int, codes: torch.Tensor, kind: torch.dtype
) -> torch.Tensor:
    """(n, 2k + h) XB, Â…ÂXB and Z side by side, as they are, in ``kind``.

    basis: (d, k) B. codes: (n, h) Z.
    """
    rank = basis.shape[1]
    table = torch.empty(inputs.visible.node_count, 2 * rank + codes.shape[1], dtype=kind, device=inputs.device)
    for start in range(0, rank, COLUMNS):
        part = slice(start, min(start + COLUMNS, rank))
        own = inputs.raw() @ basis[:, part]
        table[:, part] = own
        table[:, rank + part.start : rank + part.stop] = propagated(inputs, own, hops)
    table[:, 2 * rank :] = codes
    return table


def block_type(inputs: GraphInputs) -> torch.dtype:
    """16 bits hold words with rows of unit length; numbers may be of any size."""
    return torch.float32 if isinstance(inputs.visible.features, np.ndarray) else torch.float16


def column_means(table: torch.Tensor) -> torch.Tensor:
    """(D,) in 32 bits."""
    total = torch.zeros(table.shape[1], dtype=torch.float64, device=table.device)
    for start in range(0, len(table), ROWS):
        total += table[start : start + ROWS].double().sum(dim=0)
    return (total / max(1, len(table))).float()


def joined(blocks: list[torch.Tensor], frame: Tensors, weights: tuple[float, ...]) -> torch.Tensor:
    """(r, D) f(v): the blocks side by side, each centred, of unit length, and weighted."""
    parts = [
        weight * unit_rows(block.float() - frame[f"centre.{place}"])
        for place, (block, weight) in enumerate(zip(blocks, weights, strict=True))
    ]
    return torch.cat(parts, dim=1)


def joined_rows(table: torch.Tensor, rows: torch.Tensor, frame: Tensors, weights: tuple[float, ...]) -> torch.Tensor:
    """(r, D) f of some rows of a table of blocks, in 16 bits, as many at a time as are whitened at a time."""
    found = torch.empty(len(rows), table.shape[1], dtype=torch.float16, device=table.device)
    for start in range(0, len(rows), ROWS):
        part = slice(start, start + ROWS)
        found[part] = joined(_split(table[rows[part]], frame, weights), frame, weights)
    return found


def points(vectors: torch.Tensor, frame: Tensors) -> torch.Tensor:
    """(r, D) x(v) in 16 bits, from f(v)."""
    return unit_rows((vectors - frame["middle"]) @ frame["whitening"]).half()


def points_of_table(table: torch.Tensor, frame: Tensors, weights: tuple[float, ...]) -> torch.Tensor:
    """(n, D) x of all nodes, in the table's place if it has 16 bits."""
    found = table if table.dtype == torch.float16 else torch.empty_like(table, dtype=torch.float16)
    for start in range(0, len(table), ROWS):
        part = slice(start, start + ROWS)
        found[part] = points(joined(_split(table[part], frame, weights), frame, weights), frame)
    return found


def _split(table: torch.Tensor, frame: Tensors, weights: tuple[float, ...]) -> list[torch.Tensor]:
    """The blocks of some rows."""
    return list(table.split([len(frame[f"centre.{place}"]) for place in range(len(weights))], dim=1))
