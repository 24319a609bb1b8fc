"""Edges of any order → rows of neighbours, in bounded memory: a distribution sort.

An edge from row u to row v is the number 2(u·n + v), and once more 2(v·n + u) + 1: its reverse, marked as such. Numbers
are collected until memory is used up, sorted, freed of duplicates, and appended to files, one for each range of
numbers. When all are there, the files are read in order: each fits memory, is sorted and leaves as rows of neighbours.
A file that does not fit is distributed again over smaller ranges. No edge is compared with all others at any time.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.errors import InputError

FAN = 256  # files into which numbers are distributed
MOST_NODES = 3_037_000_499  # above it 2n² does not fit 64 bits
ITEM_BYTES = 64  # memory for each number while many of them are sorted


@dataclass(frozen=True)
class SortedEdges:
    """A stretch of the sorted edges. rows: ascending; columns: ascending within a row. weights: None if there are none.

    A row may go on in the next stretch.
    """

    rows: np.ndarray
    columns: np.ndarray
    weights: np.ndarray | None


@dataclass
class EdgeFacts:
    """What was found on the way.

    pairs: that left. kept, distinct: directed edges that were listed, and how many of them differ. one_way: they are
    not symmetric as listed. weighted: a weight is not 1.
    """

    pairs: int = 0
    kept: int = 0
    distinct: int = 0
    one_way: bool = False
    weighted: bool = False

    @property
    def merged(self) -> int:
        return self.kept - self.distinct


@dataclass
class _Range:
    """Files of the numbers from ``low`` to ``high`` - 1, both even; each file is of a part of that range."""

    folder: Path
    low: int
    high: int
    sizes: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        parts = max(1, min(FAN, self.high - self.low))
        # Even, so that the two numbers of a pair are never parted.
        self.width = 2 * -(-(self.high - self.low) // (2 * parts))
        self.sizes = [0] * parts
        self.folder.mkdir()

    def bounds(self, part: int) -> tuple[int, int]:
        low = min(self.low + part * self.width, self.high)
        return low, min(low + self.width, self.high)

    def path(self, part: int, what: str) -> Path:
        return self.folder / f"{part}.{what}"

    def add(self, keys: np.ndarray, weights: np.ndarray | None) -> None:
        """Append ascending numbers to the files of their ranges."""
        inner = np.array([self.bounds(part)[0] for part in range(1, len(self.sizes))], dtype=np.uint64)
        cuts = [0, *np.searchsorted(keys, inner).tolist(), keys.size]
        for part in range(len(self.sizes)):
            start, stop = cuts[part], cuts[part + 1]
            if start == stop:
                continue
            self.sizes[part] += stop - start
            for what, values in (("keys", keys), ("weights", weights)):
                if values is not None:
                    with open(self.path(part, what), "ab", buffering=0) as file:
                        _write(file, values[start:stop])


class EdgeSorter:
    """Takes edges in any order and gives them back sorted by rows, both directions, each pair once.

    folder: for files that come and go; it must not exist. count: nodes. memory: bytes. weighted: whether edges come
    with weights; of several the largest stays. mirrored: whether each edge is listed once and means both directions.
    directed: edges leave as they are listed, without their reverse.
    """

    def __init__(
        self,
        folder: Path,
        count: int,
        memory: int,
        *,
        weighted: bool = False,
        mirrored: bool = False,
        directed: bool = False,
    ) -> None:
        if count > MOST_NODES:
            raise InputError(f"{count:,} nodes are too many: a graph folder holds up to {MOST_NODES:,}.")
        self.facts = EdgeFacts()
        self._count, self._limit = count, max(16, memory // ITEM_BYTES)
        self._weighted, self._mirrored, self._directed = weighted, mirrored, directed
        self._ranges: _Range | None = None
        self._folder = folder
        self._keys: list[np.ndarray] = []
        self._weights: list[np.ndarray] = []
        self._waiting = 0

    def add(self, source: np.ndarray, target: np.ndarray, weights: np.ndarray | None = None) -> None:
        """Add edges between rows; there must be no loop among them and all weights must be above 0."""
        step = max(1, self._limit // 4)
        for start in range(0, source.size, step):
            part = slice(start, start + step)
            self._add(source[part], target[part], None if weights is None else weights[part])

    def _add(self, source: np.ndarray, target: np.ndarray, weights: np.ndarray | None) -> None:
        self.facts.kept += source.size * (2 if self._mirrored else 1)
        first, second = source.astype(np.uint64), target.astype(np.uint64)
        count, two, one = np.uint64(self._count), np.uint64(2), np.uint64(1)
        self._keys.append((first * count + second) * two)
        if not self._directed:
            self._keys.append((second * count + first) * two + (np.uint64(0) if self._mirrored else one))
        if self._weighted:
            values = np.ones(source.size, np.float32) if weights is None else weights.astype(np.float32)
            self._weights += [values] if self._directed else [values, values]
        self._waiting += source.size * (1 if self._directed else 2)
        if self._waiting >= self._limit:
            self._spill()

    def _spill(self) -> None:
        if self._ranges is None:
            self._ranges = _Range(self._folder, 0, 2 * self._count * self._count)
        self._ranges.add(*self._take_waiting())

    def _take_waiting(self) -> tuple[np.ndarray, np.ndarray | None]:
        keys = np.concatenate(self._keys) if self._keys else np.zeros(0, np.uint64)
        self._keys = []
        weights = None
        if self._weighted:
            weights = np.concatenate(self._weights) if self._weights else np.zeros(0, np.float32)
            self._weights = []
        self._waiting = 0
        return merge_keys(keys, weights)

    def stretches(self) -> Iterator[SortedEdges]:
        """The edges in order. Call it once, after all were added; then ``facts`` is complete."""
        if self._ranges is None:
            yield from self._leave(*self._take_waiting())
            return
        self._spill()
        yield from self._walk(self._ranges)

    def _walk(self, ranges: _Range) -> Iterator[SortedEdges]:
        for part, size in enumerate(ranges.sizes):
            low, high = ranges.bounds(part)
            if not size:
                continue
            if size <= self._limit or high - low <= max(2, self._limit // 2):
                yield from self._leave(*self._read_merged(ranges, part))
                continue
            inner = _Range(ranges.folder / f"{part}.parts", low, high)
            for keys, weights in self._pieces(ranges, part):
                inner.add(*merge_keys(keys, weights))
            self._remove(ranges, part)
            yield from self._walk(inner)
        ranges.folder.rmdir()

    def _read_merged(self, ranges: _Range, part: int) -> tuple[np.ndarray, np.ndarray | None]:
        """All of a file. One that holds many duplicates of few numbers is merged piece by piece."""
        keys: np.ndarray | None = None
        weights: np.ndarray | None = None
        for more_keys, more_weights in self._pieces(ranges, part):
            joined = more_keys if keys is None else np.concatenate([keys, more_keys])
            values = more_weights
            if weights is not None and more_weights is not None:
                values = np.concatenate([weights, more_weights])
            keys, weights = merge_keys(joined, values)
        self._remove(ranges, part)
        assert keys is not None
        return keys, weights

    def _pieces(self, ranges: _Range, part: int) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        for start in range(0, ranges.sizes[part], self._limit):
            keys = np.fromfile(ranges.path(part, "keys"), np.uint64, self._limit, offset=8 * start)
            weights = None
            if self._weighted:
                weights = np.fromfile(ranges.path(part, "weights"), np.float32, self._limit, offset=4 * start)
            yield keys, weights

    def _remove(self, ranges: _Range, part: int) -> None:
        ranges.path(part, "keys").unlink()
        ranges.path(part, "weights").unlink(missing_ok=True)

    def _leave(self, keys: np.ndarray, weights: np.ndarray | None) -> Iterator[SortedEdges]:
        """Numbers without duplicates → pairs. The two numbers of a pair stand beside each other."""
        if not keys.size:
            return
        listed = (keys & np.uint64(1)) == 0
        self.facts.distinct += int(listed.sum())
        pairs = keys >> np.uint64(1)
        first = np.ones(pairs.size, dtype=bool)
        np.not_equal(pairs[1:], pairs[:-1], out=first[1:])
        starts = np.flatnonzero(first)
        if not (self._mirrored or self._directed):
            self.facts.one_way |= 2 * starts.size != pairs.size
            if weights is not None and not self.facts.one_way:
                self.facts.one_way = not np.array_equal(weights[0::2], weights[1::2])
        if weights is not None:
            weights = np.maximum.reduceat(weights, starts)
            self.facts.weighted |= bool((weights != 1).any())
        pairs = pairs[starts]
        self.facts.pairs += pairs.size
        rows, columns = np.divmod(pairs, np.uint64(self._count))
        yield SortedEdges(rows.astype(np.int64), columns.astype(np.int64), weights)


def merge_keys(keys: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Ascending numbers, each once, with the largest of its weights. ``keys`` may be sorted in place."""
    if not keys.size:
        return keys, weights
    if weights is None:
        keys.sort()
        return keys[np.append(True, keys[1:] != keys[:-1])], None
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    return keys[starts], np.maximum.reduceat(weights[order], starts)


def _write(file: object, values: np.ndarray) -> None:
    plain: Any = np.ascontiguousarray(values).view(np.uint8)
    content = memoryview(plain)
    done = 0
    while done < len(content):
        done += file.write(content[done:])  # type: ignore[attr-defined]
