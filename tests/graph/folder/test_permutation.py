"""The shuffle is a bijection, both ways, and looks random."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphfcl.graph.folder.permutation import Shuffle


@given(count=st.integers(0, 3_000), seed=st.integers(0, 2**40))
def test_every_place_is_taken_once_and_found_again(count: int, seed: int) -> None:
    shuffle = Shuffle(count, seed)
    rows = shuffle.rows(np.arange(count))
    assert sorted(rows.tolist()) == list(range(count))
    np.testing.assert_array_equal(shuffle.positions(rows), np.arange(count))
    np.testing.assert_array_equal(shuffle.table("<i4"), rows)


def test_large_counts_are_not_listed() -> None:
    shuffle = Shuffle(3_000_000_000, 7)
    some = np.random.default_rng(0).integers(0, 3_000_000_000, 100_000)
    rows = shuffle.rows(some)
    assert rows.min() >= 0
    assert rows.max() < 3_000_000_000
    np.testing.assert_array_equal(shuffle.positions(rows), some)
    assert abs(rows.mean() / 1.5e9 - 1) < 0.02


def test_neighbours_are_scattered_and_seeds_differ() -> None:
    first, second = (Shuffle(50_000, seed).rows(np.arange(50_000)) for seed in (0, 1))
    assert (first == second).mean() < 0.01
    for rows in (first, second):
        assert abs(np.corrcoef(rows, np.arange(50_000))[0, 1]) < 0.03
        assert abs(np.corrcoef(rows[1:], rows[:-1])[0, 1]) < 0.03
        halves = np.histogram2d(np.arange(50_000), rows, bins=16)[0]
        # 256 boxes of 195 on average: chi-squared with 225 degrees of freedom, deviation 21.
        assert abs(((halves - 195.3) ** 2 / 195.3).sum() - 225) < 110


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(IndexError):
        Shuffle(3, 0).rows(np.array([3]))
