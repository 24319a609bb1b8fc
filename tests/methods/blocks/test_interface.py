"""Tables in memory and on disk: the same functions, the same answers, and those of a plain loop."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphfcl import GraphFolder
from graphfcl.methods.blocks import UNLABELLED, NodeTables, RowBlock, Table, open_tables
from graphfcl.methods.blocks.folder_tables import FolderTables
from tests.methods.blocks.samples import folder_of, in_memory, random_graph, visible_folder

CPU = torch.device("cpu")
NODES, WIDTH = 300, 13


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several blocks, parts and slices of a small graph."""
    for module in ("tile_files", "stored_table", "row_tasks", "resident"):
        monkeypatch.setattr(f"graphfcl.methods.blocks.{module}.BLOCK", 64)
    monkeypatch.setattr("graphfcl.methods.blocks.resident.COLUMNS", 5)


@pytest.fixture(params=["numbers", "words", "hidden rows"])
def both(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[NodeTables, NodeTables]:
    """The same graph in memory and on disk; weighted edges but for words."""
    words = request.param == "words"
    folder = folder_of(random_graph(NODES, weighted=not words, words=words), tmp_path / "graph")
    mask = np.random.default_rng(1).random(NODES) < 0.8 if request.param == "hidden rows" else None
    resident = open_tables(in_memory(folder, mask), CPU, 0)
    return resident, open_tables(visible_folder(folder, tmp_path / "work", mask), CPU, 0)


def rows_of(tables: NodeTables, table: Table) -> np.ndarray:
    """(n, D) of the visible nodes, in the order of their numbers."""
    return table.rows_at(tables.visible.rows(tables.visible.nodes)).float().numpy()


def basis() -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(2).standard_normal((40, WIDTH)).astype(np.float32))


def dense(tables: NodeTables) -> tuple[np.ndarray, np.ndarray]:
    """A and X of a graph in memory as arrays in 64 bits."""
    whole = tables.whole
    assert whole is not None
    features: Any = whole.visible.features
    plain = features if isinstance(features, np.ndarray) else features.toarray()
    return whole.visible.adjacency.toarray().astype(np.float64), plain.astype(np.float64)


def normalised(adjacency: np.ndarray) -> np.ndarray:
    loops = adjacency + np.eye(len(adjacency))
    roots = np.sqrt(loops.sum(axis=1))
    return np.array([[loops[i, j] / (roots[i] * roots[j]) for j in range(len(loops))] for i in range(len(loops))])


def test_features_and_hops_equal_a_plain_loop(both: tuple[NodeTables, NodeTables]) -> None:
    adjacency, features = dense(both[0])
    operator, projected = normalised(adjacency), features @ basis().double().numpy()
    expected = [projected, operator @ projected, operator @ operator @ (operator @ projected)]
    for tables in both:
        own = tables.own(basis())
        actual = [own, *tables.hops(own, (1, 3))]
        joined = rows_of(tables, tables.side_by_side([own, *actual[1:], own.leading(3)]))
        for table, values in zip(actual, expected, strict=True):
            np.testing.assert_allclose(rows_of(tables, table), values, atol=1e-5)
        np.testing.assert_allclose(joined, np.hstack([*expected, projected[:, :3]]), atol=1e-5)
        np.testing.assert_allclose(rows_of(tables, actual[2].leading(6)), expected[2][:, :6], atol=1e-5)
        means = tables.column_means(tables.side_by_side(actual)).numpy()
        np.testing.assert_allclose(means, np.hstack(expected).mean(axis=0), atol=1e-5)
    assert both[0].node_count == both[1].node_count == len(features)


def test_smoothing_and_links_equal_a_plain_loop(both: tuple[NodeTables, NodeTables]) -> None:
    adjacency, _ = dense(both[0])
    weights = adjacency / both[0].mean_weight
    degrees = np.maximum(weights.sum(axis=1), 1)
    for tables in both:
        first = tables.own(basis())
        values = rows_of(tables, first).astype(np.float64)
        smooth = values
        for _ in range(3):
            smooth = 0.7 * normalised(adjacency) @ smooth + 0.3 * values
        np.testing.assert_allclose(rows_of(tables, tables.smoothed(first, 0.7, 3)), smooth, atol=1e-5)
        near = np.array([weights[row] @ values / np.sqrt(degrees[row]) for row in range(len(values))])
        np.testing.assert_allclose(rows_of(tables, tables.linked(first)), near, atol=1e-4)
        np.testing.assert_allclose(rows_of(tables, tables.link_roots())[:, 0], np.sqrt(degrees), rtol=1e-5)
        assert tables.mean_weight == pytest.approx(adjacency[adjacency > 0].mean(), rel=1e-5)


def _scaled(block: RowBlock) -> torch.Tensor:
    """A function of rows that reads everything a block has."""
    features: Any = block.features()
    totals = torch.from_numpy(np.asarray(features.sum(axis=1)).reshape(-1, 1))
    return block.values["factor"] * block.rows("own") * block.tensors["scales"] + totals


def _class_totals(block: RowBlock) -> dict[str, torch.Tensor]:
    points, labels = block.labelled("own")
    sums = torch.zeros(block.values["count"], points.shape[1], dtype=torch.float64)
    return {"sums": sums.index_add_(0, labels, points.double()), "rows": block.only_visible(torch.ones(len(block)))[:1]}


def test_functions_of_blocks_equal_a_plain_loop(both: tuple[NodeTables, NodeTables]) -> None:
    _, features = dense(both[0])
    scales = torch.linspace(-1, 1, WIDTH)
    own = features @ basis().double().numpy()
    nodes = both[0].visible.nodes[::3].copy()
    labels = np.arange(nodes.size) % 4
    sums = np.zeros((5, WIDTH))
    for row, label in zip(both[0].visible.rows(nodes), labels, strict=True):
        sums[label] += own[row]
    for tables in both:
        read = {"own": tables.own(basis())}
        table = tables.table("scaled", _scaled, WIDTH, tables=read, tensors={"scales": scales}, factor=2.0)
        expected = np.array([2.0 * row * scales.numpy() + x.sum() for row, x in zip(own, features, strict=True)])
        np.testing.assert_allclose(rows_of(tables, table), expected, atol=1e-4)
        read["labels"] = tables.labels((nodes, labels))
        actual = tables.sums("totals", _class_totals, tables=read, count=5)
        np.testing.assert_allclose(actual["sums"], sums, atol=1e-4)
        assert float(actual["rows"]) >= 1
        column = rows_of(tables, read["labels"])[:, 0]
        assert set(np.flatnonzero(column != UNLABELLED)) == set(both[0].visible.rows(nodes))


def _doubled(block: RowBlock) -> torch.Tensor:
    return 2 * block.rows("before")


def test_a_table_after_its_last_use_makes_room(both: tuple[NodeTables, NodeTables], tmp_path: Path) -> None:
    for tables in both:
        first = tables.table("first", _doubled, WIDTH, tables={"before": tables.own(basis())})
        values = rows_of(tables, first)
        second = tables.table("second", _doubled, WIDTH, tables={"before": first}, last_use=("before",))
        np.testing.assert_array_equal(rows_of(tables, second), 2 * values)
    assert list((tmp_path / "work").glob("second-*"))
    assert not list((tmp_path / "work").glob("first-*"))


@pytest.mark.parametrize("limit", [0, 1 << 20])
def test_a_widened_table_has_the_same_numbers(
    both: tuple[NodeTables, NodeTables], limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphfcl.methods.blocks.resident.WIDENED", limit)
    for tables in both:
        narrow = tables.take(torch.rand(tables.node_count, WIDTH).half())
        wide, every = tables.widened(narrow), np.arange(tables.node_count)
        assert torch.equal(wide.rows_at(every).float(), narrow.rows_at(every).float())
    assert tables.widened(narrow) is narrow  # on disk
    expected = torch.float32 if limit else torch.float16
    assert both[0].widened(both[0].take(torch.rand(2, 2).half())).rows_at(np.arange(2)).dtype == expected


def test_near_graphs_hold_what_a_few_rows_need(both: tuple[NodeTables, NodeTables]) -> None:
    nodes = both[0].visible.nodes[[3, 77, 150]]
    for tables in both:
        near, rows = tables.neighbourhood(nodes, 2)
        np.testing.assert_array_equal(tables.numbers(near.visible, rows), nodes)
        normal = near.visible.normalised
        expected = rows_of(tables, tables.hops(tables.own(basis()), (2,))[0])[both[0].visible.rows(nodes)]
        actual = (normal[rows] @ normal) @ np.asarray(near.visible.features @ basis().numpy())
        np.testing.assert_allclose(actual, expected, atol=2e-3)


def test_nothing_is_computed_for_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_of(random_graph(NODES), tmp_path / "graph")
    visible = visible_folder(folder, tmp_path / "work")

    def planned() -> Table:
        tables = FolderTables(visible, 0, unit=True)
        (around,) = tables.hops(tables.own(basis()), (2,))
        doubled = tables.table("first", _doubled, WIDTH, tables={"before": around})
        return tables.table("second", _doubled, WIDTH, tables={"before": doubled}, last_use=("before",))

    expected = planned().rows_at(np.arange(NODES))
    for name in ("own", "hops-2", "first"):
        for left in (tmp_path / "work").glob(f"{name}-*"):
            left.rename(tmp_path / left.name)

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("a phase")

    for module in ("row_tasks", "column_phases"):
        monkeypatch.setattr(f"graphfcl.methods.blocks.{module}.run_tasks", fail)
    assert torch.equal(planned().rows_at(np.arange(NODES)), expected)


@given(rows=st.lists(st.integers(0, 199), max_size=60), columns=st.integers(1, 20))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_of_any_table_in_any_order(tmp_path: Path, rows: list[int], columns: int) -> None:
    path = tmp_path / "graph"
    opened = GraphFolder.open(path) if path.exists() else folder_of(random_graph(200), path)
    values = np.random.default_rng(columns).standard_normal((200, columns)).astype(np.float32)
    for visible in (in_memory(opened), visible_folder(opened, tmp_path / "work")):
        table = open_tables(visible, CPU, 0).take(torch.from_numpy(values))
        wanted = np.array(rows, dtype=np.int64)
        np.testing.assert_array_equal(table.rows_at(wanted).numpy(), values[wanted])
        np.testing.assert_array_equal(table.leading(1).rows_at(wanted).numpy(), values[wanted, :1])
        assert table.readable().shape == values.shape
        np.testing.assert_array_equal(table.readable()[wanted], values[wanted])
