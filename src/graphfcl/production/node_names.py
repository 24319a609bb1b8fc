"""The nodes of a graph by number and by the user's ids, without their edges and features."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.graph.id_index import IdIndex
from graphfcl.graph.ids import listed
from graphfcl.printing import quoted


@dataclass(frozen=True, eq=False)
class NodeNames:
    """numbers: (n,) ascending. ids: (n,) the user's."""

    numbers: np.ndarray
    ids: np.ndarray

    def rows_of_ids(self, ids: Any) -> np.ndarray:
        """(m,) rows of the user's ids, each taken by itself; -1 where there is no such node."""
        return self._index.rows(ids)

    def known_rows(self, ids: Any, sentence: str) -> np.ndarray:
        """(m,) rows; ids that are not there are an error. sentence: what it says, with a place for the ids."""
        rows = self.rows_of_ids(ids)
        if (rows < 0).any():
            raise not_there(ids, rows, sentence)
        return rows

    def numbers_of(self, ids: Any) -> np.ndarray:
        """(m,) node numbers of the user's ids; an id that is not there is an error."""
        return self.numbers[self.known_rows(ids, "node {} is not in the graph: check the ids.")]

    def ids_of(self, numbers: np.ndarray) -> np.ndarray:
        """(m,) the user's ids of node numbers; a number that is not there is an error."""
        rows = np.searchsorted(self.numbers, numbers).clip(max=max(0, self.numbers.size - 1))
        strange = numbers[self.numbers[rows] != numbers] if self.numbers.size else numbers
        if strange.size:
            raise InputError(f"node number {strange[0]} is not in the graph: ask only for nodes that exist.")
        return self.ids[rows]

    @cached_property
    def _index(self) -> IdIndex:
        return IdIndex(self.ids)


def not_there(ids: Any, rows: np.ndarray, sentence: str) -> InputError:
    """Some ids have no row (-1). Ids of a table have a ``place``, which the message begins with."""
    given, missing = listed(ids), np.flatnonzero(rows < 0).tolist()
    more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
    where = f"{ids.place(missing[0])}: " if hasattr(ids, "place") else ""
    return InputError(where + sentence.format(f"{quoted(given[missing[0]])}{more}"))
