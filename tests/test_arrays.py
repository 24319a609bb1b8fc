"""Array operations against plain loops."""

from bisect import bisect_left, bisect_right
from typing import Literal

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graphfcl.arrays import rank_in_run, search_many


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
    found = search_many(ordered, np.array(wanted, dtype=np.int64), side=side)
    assert found.tolist() == [find(ordered.tolist(), value) for value in wanted]
