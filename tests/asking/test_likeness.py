"""Nearest rows against plain loops."""

import numpy as np
import pytest

from graphfcl.asking import likeness
from graphfcl.asking.likeness import likeliest_of, nearest_rows, unit_rows


def some_rows(count: int, width: int = 5, seed: int = 0) -> np.ndarray:
    return unit_rows(np.random.default_rng(seed).normal(size=(count, width)))


def test_rows_have_length_one_and_zeros_stay() -> None:
    values = unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    np.testing.assert_allclose(values, [[0.6, 0.8], [0.0, 0.0]], atol=1e-6)


@pytest.mark.parametrize("block", [7, 1_024])
def test_nearest_rows_are_those_of_a_plain_loop(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(likeness, "BLOCK", block)
    values = some_rows(40)
    rows, cosines = nearest_rows(values, 6)
    for row in range(40):
        others = sorted((other for other in range(40) if other != row), key=lambda o: -float(values[row] @ values[o]))
        assert rows[row].tolist() == others[:6]
        np.testing.assert_allclose(cosines[row], [values[row] @ values[o] for o in others[:6]], atol=1e-6)


def test_there_are_no_more_nearest_than_others() -> None:
    assert nearest_rows(some_rows(3), 6)[0].shape == (3, 2)
    assert nearest_rows(some_rows(1), 6)[0].shape == (1, 0)
    assert nearest_rows(some_rows(0), 6)[0].shape == (0, 0)


def test_the_likeliest_of_others() -> None:
    values, others = some_rows(30), some_rows(4, seed=1)
    rows, cosines = likeliest_of(values, others)
    for row in range(30):
        best = max(range(4), key=lambda o: float(values[row] @ others[o]))
        assert rows[row] == best
        assert abs(cosines[row] - values[row] @ others[best]) < 1e-6
