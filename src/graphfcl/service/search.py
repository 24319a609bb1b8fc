"""Nodes by a part of their id."""

from dataclasses import dataclass

import numpy as np

BREAK = "\n"  # no id holds a control character


@dataclass(frozen=True, eq=False)
class IdSearch:
    """All ids in one lower-case text, so that a search is one pass in C, whatever the number of nodes.

    ids: (n,) of all nodes, in the order in which they are listed. starts: (n,) where each begins in ``text``.
    """

    ids: np.ndarray
    text: str
    starts: np.ndarray

    @classmethod
    def of(cls, ids: np.ndarray) -> "IdSearch":
        folded = [str(each).lower() for each in ids.tolist()]
        starts = np.concatenate([[1], 2 + np.cumsum([len(text) for text in folded]) + np.arange(len(folded))])
        return cls(ids, f"{BREAK}{BREAK.join(folded)}{BREAK}", starts[:-1])

    def found(self, asked: str, limit: int) -> np.ndarray:
        """(m,) ids that are, begin with or hold a text, in this order; capital letters do not matter."""
        return self.ids[self.places(asked, limit)]

    def places(self, asked: str, limit: int) -> list[int]:
        """Where these stand in ``ids``."""
        wanted = asked.strip().lower()
        if BREAK in wanted:
            return []
        if not wanted:
            return list(range(min(limit, len(self.starts))))
        found: dict[int, None] = {}
        for pattern in (f"{BREAK}{wanted}{BREAK}", f"{BREAK}{wanted}", wanted):
            self._add(found, pattern, limit)
        return list(found)

    def _add(self, found: dict[int, None], pattern: str, limit: int) -> None:
        """The places in which a pattern stands, as long as there is room."""
        shift = int(pattern.startswith(BREAK))
        place = self.text.find(pattern)
        while place >= 0 and len(found) < limit:
            row = int(np.searchsorted(self.starts, place + shift, side="right")) - 1
            found[row] = None
            # On from the end of this id: a node is found once.
            end = int(self.starts[row + 1]) - 1 if row + 1 < len(self.starts) else len(self.text)
            place = self.text.find(pattern, end)
