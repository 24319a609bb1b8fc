"""What of a graph exists at one moment."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from graphfcl import Graph, InputError, build_graph
from graphfcl.graph import TextSettings, TextWeights
from graphfcl.graph.tables.words import count_words
from tests.graph.samples import coo, plain, small_graphs


@st.composite
def cuts(draw: st.DrawFn) -> tuple[Graph, np.ndarray]:
    """A graph and some of its nodes, ascending."""
    graph = draw(small_graphs())
    chosen = draw(st.lists(st.booleans(), min_size=graph.node_count, max_size=graph.node_count))
    return graph, np.flatnonzero(np.array(chosen, dtype=bool))


def submatrix(graph: Graph, nodes: np.ndarray) -> np.ndarray:
    return graph.adjacency.toarray()[np.ix_(nodes, nodes)]


def normalise(adjacency: np.ndarray) -> np.ndarray:
    """D^{-1/2} (A + I) D^{-1/2}, entry by entry."""
    count = len(adjacency)
    degrees = [1 + sum(float(adjacency[row, column]) for column in range(count)) for row in range(count)]
    result = np.zeros((count, count))
    for row in range(count):
        for column in range(count):
            value = float(adjacency[row, column]) + (row == column)
            result[row, column] = value / math.sqrt(degrees[row] * degrees[column])
    return result


@given(cuts())
def test_a_cut_is_the_submatrix_and_the_rows_of_its_nodes(cut: tuple[Graph, np.ndarray]) -> None:
    graph, nodes = cut
    visible = graph.visible(nodes)
    np.testing.assert_array_equal(visible.adjacency.toarray(), submatrix(graph, nodes))
    np.testing.assert_array_equal(plain(visible.features), plain(graph.features)[nodes])
    assert sparse.issparse(visible.features) == sparse.issparse(graph.features)
    np.testing.assert_array_equal(visible.nodes, nodes)
    assert visible.node_count == nodes.size
    assert visible.edge_count == np.count_nonzero(submatrix(graph, nodes)) // 2


@given(cuts())
def test_degrees_and_normalisation_count_visible_neighbours_only(cut: tuple[Graph, np.ndarray]) -> None:
    graph, nodes = cut
    visible = graph.visible(nodes)
    adjacency = submatrix(graph, nodes)
    np.testing.assert_allclose(visible.degrees, adjacency.sum(axis=1), rtol=1e-6)
    np.testing.assert_allclose(visible.normalised.toarray(), normalise(adjacency), rtol=1e-5)
    assert visible.degrees.dtype == visible.normalised.dtype == np.float32


def test_isolated_nodes_have_finite_values() -> None:
    graph = build_graph(coo([(0, 1, 0.5)], 4), np.ones((4, 1)), [0, 0, 0, 0])
    visible = graph.visible(np.array([0, 2, 3]))
    assert visible.degrees.tolist() == [0, 0, 0]
    np.testing.assert_array_equal(visible.normalised.toarray(), np.eye(3))


def test_rows_of_node_numbers() -> None:
    graph = build_graph(np.zeros((6, 6)), None, np.zeros(6))
    visible = graph.visible(np.array([1, 3, 4]))
    assert visible.rows(np.array([4, 1, 1])).tolist() == [2, 0, 0]
    assert visible.rows(np.array([], dtype=np.int64)).tolist() == []
    assert visible.contains(np.array([0, 1, 2, 3, 5])).tolist() == [False, True, False, True, False]
    for hidden in (0, 2, 5):
        with pytest.raises(InputError, match=f"node {hidden} is not in the visible graph"):
            visible.rows(np.array([1, hidden]))


def test_an_empty_cut() -> None:
    graph = build_graph(np.ones((3, 3)), np.ones((3, 2)), [0, 0, 0])
    visible = graph.visible(np.array([], dtype=np.int64))
    assert (visible.node_count, visible.edge_count) == (0, 0)
    assert visible.normalised.shape == (0, 0)
    assert repr(visible) == "VisibleGraph(0 nodes, 0 edges)"
    with pytest.raises(InputError, match="node 1 "):
        visible.rows(np.array([1]))


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
def test_features_that_are_all_zero_stay_zero(form: type) -> None:
    graph = build_graph(np.ones((3, 3)), form(np.zeros((3, 2))), [0, 0, 0])
    visible = graph.visible(np.array([0, 2]))
    assert plain(visible.features).tolist() == [[0, 0], [0, 0]]
    assert np.isfinite(plain(visible.normalised @ visible.features)).all()


def test_a_text_graph_shows_the_weights_that_it_is_given() -> None:
    counts, words = count_words(["red fox", "red hen", "blue hen hen", ""])
    graph = build_graph(np.zeros((4, 4)), counts, [0, 0, 0, 0], feature_names=words, text=TextSettings(1))
    weights = TextWeights.fit(graph.features[:2], 1)
    visible = graph.visible(np.array([1, 2, 3]), weights)
    assert words[weights.columns].tolist() == ["fox", "hen", "red"]
    rare = math.log(3 / 2) + 1
    length = math.hypot(rare, 1)
    expected = np.array([[0, rare / length, 1 / length], [0, 1, 0], [0, 0, 0]])
    np.testing.assert_allclose(visible.features.toarray(), expected, rtol=1e-6)
