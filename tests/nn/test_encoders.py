"""Encoders on some rows against the whole graph, plain loops, and PyG's layers."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from graphfcl import VisibleGraph
from graphfcl.nn import ENCODERS, DenseRows, DenseTable, GatEncoder, GcnEncoder, GraphInputs, SparseMatrix, dropout
from tests.graphs import random_graph

pytestmark = pytest.mark.usefixtures("double_precision")

CPU = torch.device("cpu")


def visible_graph(seed: int, *, dense: bool = False, density: float = 0.05) -> VisibleGraph:
    graph = random_graph(seed, [12, 9, 8], density=density, dense=dense)
    return graph.visible(np.arange(graph.node_count))


def encoder_of(name: str, features: int, **options: object) -> Any:
    return ENCODERS[name](features, 8, 5, torch.Generator().manual_seed(3), **options)  # type: ignore[arg-type]


def neighbours(visible: VisibleGraph, node: int) -> list[int]:
    start, end = visible.adjacency.indptr[node : node + 2]
    return visible.adjacency.indices[start:end].tolist()


def gcn_by_loops(visible: VisibleGraph, encoder: GcnEncoder) -> np.ndarray:
    """Every node alone: h_i = ReLU(Σ_j x_j W / √((d_i + 1)(d_j + 1)) + b), twice."""
    values = visible.features if isinstance(visible.features, np.ndarray) else visible.features.toarray()
    values = values.astype(np.float64)
    for layer in (encoder.first, encoder.second):
        weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
        rows = []
        for node in range(visible.node_count):
            total = np.zeros(weight.shape[1])
            for other in [node, *neighbours(visible, node)]:
                degrees = (len(neighbours(visible, node)) + 1) * (len(neighbours(visible, other)) + 1)
                total += values[other] @ weight / np.sqrt(degrees)
            rows.append(np.maximum(0, total + bias))
        values = np.stack(rows)
    return values


@pytest.mark.parametrize("dense", [False, True])
def test_gcn_against_loops(dense: bool) -> None:
    visible = visible_graph(0, dense=dense)
    encoder = encoder_of("gcn", 7)
    assert isinstance(encoder, GcnEncoder)
    with torch.no_grad():
        encoder.first.bias.add_(0.1)
        found = encoder(encoder.rows(GraphInputs(visible, CPU), None)).numpy()
    np.testing.assert_allclose(found, gcn_by_loops(visible, encoder), rtol=1e-5, atol=1e-7)


def test_gat_against_pyg() -> None:
    from torch_geometric.nn import GATConv

    visible = visible_graph(1)
    encoder = encoder_of("gat", 7)
    assert isinstance(encoder, GatEncoder)
    coo = visible.adjacency.tocoo()
    edges = torch.from_numpy(np.stack([coo.row, coo.col]).astype(np.int64))
    values = torch.from_numpy(visible.features.toarray().astype(np.float64))
    for layer in (encoder.first, encoder.second):
        oracle = GATConv(layer.weight.shape[0], layer.outputs, heads=layer.heads, negative_slope=0.2)
        with torch.no_grad():
            oracle.lin.weight.copy_(layer.weight.T)
            oracle.att_src.copy_(layer.source[None])
            oracle.att_dst.copy_(layer.target[None])
            oracle.bias.copy_(layer.bias)
            values = torch.relu(oracle(values, edges))
    with torch.no_grad():
        found = encoder(encoder.rows(GraphInputs(visible, CPU), None))
    torch.testing.assert_close(found, values, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", sorted(ENCODERS))
@given(seed=st.integers(0, 500), dense=st.booleans(), data=st.data())
@settings(max_examples=15, deadline=None)
def test_some_rows_equal_the_whole_graph_forwards_and_backwards(
    name: str, seed: int, dense: bool, data: st.DataObject
) -> None:
    visible = visible_graph(seed, dense=dense, density=0.03)
    rows = np.array(data.draw(st.lists(st.integers(0, visible.node_count - 1), min_size=1, max_size=9)))
    lead = data.draw(st.integers(0, rows.size))
    inputs, encoder = GraphInputs(visible, CPU), encoder_of(name, 7)
    weight = torch.randn(rows.size, 5, generator=torch.Generator().manual_seed(seed))

    def run(whole: bool) -> tuple[torch.Tensor, list[torch.Tensor]]:
        encoder.zero_grad()
        if whole:
            found = encoder(encoder.rows(inputs, None))[torch.from_numpy(rows)]
        else:
            found = encoder(encoder.rows(inputs, rows, lead))
        (found * weight).sum().backward()
        return found.detach(), [p.grad.clone() for p in encoder.parameters() if p.grad is not None]

    expected, expected_gradients = run(whole=True)
    found, gradients = run(whole=False)
    torch.testing.assert_close(found, expected)
    for left, right in zip(gradients, expected_gradients, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-6, atol=1e-9)


def test_the_leading_rows_share_the_inputs() -> None:
    visible = visible_graph(4)
    inputs, encoder = GraphInputs(visible, CPU), encoder_of("gcn", 7)
    rows = np.array([5, 2, 20, 11])
    together = inputs.gcn_rows(rows, lead=2)
    with torch.no_grad():
        torch.testing.assert_close(encoder(together.head()), encoder(inputs.gcn_rows(rows[:2])))
        torch.testing.assert_close(encoder(together.head()), encoder(together)[:2])
    assert together.head().gather.shape[1] < together.gather.shape[1]


def test_choosing_from_the_whole_graph_gives_the_same_rows() -> None:
    visible = visible_graph(4)
    rows = np.array([5, 2, 20, 11])
    piecewise, whole = GraphInputs(visible, CPU), GraphInputs(visible, CPU)
    whole.__dict__["whole_is_cheaper"] = True
    encoder = encoder_of("gcn", 7)
    for count in (0, 2):
        left, right = piecewise.gcn_rows(rows, count), whole.gcn_rows(rows, count)
        torch.testing.assert_close(encoder(left), encoder(right))
        torch.testing.assert_close(left.log_degrees, right.log_degrees)
        if count:
            torch.testing.assert_close(encoder(left.head()), encoder(right.head()))
            torch.testing.assert_close(left.head().log_degrees, right.head().log_degrees)


def test_only_the_neighbourhood_is_read() -> None:
    visible = visible_graph(5, density=0.01)
    rows = np.array([0, 7])
    reached = {0, 7, *neighbours(visible, 0), *neighbours(visible, 7)}
    assert GraphInputs(visible, CPU).gcn_rows(rows).gather.shape == (2, len(reached))


def test_isolated_nodes_are_finite() -> None:
    visible = VisibleGraph(np.arange(3), sparse.csr_array((3, 3), dtype=np.float32), np.eye(3, dtype=np.float32))
    for name in ENCODERS:
        encoder = encoder_of(name, 3)
        assert torch.isfinite(encoder(encoder.rows(GraphInputs(visible, CPU), np.array([1])))).all()
    assert np.isfinite(GraphInputs(visible, CPU).log_degrees).all()


@pytest.mark.parametrize("kind", ["gcn", "gat"])
@pytest.mark.parametrize("many", [0, 10_000])
def test_rows_of_a_training_are_those_of_the_whole_graph_with_the_same_dropout(
    kind: str, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphfcl.nn.encoders.MANY_NODES", many)
    inputs, rows = GraphInputs(visible_graph(4), CPU), np.array([20, 3, 11])
    encoder = encoder_of(kind, 7, dropout=0.5)
    needed, places = encoder.repeated_rows(inputs, rows)
    found = encoder(needed, torch.Generator().manual_seed(1))[places]
    whole = encoder(encoder.rows(inputs, None), torch.Generator().manual_seed(1))
    torch.testing.assert_close(found, whole[rows])
    parameters = list(encoder.parameters())
    slopes = (torch.autograd.grad((part**2).sum(), parameters) for part in (found, whole[rows]))
    for one, other in zip(*slopes, strict=True):
        torch.testing.assert_close(one, other)


def test_last_relu_can_be_left_out() -> None:
    visible = visible_graph(6)
    encoder = encoder_of("gcn", 7, last_relu=False)
    assert (encoder(encoder.rows(GraphInputs(visible, CPU), None)) < 0).any()


def test_dropout_is_drawn_from_its_generator_and_keeps_the_mean() -> None:
    values = torch.ones(400, 50)
    first, again = (dropout(values, 0.5, torch.Generator().manual_seed(1)) for _ in range(2))
    assert torch.equal(first, again)
    assert set(first.unique().tolist()) == {0.0, 2.0}
    assert abs(float(first.mean()) - 1) < 0.02
    assert dropout(values, 0.5, None) is values


def test_dense_products_are_gathered_in_chunks_and_differentiable_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphfcl.nn.matrices.CHUNK_ROWS", 3)
    table = torch.randn(9, 4, generator=torch.Generator().manual_seed(0))
    chosen = torch.tensor([8, 0, 3, 3, 5, 1, 2])
    weights = torch.randn(4, 2, requires_grad=True, generator=torch.Generator().manual_seed(1))
    rows = DenseRows(DenseTable(table), chosen)
    torch.testing.assert_close(rows @ weights, table[chosen] @ weights)
    torch.testing.assert_close(rows.head(3) @ weights, table[chosen[:3]] @ weights)
    others = DenseRows(rows.table, torch.tensor([4, 6]))

    def interrupted(value: torch.Tensor) -> torch.Tensor:
        """Other rows are gathered between the forward and the backward pass of the first ones."""
        found = rows @ value
        _ = others @ value
        return found

    assert torch.autograd.gradcheck(interrupted, (weights,))
    assert torch.autograd.gradcheck(lambda value: rows @ value, (weights,))
    assert torch.autograd.gradgradcheck(lambda value: (rows @ value) ** 2, (weights,))


def test_sparse_products_are_differentiable_twice() -> None:
    matrix = sparse.random_array((6, 4), density=0.4, random_state=np.random.default_rng(0), format="csr")
    product = SparseMatrix(matrix, CPU)
    dense = torch.randn(4, 3, requires_grad=True, generator=torch.Generator().manual_seed(0))
    assert torch.autograd.gradcheck(lambda value: product @ value, (dense,), atol=1e-5, rtol=1e-4)
    assert torch.autograd.gradgradcheck(lambda value: (product @ value) ** 2, (dense,), atol=1e-4, rtol=1e-3)
