"""Array operations against plain loops."""

from bisect import bisect_left, bisect_right
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from graphfcl.graph import Standardisation
from graphfcl.runtime.arrays import rank_in_run, sealed_copy, search_many, with_short_indices


@given(st.lists(st.integers(0, 5), max_size=30))
def test_ranks_start_again_with_every_value(values: list[int]) -> None:
    ordered = sorted(values)
    expected = [ordered[:place].count(value) for place, value in enumerate(ordered)]
    assert rank_in_run(np.array(ordered, dtype=np.int64)).tolist() == expected


@given(st.lists(st.integers(-9, 9)), st.lists(st.integers(-12, 12)), st.sampled_from(["left", "right"]))
def test_many_values_are_found_where_one_is(
    values: list[int], wanted: list[int], side: Literal["left", "right"]
) -> None:
    ordered = np.array(sorted(values), dtype=np.int64)
    find = bisect_left if side == "left" else bisect_right
    actual = search_many(ordered, np.array(wanted, dtype=np.int64), side=side)
    assert actual.tolist() == [find(ordered.tolist(), value) for value in wanted]


def test_a_sealed_copy_is_equal_and_cannot_be_made_writable() -> None:
    given = Standardisation(np.arange(6.0).reshape(2, 3), np.ones(3, dtype=np.float32))
    copy = sealed_copy(given)
    for name in ("mean", "deviation"):
        old, new = getattr(given, name), getattr(copy, name)
        np.testing.assert_array_equal(old, new)
        assert (old.dtype, old.shape) == (new.dtype, new.shape)
        assert not np.shares_memory(old, new)
        with pytest.raises(ValueError, match="WRITEABLE"):
            new.setflags(write=True)
        with pytest.raises(ValueError, match="WRITEABLE"):
            new.base.setflags(write=True)
    assert sealed_copy(None) is None


def test_short_indices_leave_the_matrix_and_share_its_values() -> None:
    wide = sparse.csr_array((np.ones(2), np.array([1, 0]), np.array([0, 1, 2])), shape=(2, 3))
    assert wide.indices.dtype == wide.indptr.dtype == np.int64
    narrow = with_short_indices(wide)
    assert narrow.indices.dtype == narrow.indptr.dtype == np.int32
    assert np.shares_memory(narrow.data, wide.data)
    assert (narrow != wide).nnz == 0
    assert wide.indices.dtype == np.int64
    assert with_short_indices(narrow) is narrow
    too_wide = sparse.csr_array((np.ones(1), np.array([2**31]), np.array([0, 1])), shape=(1, 2**31 + 1))
    assert with_short_indices(too_wide) is too_wide
    dense = np.ones((2, 2))
    assert with_short_indices(dense) is dense
