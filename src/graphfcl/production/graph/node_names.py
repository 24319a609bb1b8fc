"""The nodes of a graph in memory by number and by id, without their edges and features."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from graphfcl.errors import InputError, quoted
from graphfcl.graph.id_index import IdIndex
from graphfcl.graph.ids import listed

AT_A_TIME = 1 << 14  # nodes that are answered about at a time, where all are
UNKNOWN_NODE = "node {} is not in the graph: check the ids."


@dataclass(frozen=True, eq=False)
class NodeNames:
    """See :class:`NodeIndex`. numbers: (n,) ascending. ids: (n,) the user's. A row is a place in both."""

    numbers: np.ndarray
    ids: np.ndarray

    @property
    def node_count(self) -> int:
        return int(self.numbers.size)

    @property
    def folder_nodes(self) -> int:
        return 0

    def rows_of_ids(self, ids: Any) -> np.ndarray:
        return self._index.rows(ids)

    def known_rows(self, ids: Any, sentence: str = UNKNOWN_NODE) -> np.ndarray:
        rows = self.rows_of_ids(ids)
        if (rows < 0).any():
            raise not_there(ids, rows, sentence)
        return rows

    def numbers_of(self, ids: Any) -> np.ndarray:
        return self.numbers[self.known_rows(ids)]

    def numbers_at(self, rows: Any) -> np.ndarray:
        return self.numbers[rows]

    def ids_at(self, rows: Any) -> np.ndarray:
        return self.ids[rows]

    def ids_of(self, numbers: np.ndarray) -> np.ndarray:
        rows = np.searchsorted(self.numbers, numbers).clip(max=max(0, self.numbers.size - 1))
        strange = numbers[self.numbers[rows] != numbers] if self.numbers.size else numbers
        if strange.size:
            raise InputError(f"node number {strange[0]} is not in the graph: ask only for nodes that exist.")
        return self.ids[rows]

    def contains(self, numbers: np.ndarray) -> np.ndarray:
        return np.isin(numbers, self.numbers)

    def row_parts(self, row_bytes: int) -> Iterator[np.ndarray]:  # noqa: ARG002  # answers are in memory already
        for start in range(0, max(1, self.node_count), AT_A_TIME):
            yield np.arange(start, min(start + AT_A_TIME, self.node_count))

    @cached_property
    def _index(self) -> IdIndex:
        return IdIndex(self.ids)


def not_there(ids: Any, rows: np.ndarray, sentence: str) -> InputError:
    """Some ids have no row (-1). Ids of a table have a ``place``, which the message begins with."""
    given, missing = listed(ids), np.flatnonzero(rows < 0).tolist()
    more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
    where = f"{ids.place(missing[0])}: " if hasattr(ids, "place") else ""
    return InputError(where + sentence.format(f"{quoted(given[missing[0]])}{more}"))
