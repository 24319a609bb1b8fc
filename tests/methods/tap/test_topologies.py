"""The topologies of session 0, against plain versions."""

import numpy as np
import pytest
import torch
from scipy import sparse

from graphfcl import VisibleGraph
from graphfcl.methods.tap.training import ClassGroups, encode, inputs_of
from graphfcl.nn import ENCODERS, GraphInputs


def random_graph(nodes: int, edges: int, seed: int) -> sparse.csr_array:
    random = np.random.default_rng(seed)
    first, second = random.integers(0, nodes, (2, edges))
    proper = first != second
    pairs = (np.concatenate([first[proper], second[proper]]), np.concatenate([second[proper], first[proper]]))
    found = sparse.csr_array((np.ones(pairs[0].size, np.float32), pairs), shape=(nodes, nodes))
    found.data[:] = 1
    return found


def drawn(labels: np.ndarray, adjacency: sparse.csr_array, way: int, share: float, seed: int = 0) -> np.ndarray:
    groups = ClassGroups(adjacency, np.arange(labels.size), labels, way, share)
    return groups.draw(np.random.default_rng(seed)).toarray()


def connected_classes(labels: np.ndarray, matrix: np.ndarray) -> set[tuple[int, int]]:
    return {(int(labels[i]), int(labels[j])) for i, j in zip(*np.nonzero(matrix), strict=True)}


@pytest.mark.parametrize("way", [1, 2, 3, 10])
def test_edges_are_kept_exactly_inside_groups_of_n_classes(way: int) -> None:
    """The last group, which is smaller if N does not divide the number of classes, keeps its edges too."""
    labels = np.arange(140) % 7
    adjacency = random_graph(140, 900, 1)
    found = drawn(labels, adjacency, way, 0.0)
    pairs = connected_classes(labels, found)
    groups = {frozenset(b for a, b in pairs if a == c) for c in range(7)}
    sizes = sorted((len(group) for group in groups), reverse=True)
    assert sizes == [way] * (7 // way) + [7 % way] * (7 % way > 0)
    group_of = {c: group for group in groups for c in group}
    for i, j in zip(*np.nonzero(adjacency.toarray()), strict=True):
        assert found[i, j] == (group_of[int(labels[i])] is group_of[int(labels[j])])


def test_groups_are_drawn_anew() -> None:
    labels, adjacency = np.arange(120) % 6, random_graph(120, 800, 2)
    pairs = {frozenset(connected_classes(labels, drawn(labels, adjacency, 2, 0.0, seed))) for seed in range(8)}
    assert len(pairs) > 2


def test_random_edges_join_any_nodes_of_a_group_and_no_others() -> None:
    """Nodes that no edge of the graph touches are joined as well."""
    labels = np.repeat([0, 1], 60)
    adjacency = random_graph(120, 600, 3).tolil()
    adjacency[:20], adjacency[:, :20] = 0, 0
    adjacency = sparse.csr_array(adjacency.tocsr())
    adjacency.eliminate_zeros()
    plain, found = (drawn(labels, adjacency, 1, share) for share in (0.0, 0.5))
    added = found - plain
    assert connected_classes(labels, found) == {(0, 0), (1, 1)}
    assert set(np.unique(added)) <= {0, 1}
    np.testing.assert_array_equal(found, found.T)
    assert not np.diag(found).any()
    for label in (0, 1):
        inside = np.ix_(labels == label, labels == label)
        share = added[inside].sum() / plain[inside].sum()
        assert 0.3 < share <= 0.5  # some pairs are drawn twice, or are edges already
    assert (added[:20].sum(axis=1) > 0).any()
    many = [drawn(labels, adjacency, 1, 0.5, seed) - plain for seed in range(40)]
    assert (sum(many)[:20].sum(axis=1) > 0).all()


def test_labelled_nodes_alone_are_in_the_groups() -> None:
    labels, rows = np.array([0, 0, 1, 1]), np.array([8, 1, 5, 2])
    adjacency = random_graph(10, 40, 4)
    found = ClassGroups(adjacency, rows, labels, 2, 0.0).draw(np.random.default_rng(0)).toarray()
    np.testing.assert_array_equal(found, adjacency.toarray()[np.ix_(rows, rows)])


@pytest.mark.parametrize("kind", ["gcn", "gat"])
@pytest.mark.parametrize("last_relu", [False, True])
def test_on_the_visible_graph_it_is_the_encoder_itself(kind: str, last_relu: bool) -> None:
    random = np.random.default_rng(0)
    features = random.random((30, 12), dtype=np.float32)
    inputs = GraphInputs(VisibleGraph(np.arange(30), random_graph(30, 60, 5), features), torch.device("cpu"))
    start = torch.Generator().manual_seed(0)
    encoder = ENCODERS[kind](12, 8, 5, start, last_relu=last_relu)
    for layer in (encoder.first, encoder.second):
        torch.nn.init.normal_(layer.bias, generator=start)
    expected = encoder(encoder.rows(inputs, None))
    found = encode(encoder, torch.from_numpy(features) @ encoder.first.weight, inputs)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("kind", ["gcn", "gat"])
def test_without_edges_it_is_the_layers_without_aggregation(kind: str) -> None:
    """Which is what a graph of lone nodes gives; and both are two plain layers."""
    start = torch.Generator().manual_seed(0)
    features = torch.rand(9, 12, generator=start)
    encoder = ENCODERS[kind](12, 8, 5, start, last_relu=False)
    for layer in (encoder.first, encoder.second):
        torch.nn.init.normal_(layer.bias, generator=start)
    found = encode(encoder, features @ encoder.first.weight, None)
    hidden = torch.relu(features @ encoder.first.weight + encoder.first.bias)
    torch.testing.assert_close(found, hidden @ encoder.second.weight + encoder.second.bias)
    alone = inputs_of(sparse.csr_array((9, 9), dtype=np.float32), torch.device("cpu"))
    torch.testing.assert_close(encode(encoder, features @ encoder.first.weight, alone), found)
