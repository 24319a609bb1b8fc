"""The meter of a basket."""

import numpy as np
import pytest

from graphfcl import GraphClassifier, InputError
from graphfcl.active.clusters import unit_rows
from graphfcl.production.labelling.spreading import spread_of_rows
from tests.production.models import fitted, members


@pytest.fixture(scope="module")
def ridge() -> GraphClassifier:
    return fitted("sgc-ridge")


def test_spread_is_the_mean_over_pairs() -> None:
    random = np.random.default_rng(0)
    basket, around = (unit_rows(random.normal(size=(count, 4))) for count in (6, 50))
    found = [
        np.log((1 + sum(float(basket[u] @ other) > float(basket[u] @ basket[v]) for other in around)) / 51)
        for u in range(6)
        for v in range(6)
        if u != v
    ]
    assert spread_of_rows(basket, around) == pytest.approx(np.mean(found))
    same = np.repeat(basket[:1], 3, axis=0)
    assert spread_of_rows(same, around) == pytest.approx(np.log(1 / 51))
    twins = np.repeat(np.eye(1, 4, dtype=np.float32), 3, axis=0)
    assert spread_of_rows(twins, twins) == pytest.approx(np.log(1 / 4))  # as near is not nearer


def test_a_node_is_not_nearer_than_itself_by_rounding() -> None:
    around = unit_rows(np.random.default_rng(0).normal(size=(400, 64)))
    cosines = around.astype(np.float64) @ around.T.astype(np.float64)
    for basket in np.arange(50).reshape(-1, 5).tolist():
        pairs = [(u, v) for u in basket for v in basket if u != v]
        nearer = [sum(cosines[u, w] > cosines[u, v] + 1e-5 for w in range(400)) for u, v in pairs]
        expected = np.mean(np.log((1 + np.array(nearer)) / 401))
        assert spread_of_rows(around[basket], around) == pytest.approx(expected)


def nearest_to_the_mean(model: GraphClassifier, nodes: list[int], count: int) -> list[int]:
    visible = model.graph_.visible
    vectors = model.learner_.vectors_to_draw(visible, model.numbers_of(nodes))
    assert vectors is not None
    away = np.linalg.norm(vectors - vectors.mean(axis=0), axis=1)
    return [nodes[place] for place in np.argsort(away)[:count]]


@pytest.mark.parametrize("name", ["class-01", "class-04", "class-08", "class-09"])
def test_nodes_near_the_mean_are_less_spread_than_random_ones(ridge: GraphClassifier, name: str) -> None:
    nodes, random = members(name), np.random.default_rng(0)
    near = ridge.spread(nearest_to_the_mean(ridge, nodes, 5))
    drawn = [ridge.spread(random.choice(nodes, 5, replace=False).tolist()) for _ in range(10)]
    assert near.value < np.mean([each.value for each in drawn])
    assert near.alike
    assert "too alike" in near.say
    assert sum(each.alike for each in drawn) <= 3
    assert 0.05 < np.mean([each.value for each in drawn]) < 0.95


def test_nodes_of_several_classes_are_spread(ridge: GraphClassifier) -> None:
    found = ridge.spread([members(f"class-0{number}")[0] for number in range(8)])
    assert found.value > 0.95
    assert not found.alike
    assert "spread enough" in found.say


def test_the_meter_repeats_and_takes_any_number(ridge: GraphClassifier) -> None:
    nodes = members("class-03")
    assert ridge.spread(nodes[:7]) == ridge.spread(nodes[:7])
    assert ridge.spread(nodes[:2]).value >= 0
    assert ridge.spread(ridge.node_ids_.tolist()).value > 0.9
    one = ridge.spread([nodes[0], nodes[0]])
    assert (one.value, one.alike) == (0.0, False)
    assert "One node" in one.say


def test_bad_baskets(ridge: GraphClassifier) -> None:
    with pytest.raises(InputError, match="no node to measure the spread of"):
        ridge.spread([])
    with pytest.raises(InputError, match="'nobody' is not in the graph"):
        ridge.spread(["nobody"])
