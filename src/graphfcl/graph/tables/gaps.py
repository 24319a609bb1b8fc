"""Missing numbers and dates: they are replaced by the median of the column, and an additional feature marks them."""

import datetime
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from graphfcl.errors import InputError
from graphfcl.graph.tables.table import Table
from graphfcl.graph.tables.values import days_of, numbers_of

VALUES = 1 << 24  # numbers in memory at a time, but at least one whole column
EXACT = 1 << 24  # float32 holds every whole number up to this one
EPOCH = datetime.date(1970, 1, 1)


def mark_name(column: str) -> str:
    """Return the name of the feature that is 1 where a value of a column is missing."""
    return f"{column} missing"


@dataclass(frozen=True)
class Gaps:
    """Replacements of missing values.

    Args:
        medians: Median of each column of numbers or dates.
        counts: Number of missing values of each column that has some.
        rounded: Number of integers that float32 cannot represent exactly, for each column that has some.
    """

    medians: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    rounded: dict[str, int] = field(default_factory=dict)

    @classmethod
    def scan(
        cls,
        nodes: Table,
        blocks: Callable[[Sequence[str]], Iterator[Table]],
        columns: Sequence[str],
        dates: Sequence[str],
        count: int,
    ) -> "Gaps":
        """Read columns of numbers and dates, as many at a time as fit into memory; ``count`` is the number of nodes."""
        medians, counts, rounded = {}, {}, {}
        step = max(1, VALUES // max(1, count))
        for group in (columns[start : start + step] for start in range(0, len(columns), step)):
            values = {column: np.empty(count, dtype=np.float32) for column in group}
            whole: dict[str, int] = dict.fromkeys(group, 0)
            faults: dict[str, InputError] = {}
            for block in blocks(group):
                for column in group:
                    try:
                        numbers = (days_of if column in dates else numbers_of)(block, column)
                    except InputError as error:
                        faults.setdefault(column, error)
                        continue
                    part = values[column][block.first : block.first + block.row_count]
                    part[:] = numbers
                    whole[column] += int(
                        np.count_nonzero((numbers != part) & (abs(numbers) > EXACT) & (numbers == np.rint(numbers)))
                    )
            for column in group:
                if column in faults:
                    raise faults[column]
                is_gap = np.isnan(values[column])
                medians[column] = median(values[column][~is_gap])
                if is_gap.any():
                    counts[column] = int(is_gap.sum())
                if whole[column]:
                    rounded[column] = whole[column]
        twice = next((column for column in counts if mark_name(column) in columns), None)
        if twice is not None:
            raise InputError(
                f"{nodes.path}: column {mark_name(twice)!r} has the name of the feature that says where {twice!r} is "
                "missing: rename it, or drop one of the two."
            )
        return cls(medians, counts, rounded)

    @property
    def marks(self) -> list[str]:
        return [mark_name(column) for column in self.counts]

    def note(self, dates: Sequence[str]) -> str:
        """Return a note on filled columns and rounded numbers, or ""."""
        parts = []
        if self.counts:
            filled = [
                f"{column} ({count:,} missing, median {shown_value(self.medians[column], column in dates)})"
                for column, count in self.counts.items()
            ]
            marks = ", ".join(map(repr, self.marks))
            parts.append(f" Filled: {', '.join(filled)}; {marks} {'marks' if len(filled) == 1 else 'mark'} them.")
        if self.rounded:
            listed = ", ".join(f"{count:,} of {column}" for column, count in self.rounded.items())
            parts.append(f" Rounded to 24 bits: {listed} (whole numbers beyond {EXACT:,}).")
        return "".join(parts)


def median(values: np.ndarray) -> float:
    """Return the median rounded to float32, or 0 if there are no values."""
    if not values.size:
        return 0.0
    low, high = (values.size - 1) // 2, values.size // 2
    parted = np.partition(values, (low, high))
    return float(np.float32((float(parted[low]) + float(parted[high])) / 2))


def shown_value(value: float, is_date: bool) -> str:
    """Format a number, or the date after this many days since 1970."""
    if not is_date:
        return f"{value:.6g}"
    try:
        return str(EPOCH + datetime.timedelta(days=value))
    except OverflowError:
        return f"day {value:.6g}"


def filled(numbers: np.ndarray, median: float) -> np.ndarray:
    """Return (rows,) float32 with the median in place of NaN."""
    return np.where(np.isnan(numbers), median, numbers).astype(np.float32)
