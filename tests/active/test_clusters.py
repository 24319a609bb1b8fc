"""Nearest rows against plain loops."""

from typing import Any

import numpy as np
import pytest

from graphfcl.active import clusters
from graphfcl.active.clusters import (
    likeliest_of,
    nearest_neighbours,
    nearest_rows,
    principal_components,
    small_clusters,
    unit_rows,
)


def some_rows(count: int, width: int = 5, seed: int = 0) -> np.ndarray:
    return unit_rows(np.random.default_rng(seed).normal(size=(count, width)))


def test_rows_have_length_one_and_zeros_stay() -> None:
    values = unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    np.testing.assert_allclose(values, [[0.6, 0.8], [0.0, 0.0]], atol=1e-6)


@pytest.mark.parametrize("block", [7, 1_024])
def test_nearest_rows_are_those_of_a_plain_loop(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "BLOCK", block)
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


@pytest.mark.parametrize("kind", ["spread", "same", "one heap"])
def test_no_cluster_is_too_large(kind: str) -> None:
    random = np.random.default_rng(0)
    values = random.normal(size=(500, 3)).astype(np.float32)
    if kind == "same":
        values[:] = 1
    if kind == "one heap":
        values[:450] /= 1000
    actual = small_clusters(values, np.repeat([0, 1], [440, 60]), 100)
    assert np.bincount(actual).max() <= 100
    assert np.bincount(actual).min() >= 50
    assert set(actual[:440].tolist()).isdisjoint(actual[440:].tolist())


def test_neighbours_of_many_are_looked_for_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Among 400 rows of which 300 are the same, at most 50 are compared at once."""
    monkeypatch.setattr(clusters, "WHOLE", 50)
    monkeypatch.setattr(clusters, "CLUSTER", 40)
    values = some_rows(400)
    values[:300] = values[0]
    seen: list[int] = []
    cells = clusters._cells

    def noted(*arguments: Any) -> Any:
        for places, others in cells(*arguments):
            seen.append(others.size)
            yield places, others

    monkeypatch.setattr(clusters, "_cells", noted)
    rows = np.random.default_rng(1).permutation(400)[:250]
    actual, distances = nearest_neighbours(values, rows, 5)
    assert max(seen) <= 50
    assert (actual != rows[:, None]).all()
    assert (distances[rows < 300] < 1e-3).mean() > 0.95
    for place in range(250):
        likeness = [float(values[rows[place]] @ values[each]) for each in actual[place]]
        np.testing.assert_allclose(distances[place], np.sqrt(np.maximum(0, 2 - 2 * np.array(likeness))), atol=1e-3)


def test_components_of_a_sample_are_those_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    values = (random.normal(size=(3_000, 4)) @ random.normal(size=(4, 30))).astype(np.float32)
    exact = principal_components(values, 4)
    monkeypatch.setattr(clusters, "SAMPLED", 1_000)
    monkeypatch.setattr(clusters, "SAMPLE", 300)
    sampled = principal_components(values, 4)
    np.testing.assert_allclose(sampled @ sampled[:50].T, exact @ exact[:50].T, atol=1e-2)
