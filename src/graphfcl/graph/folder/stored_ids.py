"""The user's ids in a graph folder: ids of rows (``of``) and rows of ids (``find``), without reading all ids.

``find`` returns (m,) rows, with -1 where no node has the id. A number and its text are the same id.

Texts are found by 64-bit hash keys. The key of a text with bytes b₀ … b_{m−1} is mix(Σᵢ T[bᵢ]·pⁱ + m) modulo 2⁶⁴, where
T (256 numbers) and the odd number p come from a seed. The import tries seeds until all keys of a graph differ, so each
key belongs to one text.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from graphfcl.graph.folder.blocks import BlockReader
from graphfcl.graph.folder.permutation import Shuffle, mixed
from graphfcl.graph.ids import listed, normal, pack_texts, text_array, text_of, unpack_texts, whole_numbers

STEP = 1 << 18  # bytes of texts in a block while keys are computed


@dataclass(frozen=True)
class RangeIds:
    """The id of a node is its position in the source."""

    shuffle: Shuffle

    def of(self, rows: np.ndarray) -> np.ndarray:
        return self.shuffle.positions(rows)

    def find(self, wanted: Any) -> np.ndarray:
        numbers, whole = whole_numbers(wanted)
        inside = whole & (numbers >= 0) & (numbers < self.shuffle.count)
        matches = np.full(numbers.size, -1, dtype=np.int64)
        matches[inside] = self.shuffle.rows(numbers[inside])
        return matches


@dataclass(frozen=True)
class KeyIndex:
    """Finds rows by keys; ``keys`` are ascending and different, ``order`` has the row of each key."""

    keys: BlockReader
    order: BlockReader

    def find(self, wanted: np.ndarray) -> np.ndarray:
        """Return (m,) rows, -1 where there is no such key. Only blocks that may contain a key are read."""
        arranged = np.argsort(wanted, kind="stable")
        ordered = wanted[arranged].astype(self.keys.dtype)
        matches = np.full(ordered.size, -1, dtype=np.int64)
        size = max(1, self.keys.entry.block // self.keys.dtype.itemsize)
        left = [(0, -(-self.keys.entry.items // size), 0, ordered.size)]
        while left:
            first, last, low, high = left.pop()
            if first >= last or low >= high:
                continue
            middle = (first + last) // 2
            start, stop = middle * size, min((middle + 1) * size, self.keys.entry.items)
            keys = self.keys.read(start, stop)
            begin = low + int(np.searchsorted(ordered[low:high], keys[0], side="left"))
            end = low + int(np.searchsorted(ordered[low:high], keys[-1], side="right"))
            if begin < end:
                places = np.searchsorted(keys, ordered[begin:end])
                rows = self.order.read(start, stop)[places]
                matches[arranged[begin:end]] = np.where(keys[places] == ordered[begin:end], rows, -1)
            left += [(first, middle, low, begin), (middle + 1, last, end, high)]
        return matches


@dataclass(frozen=True)
class NumberIds:
    """Ids that are whole numbers, stored in the order of rows."""

    ids: BlockReader
    index: KeyIndex

    def of(self, rows: np.ndarray) -> np.ndarray:
        return self.ids.take(np.asarray(rows, dtype=np.int64))

    def find(self, wanted: Any) -> np.ndarray:
        numbers, whole = whole_numbers(wanted)
        return np.where(whole, self.index.find(numbers), -1)


@dataclass(frozen=True)
class TextIds:
    """Ids that are texts, stored as UTF-8 in the order of rows; ``seed`` is the seed of their keys."""

    content: BlockReader
    starts: BlockReader
    index: KeyIndex
    seed: int

    def of(self, rows: np.ndarray) -> np.ndarray:
        rows = np.asarray(rows, dtype=np.int64)
        if rows.size and (np.diff(rows) == 1).all():
            starts = self.starts.read(int(rows[0]), int(rows[-1]) + 2)
            return unpack_texts(self.content.read(int(starts[0]), int(starts[-1])), starts)
        lows, highs = self.starts.take(rows), self.starts.take(rows + 1)
        places = zip(lows.tolist(), highs.tolist(), strict=True)
        contents = [self.content.read(low, high).tobytes() for low, high in places]
        return text_array([text.decode("utf-8", "surrogatepass") for text in contents])

    def find(self, wanted: Any) -> np.ndarray:
        texts = [normal(text_of(each)) for each in listed(wanted)]
        content, starts = pack_texts(texts)
        matches = self.index.find(text_keys(content, starts, self.seed))
        places = np.flatnonzero(matches >= 0)
        stored = self.of(matches[places]).tolist()
        same_key = [place for place, text in zip(places.tolist(), stored, strict=True) if text != texts[place]]
        matches[same_key] = -1  # a different text with the same key
        return matches


StoredIds: TypeAlias = RangeIds | NumberIds | TextIds


def text_keys(content: np.ndarray, starts: np.ndarray, seed: int) -> np.ndarray:
    """Compute (m,) uint64 keys of texts from their UTF-8 bytes and (m + 1,) the positions where texts begin."""
    state = np.random.SeedSequence(seed).generate_state(257, np.uint64)
    table, base = state[:256], state[256] | np.uint64(1)
    lengths = np.diff(starts)
    powers = np.ones(int(lengths.max(initial=0)) + 1, dtype=np.uint64)
    np.multiply.accumulate(np.full(powers.size - 1, base), out=powers[1:])
    keys = np.empty(lengths.size, dtype=np.uint64)
    first = 0
    while first < lengths.size:
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + STEP, side="right")) - 1)
        keys[first:last] = _sums(content, starts[first : last + 1], table, powers)
        first = last
    return mixed(keys + lengths.astype(np.uint64))


def _sums(content: np.ndarray, starts: np.ndarray, table: np.ndarray, powers: np.ndarray) -> np.ndarray:
    low, lengths = int(starts[0]), np.diff(starts)
    part = content[low : int(starts[-1])]
    place = np.arange(part.size) - np.repeat(starts[:-1] - low, lengths)
    sums = np.zeros(part.size + 1, dtype=np.uint64)
    np.cumsum(table[part] * powers[place], out=sums[1:])
    return sums[starts[1:] - low] - sums[starts[:-1] - low]
