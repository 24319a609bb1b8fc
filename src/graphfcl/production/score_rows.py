"""Scores that stay on the disk, of which rows and blocks are read."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphfcl.methods.blocks.stored_table import StoredTable


@dataclass(frozen=True, eq=False)
class ScoreRows:
    """Some columns of a table of scores. floor: no score is lower."""

    table: StoredTable
    columns: np.ndarray
    floor: float = -np.inf

    @property
    def shape(self) -> tuple[int, int]:
        return self.table.rows, int(self.columns.size)

    def __len__(self) -> int:
        return self.table.rows

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        """(m, columns) of some rows."""
        return self._bounded(self.table[rows])

    def blocks(self) -> Iterator[np.ndarray]:
        """(rows, columns) one block after the other."""
        for start, _ in self.table.blocks:
            yield self._bounded(self.table.block(start))

    def _bounded(self, values: np.ndarray) -> np.ndarray:
        return np.maximum(values[:, self.columns], np.float32(self.floor))

    def bounded(self) -> "ScoreRows":
        """Without −∞: see :func:`bounded`."""
        lowest, highest, all_finite = np.inf, -np.inf, True
        for block in self.blocks():
            finite = np.isfinite(block)
            all_finite = all_finite and bool(finite.all())
            lowest = min(lowest, float(block.min(initial=np.inf, where=finite)))
            highest = max(highest, float(block.max(initial=-np.inf, where=finite)))
        if all_finite or lowest > highest:
            return self
        return replace(self, floor=lowest - 10 * max(1.0, highest - lowest))

    def has_nan(self) -> bool:
        """Whether one of them is no number."""
        return any(bool(np.isnan(block).any()) for block in self.blocks())


def bounded(scores: Any) -> Any:
    """Scores without −∞, which a method may give a class that is out of the question: far below all others instead."""
    if isinstance(scores, ScoreRows):
        return scores.bounded()
    finite = np.isfinite(scores)
    if finite.all() or not finite.any():
        return scores
    known = scores[finite]
    return np.maximum(scores, known.min() - 10 * max(1.0, float(np.ptp(known))))


def columns_of(scores: Any, columns: np.ndarray) -> Any:
    """Some columns of scores, in memory or on the disk."""
    return ScoreRows(scores, columns) if isinstance(scores, StoredTable) else scores[:, columns]


def width_of(scores: Any) -> int:
    """How many columns scores have, in memory or on the disk."""
    return int(scores.columns if isinstance(scores, StoredTable) else scores.shape[1])


def has_nan(scores: Any) -> bool:
    """Whether one of the scores is no number."""
    return scores.has_nan() if isinstance(scores, ScoreRows) else bool(np.isnan(scores).any())
