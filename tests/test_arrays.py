"""Array operations against plain loops."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graphfcl.arrays import rank_in_run


@given(st.lists(st.integers(0, 5), max_size=30))
def test_ranks_start_again_with_every_value(values: list[int]) -> None:
    ordered = sorted(values)
    expected = [ordered[:place].count(value) for place, value in enumerate(ordered)]
    assert rank_in_run(np.array(ordered, dtype=np.int64)).tolist() == expected
