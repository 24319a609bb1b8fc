"""Some labelled nodes of each class, drawn by a seed."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graphfcl.methods.blocks.interface import some_of_each_class


@given(st.lists(st.integers(0, 4), max_size=40), st.integers(1, 6), st.integers(0, 3))
def test_some_of_each_class_are_drawn(labels: list[int], most: int, seed: int) -> None:
    columns, nodes = np.array(labels, dtype=np.int64), 100 + np.arange(len(labels))
    actual, kept = some_of_each_class((nodes, columns), most, seed)
    assert len(set(actual.tolist())) == len(actual), "none twice"
    np.testing.assert_array_equal(columns[actual - 100], kept, "each with its label")
    for label in range(5):
        assert int((kept == label).sum()) == min(most, labels.count(label))


def test_which_of_a_class_are_drawn_depends_on_the_seed() -> None:
    labelled = np.arange(100), np.zeros(100, dtype=np.int64)
    one, same, other = (some_of_each_class(labelled, 10, seed)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert one.tolist() != other.tolist()
