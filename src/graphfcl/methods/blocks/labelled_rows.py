"""Labelled nodes of a folder: as a column that row phases read, and the vectors of some of them in memory."""

import numpy as np
import torch

from graphfcl.methods.blocks.folder_inputs import FolderInputs
from graphfcl.methods.blocks.row_phases import RowBlock
from graphfcl.methods.blocks.stored_table import StoredTable
from graphfcl.methods.blocks.work_folder import arrays_key
from graphfcl.methods.learner import Labelled

NOBODY = -1


def label_table(inputs: FolderInputs, labelled: Labelled) -> StoredTable:
    """(n, 1) the columns of labelled nodes, by row; ``NOBODY`` for all others."""
    rows, columns = inputs.visible.rows(labelled[0]), labelled[1]
    key = arrays_key({"nodes": rows, "columns": columns, "rows": np.array(inputs.source.rows)})
    found = inputs.work.table("labels", key, inputs.source.rows, 1, kind="<i4", by="parts")
    missing = found.missing()
    if missing:
        every = np.full((inputs.source.rows, 1), NOBODY, dtype=np.int32)
        every[rows, 0] = columns
        for number in missing:
            file = found.files[number]
            file.write(every[start:stop] for start, stop in file.extent.blocks)
    return found


def labelled_rows(block: RowBlock, values: str, labels: str = "labels") -> tuple[torch.Tensor, torch.Tensor]:
    """(m, D) rows of a table that have a label, and their (m,) columns."""
    columns = block.rows(labels)[:, 0].long()
    chosen = torch.nonzero(columns != NOBODY)[:, 0]
    if not len(chosen):
        table = block.tables[values]
        return torch.zeros(0, table.columns), columns[:0]
    return block.rows(values)[chosen], columns[chosen]


def some_of_each_class(labelled: Labelled, most: int, seed: int) -> Labelled:
    """At most so many nodes of each class, drawn by the seed, in their order."""
    nodes, columns = labelled
    counts = np.bincount(columns)
    if not counts.size or counts.max() <= most:
        return labelled
    order = np.random.default_rng([seed, 9]).permutation(columns.size)
    order = order[np.argsort(columns[order], kind="stable")]
    firsts = (counts.cumsum() - counts)[columns[order]]
    kept = np.sort(order[np.arange(columns.size) - firsts < most])
    return nodes[kept], columns[kept]


def count_of_each_class(columns: np.ndarray, most: int | None) -> int:
    """How many nodes of these columns are taken, if of each class at most so many are."""
    return columns.size if most is None else int(np.minimum(np.bincount(columns), most).sum())
