"""Comparisons of methods, against scipy and plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from graphfcl.measures import average_ranks, holm, paired_difference

FIGURES = st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), min_size=2, max_size=12)


@given(FIGURES)
def test_paired_differences_are_scipy_s(pairs: list[tuple[float, float]]) -> None:
    first, second = (np.array(part) for part in zip(*pairs, strict=True))
    found = paired_difference(list(first), list(second))
    differences = first - second
    if differences.std() < 1e-9:
        return
    expected = stats.ttest_rel(first, second)
    assert found.p_value == pytest.approx(float(expected.pvalue), abs=1e-9)
    low, high = expected.confidence_interval(0.95)
    assert found.interval is not None
    assert (found.mean - found.interval, found.mean + found.interval) == pytest.approx((low, high), abs=1e-7)


def test_equal_and_constant_differences() -> None:
    assert paired_difference([1.0, 2.0], [1.0, 2.0]).p_value == 1.0
    assert paired_difference([2.0, 3.0], [1.0, 2.0]).p_value == 0.0
    alone = paired_difference([3.0], [1.0])
    assert (alone.mean, alone.interval, alone.p_value) == (2.0, None, None)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_holm_follows_its_procedure(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert (adjusted >= np.array(p_values) - 1e-12).all()
    for level in (0.01, 0.05, 0.2):
        rejected = set()
        for step, number in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
            if p_values[number] > level / (len(p_values) - step):
                break
            rejected.add(number)
        close = np.abs(adjusted - level) < 1e-9
        assert {n for n in range(len(p_values)) if adjusted[n] <= level and not close[n]} <= rejected
        assert {n for n in rejected if not close[n]} <= {n for n in range(len(p_values)) if adjusted[n] <= level}


def test_ranks_share_ties() -> None:
    scores = np.array([[3.0, 1.0, 2.0], [5.0, 5.0, 1.0]])
    assert average_ranks(scores).tolist() == [1.25, 2.25, 2.5]
