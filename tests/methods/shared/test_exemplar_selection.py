"""Which nodes are kept, against plain loops."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphfcl import Protocol, make_stream
from graphfcl.methods.shared.exemplar_selection import coverage, herding, influence, mean_of_features
from graphfcl.methods.shared.memories import ReplayMemory
from graphfcl.nn import GraphInputs
from tests.graphs import random_graph


def points_of(seed: int, sizes: list[int], width: int = 4) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    labels = random.permutation(np.repeat(np.arange(len(sizes)), sizes))
    return random.normal(size=(labels.size, width)) + labels[:, None], labels


SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=4)


@given(st.integers(0, 999), SIZES, st.integers(1, 10))
def test_herding_follows_the_class_mean(seed: int, sizes: list[int], count: int) -> None:
    points, labels = points_of(seed, sizes)
    chosen = herding(points, labels, count)
    for column in range(len(sizes)):
        members = [int(m) for m in np.flatnonzero(labels == column)]
        mean = points[members].mean(axis=0)
        found = [int(position) for position in chosen if labels[position] == column]
        assert len(set(found)) == len(found) == min(count, len(members))
        for number, pick in enumerate(found):
            before = found[:number]
            apart = {m: np.linalg.norm(mean - points[[*before, m]].mean(axis=0)) for m in members if m not in before}
            assert apart[pick] <= min(apart.values()) + 1e-9  # two nodes of a class are equally far from its mean


def test_herding_passes_over_equal_points_and_gives_each_once() -> None:
    points, labels = np.ones((6, 2)), np.array([0, 0, 0, 1, 1, 1])
    assert sorted(herding(points, labels, 5)) == [0, 1, 2, 3, 4, 5]


@given(st.integers(0, 999), SIZES, st.integers(1, 5))
def test_mean_of_features_takes_the_most_typical(seed: int, sizes: list[int], count: int) -> None:
    """Public copies take the least similar nodes."""
    points, labels = points_of(seed, sizes)
    chosen = mean_of_features(points, labels, count)
    for column in range(len(sizes)):
        members = np.flatnonzero(labels == column)
        found = [p for p in chosen if labels[p] == column]
        mean = points[members].mean(axis=0)
        apart = np.linalg.norm(points[found] - mean, axis=1)
        assert len(set(found)) == min(count, members.size)
        np.testing.assert_allclose(apart, np.sort(np.linalg.norm(points[members] - mean, axis=1))[:count], atol=1e-9)


@given(st.integers(0, 999), SIZES, st.integers(1, 5), st.floats(0.2, 3.0))
def test_coverage_takes_nodes_far_from_other_classes(seed: int, sizes: list[int], count: int, distance: float) -> None:
    points, labels = points_of(seed, sizes)
    chosen = coverage(points, labels, count, distance)
    for column in range(len(sizes)):
        members = [int(m) for m in np.flatnonzero(labels == column)]
        crowd = {
            m: sum(
                1
                for other in range(labels.size)
                if labels[other] != column and ((points[m] - points[other]) ** 2).sum() <= distance**2
            )
            for m in members
        }
        expected = sorted(members, key=lambda m: (crowd[m], m))[:count]
        assert [int(p) for p in chosen if labels[p] == column] == expected


def softmax_regression(points: np.ndarray, labels: np.ndarray, number: int, penalty: float) -> torch.Tensor:
    """(classes, h + 1) the minimiser of Σ cross-entropy/number + penalty/2 ‖W‖², by Newton steps with autograd."""
    z = torch.from_numpy(np.pad(points, ((0, 0), (0, 1)), constant_values=1.0))
    y = torch.from_numpy(labels)
    count = int(labels.max()) + 1
    weights = torch.zeros(count * z.shape[1], dtype=torch.float64)

    def loss(w: torch.Tensor) -> torch.Tensor:
        logits = z @ w.view(count, -1).T
        return torch.nn.functional.cross_entropy(logits, y, reduction="sum") / number + penalty / 2 * (w**2).sum()

    for _ in range(20):
        slope = torch.func.grad(loss)(weights)
        weights = weights - torch.linalg.solve(torch.func.hessian(loss)(weights), slope)
    return weights.view(count, -1)


@pytest.mark.long
@pytest.mark.soak
def test_influence_is_how_far_the_head_moves_when_a_node_is_left_out() -> None:
    """Retrained without each node in turn, the head moves as the influence function says."""
    points, labels = points_of(3, [30, 30, 30], width=2)
    penalty = 0.05
    full = softmax_regression(points, labels, labels.size, penalty)
    z = torch.from_numpy(np.pad(points, ((0, 0), (0, 1)), constant_values=1.0))
    probabilities = torch.softmax(z @ full.T, dim=1).numpy()
    moves = []
    for left_out in range(labels.size):
        kept = np.arange(labels.size) != left_out
        moves.append(float((softmax_regression(points[kept], labels[kept], labels.size, penalty) - full).norm()))
    trace = np.trace(_hessian(points, probabilities)) / (3 * 3)
    chosen = influence(points, labels, 3, probabilities, damping=penalty / trace)
    for column in range(3):
        members = np.flatnonzero(labels == column)
        expected = members[np.argsort(-np.array(moves)[members])][:3]
        assert set(chosen[labels[chosen] == column]) == set(expected)


def _hessian(points: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    z = np.pad(points, ((0, 0), (0, 1)), constant_values=1.0)
    size = z.shape[1] * probabilities.shape[1]
    total = np.zeros((size, size))
    for point, p in zip(z, probabilities, strict=True):
        total += np.kron(np.diag(p) - np.outer(p, p), np.outer(point, point))
    return total / len(z)


@pytest.mark.parametrize("dense", [False, True])
def test_a_memory_keeps_the_first_of_each_class_with_their_features(dense: bool) -> None:
    graph = random_graph(0, [20, 20, 20, 20, 20], dense=dense)
    stream = make_stream(graph, Protocol(base=2, pseudo_novel=1, way=1, shot=3), track="isolated")
    here, there = stream.visible_graph(0), stream.visible_graph(1)
    nodes = stream.base.train[:9]
    memory = ReplayMemory()
    memory.add(nodes[:5], np.array([0, 1, 0, 1, 0]), here.loaded(), keep_features=True)
    memory.add(nodes[5:], np.array([1, 0, 1, 1]), here.loaded(), keep_features=True)
    memory.keep_first(2)
    assert memory.labelled[0].tolist() == nodes[[0, 1, 2, 3]].tolist()
    cpu, again = torch.device("cpu"), ReplayMemory()
    again.load(memory.values(), memory.tensors(), cpu)
    joined = again.graph_with_nodes(GraphInputs(there.loaded(), cpu)).visible
    assert set(joined.nodes) == set(there.nodes) | set(memory.nodes)
    rows = joined.rows(memory.nodes)
    assert (joined.degrees[rows] == 0).all()
    wanted = here.loaded().features[here.rows(memory.nodes)]
    found = joined.features[rows]
    plain = (lambda table: table) if dense else (lambda table: table.toarray())
    np.testing.assert_array_equal(plain(found), plain(wanted))
    np.testing.assert_array_equal(joined.degrees[joined.rows(there.nodes)], there.degrees)
    assert again.stored()["features"] > 0
    inputs = GraphInputs(here.loaded(), cpu)
    assert again.graph_with_nodes(inputs) is inputs
