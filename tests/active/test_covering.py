"""Nearest neighbours and greedy coverage against plain loops, and what `auto` names on heaps."""

import numpy as np
import pytest

from graphfcl import find_strategy
from graphfcl.active import clusters, covering
from graphfcl.active.clusters import nearest_neighbours, unit_rows
from graphfcl.active.covering import cover, greedy_cover
from tests.active.states import heaps, make_state


def test_neighbours_are_those_of_a_plain_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    values = unit_rows(np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32))
    rows = np.array([3, 17, 59])
    actual, distances = nearest_neighbours(values, rows, 4)
    for place, row in enumerate(rows):
        others = sorted((float(np.linalg.norm(values[row] - values[o])), o) for o in range(60) if o != row)[:4]
        assert actual[place].tolist() == [o for _, o in others]
        np.testing.assert_allclose(distances[place], [away for away, _ in others], atol=1e-3)
    monkeypatch.setattr(clusters, "BLOCK", 2)
    assert nearest_neighbours(values, rows, 4)[0].tolist() == actual.tolist()


def test_many_nodes_look_inside_their_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    of = np.repeat(np.arange(4), 30)
    values = unit_rows((np.eye(4)[of] * 5 + random.normal(size=(120, 4)) * 0.1).astype(np.float32))
    monkeypatch.setattr(clusters, "WHOLE", 50)
    monkeypatch.setattr(clusters, "CLUSTER", 30)
    actual, _ = nearest_neighbours(values, np.arange(120), 6)
    assert (of[actual] == of[:, None]).all()
    lonely, away = nearest_neighbours(unit_rows(np.ones((1, 2), dtype=np.float32)), np.array([0]), 3)
    assert (lonely.tolist(), away.tolist()) == ([[0, 0, 0]], [[2, 2, 2]])


def test_coverage_is_that_of_a_plain_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(covering, "AGAIN", 2)
    random = np.random.default_rng(1)
    values = unit_rows(random.normal(size=(25, 3)).astype(np.float32))
    weight, covered, width = random.random(25), random.random(25) * 0.3, 0.6
    best: list[int] = []
    now = covered.tolist()
    for _ in range(12):
        gains = []
        for c in range(25):
            near = [np.exp(-float(((values[v] - values[c]) ** 2).sum()) / (2 * width**2)) for v in range(25)]
            gains.append(-1 if c in best else sum(weight[v] * max(0, near[v] - now[v]) for v in range(25)))
        best.append(int(np.argmax(gains)))
        near = [np.exp(-float(((values[v] - values[best[-1]]) ** 2).sum()) / (2 * width**2)) for v in range(25)]
        now = [max(one, other) for one, other in zip(now, near, strict=True)]
    assert greedy_cover(values, weight, covered, width, 12).tolist() == best
    assert cover(values, weight, covered, width, 12).tolist() == best
    monkeypatch.setattr(covering, "AT_ONCE", 5)
    assert cover(values, weight, covered, width, 12).tolist() == best
    monkeypatch.setattr(covering, "MOST", 8)
    assert len(set(cover(values, weight, covered, width, 25).tolist())) == 25


def test_a_class_that_came_late_counts_as_reached_near_its_labels() -> None:
    """Two unlabelled heaps, and one node of the first; a budget of one goes to the other."""
    vectors, of = heaps((300, 60, 60), width=6, seed=2)
    vectors[:, 1:] *= 0.3
    vectors[np.arange(of.size), of + 1] += 8
    even = np.arange(of.size) % 2 == 0
    late = np.array([False, True])

    def heap_named(first: int) -> int:
        labelled = np.append(np.flatnonzero((of == 0) & even), np.flatnonzero(of == first)[0])
        columns = np.minimum(of[labelled], 1)
        (query,) = (
            find_strategy("auto")
            .make()
            .choose(
                make_state(vectors, 1, labelled=labelled, columns=columns, candidates=np.flatnonzero(~even), late=late)
            )
        )
        return int(of[query.row])

    assert (heap_named(1), heap_named(2)) == (2, 1)


def test_auto_goes_where_no_label_reaches() -> None:
    """Four heaps, two of them labelled; candidates are mostly of those."""
    vectors, of = heaps((300, 300, 40, 40), width=6, seed=2)
    vectors[:, 1:] *= 0.5
    vectors[np.arange(of.size), of + 1] += 8
    labelled = np.flatnonzero((of < 2) & (np.arange(of.size) % 2 == 0))
    candidates = np.flatnonzero(np.arange(of.size) % 2 == 1)
    given = make_state(vectors, 2, labelled=labelled, columns=of[labelled], candidates=candidates)
    queries = find_strategy("auto").make().choose(given)
    heaps_named = of[[query.row for query in queries]]
    assert set(heaps_named.tolist()) == {2, 3}
    assert {query.reason for query in queries} == {"uncovered"}
    assert {query.reason for query in find_strategy("auto").make().choose(make_state(vectors, 4))} == {"cluster"}
