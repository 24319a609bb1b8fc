"""Rows that come in the order of the source and leave in the order of the folder, through files.

Rows are appended to a file for each range of places in the folder. Since places are shuffled, all ranges fill alike.
In the end each range is read, put in order and appended to the folder.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

RANGES = 256
BUFFER = 1 << 22  # bytes that wait in memory for each file, at most


class RowSpool:
    """Rows of several kinds of numbers, of equal or differing length.

    folder: it must not exist. count: rows in all. dtypes: of the numbers; a row has equally many of each kind.
    memory: bytes; it decides how many ranges there are if the length of a row is known.
    """

    def __init__(
        self, folder: Path, count: int, dtypes: tuple[str, ...], *, memory: int, row_bytes: int | None = None
    ) -> None:
        folder.mkdir()
        ranges = RANGES if row_bytes is None else max(1, -(-count * row_bytes // max(1, memory // 4)))
        self._size = max(1, -(-count // ranges))  # rows of a range
        self._folder, self._count, self._dtypes = folder, count, tuple(map(np.dtype, dtypes))

    def add(self, places: np.ndarray, lengths: np.ndarray, *values: np.ndarray) -> None:
        """Rows with their places in the folder; each of ``values`` holds the numbers of all of them."""
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
        """Lengths and numbers of the rows of each range, in order. Its files go when it leaves."""
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
    """The numbers of rows of differing length, with the rows in another order."""
    if lengths.size and (lengths == lengths[0]).all():
        return values.reshape(lengths.size, -1)[order].reshape(-1)
    starts = np.concatenate([[0], np.cumsum(lengths)])[:-1]
    sizes = lengths[order]
    shift = starts[order] - np.concatenate([[0], np.cumsum(sizes)])[:-1]
    return values[np.repeat(shift, sizes) + np.arange(int(sizes.sum()))]
