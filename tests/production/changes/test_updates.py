"""Nodes and edges that are delivered again: the same ones change nothing, others are refused, skipped or updated."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from graphfcl import Graph, GraphClassifier, GraphFolder, InputError, ModelFolder, from_frames
from graphfcl.graph.build import build_graph
from graphfcl.production.labels.history import change_text
from tests.cli.command import graphfcl_inside
from tests.production.graph.folder_models import assert_same, fit, folder_graph, supports
from tests.production.models import copy_of, fitted, graph_in_memory, members, same_answers, small_graph

WIDTH = 200


def rows_of(seed: int, count: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, (count, WIDTH)).astype(np.float32)


@pytest.mark.parametrize("method", ["proto-gcn", "anchor", "sgc-ridge"])
def test_an_updated_model_is_one_of_the_graph_as_it_is_now(method: str) -> None:
    model = fitted(method).learn({"eight": members("class-08")[:5]})
    nodes = [*members("class-08")[:3], *members("class-01")[:2], *members("class-09")[:2]]
    pairs = [nodes[:3], nodes[3:6]]
    step = copy_of(model)
    step.add_nodes(nodes, rows_of(1, 7), on_existing="update")
    step.add_edges(pairs[0], pairs[1], np.full(3, 3.0))
    for place, node in enumerate(nodes):
        step.add_nodes([node], rows_of(2, 7)[[place]], on_existing="update")
    step.add_edges(pairs[0], pairs[1], np.full(3, 0.5), on_existing="update")
    model.grow(nodes=(nodes, rows_of(2, 7), None), edges=(*pairs, np.full(3, 0.5)), on_existing="update")
    same_answers(step, model, 1e-5)
    graph = graph_in_memory(model)
    # The same graph in another object, of which nothing is cached.
    fresh = GraphClassifier.from_parts(replace(model.parts(), graph=replace(graph, ids=graph.ids.copy())))
    same_answers(fresh, model, 1e-5)
    entry = model.history[-1]
    assert (entry["nodes"], entry["edges"], entry["updated_nodes"]) == (0, 3, 7)
    assert sum(entry["features"].values()) <= 35
    assert (
        np.abs(
            model.predict_proba(nodes) - fitted(method).learn({"eight": members("class-08")[:5]}).predict_proba(nodes)
        ).max()
        > 1e-3
    ), "an update changes answers"


def test_what_is_delivered_again_changes_nothing(model: GraphClassifier) -> None:
    graph = graph_in_memory(model)
    before, answers = len(model.history), model.predict_proba()
    edge = np.argwhere(sparse.triu(graph.adjacency).toarray())[:4].T
    again = (graph.ids[:5].tolist(), graph.features[:5], None)
    for on_existing in ("refuse", "skip", "update"):
        model.grow(nodes=again, edges=graph.ids[edge].tolist(), on_existing=on_existing)
        assert graph_in_memory(model) is graph
    assert {"same_nodes": 5, "same_edges": 4, "nodes": 0, "edges": 0}.items() <= model.history[-1].items()
    assert len(model.history) == before + 3
    np.testing.assert_array_equal(model.predict_proba(), answers)


def test_others_are_refused_by_default_and_skipped_on_request(model: GraphClassifier) -> None:
    graph = graph_in_memory(model)
    first, second = np.argwhere(sparse.triu(graph.adjacency).toarray())[0]
    ends = graph.ids[[first]].tolist(), graph.ids[[second]].tolist()
    nodes = (graph.ids[:3].tolist(), 1 - graph.features[:3].toarray(), None)
    calls: dict[str, dict[str, Any]] = {
        r"node '0' \(and 2 more\) is in the graph already, with other features: .*on_existing": {"nodes": nodes},
        r"the edge between .* is in the graph already, with weight 1 and not 2.5": {"edges": (*ends, np.array([2.5]))},
        r"on_existing is 'replace'": {"nodes": nodes, "on_existing": "replace"},
        "all edges are self-loops": {"edges": (ends[0], ends[0])},
    }
    for words, call in calls.items():
        with pytest.raises(InputError, match=words):
            model.grow(**call)
        assert graph_in_memory(model) is graph
    new = ([*nodes[0], 9000], np.concatenate([nodes[1], np.ones((1, WIDTH))]), None)
    weighted = ([*ends[0], 9000], [*ends[1], 0], np.array([2.5, 1.0]))
    model.grow(nodes=new, edges=weighted, on_existing="skip")
    after = graph_in_memory(model)
    np.testing.assert_array_equal(after.features[:500].toarray(), graph.features.toarray())
    assert after.adjacency[first, second] == 1
    assert after.ids.tolist()[500:] == [9000]
    counts = {"nodes": 1, "edges": 1, "skipped_nodes": 3, "skipped_edges": 1}
    assert counts.items() <= model.history[-1].items()


EDGE = st.tuples(st.integers(0, 9), st.integers(0, 9), st.sampled_from([0.5, 1.0, 2.0]))


@given(edges=st.lists(EDGE, min_size=1, max_size=12), on_existing=st.sampled_from(["skip", "update"]))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_weights_are_those_of_a_plain_loop(
    start: GraphClassifier, edges: list[tuple[int, int, float]], on_existing: str
) -> None:
    model = copy_of(start)
    before = graph_in_memory(model).adjacency.toarray()
    wanted, delivered = before.copy(), dict[tuple[int, int], float]()
    for first, second, weight in edges:
        pair = min(first, second), max(first, second)
        if first != second:
            delivered[pair] = max(weight, delivered.get(pair, 0))
    for (first, second), weight in delivered.items():
        if not before[first, second] or on_existing == "update":
            wanted[first, second] = wanted[second, first] = weight
    ids = graph_in_memory(model).ids
    parts = [ids[[each[0] for each in edges]], ids[[each[1] for each in edges]], np.array([e[2] for e in edges])]
    if not delivered:
        return
    model.grow(edges=parts, on_existing=on_existing)
    after = graph_in_memory(model).adjacency
    np.testing.assert_array_equal(after.toarray(), wanted)
    assert (after.data > 0).all()
    new, other = ([pair for pair in delivered if bool(before[pair]) is there] for there in (False, True))
    differing = sum(before[pair] != delivered[pair] for pair in other)
    entry = model.history[-1]
    done = "updated_edges" if on_existing == "update" else "skipped_edges"
    assert (entry["edges"], entry.get(done, 0)) == (len(new), differing)
    assert entry.get("same_edges", 0) == len(other) - differing


def weighted_tables(repeated: str) -> tuple[Any, Any, GraphClassifier]:
    random = np.random.default_rng(3)
    nodes = {
        "id": list(range(60)),
        "label": ["ab"[node % 2] for node in range(60)],
        "x": random.normal(size=60).tolist(),
    }
    ends = [(node, (node + step) % 60) for node in range(60) for step in (2, 5)]
    ends += ends[:20]
    edges = {
        "source": [first for first, _ in ends],
        "target": [second for _, second in ends],
        "weight": random.integers(2, 9, len(ends)).astype(float).tolist(),
    }
    graph = from_frames(pa.table(nodes), pa.table(edges), repeated=repeated)
    return pa.table(nodes), pa.table(edges), GraphClassifier("sgc-ridge").fit(graph)


@pytest.mark.parametrize("repeated", ["max", "sum", "count", "last"])
def test_the_tables_of_the_fit_change_nothing(repeated: str, tmp_path: Path) -> None:
    nodes, edges, model = weighted_tables(repeated)
    model.save(tmp_path / "m")
    model = GraphClassifier.load(tmp_path / "m")
    before = graph_in_memory(model).adjacency
    model.grow(nodes=nodes, edges=edges)
    entry = model.history[-1]
    assert (entry["same_nodes"], entry["same_edges"]) == (60, before.nnz // 2)
    if repeated in ("max", "last"):  # without a column of weights nothing is said of them
        model.grow(edges=edges.drop_columns("weight"), on_existing="update")
        assert model.history[-1]["same_edges"] == before.nnz // 2
    np.testing.assert_array_equal(graph_in_memory(model).adjacency.toarray(), before.toarray())


def test_a_weight_of_0_removes_an_edge() -> None:
    _, _, model = weighted_tables("max")
    before = graph_in_memory(model).adjacency
    zero = ([0, 1], [2, 3], np.array([0.0, 7.5]))
    with pytest.raises(InputError, match=r"with weight .* and not 0"):
        model.grow(edges=zero)
    model.grow(edges=zero, on_existing="update")
    after = graph_in_memory(model).adjacency
    assert (after[0, 2], after[1, 3], after.nnz) == (0, 7.5, before.nnz - 2)
    assert model.history[-1]["updated_edges"] == 2


@pytest.mark.parametrize("words", [False, True])
def test_updates_on_disk_are_those_in_memory(tmp_path: Path, words: bool) -> None:
    graph = folder_graph(tmp_path / "graph", tmp_path / "work", words=words)
    memory, disk = fit(graph.loaded()), fit(graph)
    ids, part = graph.node_ids, graph.loaded().adjacency.tocoo()
    pairs = [[int(ids[a]), int(ids[b])] for a, b in zip(part.row[:40], part.col[:40], strict=True) if a < b]
    nodes = ids[:12].tolist()
    for each in (memory, disk):
        each.learn(supports(graph))
        each.grow(nodes=([*nodes[:6], 7000], graph.features(50, 57), None), on_existing="update")
        each.grow(
            nodes=([*nodes[3:], 7000], graph.features(60, 70), None),
            edges=([*(pair[0] for pair in pairs), 7000], [*(pair[1] for pair in pairs), nodes[0]], None),
            on_existing="update",
        )
        each.remove_nodes([nodes[0]])
    left_out = ("accuracy", "warning", "within_reach", "when")
    for place in (-3, -2, -1):
        one, other = ({k: v for k, v in each.history[place].items() if k not in left_out} for each in (memory, disk))
        assert one == other
    assert_same(memory, disk)
    wanted = graph_in_memory(memory)
    rows = disk.graph_.rows_of_ids(wanted.ids.tolist())
    stored = disk.graph_.features_at(rows)
    np.testing.assert_array_equal(sparse.csr_array(stored).toarray(), sparse.csr_array(wanted.features).toarray())
    assert (disk.graph_.node_count, disk.graph_.edge_count) == (wanted.node_count, wanted.edge_count)
    disk.save(tmp_path / "model")
    loaded = GraphClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(), disk.predict_proba())
    with pytest.raises(InputError, match="with other features"):
        loaded.add_nodes([nodes[1]], graph.features(90, 91))
    loaded.add_nodes([nodes[1]], loaded.graph_.features_at(loaded.graph_.rows_of_ids([nodes[1]])))
    assert loaded.history[-1]["same_nodes"] == 1


def test_erased_nodes_leave_their_updated_features(tmp_path: Path) -> None:
    graph = folder_graph(tmp_path / "graph", tmp_path / "model" / "work")
    node, folder = graph.node_ids[3].tolist(), ModelFolder(tmp_path / "model")
    model = fit(graph)
    model.save(tmp_path / "model")
    with folder.editing() as model:
        model.add_nodes([node], np.full((1, graph.feature_count), 7.25, dtype=np.float32), on_existing="update")
    folder.erase([node])
    for version in (1, 2, 3):
        loaded = folder.load(version)
        assert loaded.graph_.rows_of_ids([node]).tolist() == [-1]
        assert not (loaded.graph_.growth.features == 7.25).any()  # type: ignore[attr-defined]


def table_graph() -> Graph:
    graph = small_graph()
    features = np.asarray(graph.features.toarray()[:, :4])
    names = ["price", "stock", "grams", "age"]
    labels = np.where(graph.labels < 8, graph.labels, -1)
    return build_graph(
        graph.adjacency,
        features,
        labels,
        class_names=graph.class_names[:8],
        node_ids=graph.node_ids,
        feature_names=names,
    )


def test_a_delivery_on_the_command_line(tmp_path: Path) -> None:
    graph = table_graph()
    model = GraphClassifier("sgc-ridge").fit(graph)
    model.save(tmp_path / "model")
    first = ",".join(str(value) for value in graph.features[0])
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    nodes.write_text(f"node,price,stock,grams,age\n0,{first}\n1,9.5,1,2,3\n9000,1,2,3,4\n")
    edges.write_text("source,target,weight\n0,9000,2\n")
    call = ("grow", "--model", tmp_path / "model", "--nodes", nodes, "--edges", edges)
    refused = graphfcl_inside(*call)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "node '1' is in the graph already, with other features" in refused.err
    assert ModelFolder(tmp_path / "model").load().version == 1
    done = graphfcl_inside(*call, "--on-existing", "update")
    assert done.code == 0, done.err
    loaded = ModelFolder(tmp_path / "model").load()
    place = graph_in_memory(loaded).ids.tolist().index(1)
    np.testing.assert_allclose(graph_in_memory(loaded).features[place], [9.5, 1, 2, 3])
    columns = ", ".join(f"{name} of 1 node" for name in ("age", "grams", "price", "stock"))
    told = f"grow: 1 node, 1 edge; updated 1 node; the same as before 1 node; changed {columns};"
    assert change_text(loaded.history[-1]).startswith(told)
    again = graphfcl_inside(*call)
    assert again.code == 0, again.err
    last = ModelFolder(tmp_path / "model").load().history[-1]
    assert change_text(last) == "grow: 0 nodes, 0 edges; the same as before 3 nodes, 1 edge"


def test_a_graph_folder_is_not_touched(tmp_path: Path) -> None:
    graph = folder_graph(tmp_path / "graph", tmp_path / "work")
    before = {path: path.read_bytes() for path in (tmp_path / "graph").rglob("*") if path.is_file()}
    fit(graph).add_nodes([graph.node_ids[0].tolist()], graph.features(9, 10), on_existing="update").predict()
    assert before == {path: path.read_bytes() for path in (tmp_path / "graph").rglob("*") if path.is_file()}
    assert GraphFolder.open(tmp_path / "graph").node_count == 400
