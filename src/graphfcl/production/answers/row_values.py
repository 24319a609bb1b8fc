"""Read rows or blocks of the values of all nodes, from an array or a table on disk."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:  # stored answers are read without scipy
    from graphfcl.graph.interfaces import VisibleNodes


def node_rows(visible: "VisibleNodes") -> np.ndarray:
    """Return the (node_count,) rows that have a node, ascending by node number."""
    return np.arange(visible.row_count) if visible.node_count == visible.row_count else visible.rows(visible.nodes)


@dataclass(frozen=True, eq=False)
class RowValues:
    """Some columns of an (n, k) array or table.

    Attributes:
        table: The array or table.
        columns: Columns to read. None means all.
        floor: Lower bound; lower values are replaced by it.
    """

    table: Any
    columns: np.ndarray | None = None
    floor: float = -np.inf

    @classmethod
    def of(cls, table: Any, columns: np.ndarray | None = None) -> "RowValues":
        """Wrap all or some columns of a table, which is an array or a :class:`StoredTable`."""
        if isinstance(table, np.ndarray):
            return cls(table if columns is None else table[:, columns])
        return cls(table, columns)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.table), self[np.zeros(0, dtype=np.int64)].shape[1]

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        """Return (m, columns) values of some rows."""
        return self._bounded(self.table[rows])

    def blocks(self) -> Iterator[np.ndarray]:
        """Yield (rows, columns) blocks in order. An array is a single block."""
        if isinstance(self.table, np.ndarray):
            yield self._bounded(self.table)
            return
        for start, _ in self.table.blocks:
            yield self._bounded(self.table.block(start))

    def whole(self) -> np.ndarray:
        """Return (n, columns) values in memory."""
        blocks = list(self.blocks())
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Convert the values to an array, so that NumPy functions accept them."""
        return np.array(self.whole(), dtype=dtype, copy=copy)

    def _bounded(self, values: np.ndarray) -> np.ndarray:
        chosen = values if self.columns is None else values[:, self.columns]
        return chosen if self.floor == -np.inf else np.maximum(chosen, chosen.dtype.type(self.floor))

    def bounded(self) -> "RowValues":
        """Replace −∞ by a value far below all others. A method may give the score −∞ to a class that it excludes."""
        if all(bool(np.isfinite(block).all()) for block in self.blocks()):
            return self
        lowest, highest = np.inf, -np.inf
        for block in self.blocks():
            finite = np.isfinite(block)
            lowest = min(lowest, float(block.min(initial=np.inf, where=finite)))
            highest = max(highest, float(block.max(initial=-np.inf, where=finite)))
        if lowest > highest:
            return self
        return replace(self, floor=lowest - 10 * max(1.0, highest - lowest))


def probabilities_of(scores: np.ndarray, temperatures: np.ndarray) -> np.ndarray:
    """Return the (n, columns) softmax of scores with (n,) temperatures. Each row sums to 1."""
    logits = scores / temperatures[:, None]
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)
