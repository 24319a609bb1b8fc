"""Answers of the service, compared with the model itself."""

from collections import deque
from pathlib import Path

import numpy as np
import pytest

from graphfcl import Graph, GraphClassifier
from graphfcl.production.model.card import gain_text
from tests.service.conftest import HOSTILE
from tests.service.servers import Client


@pytest.fixture(scope="module")
def model(fitted_folder: Path) -> GraphClassifier:
    return GraphClassifier.load(fitted_folder)


def test_the_model(shared: Client, model: GraphClassifier, graph: Graph) -> None:
    answer = shared.get("/v1/model")
    assert answer.headers["etag"].startswith('"1-')
    assert answer.json["version"] == 1
    assert answer.json["nodes"] == graph.node_count
    assert answer.json["edges"] == graph.adjacency.nnz // 2
    assert answer.json["classes"] == len(model.classes_)
    assert answer.json["method"] == "sgc-ridge"
    assert answer.json["needs_token"] is True


@pytest.mark.parametrize("node", [*HOSTILE, "n20"])
def test_a_node_of_any_id(shared: Client, model: GraphClassifier, graph: Graph, node: str) -> None:
    card = shared.node(node).json
    row = graph.node_ids.tolist().index(node)
    probabilities = model.predict_proba([node])[0]
    order = np.argsort(-probabilities)[:5]
    assert card["id"] == node
    assert [each["name"] for each in card["classes"]] == [model.classes_[place] for place in order]
    np.testing.assert_allclose([each["probability"] for each in card["classes"]], probabilities[order])
    assert card["degree"] == graph.adjacency[[row]].nnz
    labels = model.label_columns([node])["class"].tolist()
    assert card["label"] == (labels[0] if labels else None)
    assert card["unknown_score"] == pytest.approx(model.unknown_scores([node])[0])
    assert card["unknown"] is bool(model.prediction_columns([node])["unknown"][0])
    around = shared.node(node, "/neighbours").json
    assert around["nodes"][0]["id"] == node


def test_features_are_the_largest_ones(shared: Client, graph: Graph, model: GraphClassifier) -> None:
    row = graph.node_ids.tolist().index("n20")
    values = np.asarray(model.graph_.visible.loaded().features[[row]].todense()).ravel()
    card = shared.node("n20").json
    listed = {each["name"]: each["value"] for each in card["features"]}
    assert len(listed) == min(20, np.count_nonzero(values))
    for name, value in listed.items():
        assert value == pytest.approx(values[int(name.removeprefix("feature_"))])
    left = [value for column, value in enumerate(values) if f"feature_{column}" not in listed]
    assert min(map(abs, listed.values())) >= max(map(abs, left))


def test_neighbours_are_those_of_the_graph(shared: Client, graph: Graph) -> None:
    ids = graph.node_ids.tolist()
    adjacency = graph.adjacency.toarray() != 0
    start = int(np.flatnonzero(adjacency.sum(axis=1) == 5)[-1])
    card = shared.node(ids[start], "/neighbours?limit=30").json
    far, queue = {start: 0}, deque([start])
    while queue:
        here = queue.popleft()
        for there in np.flatnonzero(adjacency[here]).tolist():
            if there not in far:
                far[there] = far[here] + 1
                queue.append(there)
    rows = [ids.index(each["id"]) for each in card["nodes"]]
    assert len(set(rows)) == len(rows) == 30
    assert [each["hops"] for each in card["nodes"]] == [far[row] for row in rows]
    assert card["total"] == sum(hops <= 2 for hops in far.values())
    first = [row for row, hops in far.items() if hops == 1]
    assert set(first) <= set(rows)
    expected = {(i, j) for i, a in enumerate(rows) for j, b in enumerate(rows) if i < j and adjacency[a, b]}
    assert {tuple(edge) for edge in card["edges"]} == expected
    places = np.array([[each["x"], each["y"]] for each in card["nodes"]])
    assert np.abs(places).max() <= 1
    assert np.linalg.norm(places[:, None] - places[None] + 9 * np.eye(30)[:, :, None], axis=2).min() > 1e-3


def test_unknown_neighbours_are_called_so(shared: Client, model: GraphClassifier, free: list[str]) -> None:
    nodes = shared.node(free[0], "/neighbours?limit=40").json["nodes"]
    expected = model.prediction_columns([each["id"] for each in nodes])["unknown"].tolist()
    assert [each["unknown"] for each in nodes] == expected
    assert {True, False} <= set(expected)
    sentence = shared.node(nodes[expected.index(True)]["id"], "/explanation").json["summary"][0]
    assert sentence.startswith("It looks like none of the known classes; the likeliest of them is ")


def test_search_puts_exact_ids_first(shared: Client) -> None:
    def search(text: str, limit: int = 20) -> list[str]:
        return [each["id"] for each in shared.get(f"/v1/nodes?q={text}&limit={limit}").json["nodes"]]

    assert search("N20", 3) == ["n20", "n200", "n201"]
    assert search("%3Cimg") == ["<img src=x onerror=alert(1)>"]
    assert search("nosuch") == []
    assert search("29") == ["n29", "n129", "n229", *(f"n{number}" for number in range(290, 300))]
    assert len(search("", 7)) == 7
    assert search("n20%0An21") == []


def test_predictions_in_columns(shared: Client, model: GraphClassifier) -> None:
    ids = [*HOSTILE, "n20", "n21"]
    answer = shared.send("POST", "/v1/predictions", {"ids": ids})
    expected = model.prediction_columns(ids)
    assert answer.json["ids"] == ids
    assert answer.json["classes"] == expected["class"].tolist()
    np.testing.assert_allclose(answer.json["probabilities"], expected["probability"])
    np.testing.assert_allclose(answer.json["unknown_score"], expected["unknown_score"])
    assert answer.json["unknown"] == expected["unknown"].tolist()


def test_an_explanation_says_something(shared: Client, model: GraphClassifier) -> None:
    answer = shared.node("n20", "/explanation").json
    assert repr(model.predict(["n20"])[0]) in answer["summary"][0]
    assert all(sentence.endswith(".") for sentence in answer["summary"])


def test_an_explanation_counts_the_nodes_next_to_it(shared: Client, model: GraphClassifier, graph: Graph) -> None:
    """Of none, of one, and of many; "1 nodes" is no English."""
    table = model.label_columns()
    label = dict(zip(table["node"].tolist(), table["class"].tolist(), strict=True))
    seen = set()
    for row, node in enumerate(graph.node_ids.tolist()):
        near = [label.get(graph.node_ids[end]) for end in graph.adjacency[[row]].indices.tolist()]
        labels = [name for name in near if name is not None]
        kind = (min(len(near), 2), min(len(labels), 2))
        if kind in seen or node in HOSTILE:
            continue
        seen.add(kind)
        expected = {
            (0, 0): "It has no edge.",
            (1, 0): "The only node next to it has no label.",
            (1, 1): f"The only node next to it is labelled {labels[0] if labels else None!r}.",
            (2, 0): f"None of the {len(near)} nodes next to it has a label.",
            (2, 1): f"Of the {len(near)} nodes next to it 1 has a label, {labels[0] if labels else None!r}.",
            (2, 2): f"Of the {len(near)} nodes next to it {len(labels)} have a label, most often ",
        }[kind]
        assert any(sentence.startswith(expected) for sentence in shared.node(node, "/explanation").json["summary"])
    assert {(1, 1), (2, 1), (2, 2)} <= seen


def test_health_figures_and_openapi(shared: Client) -> None:
    assert shared.get("/healthz").json["status"] == "ok"
    assert shared.get("/readyz").json["status"] == "ready"
    shared.node("<img src=x onerror=alert(1)>")
    text = shared.get("/metrics").content.decode()
    assert "graphfcl_model_version 1\n" in text
    assert 'route="/v1/nodes/{node}",status="200"' in text
    assert "img" not in text
    paths = shared.get("/openapi.json").json["paths"]
    assert {"get", "post"} <= paths["/v1/nodes"].keys()
    assert {"post", "delete"} <= paths["/v1/labels"].keys()


def test_classes_and_what_more_labels_would_bring(shared: Client, model: GraphClassifier) -> None:
    answer = shared.get("/v1/classes").json
    table = model.class_table()
    assert [each["name"] for each in answer["classes"]] == [each.name for each in table]
    assert [each["labels"] for each in answer["classes"]] == [each.labels + each.validation for each in table]
    assert [each["gain"] for each in answer["classes"]] == [each.gain for each in table]
    assert answer["say"] == gain_text(table)
    assert shared.get(f"/v1/classes/{table[0].name}").json["gain"] == table[0].gain
