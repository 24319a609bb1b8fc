"""Comparisons of methods, against scipy and plain loops."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from graphfcl import summarise_seeds
from graphfcl.metrics import FEWEST_SEEDS, average_ranks, holm, paired_difference

RATIOS = st.floats(0, 2)  # n_test/n_train
PAIR = st.tuples(st.floats(0, 100), st.floats(0, 100))
FIGURES = st.lists(PAIR, min_size=5, max_size=12)
FEW = st.lists(PAIR, min_size=1, max_size=4)
Pairs = list[tuple[float, float]]


def columns(pairs: Pairs) -> tuple[list[float], list[float]]:
    """The two sides, whose differences must not be equal but for rounding."""
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    assume(np.std(np.subtract(first, second)) > 1e-6)
    return first, second


def corrected_test(first: list[float], second: list[float], ratio: float) -> tuple[float, float, float]:
    """Mean, half width and p-value, step by step."""
    count = len(first)
    differences = [first[i] - second[i] for i in range(count)]
    mean = sum(differences) / count
    variance = 0.0
    for difference in differences:
        variance += (difference - mean) ** 2 / (count - 1)
    error = math.sqrt(variance * (1 / count + ratio))
    below = stats.t.cdf(mean / error, df=count - 1)
    return mean, float(stats.t.interval(0.95, df=count - 1, scale=error)[1]), float(2 * min(below, 1 - below))


@given(FIGURES, RATIOS)
def test_differences_are_tested_with_the_correction_for_resampling(pairs: Pairs, ratio: float) -> None:
    first, second = columns(pairs)
    actual = paired_difference(first, second, ratio)
    mean, half_width, p_value = corrected_test(first, second, ratio)
    assert actual.count == len(pairs)
    assert actual.mean == pytest.approx(mean, abs=1e-9)
    assert actual.interval == pytest.approx(half_width, rel=1e-6)
    assert actual.p_value == pytest.approx(p_value, abs=1e-9)


def test_a_difference_computed_by_hand() -> None:
    """d = 1, 2, 3, 4, 5: mean 3, s² 2.5, error √(2.5 · 8/15) = √(4/3)."""
    actual = paired_difference([1.0, 2.0, 3.0, 4.0, 5.0], [0.0] * 5, 1 / 3)
    assert actual.interval == pytest.approx(2.7764451 * math.sqrt(4 / 3))
    assert actual.p_value == pytest.approx(2 * stats.t.sf(3 / math.sqrt(4 / 3), 4))


@given(FIGURES)
def test_swapping_the_sides_turns_the_sign_only(pairs: Pairs) -> None:
    first, second = columns(pairs)
    one, other = paired_difference(first, second, 0.7), paired_difference(second, first, 0.7)
    assert one.mean == -other.mean
    assert (one.interval, one.p_value) == (other.interval, other.p_value)


@given(FIGURES, RATIOS)
def test_the_correction_widens_student_s_interval_and_never_lowers_p(pairs: Pairs, ratio: float) -> None:
    first, second = columns(pairs)
    actual = paired_difference(first, second, ratio)
    plain = summarise_seeds(np.subtract(first, second)).interval
    assert plain is not None
    assert actual.interval == pytest.approx(math.sqrt(1 + len(pairs) * ratio) * plain, rel=1e-9)
    assert actual.p_value is not None
    assert actual.p_value >= float(stats.ttest_rel(first, second).pvalue) - 1e-12, "but for rounding"


@given(FEW)
def test_few_seeds_are_not_tested(pairs: Pairs) -> None:
    assert len(pairs) < FEWEST_SEEDS == 5
    first, second = zip(*pairs, strict=True)
    actual = paired_difference(first, second, 0.7)
    assert actual.mean == pytest.approx(sum(a - b for a, b in pairs) / len(pairs), abs=1e-9)
    assert (actual.count, actual.interval, actual.p_value) == (len(pairs), None, None)


def test_equal_and_constant_differences() -> None:
    seeds = [1.0, 2.0, 3.0, 4.0, 5.0]
    assert paired_difference(seeds, seeds, 0.7).p_value == 1.0
    ahead = paired_difference([value + 1 for value in seeds], seeds, 0.7)
    assert (ahead.mean, ahead.interval, ahead.p_value) == (1.0, 0.0, 0.0)


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
