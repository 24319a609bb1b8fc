"""The sample of labelled nodes, against what a plain draw would do."""

import numpy as np
import torch

from graphfcl import Protocol, load_dataset, make_stream
from graphfcl.methods.shared.memories import SampledMemory, arrival_times
from graphfcl.methods.tem import cover


def never(nodes: np.ndarray) -> torch.Tensor:
    raise AssertionError(f"{nodes} were embedded again")


def labelled(count: int = 60, classes: int = 3) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    random = np.random.default_rng(0)
    return (random.permutation(1000)[:count], np.arange(count) % classes), random.integers(1, 9, count).astype(float)


def test_the_first_of_a_class_is_drawn_in_proportion_to_its_weight() -> None:
    weights, nodes = np.array([1.0, 2.0, 5.0]), np.array([4, 17, 40])
    drawn = [int(arrival_times(nodes, weights, seed).argmin()) for seed in range(4000)]
    np.testing.assert_allclose(np.bincount(drawn, minlength=3) / 4000, weights / weights.sum(), atol=0.03)


def test_each_class_keeps_those_that_arrive_first() -> None:
    (nodes, labels), weights = labelled()
    memory = SampledMemory(7, seed=3)
    memory.add((nodes, labels), weights)
    times = dict(zip(nodes.tolist(), arrival_times(nodes, weights, 3).tolist(), strict=True))
    for c in range(3):
        wanted = sorted(nodes[labels == c].tolist(), key=times.__getitem__)[:7]
        assert set(memory.nodes[memory.labels == c]) == set(wanted)
    small = SampledMemory(100, seed=3)
    small.add((nodes, labels), weights)
    assert set(small.nodes) == set(nodes)


def test_nodes_that_come_in_turn_make_the_sample_of_all_at_once() -> None:
    (nodes, labels), weights = labelled()
    at_once, in_turn = SampledMemory(5, seed=0), SampledMemory(5, seed=0)
    at_once.add((nodes, labels), weights)
    for part in (slice(40, None), slice(0, 40), slice(10, 20)):  # the last ones are known already
        in_turn.add((nodes[part], labels[part]), weights[part])
    assert set(in_turn.nodes) == set(at_once.nodes)
    assert (np.diff(in_turn.nodes) > 0).all()


def test_vectors_stay_beside_their_nodes() -> None:
    (nodes, labels), weights = labelled()
    memory = SampledMemory(6, seed=1)
    vectors = torch.from_numpy(nodes[:, None].astype(np.float32))
    memory.add((nodes[:30], labels[:30]), weights[:30], vectors[:30])
    memory.add((nodes[30:], labels[30:]), weights[30:], vectors[30:])
    memory.drop(memory.nodes[:2])
    assert memory.nodes.size == 16
    np.testing.assert_array_equal(memory.points(never)[:, 0].numpy(), memory.nodes)
    other = SampledMemory(6, seed=1)
    other.copy_from(memory, torch.device("cpu"))
    np.testing.assert_array_equal(other.points(never)[:, 0].numpy(), other.nodes)
    assert other.stored() == memory.stored() == {"nodes": 16 * 24, "embeddings": 16 * 4}


def test_a_node_covers_its_neighbours_and_itself() -> None:
    graph, _ = load_dataset("synthetic:nodes=200,edges=500,classes=8,features=40")
    visible = make_stream(graph, Protocol(base=3, pseudo_novel=3, way=1), seed=0).base.visible_graph
    nodes = visible.nodes[::7]
    wanted = [(visible.loaded().adjacency[[visible.rows(np.array([v]))[0]]] != 0).sum() + 1 for v in nodes]
    np.testing.assert_array_equal(cover(visible, nodes), wanted)
