"""A keyed permutation of n nodes that is computed in both directions and never stored.

It is a Feistel network on numbers of b bits. A number is split into a high part a and a low part l. Six rounds change
the parts in turn, a ← a ⊕ F(l, k₀), l ← l ⊕ F(a, k₁), …, where F takes the lowest bits of a mixing function and the kᵢ
come from the key. Each round can be undone, so the result is a bijection of 0 to 2ᵇ − 1. If a result is n or more, the
network is applied again until it is below n, which gives a bijection of 0 to n − 1 (cycle walking). Since 2ᵇ < 2n, two
passes are enough on average.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

ROUNDS = 6
STEP = 1 << 16  # numbers per block, which fits into the cache of a core


@dataclass(frozen=True)
class Shuffle:
    """A permutation of 0 to ``count`` - 1; ``key`` is a non-negative integer with which it can be undone."""

    count: int
    key: int

    def rows(self, positions: np.ndarray) -> np.ndarray:
        """Return (m,) int64 rows of the folder for positions in the source."""
        return self._all(positions, range(ROUNDS))

    def positions(self, rows: np.ndarray) -> np.ndarray:
        """Return (m,) int64 positions in the source for rows, the reverse of :meth:`rows`."""
        return self._all(rows, range(ROUNDS - 1, -1, -1))

    def table(self, dtype: Any) -> np.ndarray:
        """Return (count,) rows of all positions, for many lookups."""
        table = np.empty(self.count, dtype=dtype)
        for start in range(0, self.count, STEP):
            stop = min(start + STEP, self.count)
            table[start:stop] = self.rows(np.arange(start, stop))
        return table

    def _all(self, numbers: np.ndarray, rounds: range) -> np.ndarray:
        numbers = np.asarray(numbers, dtype=np.int64)
        if numbers.size and not 0 <= int(numbers.min()) <= int(numbers.max()) < self.count:
            raise IndexError(f"numbers outside 0 to {self.count - 1}")
        if self.count < 2:
            return numbers.copy()
        result = np.empty(numbers.shape, dtype=np.int64)
        for start in range(0, numbers.size, STEP):
            part = self._pass(numbers[start : start + STEP].astype(np.uint64), rounds)
            outside = np.flatnonzero(part >= self.count)
            while outside.size:
                part[outside] = self._pass(part[outside], rounds)
                outside = outside[part[outside] >= self.count]
            result[start : start + STEP] = part
        return result

    def _pass(self, numbers: np.ndarray, rounds: range) -> np.ndarray:
        low_bits = (self.count - 1).bit_length() // 2 or 1
        high_bits = max(1, (self.count - 1).bit_length() - low_bits)
        low_mask, high_mask = np.uint64((1 << low_bits) - 1), np.uint64((1 << high_bits) - 1)
        high, low = numbers >> np.uint64(low_bits), numbers & low_mask
        for number in rounds:
            if number % 2 == 0:
                high ^= mixed(low + self._keys[number]) & high_mask
            else:
                low ^= mixed(high + self._keys[number]) & low_mask
        return (high << np.uint64(low_bits)) | low

    @cached_property
    def _keys(self) -> np.ndarray:
        return np.random.SeedSequence(self.key).generate_state(ROUNDS, np.uint64)


def mixed(numbers: np.ndarray) -> np.ndarray:
    """Mix the bits of (m,) uint64 numbers with the finaliser of SplitMix64."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))
