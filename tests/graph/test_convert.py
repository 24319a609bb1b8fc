"""From and to the graph types of other libraries."""

from typing import Any

import networkx
import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse
from torch_geometric.data import Data, HeteroData

from graphfcl.errors import InputError
from graphfcl.graph import (
    Graph,
    TextSettings,
    build_graph,
    from_networkx,
    from_pyg,
    from_scipy,
    to_networkx,
    to_pyg,
    to_scipy,
)
from graphfcl.graph.labels import means_unknown
from tests.graph.samples import assert_same_content, coo, named_labels, small_graphs

pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def pyg_data(**changes: Any) -> Data:
    return Data(**{"edge_index": EDGES, "x": torch.eye(3), "y": torch.tensor([0, 1, -1]), **changes})


@given(small_graphs())
def test_scipy_round_trip(graph: Graph) -> None:
    adjacency, features, labels = to_scipy(graph)
    back = from_scipy(
        adjacency, features, labels, class_names=graph.class_names, node_ids=graph.node_ids, text=graph.text
    )
    assert back.sha256 == graph.sha256
    labels[:] = -1
    features *= 2
    assert back.sha256 == graph.sha256


@given(small_graphs())
@settings(deadline=None)
def test_pyg_round_trip(graph: Graph) -> None:
    data = to_pyg(graph)
    assert data.num_nodes == graph.node_count
    assert data.edge_index.shape == (2, 2 * graph.edge_count)
    if sparse.issparse(graph.features):
        assert data.x.layout == torch.sparse_csr
        assert data.x.values().numel() == graph.features.nnz
    else:
        assert data.x.layout == torch.strided
    back = from_pyg(data)
    assert_same_content(back, graph)
    assert back.class_names == graph.class_names


def test_pyg_copies_leave_the_graph_alone() -> None:
    graph = build_graph(coo([(0, 1, 2)], 2), np.eye(2), [0, 1])
    data = to_pyg(graph)
    for tensor in (data.x, data.y, data.edge_weight):
        tensor += 1
    assert graph.features.tolist() == [[1, 0], [0, 1]]
    assert graph.labels.tolist() == [0, 1]
    assert graph.adjacency.toarray()[0, 1] == 2


@pytest.mark.parametrize("form", ["to_sparse", "to_sparse_csr", "to_sparse_csc"])
def test_sparse_tensors_are_not_made_dense(form: str) -> None:
    features = torch.tensor([[0, 2.0], [0, 0], [1, 0]])
    graph = from_pyg(pyg_data(x=getattr(features, form)()))
    assert sparse.issparse(graph.features)
    assert graph.features.nnz == 2
    np.testing.assert_array_equal(graph.features.toarray(), features)


def test_a_wide_sparse_tensor_needs_no_room_for_its_zeros() -> None:
    width = 2**30
    features = torch.sparse_coo_tensor(torch.tensor([[0, 2], [5, width - 1]]), torch.ones(2), size=(3, width))
    graph = from_pyg(pyg_data(x=features))
    assert graph.features.shape == (3, width)
    assert graph.features.nnz == 2


def test_pyg_data_of_other_kinds() -> None:
    weights = torch.tensor([0.5, 0.5, 2, 2], requires_grad=True)
    for name in ("edge_weight", "edge_attr"):
        graph = from_pyg(pyg_data(**{name: weights}), name="weighted")
        assert graph.adjacency.toarray()[0, 1] == 0.5
        assert graph.name == "weighted"
    assert named_labels(graph) == ["0", "1", None]
    assert from_pyg(pyg_data(y=torch.tensor([[0], [1], [1]]))).labels.tolist() == [0, 1, 1]
    assert from_pyg(pyg_data(x=torch.eye(3, dtype=torch.bfloat16))).features.tolist() == np.eye(3).tolist()
    assert from_pyg(pyg_data(x=None, num_nodes=3)).features.shape == (3, 0)
    assert not from_pyg(pyg_data(edge_attr=torch.ones(4, 2) * 7)).weighted


def test_heterogeneous_data_is_refused() -> None:
    data = HeteroData()
    data["author"].x = torch.ones(2, 2)
    with pytest.raises(InputError, match="the PyG data is heterogeneous"):
        from_pyg(data)
    data["paper"].x = torch.ones(3, 2)
    data["author", "writes", "paper"].edge_index = torch.tensor([[0], [2]])
    with pytest.raises(InputError, match=r"the PyG data is heterogeneous \(2 node types\)"):
        from_pyg(data)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"y": None}, "the PyG data has no 'y'"),
        ({"edge_index": None}, "the PyG data has no 'edge_index'"),
        ({"y": torch.eye(3)}, "the PyG data.*multi-label"),
        ({"y": torch.tensor([0, 1])}, "2 labels for 3 nodes"),
        ({"edge_index": EDGES + 5}, "edge 0 joins nodes 5 and 6"),
        ({"x": torch.full((3, 2), torch.nan)}, "the feature of node 0, column 0 is NaN"),
    ],
)
def test_pyg_data_that_cannot_be_used_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        from_pyg(pyg_data(**changes))


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


def test_masks_of_pyg_are_named_as_unused() -> None:
    mask = torch.tensor([True, False, True])
    graph = from_pyg(pyg_data(train_mask=mask, test_mask=~mask, pos=torch.zeros(3, 2)))
    assert graph.notes[0] == (
        "Not used of the PyG data: pos, test_mask, train_mask "
        "(which nodes are trained on is drawn, masks play no part)."
    )
    assert from_pyg(pyg_data(pos=torch.zeros(3, 2))).notes[0] == "Not used of the PyG data: pos."
    assert from_pyg(pyg_data(edge_attr=torch.ones(4))).notes == ()
