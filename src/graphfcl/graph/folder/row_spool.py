"""Reorder rows on disk, from the order of the source to the order of the folder.

Each range of positions in the folder has its own temporary files, to which its rows are appended. Positions are
random, so all ranges have about the same size. At the end each range is read, sorted and appended to the folder.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

RANGES = 256
BUFFER = 1 << 22  # maximum bytes in memory for each file


class RowSpool:
    """Rows of one or more kinds of numbers, of equal or different lengths.

    Args:
        folder: Folder for temporary files. It must not exist yet.
        count: Number of rows.
        dtypes: Type of each kind of numbers. A row has the same number of items of each kind.
        memory: Bytes of a range. It determines the number of ranges if ``row_bytes`` is set.
        row_bytes: Bytes of a row if all rows have the same length.
    """

    def __init__(
        self, folder: Path, count: int, dtypes: tuple[str, ...], *, memory: int, row_bytes: int | None = None
    ) -> None:
        folder.mkdir()
        ranges = RANGES if row_bytes is None else max(1, -(-count * row_bytes // max(1, memory // 4)))
        self._size = max(1, -(-count // ranges))  # rows of a range
        self._folder, self._count, self._dtypes = folder, count, tuple(map(np.dtype, dtypes))

    def add(self, places: np.ndarray, lengths: np.ndarray, *values: np.ndarray) -> None:
        """Add rows with their positions in the folder; each of ``values`` holds one kind of numbers of all rows."""
        ranges = places // self._size
        order = np.argsort(ranges, kind="stable")
        moved = [gather(part, lengths, order) for part in values]
        ordered, sizes = ranges[order], lengths[order]
        ends = np.concatenate([[0], np.cumsum(sizes)])
        cuts = np.append(np.flatnonzero(np.diff(ordered, prepend=-1)), order.size)
        for start, stop in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            number = int(ordered[start])
            self._append(number, "places", places[order[start:stop]].astype("<i8"))
            self._append(number, "lengths", sizes[start:stop].astype("<i8"))
            for kind, (part, dtype) in enumerate(zip(moved, self._dtypes, strict=True)):
                self._append(number, f"{kind}", part[ends[start] : ends[stop]].astype(dtype, copy=False))

    def ranges(self) -> Iterator[tuple[np.ndarray, list[np.ndarray]]]:
        """Yield lengths and numbers of the sorted rows of each range, and delete its files."""
        for number, start in enumerate(range(0, self._count, self._size)):
            places = self._read(number, "places", np.dtype("<i8"))
            lengths = self._read(number, "lengths", np.dtype("<i8"))
            stop = min(start + self._size, self._count)
            order = np.argsort(places)
            if not np.array_equal(places[order], np.arange(start, stop)):
                raise ValueError("rows are missing, or occur twice")
            values = []
            for kind, dtype in enumerate(self._dtypes):
                values.append(gather(self._read(number, f"{kind}", dtype), lengths, order))
            yield lengths[order], values
        self._folder.rmdir()

    def _append(self, number: int, what: str, values: np.ndarray) -> None:
        with open(self._folder / f"{number}.{what}", "ab") as file:
            file.write(np.ascontiguousarray(values).data)

    def _read(self, number: int, what: str, dtype: np.dtype) -> np.ndarray:
        path = self._folder / f"{number}.{what}"
        values = np.fromfile(path, dtype)
        path.unlink()
        return values


def gather(values: np.ndarray, lengths: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Reorder rows of different lengths and return their numbers."""
    if lengths.size and (lengths == lengths[0]).all():
        return values.reshape(lengths.size, -1)[order].reshape(-1)
    starts = np.concatenate([[0], np.cumsum(lengths)])[:-1]
    sizes = lengths[order]
    shift = starts[order] - np.concatenate([[0], np.cumsum(sizes)])[:-1]
    return values[np.repeat(shift, sizes) + np.arange(int(sizes.sum()))]
