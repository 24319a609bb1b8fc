"""What the strategies name, on points whose clusters anybody can see, and at the edges."""

import numpy as np
import pytest

from graphfcl import ActiveLearningState, InputError, Query, find_strategy
from graphfcl.active import STRATEGIES, checked
from graphfcl.active.strategies import cluster_count
from tests.active.states import heaps, make_state

NEED_A_MODEL = ("uncertain", "unknown")


def named(name: str, given: ActiveLearningState) -> list[int]:
    actual = find_strategy(name).make().choose(given)
    return [query.row for query in checked(actual, given, name)]


def with_model(vectors: np.ndarray, budget: int, **changes: object) -> ActiveLearningState:
    scores = np.random.default_rng(1).dirichlet(np.ones(4), size=vectors.shape[0]).astype(np.float32)
    return make_state(vectors, budget, scores=scores, unknown_score=-scores.max(axis=1), **changes)


@pytest.mark.parametrize("name", STRATEGIES)
def test_budget_candidates_and_repeats(name: str) -> None:
    vectors, _ = heaps((30, 20, 10))
    some = np.array([3, 8, 31, 33, 52, 59])
    for budget, count in ((0, 0), (1, 1), (4, 4), (6, 6), (50, 6)):
        rows = named(name, with_model(vectors, budget, candidates=some))
        assert len(rows) == count
        assert len(set(rows)) == count
        assert set(rows) <= set(some.tolist())
    one = with_model(vectors, 5, random=np.random.default_rng(3))
    again = with_model(vectors, 5, random=np.random.default_rng(3))
    assert named(name, one) == named(name, again)


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_edges(name: str) -> None:
    one = np.zeros((1, 3), dtype=np.float32)
    assert named(name, with_model(one, 3)) == [0]
    equal = np.ones((40, 3), dtype=np.float32)
    assert len(named(name, with_model(equal, 7))) == 7
    twice = np.repeat(heaps((4, 4))[0], 5, axis=0)
    assert len(named(name, with_model(twice, 12))) == 12
    none = with_model(equal, 3, candidates=np.zeros(0, dtype=np.int64))
    assert named(name, none) == []
    labelled = with_model(equal, 3, candidates=np.arange(5), labelled=np.arange(5, 40), columns=np.arange(5, 40) % 4)
    assert len(named(name, labelled)) == 3
    wide = heaps((50, 50), width=100)[0]
    assert len(named(name, with_model(wide, 9))) == 9


@pytest.mark.parametrize("name", STRATEGIES)
def test_without_a_model(name: str) -> None:
    given = make_state(heaps((20, 20))[0], 4)
    if name in NEED_A_MODEL:
        with pytest.raises(InputError, match=f"'{name}' needs a model"):
            named(name, given)
    else:
        assert len(named(name, given)) == 4


def test_typical_takes_each_heap_once_and_leaves_out_what_is_labelled() -> None:
    vectors, of = heaps((40, 30, 20, 10))
    rows = named("typical", make_state(vectors, 4))
    assert sorted(of[rows]) == [0, 1, 2, 3]
    labelled = np.array([5, 45])  # K is 4: two clusters have a label
    candidates = np.setdiff1d(np.arange(of.size), labelled)
    given = make_state(vectors, 2, labelled=labelled, columns=of[labelled], candidates=candidates)
    assert sorted(of[named("typical", given)]) == [2, 3]


def test_typical_has_a_cluster_for_every_label_and_500_at_most() -> None:
    vectors = heaps((400, 300))[0]
    for labels, clusters in ((0, 4), (3, 7), (600, 500)):
        labelled = np.arange(labels)
        given = make_state(
            vectors, 4, labelled=labelled, columns=np.zeros(labels, dtype=np.int64), candidates=np.arange(labels, 700)
        )
        assert cluster_count(given) == clusters


def test_typical_is_the_most_like_its_nearest() -> None:
    vectors, of = heaps((40, 30))
    rows = named("typical", make_state(vectors, 2))
    for heap in (0, 1):
        members = np.flatnonzero(of == heap)
        nearest = [
            np.sort([float(np.linalg.norm(vectors[one] - vectors[two])) for two in members if two != one])[:20].mean()
            for one in members
        ]
        assert members[int(np.argmin(nearest))] in rows


def test_uncertain_and_unknown_are_in_order() -> None:
    vectors, _ = heaps((10, 10))
    given = with_model(vectors, 6)
    assert given.scores is not None
    assert given.unknown_score is not None
    unknown_score = given.unknown_score.tolist()
    margins = [sorted(row)[-1] - sorted(row)[-2] for row in given.scores[np.arange(20)].tolist()]
    assert named("uncertain", given) == sorted(range(20), key=lambda row: margins[row])[:6]
    assert named("unknown", given) == sorted(range(20), key=lambda row: -unknown_score[row])[:6]


def test_random_draws_all_candidates_alike() -> None:
    vectors, _ = heaps((10, 10))
    random = np.random.default_rng(0)
    counts = np.zeros(20)
    for _ in range(400):
        counts[named("random", make_state(vectors, 5, random=random))] += 1
    assert counts.sum() == 2000
    assert 70 < counts.min() <= counts.max() < 130


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([1, 2, 3], "with a budget of 2"),
        ([7], "not a candidate"),
        ([1, 1], "it chose before"),
        ([9], "already labelled"),
    ],
)
def test_wishes_that_break_the_contract_are_refused(rows: list[int], says: str) -> None:
    given = make_state(heaps((10,))[0], 2, candidates=np.arange(6), labelled=np.array([9]), columns=np.array([0]))
    with pytest.raises(InputError, match=says):
        checked([Query(row, "random") for row in rows], given, "mine")
    assert [query.row for query in checked([Query(4, "random")], given, "mine")] == [4]


def test_a_state_is_read_only() -> None:
    given = make_state(heaps((10,))[0], 2)
    with pytest.raises(ValueError, match="read-only"):
        given.vectors[0, 0] = 1


def test_what_is_no_list_of_wishes_is_refused_and_what_is_yielded_is_read_once() -> None:
    given = make_state(heaps((20, 20))[0], 4)
    assert checked((Query(row, "random") for row in (3, 1)), given, "mine") == [Query(3, "random"), Query(1, "random")]
    for answer in (None, [1, 2], [Query(1.5, "random")], [Query(1, "whim")], 7):  # type: ignore[arg-type]
        with pytest.raises(InputError, match="'mine' returned"):
            checked(answer, given, "mine")
