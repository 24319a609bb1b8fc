"""Tight groups on points whose groups anybody can see, and their figures against plain loops."""

import json

import numpy as np
import pytest
from scipy import sparse

from graphfcl.active.clusters import unit_rows
from graphfcl.active.grouping import CORES, Balls, Crowd, PurityModel, core_size, purity, tight_groups


def crowd_of(sizes: tuple[int, ...], noise: float, *, loose: int = 0, seed: int = 0) -> tuple[Crowd, np.ndarray]:
    """Heaps in directions at right angles, then nodes in any direction; members of a heap form a ring of links."""
    random = np.random.default_rng(seed)
    of = np.concatenate([np.repeat(np.arange(len(sizes)), sizes), np.full(loose, -1)])
    values = np.where(of[:, None] >= 0, 4 * np.eye(len(sizes) + 8)[of], 0) + noise * random.normal(
        size=(of.size, len(sizes) + 8)
    )
    values[of < 0] = random.normal(size=(loose, len(sizes) + 8))
    ends: list[tuple[int, int]] = []
    for heap in range(len(sizes)):
        members = np.flatnonzero(of == heap)
        ends += list(zip(members.tolist(), np.roll(members, 1).tolist(), strict=True))
    loners = np.flatnonzero(of < 0).tolist()
    ends += [(loner, int(random.integers(of.size))) for loner in loners]
    first, second = np.array([end for end in ends if end[0] != end[1]]).T
    links = sparse.coo_array((np.ones(first.size), (first, second)), shape=(of.size, of.size))
    adjacency = sparse.csr_array(links + links.T)
    adjacency.data[:] = 1
    return Crowd.of(unit_rows(values), adjacency, np.arange(of.size)), of


def test_links_and_degrees_of_some_rows() -> None:
    adjacency = sparse.csr_array(np.array([[0, 2, 0, 1], [2, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0]], dtype=np.float32))
    crowd = Crowd.of(np.eye(2, dtype=np.float32), adjacency[[0, 1]], np.array([0, 1]))
    assert crowd.links.toarray().tolist() == [[0, 1], [1, 0]]
    assert crowd.degrees.tolist() == [2, 2]
    assert len(crowd) == 2


def test_tightness_is_that_of_a_plain_loop() -> None:
    crowd, _ = crowd_of((12, 12), 1.0, loose=10)
    balls = Balls.of(crowd, 6)
    links = crowd.links.toarray()
    for row in range(len(crowd)):
        cosines = crowd.values @ crowd.values[row]
        cosines[row] = 2
        ball = np.argsort(-cosines, kind="stable")[:6]
        assert balls.members[row].tolist() == ball.tolist()
        kept = sum(links[a, b] for a in ball for b in ball)
        total = sum(links[a].sum() for a in ball)
        length = np.linalg.norm(crowd.values[ball].mean(axis=0))
        np.testing.assert_allclose(balls.tightness[row], [length, kept / max(1, total)], atol=1e-5)


def test_purity_is_the_share_of_the_largest_class() -> None:
    assert purity(np.array([[1, 2, 1, 1], [3, 3, 4, 4], [0, 1, 2, 3]])).tolist() == [0.75, 0.5, 0.25]


def test_the_heaps_are_found_and_the_loose_nodes_are_left() -> None:
    crowd, of = crowd_of((40, 30, 25), 0.4, loose=120)
    actual = tight_groups(crowd, PurityModel.usual(), 5)
    first = actual[:3]
    assert sorted(int(of[each.rows[0]]) for each in first) == [0, 1, 2]
    for each in first:
        assert purity(of[each.rows][None])[0] > 0.95
        assert each.rows.size >= CORES[0]
        assert (of[each.rows] >= 0).mean() > 0.95
    rows = np.concatenate([each.rows for each in actual])
    assert rows.size == np.unique(rows).size
    assert rows.size < 0.8 * len(crowd)
    fewer = tight_groups(crowd, PurityModel.usual(), 2)
    assert [each.rows.tolist() for each in fewer] == [each.rows.tolist() for each in actual[:2]]


def test_a_looser_heap_comes_later_and_is_less_sure() -> None:
    crowd, of = crowd_of((30, 30), 0.3)
    values = crowd.values.copy()
    values[of == 1] = unit_rows(values[of == 1] + 0.25 * np.random.default_rng(1).normal(size=values[of == 1].shape))
    first, second = tight_groups(Crowd(values, crowd.links, crowd.degrees), PurityModel.usual(), 2)
    assert of[first.rows[0]] == 0
    assert of[second.rows[0]] == 1
    assert first.estimated_purity > second.estimated_purity + 0.01


def test_a_group_grows_by_nodes_as_near_as_its_core() -> None:
    """Twelve nodes are the same and two more nearly so: the ball of ten takes the others in, not the loose nodes."""
    random = np.random.default_rng(0)
    values = np.concatenate([np.tile(np.eye(1, 12), (14, 1)), random.normal(size=(40, 12))])
    values[12:14, 1] = 1e-4
    crowd = Crowd(unit_rows(values), sparse.csr_array((54, 54), dtype=np.float32), np.zeros(54))
    (group,) = tight_groups(crowd, PurityModel.usual(), 1)
    assert set(range(12)) <= set(group.rows.tolist()) <= set(range(14))


def test_balls_grow_with_the_crowd() -> None:
    assert [core_size(count) for count in (0, 100, 300, 500, 10**6)] == [10, 10, 15, 25, 25]


def test_members_are_most_typical_first() -> None:
    crowd, _ = crowd_of((40,), 0.5)
    (group, *_) = tight_groups(crowd, PurityModel.usual(), 1)
    likeness = crowd.values[group.rows] @ crowd.values[group.rows].mean(axis=0)
    assert (np.diff(likeness) <= 1e-6).all()


@pytest.mark.parametrize("size", [0, 1, CORES[0] - 1])
def test_too_few_nodes_have_no_group(size: int) -> None:
    values = unit_rows(np.ones((size, 3)))
    crowd = Crowd(values, sparse.csr_array((size, size), dtype=np.float32), np.zeros(size))
    assert tight_groups(crowd, PurityModel.usual(), 5) == []


def test_nodes_that_are_all_the_same_make_one_group() -> None:
    size = 60
    crowd = Crowd(unit_rows(np.ones((size, 3))), sparse.csr_array((size, size), dtype=np.float32), np.zeros(size))
    actual = tight_groups(crowd, PurityModel.usual(), 5)
    assert len(actual) >= 1
    assert np.isfinite([each.estimated_purity for each in actual]).all()


def test_purity_is_learned_from_labelled_nodes() -> None:
    """Heaps that are of one class, and a heap of nodes of mixed classes that is less tight."""
    crowd, of = crowd_of((40, 40), 0.3, loose=120)
    random = np.random.default_rng(3)
    columns = np.where(of >= 0, of, random.integers(0, 6, of.size))
    balls = Balls.of(crowd, 15)
    learned = PurityModel.learned(balls, columns)
    assert min(learned.weights) >= 0
    assert max(learned.weights) > 0
    sure, pure = learned.of(balls.tightness), purity(columns[balls.members])
    assert abs(sure.mean() - pure.mean()) < 0.03
    assert sure[of >= 0].mean() > sure[of < 0].mean() + 0.2


def test_figures_that_speak_against_purity_get_no_weight() -> None:
    crowd, of = crowd_of((60,), 0.2, loose=120)
    columns = np.where(of >= 0, np.arange(of.size) % 7, 8)  # what is tight is mixed, what is loose is of one class
    learned = PurityModel.learned(Balls.of(crowd, 15), columns)
    assert min(learned.weights) >= 0


def test_with_few_labels_the_purity_model_is_the_usual_one() -> None:
    crowd, of = crowd_of((20,), 0.2)
    assert PurityModel.learned(Balls.of(crowd, 15), of) == PurityModel.usual()


@pytest.mark.parametrize("kinds", [1, 2, 5])
def test_stated_purity_is_that_of_groups_of_hidden_classes(kinds: int) -> None:
    """Heaps hold nodes of several classes in turn: however tight, their groups are not purer than that."""
    crowd, of = crowd_of((40, 40, 40, 40), 0.3, loose=40)
    columns = kinds * of + np.arange(of.size) % kinds
    model = PurityModel.of_hidden(crowd, columns)
    assert model is not None
    groups = tight_groups(crowd, model, 4)
    true = np.mean([purity(columns[None, each.rows])[0] for each in groups])
    stated = np.mean([each.estimated_purity for each in groups])
    assert stated == pytest.approx(min(true, 0.99), abs=0.05)
    assert PurityModel.from_json(json.loads(json.dumps(model.as_json()))) == model


def test_few_hidden_nodes_teach_nothing() -> None:
    crowd, of = crowd_of((30,), 0.3)
    assert PurityModel.of_hidden(crowd, of) is None
