"""How a node is found by its id."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from graphfcl.errors import InputError, quoted
from graphfcl.graph.ids import is_whole, listed, normal, text_of, whole_number


@dataclass(frozen=True, eq=False)
class IdIndex:
    """Rows of nodes by their ids. ids: (n,) as :func:`make_ids` gives them, or as an old file has them."""

    ids: np.ndarray

    def exact(self, wanted: Any) -> np.ndarray:
        """(m,) the row of each id that is stored exactly so, a number or a text; -1 where there is none."""
        if self.ids.dtype == object:
            return np.array([self._row_of_text.get(each, -1) for each in listed(wanted)], dtype=np.int64)
        return self._rows_of_numbers(wanted)

    def rows(self, wanted: Any) -> np.ndarray:
        """(m,) the row of each id, each taken by itself; -1 where there is none.

        A number and its text are one id; so are a whole number and the float that it equals. A text is found as it is
        stored, or else by its cleaned form, if only one stored id has that form.
        """
        if self.ids.dtype == object:
            texts = [self._text_of(each) for each in listed(wanted)]
            found = self.exact(texts)
            for place in np.flatnonzero(found < 0).tolist():
                found[place] = self._row_by_form(texts[place])
            return found
        if _are_numbers(wanted):
            return self._rows_of_numbers(wanted)
        numbers = [each if is_whole(each) else whole_number(normal(text_of(each))) for each in listed(wanted)]
        return self._rows_of_numbers(numbers)

    def _text_of(self, value: Any) -> str:
        """An id as text; a float as it is stored, since the texts of a table may be those of floats."""
        spelled = str(value) if isinstance(value, float) else None
        return spelled if spelled in self._row_of_text else text_of(value)

    def _rows_of_numbers(self, wanted: Any) -> np.ndarray:
        """(m,) the row of each number; what is none has no row."""
        if not _are_numbers(wanted):
            given = listed(wanted)
            fits = [is_whole(each) and -(2**63) <= each < 2**63 for each in given]
            numbers = np.array([each if fit else 0 for each, fit in zip(given, fits, strict=True)], dtype=np.int64)
            return np.where(np.array(fits, dtype=bool), self._rows_of_numbers(numbers), -1)
        if self.ids.size == 0:
            return np.full(wanted.shape, -1, dtype=np.int64)
        positions = np.searchsorted(self.ids, wanted, sorter=self._order).clip(max=self.ids.size - 1)
        rows = self._order[positions]
        return np.where(self.ids[rows] == wanted, rows, -1)

    def _row_by_form(self, text: str) -> int:
        form = normal(text)
        rows = [*self._rows_by_form.get(form, ()), *([self._row_of_text[form]] if form in self._row_of_text else ())]
        if len(rows) > 1:
            both = " or ".join(quoted(self.ids[row]) for row in rows[:2])
            raise InputError(f"node {quoted(text)} may be {both}, which differ in spaces or accents: write it exactly.")
        return rows[0] if rows else -1

    @cached_property
    def _order(self) -> np.ndarray:
        return np.argsort(self.ids, kind="stable")

    @cached_property
    def _row_of_text(self) -> dict[str, int]:
        return dict(zip(self.ids.tolist(), range(self.ids.size), strict=True))

    @cached_property
    def _rows_by_form(self) -> dict[str, list[int]]:
        """Rows of the stored ids that are not in their cleaned form, by that form: only old files have some."""
        found: dict[str, list[int]] = {}
        for row, text in enumerate(self.ids.tolist()):
            form = normal(text)
            if form != text:
                found.setdefault(form, []).append(row)
        return found


def _are_numbers(wanted: Any) -> bool:
    return isinstance(wanted, np.ndarray) and wanted.dtype.kind == "i"
