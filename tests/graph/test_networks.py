"""From and to networkx."""

from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse

from graphfcl import Graph, InputError, build_graph, from_networkx, to_networkx
from graphfcl.graph import TextSettings
from graphfcl.graph.labels import means_unknown
from tests.graph.samples import assert_same_content, coo, named_labels, small_graphs


@given(small_graphs())
def test_networkx_round_trip(graph: Graph) -> None:
    assume(not any(map(means_unknown, graph.class_names)))
    network = to_networkx(graph)
    assert list(network.nodes) == graph.node_ids.tolist()
    assert network.number_of_edges() == graph.edge_count
    back = from_networkx(network)
    usual = ("no features", "differ only by case")  # both hold of the graph itself
    assert [note for note in back.notes if not any(words in note for words in usual)] == []
    if graph.node_count:
        assert_same_content(back, graph)
    else:
        assert back.node_count == 0


def test_networkx_features_stay_sparse() -> None:
    graph = build_graph(coo([(0, 1, 1)], 2), sparse.csr_array((2, 2**30)), [0, 1])
    network = to_networkx(graph)
    assert all(sparse.issparse(row) for _, row in network.nodes(data="features"))
    assert from_networkx(network).features.shape == (2, 2**30)


def test_directed_and_multiple_edges_of_networkx() -> None:
    directed = networkx.DiGraph([(0, 1, {"weight": 2}), (1, 0, {"weight": 5}), (0, 0), (1, 2)])
    assert from_networkx(directed, label=None).adjacency.toarray().tolist() == [[0, 5, 0], [5, 0, 1], [0, 1, 0]]
    multiple = networkx.MultiGraph([("a", "b", {"weight": 2}), ("b", "a", {"weight": 5})])
    assert from_networkx(multiple, label=None).adjacency.toarray().tolist() == [[0, 5], [5, 0]]


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 5), st.sampled_from([0.5, 1.0, 3.0])), max_size=12, unique=True
    )
)
def test_weights_of_networkx_match_its_own_matrix(edges: list[tuple[int, int, float]]) -> None:
    network = networkx.Graph()
    network.add_nodes_from(range(6))
    network.add_weighted_edges_from(edges)
    expected = networkx.to_numpy_array(network, nodelist=range(6))
    np.fill_diagonal(expected, 0)
    np.testing.assert_array_equal(from_networkx(network, label=None).adjacency.toarray(), expected)


def test_attributes_of_networkx_can_be_named() -> None:
    network = networkx.Graph()
    network.add_node("x", topic="a", words="red fox")
    network.add_node("y", words="red hen")
    network.add_edge("x", "y", strength=0.5)
    graph = from_networkx(network, label="topic", text="words", weight="strength", name="birds")
    assert named_labels(graph) == ["a", None]
    assert graph.text == TextSettings()
    assert graph.feature_names is not None
    assert graph.feature_names.tolist() == ["fox", "hen", "red"]
    assert graph.adjacency.toarray()[0, 1] == 0.5
    assert graph.name == "birds"


def test_labels_and_ids_of_networkx_may_be_numbers() -> None:
    network = networkx.Graph()
    for node, label in ((np.int64(9), 3), (np.int64(4), -1), (np.int64(7), 0)):
        network.add_node(node, label=label, features=[1, 2])
    graph = from_networkx(network)
    assert graph.node_ids.tolist() == [9, 4, 7]
    assert named_labels(graph) == ["3", None, "0"]
    assert graph.features.tolist() == [[1, 2]] * 3


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ([{"label": ["a", "b"]}, {"label": ["a", "c"]}], "multi-label"),
        ([{"label": ["a", "b"]}, {"label": ["a"]}], "multi-label"),
        ([{"features": [1]}, {}], "node 1 has no attribute 'features'"),
        ([{"features": [1]}, {"features": [1, 2]}], "node 1 has another number of features"),
        ([{"features": [1]}, {"features": "two"}], "node 1 has features that are not numbers"),
        ([{"features": [1]}, {"features": [np.inf]}], "the feature of node 1, column 0 is NaN or infinite"),
    ],
)
def test_networkx_attributes_that_cannot_be_used_are_refused(attributes: list[dict[str, Any]], words: str) -> None:
    network = networkx.Graph()
    for node, values in enumerate(attributes):
        network.add_node(node, **{"label": "a", **values})
    with pytest.raises(InputError, match=f"the networkx graph: .*{words}"):
        from_networkx(network)


def test_a_weight_that_is_no_number_is_refused() -> None:
    network = networkx.Graph([(0, 1, {"weight": "strong"})])
    with pytest.raises(InputError, match="the networkx graph: an edge weight is not a number"):
        from_networkx(network, label=None)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"label": "clas"}, "no node has the attribute 'clas' for label=: did you mean 'class'? If no class is known"),
        ({}, "no node has the attribute 'label' for label=: there are class, vector. If no class is known"),
        ({"label": "class", "features": "vectors"}, "'vectors' for features=: did you mean 'vector'"),
        ({"label": "class", "text": "title"}, "'title' for text=: there are class, vector"),
        (
            {"label": "class", "weight": "strenght"},
            "no edge has the attribute 'strenght' for weight=: did you mean 'str",
        ),
    ],
)
def test_a_misspelt_attribute_of_networkx_is_refused(options: dict[str, Any], words: str) -> None:
    network = networkx.Graph([("x", "y", {"strength": 2.0})])
    for node in network.nodes.values():
        node.update({"class": "a", "vector": [1.0]})
    with pytest.raises(InputError) as refused:
        from_networkx(network, **options)
    assert words in str(refused.value)


def test_networkx_without_labels_features_and_weights() -> None:
    graph = from_networkx(networkx.path_graph(3), label=None)
    assert graph.class_names == ()
    assert graph.labels.tolist() == [-1] * 3
    assert graph.notes == ("The graph has no features: only its edges tell its nodes apart.",)


def shop() -> Any:
    network = networkx.Graph([("p1", "p2"), ("p2", "p3")])
    for node, title, price, vector in (("p1", "red hat", 1.0, [1, 2]), ("p2", "hat", 2, [3, 4]), ("p3", "", 3, [5, 6])):
        network.nodes[node].update(kind="a", title=title, price=price, vec=vector, stock=7)
    return network


def test_numbers_beside_a_text_of_networkx() -> None:
    graph = from_networkx(shop(), label="kind", text="title", features=["vec", "price"])
    assert graph.feature_names is not None
    assert graph.feature_names.tolist() == ["hat", "red", "price", "vec_0", "vec_1"]
    assert graph.features.toarray().tolist() == [[1, 1, 1, 1, 2], [1, 0, 2, 3, 4], [0, 0, 3, 5, 6]]
    assert graph.text == TextSettings(beside=(1, 2))
    assert graph.notes[0] == "Not used of the networkx graph: stock."
    assert from_networkx(shop(), label="kind", text="title", features="vec").text == TextSettings(beside=(2,))


def test_several_numbers_of_networkx() -> None:
    graph = from_networkx(shop(), label="kind", features=("price", "stock", "vec"))
    assert graph.feature_names is not None
    assert graph.feature_names.tolist() == ["price", "stock", "vec_0", "vec_1"]
    assert graph.features.tolist() == [[1, 7, 1, 2], [2, 7, 3, 4], [3, 7, 5, 6]]
    with pytest.raises(InputError, match="'prize' for features=: did you mean 'price'"):
        from_networkx(shop(), label="kind", features=["vec", "prize"])


def test_sparse_rows_of_networkx_stay_sparse() -> None:
    network = to_networkx(build_graph(coo([(0, 1, 1)], 2), sparse.eye_array(2, format="csr"), ["a", "b"]))
    for number, values in enumerate(network.nodes.values()):
        values["price"] = number
    graph = from_networkx(network, features=["features", "price"])
    assert sparse.issparse(graph.features)
    assert graph.features.toarray().tolist() == [[0, 1, 0], [1, 0, 1]]
