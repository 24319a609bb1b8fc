"""Positions on the map: alike nodes together, the repulsion as a plain sum, and nodes that stay where they are."""

import numpy as np
from scipy.spatial import cKDTree

from graphfcl.production.labelling.map_layout import Links, MapLayout, Repulsion, lay_out, most_alike

CLASSES, NODES, WIDTH = 12, 900, 100


def table(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(n,) classes and (n, d) vectors around the centre of each class."""
    random = np.random.default_rng(seed)
    classes = random.integers(CLASSES, size=NODES)
    centres = random.standard_normal((CLASSES, WIDTH))
    return classes, (centres[classes] + 1.2 * random.standard_normal((NODES, WIDTH))).astype(np.float32)


def laid_out(vectors: np.ndarray, before: MapLayout | None = None, numbers: np.ndarray | None = None) -> MapLayout:
    return lay_out(np.arange(len(vectors)) if numbers is None else numbers, vectors.__getitem__, before)


def agreement(classes: np.ndarray, positions: np.ndarray) -> float:
    """The share of the five nearest neighbours that are of the same class."""
    near = cKDTree(positions).query(positions, 6)[1][:, 1:]
    return float((classes[near] == classes[:, None]).mean())


def moved(first: MapLayout, second: MapLayout) -> np.ndarray:
    """How far nodes of both lie apart."""
    places = first.places_of(second.numbers)
    return np.linalg.norm((second.positions - first.positions[places])[places >= 0], axis=1)


def test_nodes_of_one_class_lie_together_in_the_unit_square() -> None:
    classes, vectors = table()
    layout = laid_out(vectors)
    assert agreement(classes, layout.positions) > 0.9
    assert agreement(classes, vectors[:, :2]) < 0.5
    assert layout.positions.min() >= 0
    assert layout.positions.max() <= 1
    np.testing.assert_array_equal(layout.positions, laid_out(vectors).positions)


def test_what_does_not_change_stays_exactly() -> None:
    classes, vectors = table()
    first = laid_out(vectors[:-50], numbers=10 * np.arange(NODES - 50))
    second = laid_out(vectors, first, 10 * np.arange(NODES))
    assert moved(first, second).max() == 0
    near = cKDTree(second.positions[:-50]).query(second.positions[-50:], 5)[1]
    assert (classes[near] == classes[-50:, None]).mean() > 0.8, "new nodes come to those of their class"
    fewer = laid_out(vectors[100:], second, 10 * np.arange(100, NODES))
    assert moved(second, fewer).max() == 0
    changed = vectors.copy()
    changed[:20] = vectors[classes == classes[20]].mean(axis=0)
    third = laid_out(changed, second, 10 * np.arange(NODES))
    assert moved(second, third)[20:].max() == 0
    assert moved(second, third)[:20].max() > 0


def test_all_are_laid_out_again_from_where_they_were_if_most_vectors_change() -> None:
    classes, vectors = table()
    first = laid_out(vectors)
    noise = 0.05 * np.random.default_rng(1).standard_normal(vectors.shape).astype(np.float32)
    second = laid_out(vectors + noise, first)
    assert np.median(moved(first, second)) < 0.05
    assert agreement(classes, second.positions) > 0.9


def test_repulsion_and_attraction_are_those_of_plain_sums() -> None:
    random = np.random.default_rng(0)
    places = 3 * random.standard_normal((400, 2)).astype(np.float32)
    apart = places[:, None] - places[None]
    weights = 1 / (1 + (apart**2).sum(axis=2))
    expected = (weights[:, :, None] ** 2 * apart).sum(axis=1) / (weights.sum() - len(places))
    actual = Repulsion().at(places.T).T
    assert np.linalg.norm(actual - expected) < 0.03 * np.linalg.norm(expected)

    links = Links.of(table()[1][:400])
    expected = np.zeros((400, 2))
    for row, other in zip(links.rows.tolist(), links.others.tolist(), strict=True):
        expected[row] -= weights[row, other] * apart[row, other] / links.rows.size
    np.testing.assert_allclose(links.attraction(places.T).T, expected, atol=1e-7)


def test_the_most_alike_are_those_of_a_full_sort() -> None:
    values = table()[1]
    cosines = values @ values.T
    np.fill_diagonal(cosines, -np.inf)
    expected = np.argsort(-cosines, axis=1)[:, :7]
    np.testing.assert_array_equal(np.sort(most_alike(values, 7), axis=1), np.sort(expected, axis=1))


def test_small_changes_move_nothing_until_they_add_up() -> None:
    vectors = table()[1]
    first = laid_out(vectors)
    random = np.random.default_rng(2)
    drift = 0.05 * np.linalg.norm(vectors[0]) / WIDTH**0.5 * random.standard_normal((100, WIDTH)).astype(np.float32)
    little, more = vectors.copy(), vectors.copy()
    little[:100] += drift
    more[:100] += 10 * drift
    second = laid_out(little, first)
    assert moved(first, second).max() == 0
    third = laid_out(more, second)
    assert (moved(second, third)[:100] > 0).all()
    assert moved(second, third)[100:].max() == 0
    np.testing.assert_array_equal(second.sketches, first.sketches)


def test_small_and_degenerate_graphs_have_positions() -> None:
    for count in range(6):
        for vectors in (np.zeros((count, 3), np.float32), np.ones((count, 1), np.float32)):
            positions = laid_out(vectors).positions
            assert positions.shape == (count, 2)
            assert np.isfinite(positions).all()
    same = laid_out(np.repeat(table()[1][:1], 300, axis=0))
    assert np.isfinite(same.positions).all()
