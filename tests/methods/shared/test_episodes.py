"""Sampling: draws are uniform and different; episodes follow Graph Pseudo Incremental Learning."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphfcl.methods.shared.episodes import NodePools, PseudoIncrementalSampler
from graphfcl.methods.shared.validation_sessions import KnownClasses, tasks_matrix


def pools_of(sizes: list[int]) -> tuple[NodePools, np.ndarray, np.ndarray]:
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    nodes = 1000 + np.arange(labels.size)
    return NodePools(nodes, labels, len(sizes)), nodes, labels


@given(st.lists(st.integers(1, 60), min_size=1, max_size=6), st.integers(1, 12), st.integers(0, 999))
def test_draws_are_different_nodes_of_the_class(sizes: list[int], count: int, seed: int) -> None:
    pools, nodes, labels = pools_of(sizes)
    columns = np.arange(len(sizes))[::-1].copy()
    drawn = pools.draw(columns, np.full(len(sizes), count), np.random.default_rng(seed))
    for row, column in zip(drawn, columns, strict=True):
        found = row[row >= 0]
        assert found.size == np.unique(found).size == min(count, sizes[column])
        assert set(found) <= set(nodes[labels == column])
        assert (row[found.size :] == -1).all()


@pytest.mark.parametrize("size", [6, 40])
def test_every_node_is_as_likely_at_every_place(size: int) -> None:
    pools, nodes, _ = pools_of([size])
    random = np.random.default_rng(1)
    times = 4000
    drawn = np.stack([pools.draw(np.array([0]), np.array([3]), random)[0] for _ in range(times)])
    for place in range(3):
        counts = np.bincount(drawn[:, place] - nodes[0], minlength=size)
        expected = times / size
        assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()


def sampler_of(way: int, shot: int, pseudo_novel: int, sizes: int = 30) -> PseudoIncrementalSampler:
    pools, _, _ = pools_of([sizes] * (4 + pseudo_novel))
    return PseudoIncrementalSampler(
        pools=pools,
        base_columns=np.arange(4),
        pseudo_novel_columns=np.arange(4, 4 + pseudo_novel),
        way=way,
        shot=shot,
        base_supports=8,
        queries=5,
    )


@given(st.integers(1, 3), st.integers(1, 5), st.integers(3, 8), st.integers(0, 99))
def test_sessions_merge_and_start_again(way: int, shot: int, pseudo_novel: int, seed: int) -> None:
    sampler, random = sampler_of(way, shot, pseudo_novel), np.random.default_rng(seed)
    cached: dict[int, set[int]] = {}
    for number in range(3 * (pseudo_novel // way)):
        step = number % (pseudo_novel // way)
        if step == 0:
            cached = {}
        episode = sampler.sample(random)
        assert sampler.known.size == (step + 1) * way
        assert episode.class_count == 4 + sampler.known.size
        assert episode.few_shot == shot * sampler.known.size
        for column, supports in zip(sampler.known.tolist(), sampler.cached.tolist(), strict=True):
            assert cached.setdefault(column, set(supports)) == set(supports), "cached supports stay"
        assert episode.tasks.shape == (step + 1, way)
        assert episode.tasks.ravel().tolist() == list(range(4, episode.class_count))
        assert episode.task_of_class.tolist() == [0] * 4 + [1 + i // way for i in range(sampler.known.size)]
        assert not set(episode.supports) & set(episode.queries)
        assert np.bincount(episode.query_classes).tolist() == [5] * episode.class_count
        shots = np.bincount(episode.support_classes).tolist()
        assert shots == [8] * 4 + [shot] * sampler.known.size
        assert (episode.support_classes[: episode.few_shot] >= 4).all()


def test_small_classes_keep_a_support_and_a_query() -> None:
    pools, _, _ = pools_of([2, 3, 9, 7])
    sampler = sampler_of(1, 5, 2)
    sampler = replace(sampler, pools=pools, base_columns=np.arange(2), pseudo_novel_columns=np.array([2, 3]))
    episode = sampler.sample(np.random.default_rng(0))
    assert (np.bincount(episode.support_classes) >= 1).all()
    assert (np.bincount(episode.query_classes, minlength=episode.class_count) >= 1).all()


def test_fine_tuning_asks_about_supports_left_out_of_their_prototype() -> None:
    _, nodes, labels = pools_of([30, 30, 30])
    known = KnownClasses(
        train=(nodes, labels),
        supports=(np.arange(50, 56), np.array([3, 3, 3, 4, 4, 5])),
        tasks=[[2], [3, 4], [5]],
        base_count=2,
        many=3,
        class_count=6,
        way=2,
    )
    episode = known.sample(8, 5, np.random.default_rng(0))
    own = episode.own[episode.own >= 0]
    np.testing.assert_array_equal(episode.supports[own], episode.queries[episode.own >= 0])
    np.testing.assert_array_equal(episode.support_classes[own], episode.query_classes[episode.own >= 0])
    assert 5 not in episode.query_classes, "a single support cannot be left out"
    others = episode.queries[episode.own < 0]
    assert not set(others) & set(episode.supports)
    assert episode.tasks.tolist() == [[2, -1], [3, 4], [5, -1]]


def test_a_task_larger_than_n_is_split() -> None:
    assert tasks_matrix([[0, 1, 2], [3]], 2).tolist() == [[0, 1], [2, -1], [3, -1]]
