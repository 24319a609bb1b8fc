"""Numbers by which texts are found: a hash of 64 bits, computed for many texts at once.

The key of a text of bytes b₀ … b_{m−1} is mix(Σᵢ T[bᵢ]·pⁱ + m) modulo 2⁶⁴, where T (256 numbers) and the odd number p
come from a seed. An import tries seeds until all keys of a graph differ, so that a key belongs to one text.
"""

import numpy as np

from graphfcl.graph.folder.permutation import mixed

STEP = 1 << 18  # bytes at a time


def text_keys(content: np.ndarray, starts: np.ndarray, seed: int) -> np.ndarray:
    """(m,) uint64 keys. content: uint8, the texts one after the other. starts: (m + 1,) where each begins."""
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
