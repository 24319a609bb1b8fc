"""External merge sort of edges: turns edges in any order into sorted rows of neighbours, in bounded memory.

In a graph with n rows, an edge from row u to row v becomes two integer keys: 2(u·n + v) for the edge as listed, and
2(v·n + u) + 1 for its reverse. The lowest bit marks the reverse, which shows whether an edge is listed in both
directions. With ``mirrored``, each edge is listed once for both directions, and the bit is not set. With ``directed``,
there is no key for the reverse.

1. Keys are collected until the memory limit. They are then sorted, duplicates are merged, and the result is written to
   a file, which is called a run. Every 256th key of a run stays in memory as a sample.
2. At the end, the samples of all runs divide the keys into ranges that fit into memory. Each range is read from all
   runs, merged, and returned as a sorted block of edges.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from graphfcl.errors import InputError
from graphfcl.graph.build import as_weights, combined

SAMPLE = 256  # one key of this many is kept as a sample
MOST_NODES = 3_037_000_499  # for more nodes n, 2n² does not fit into 64 bits
ITEM_BYTES = 64  # memory for each key while keys are sorted
LOWEST_BIT = np.uint64(1)


@dataclass(frozen=True)
class SortedEdges:
    """A block of sorted edges. The edges of a row may continue in the next block.

    Args:
        rows: (e,) int64 First ends, ascending.
        columns: (e,) int64 Second ends, ascending within a row.
        weights: (e,) float32 Weights. None if edges have no weights.
    """

    rows: np.ndarray
    columns: np.ndarray
    weights: np.ndarray | None


@dataclass
class EdgeFacts:
    """Statistics of the edges.

    Args:
        pairs: Number of sorted edges that were returned; both directions of an edge count.
        kept: Number of directed edges that were added to the sort.
        distinct: Number of different directed edges among them.
        one_way: Whether some edge was added in one direction only, or with different weights in both.
        weighted: Whether any weight differs from 1.
    """

    pairs: int = 0
    kept: int = 0
    distinct: int = 0
    one_way: bool = False
    weighted: bool = False

    @property
    def merged(self) -> int:
        return self.kept - self.distinct


class EdgeSorter:
    """Sorts edges by rows, in both directions and without duplicates.

    If the two directions of an edge have different weights, both get the larger one.

    Args:
        folder: Folder for temporary files. It must not exist yet.
        count: Number of nodes.
        memory: Bytes that sorting may use.
        weighted: Whether edges have weights.
        repeated: How weights of duplicate edges are combined, a key of :data:`REPEATED`. ``last`` means the weight that
            was added last.
        mirrored: Whether each edge is added once and means both directions.
        directed: Whether edges are returned as they were added, without their reverse.
        where: Name of the edges in messages.
    """

    def __init__(
        self,
        folder: Path,
        count: int,
        memory: int,
        *,
        weighted: bool = False,
        repeated: str = "max",
        mirrored: bool = False,
        directed: bool = False,
        where: str = "the edges",
    ) -> None:
        if count > MOST_NODES:
            raise InputError(f"{count:,} nodes are too many: a graph folder holds up to {MOST_NODES:,}.")
        self.facts = EdgeFacts()
        self._count, self._limit = count, max(16, memory // ITEM_BYTES)
        self._sample = min(SAMPLE, self._limit // 16)
        self._weighted, self._mirrored, self._directed = weighted, mirrored, directed
        self._repeated, self._where = repeated, where
        self._dtype = np.float64 if repeated in ("sum", "count") else np.float32  # type of weights in the runs
        self._folder = folder
        self._runs: list[int] = []  # number of keys in each run
        self._samples: list[np.ndarray] = []
        self._waiting: list[tuple[np.ndarray, np.ndarray | None]] = []

    def add(self, source: np.ndarray, target: np.ndarray, weights: np.ndarray | None = None) -> None:
        """Add edges. The caller has removed self loops and, unless ``repeated`` is ``last``, weights of 0."""
        self.facts.kept += source.size * (2 if self._mirrored else 1)
        if not self._weighted:
            weights = None
        elif weights is None:
            weights = np.ones(source.size, np.float32)
        step = max(1, self._limit // 4)
        for start in range(0, source.size, step):
            part = slice(start, start + step)
            self._add(source[part], target[part], None if weights is None else weights[part].astype(self._dtype))

    def _add(self, source: np.ndarray, target: np.ndarray, weights: np.ndarray | None) -> None:
        count, first, second = np.uint64(self._count), source.astype(np.uint64), target.astype(np.uint64)
        self._waiting.append(((first * count + second) << LOWEST_BIT, weights))
        if not self._directed:
            reverse = (second * count + first) << LOWEST_BIT
            self._waiting.append((reverse if self._mirrored else reverse | LOWEST_BIT, weights))
        if sum(keys.size for keys, _ in self._waiting) >= self._limit:
            self._write_run()

    def _write_run(self) -> None:
        keys, weights = merge_keys(self._waiting, self._repeated)
        self._waiting = []
        self._folder.mkdir(exist_ok=True)
        for what, values in (("keys", keys), ("weights", weights)):
            if values is not None:
                with open(self._path(len(self._runs), what), "wb") as file:
                    file.write(values.data)
        self._runs.append(keys.size)
        self._samples.append(keys[:: self._sample].copy())

    def _path(self, run: int, what: str) -> Path:
        return self._folder / f"{run}.{what}"

    def sorted_blocks(self) -> Iterator[SortedEdges]:
        """Yield the edges in order. Call it once, after all edges were added; ``facts`` is complete at its end."""
        if not self._runs:
            yield from self._block_of_keys(*merge_keys(self._waiting, self._repeated))
            return
        if self._waiting:
            self._write_run()
        # A range with m samples has at most (m + number of runs) keys per sample.
        step = max(1, self._limit // (2 * self._sample))
        # An even bound never separates the two keys of a pair.
        bounds = np.unique(np.sort(np.concatenate(self._samples))[step::step] & ~LOWEST_BIT)
        starts = [0] * len(self._runs)
        for bound in [*bounds, None]:
            stops = [size if bound is None else self._search(run, bound) for run, size in enumerate(self._runs)]
            ends = enumerate(zip(starts, stops, strict=True))
            parts = [self._read(run, start, stop) for run, (start, stop) in ends if start < stop]
            yield from self._block_of_keys(*merge_keys(parts, self._repeated))
            starts = stops
        shutil.rmtree(self._folder)

    def _search(self, run: int, bound: np.uint64) -> int:
        """Return how many keys of a run are below the bound."""
        sample = max(0, int(np.searchsorted(self._samples[run], bound)) - 1)
        keys = np.fromfile(self._path(run, "keys"), np.uint64, self._sample, offset=8 * sample * self._sample)
        return sample * self._sample + int(np.searchsorted(keys, bound))

    def _read(self, run: int, start: int, stop: int) -> tuple[np.ndarray, np.ndarray | None]:
        keys = np.fromfile(self._path(run, "keys"), np.uint64, stop - start, offset=8 * start)
        if not self._weighted:
            return keys, None
        return keys, np.fromfile(
            self._path(run, "weights"), self._dtype, stop - start, offset=self._dtype().itemsize * start
        )

    def _block_of_keys(self, keys: np.ndarray, weights: np.ndarray | None) -> Iterator[SortedEdges]:
        """Turn sorted keys without duplicates into edges. The two keys of a pair are neighbours in the order."""
        self.facts.distinct += int(((keys & LOWEST_BIT) == 0).sum())
        if weights is not None:
            keys, weights = keys[weights > 0], as_weights(weights[weights > 0], self._where)
        if not keys.size:
            return
        pairs = keys >> LOWEST_BIT
        starts = np.flatnonzero(np.append(True, pairs[1:] != pairs[:-1]))
        if not (self._mirrored or self._directed):
            self.facts.one_way |= 2 * starts.size != pairs.size
            if weights is not None and not self.facts.one_way:
                self.facts.one_way = not np.array_equal(weights[0::2], weights[1::2])
        if weights is not None:
            weights = np.maximum.reduceat(weights, starts)
            self.facts.weighted |= bool((weights != 1).any())
        self.facts.pairs += starts.size
        rows, columns = np.divmod(pairs[starts], np.uint64(self._count))
        yield SortedEdges(rows.astype(np.int64), columns.astype(np.int64), weights)


def merge_keys(
    parts: list[tuple[np.ndarray, np.ndarray | None]], repeated: str
) -> tuple[np.ndarray, np.ndarray | None]:
    """Merge parts into ascending keys without duplicates, and combine the weights of each key."""
    if not parts:
        return np.zeros(0, np.uint64), None
    keys = np.concatenate([part for part, _ in parts])
    values = [part for _, part in parts if part is not None]
    if not values or not keys.size:
        keys.sort()
        return keys[np.append(True, keys[1:] != keys[:-1])] if keys.size else keys, None
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    return keys[starts], combined(np.concatenate(values)[order], starts, repeated)
