"""Episodes of Geometer."""

import numpy as np
import pytest

from graphfcl.methods.geometer.learner import BiasedSampler, SessionClasses
from graphfcl.methods.shared.episodes import NodePools

SIZES = np.array([300, 60, 7, 5, 5, 2, 1])  # labelled nodes of each class
COLUMNS = np.repeat(np.arange(SIZES.size), SIZES)
NODES = np.random.default_rng(3).permutation(2000)[: COLUMNS.size]
CLASS_OF = dict(zip(NODES.tolist(), COLUMNS.tolist(), strict=True))


def session(new: tuple[int, ...] = (3, 4)) -> SessionClasses:
    here = np.isin(COLUMNS, new)
    return SessionClasses.of((NODES, COLUMNS), (NODES[here], COLUMNS[here]), np.array(new), shot=5, queries=10)


def test_biased_episodes_have_1_to_19_supports_of_each_class() -> None:
    """Trap: a class with fewer nodes than asked for raises in the released code."""
    sampler = BiasedSampler(NodePools(NODES, COLUMNS, SIZES.size), np.arange(6), shot=19, queries=30)
    random, seen = np.random.default_rng(0), []
    for _ in range(300):
        episode = sampler.sample(random)
        assert not np.isin(episode.queries, episode.supports).any()
        assert all(CLASS_OF[v] == k for v, k in zip(episode.supports, episode.support_classes, strict=True))
        assert all(CLASS_OF[v] == k for v, k in zip(episode.queries, episode.query_classes, strict=True))
        assert (episode.own == -1).all()
        seen.append(np.bincount(episode.support_classes, minlength=6))
        queries = np.bincount(episode.query_classes, minlength=6)
        np.testing.assert_array_equal(queries, [30, 30, 2, 1, 1, 1])
    assert set(np.array(seen)[:, 0]) == set(range(1, 20))
    assert set(np.array(seen)[:, 2]) == {1, 2, 3, 4, 5}, "of seven nodes two are queries"
    assert set(np.array(seen)[:, 5]) == {1}


@pytest.mark.parametrize("replay", ["balanced", "released"])
def test_a_session_has_all_supports_of_few_and_some_of_many(replay: str) -> None:
    random = np.random.default_rng(0)
    seen = []
    for _ in range(100):
        episode = session().sample(replay, leave_out=True, random=random)
        assert all(CLASS_OF[v] == k for v, k in zip(episode.supports, episode.support_classes, strict=True))
        assert np.unique(episode.supports).size == episode.supports.size
        seen.append(np.bincount(episode.support_classes, minlength=7))
    counts = np.array(seen)
    assert set(counts[:, 0]) == set(counts[:, 1]) == {5, 10, 15, 20}
    assert set(counts[:, 2]) == {5, 7}, "seven are all there are"
    assert (counts[:, 3:] == [5, 5, 2, 1]).all()


def test_balanced_queries_are_some_of_every_class() -> None:
    episode = session().sample("balanced", leave_out=True, random=np.random.default_rng(0))
    np.testing.assert_array_equal(np.bincount(episode.query_classes), np.minimum(SIZES, 10))


def test_released_queries_are_the_new_supports_and_as_many_others() -> None:
    random = np.random.default_rng(0)
    arrived = NODES[np.isin(COLUMNS, (3, 4))]
    others = []
    for _ in range(50):
        episode = session().sample("released", leave_out=True, random=random)
        np.testing.assert_array_equal(episode.queries[:10], arrived)
        assert episode.queries.size <= 20
        assert all(CLASS_OF[v] == k for v, k in zip(episode.queries, episode.query_classes, strict=True))
        others.extend(episode.query_classes[10:].tolist())
    assert set(others) == set(range(7))
    assert np.bincount(others).max() < 3 * np.bincount(others)[:5].min(), "by class, not by how many nodes it has"


def test_own_says_which_query_is_a_support_and_not_the_only_one() -> None:
    episode = session().sample("balanced", leave_out=True, random=np.random.default_rng(1))
    for query, label, own in zip(episode.queries, episode.query_classes, episode.own, strict=True):
        place = np.flatnonzero(episode.supports == query)
        alone = (episode.support_classes == label).sum() == 1
        assert own == (-1 if alone or not place.size else place[0])
    assert (episode.own >= 0).any()
    left_in = session().sample("balanced", leave_out=False, random=np.random.default_rng(1))
    assert (left_in.own == -1).all()


def test_classes_without_a_node_have_no_place() -> None:
    columns = np.where(COLUMNS >= 3, COLUMNS + 2, COLUMNS)  # columns 3 and 4 are empty
    here = columns == 6
    classes = SessionClasses.of((NODES, columns), (NODES[here], columns[here]), np.array([6]), shot=5, queries=3)
    np.testing.assert_array_equal(classes.new, [False, False, False, False, True, False, False])
    assert (classes.arrived[1] == 4).all()
    assert classes.sample("released", leave_out=True, random=np.random.default_rng(0)).class_count == 7
