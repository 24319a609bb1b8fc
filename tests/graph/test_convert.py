"""From and to the graph types of scipy and PyG."""

import sys
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from graphfcl import (
    Graph,
    InputError,
    build_graph,
    from_edge_index,
    from_pyg,
    from_scipy,
    to_networkx,
    to_pyg,
    to_scipy,
)
from tests.graph.samples import assert_same_content, coo, named_labels, small_graphs

pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def pyg_data(**changes: Any) -> Any:
    from torch_geometric.data import Data

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


@given(small_graphs(), st.booleans(), st.booleans())
@settings(deadline=None)
def test_edge_index_round_trip(graph: Graph, of_torch: bool, one_way: bool) -> None:
    """An edge may stand once or twice; arrays and tensors say the same."""
    edges = sparse.triu(graph.adjacency, k=1, format="coo") if one_way else graph.adjacency.tocoo()
    ends: Any
    weights: Any
    labels: Any
    ends, weights, labels = np.stack([edges.row, edges.col]).astype(np.int64), edges.data.copy(), graph.labels.copy()
    features: Any = graph.features.copy()
    if of_torch:
        ends, weights, labels = torch.from_numpy(ends), torch.from_numpy(weights)[:, None], torch.from_numpy(labels)
        features = to_pyg(graph).x
    names: dict[str, Any] = {"class_names": graph.class_names, "node_ids": graph.node_ids}
    back = from_edge_index(ends, features, labels, edge_weight=weights, **names, text=graph.text)
    assert back.sha256 == graph.sha256


@pytest.mark.parametrize(
    ("edges", "changes", "words"),
    [
        (np.zeros((3, 2), np.int64), {}, r"the edges: edge_index has shape \(3, 2\), .*: give edge_index\.T"),
        ([[0.0], [1.0]], {}, "edge_index holds float64, it must hold numbers of nodes"),
        ([[0, 1], [1, 9]], {}, "edge 1 joins nodes 1 and 9, but nodes are numbered 0 to 2"),
        ([[0], [1]], {"edge_weight": [1.0, 2.0]}, "2 edge weights for 1 edges"),
        ([[0], [1]], {"labels": [0, 1]}, "2 labels for 3 nodes"),
    ],
)
def test_an_edge_index_that_cannot_be_used_is_refused(edges: Any, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        from_edge_index(edges, **{"features": np.eye(3), "labels": [0, 1, -1], **changes})
    assert from_edge_index([[0], [2]], None, ["a", None, "b"]).node_count == 3


@pytest.mark.parametrize("edges", [[[], []], np.empty((2, 0)), torch.empty((2, 0))])
def test_a_graph_without_edges(edges: Any) -> None:
    graph = from_edge_index(edges, np.eye(3), [0, 1, -1])
    assert (graph.node_count, graph.edge_count) == (3, 0)


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
    from torch_geometric.data import HeteroData

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
        ({"edge_index": EDGES.T}, r"edge_index has shape \(4, 2\), it must be \(2, edges\): give edge_index\.T"),
        ({"edge_index": torch.tensor([0, 1])}, r"edge_index has shape \(2,\), it must be \(2, edges\)\."),
        ({"edge_index": torch.eye(3).to_sparse()}, r"edge_index has shape \(3, 3\), it must be"),
        ({"edge_index": EDGES.float()}, "edge_index holds float32, it must hold numbers of nodes"),
        ({"edge_weight": torch.ones(3)}, "3 edge weights for 4 edges; give one per edge"),
        ({"edge_weight": torch.ones(4, 2)}, "8 edge weights for 4 edges"),
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


def test_masks_of_pyg_are_named_as_unused() -> None:
    mask = torch.tensor([True, False, True])
    graph = from_pyg(pyg_data(train_mask=mask, test_mask=~mask, pos=torch.zeros(3, 2)))
    assert graph.notes[0] == (
        "Not used of the PyG data: pos, test_mask, train_mask "
        "(which nodes are trained on is drawn, masks play no part)."
    )
    assert from_pyg(pyg_data(pos=torch.zeros(3, 2))).notes[0] == "Not used of the PyG data: pos."
    assert from_pyg(pyg_data(edge_attr=torch.ones(4))).notes == ()


def test_plain_lists_in_pyg_data() -> None:
    graph = from_pyg(pyg_data(y=["b", "a", None], edge_weight=[1, 1, 2, 2], x=np.eye(3)))
    assert named_labels(graph) == ["b", "a", None]
    assert graph.weighted
    assert graph.features.tolist() == np.eye(3).tolist()
    assert from_pyg(pyg_data(edge_weight=torch.tensor([[0.5], [0.5], [2], [2]]))).weighted


@pytest.mark.parametrize(
    ("convert", "module", "extra"), [(to_pyg, "torch_geometric.data", "pyg"), (to_networkx, "networkx", "networkx")]
)
def test_without_the_extra(convert: Any, module: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=rf"{convert.__name__} needs a package .*graphfcl\[{extra}\]"):
        convert(from_scipy(sparse.eye(3, format="csr"), np.eye(3), [0, 1, 2]))
