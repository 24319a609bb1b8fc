"""Predicted members of a class and accepting them, over HTTP, for models in memory and on disk."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphfcl import Graph, GraphClassifier, GraphFolder, Resources
from graphfcl.graph.folder import write_folder
from tests.service.conftest import HIDDEN
from tests.service.servers import Client, Servers


@pytest.fixture(params=["memory", "disk"])
def both(request: Any, graph: Graph, servers: Servers, tmp_path: Path) -> Any:
    """A server and its folder; every third node of the classes of the fit has no label."""
    labels = np.where(np.arange(graph.node_count) % 3 == 0, -1, graph.labels)
    shown: Any = Graph(graph.adjacency, graph.features, labels, graph.class_names, node_ids=graph.node_ids)
    if request.param == "disk":
        write_folder(shown, tmp_path / "graph")
        shown = GraphFolder.open(tmp_path / "graph", Resources(tmp_path / "work", 4 << 30))
    GraphClassifier("sgc-ridge").fit(shown, hide_classes=HIDDEN).save(tmp_path / "model")
    return servers.start(tmp_path / "model"), tmp_path / "model"


def members(server: Client, name: str) -> dict[str, float]:
    """All members, page by page, with their probabilities."""
    listed: list[dict[str, Any]] = []
    address = f"/v1/classes/{name}/members?limit=3"
    page = server.get(address).json
    listed += page["members"]
    while page["next_cursor"] is not None:
        page = server.get(f"{address}&cursor={page['next_cursor']}").json
        listed += page["members"]
    probabilities = [each["probability"] for each in listed]
    assert probabilities == sorted(probabilities), "the most doubtful first"
    return {each["id"]: each["probability"] for each in listed}


def expected_members(folder: Path, name: str) -> dict[str, float]:
    """The same in a loop over all nodes."""
    model = GraphClassifier.load(folder)
    labelled = {str(node) for node in model.label_columns()["node"].tolist()}
    columns = model.prediction_columns()
    listed = zip(*(columns[key].tolist() for key in ("node", "class", "probability", "unknown")), strict=True)
    return {
        str(node): probability
        for node, label, probability, unknown in listed
        if label == name and not unknown and str(node) not in labelled
    }


def test_members_are_listed_and_accepted(both: tuple[Client, Path], servers: Servers) -> None:
    server, folder = both
    shown, expected = members(server, "class-01"), expected_members(folder, "class-01")
    assert shown == pytest.approx(expected, abs=1e-6)
    assert len(shown) > 4
    page = server.get("/v1/classes/class-01/members?limit=2").json
    assert (page["total"], page["name"]) == (len(shown), "class-01")
    for choice in page["choices"]:
        reached = [each for each in shown.values() if each >= choice["threshold"]]
        assert choice["nodes"] == len(reached)
        assert choice["expected_errors"]["mean"] == pytest.approx(sum(1 - each for each in reached), abs=0.01)
    threshold = sorted(shown.values())[2]
    (left_out, *_) = (node for node, each in shown.items() if each >= threshold)
    chosen = {node for node, each in shown.items() if each >= threshold} - {left_out}
    body = {"version": 1, "threshold": threshold, "leave_out": [left_out], "by": "ann"}
    assert server.send("POST", "/v1/classes/class-01/accept", {**body, "version": 7}).status == 412
    before = {node: server.node(node).json for node in shown}
    answer = server.send("POST", "/v1/classes/class-01/accept", body).json
    assert (answer["version"], answer["accepted"], answer["classes"]) == (2, len(chosen), ["class-01"])
    assert answer["expected_errors"]["mean"] == pytest.approx(sum(1 - shown[node] for node in chosen), abs=0.01)
    again = servers.start(folder)
    for each in (server, again):
        for node, card in before.items():
            now = each.node(node).json
            assert now["label"] == ("class-01" if node in chosen else None)
            assert now["classes"] == card["classes"], "no answer changes"
        assert set(members(each, "class-01")) == shown.keys() - chosen
    accepted = [
        each for each in server.get("/v1/labels?class=class-01&limit=1000").json["labels"] if each["role"] == "accepted"
    ]
    assert {each["id"] for each in accepted} == chosen
    (statement,) = accepted[0]["statements"]
    assert statement["by"] == "ann"
    assert statement["when"]
    assert statement["kept"]["reason"].startswith("accepted: probability")
    assert server.send("DELETE", "/v1/labels", {"ids": sorted(chosen)}).json["taken_back"] == len(chosen)
    assert members(server, "class-01") == shown, "exactly as before"


def test_what_cannot_be_accepted(shared: Client) -> None:
    path, body = "/v1/classes/class-01/accept", {"version": 1, "threshold": 1.0}
    answer = shared.send("POST", path, body)
    assert answer.status == 422
    assert "choose a lower one" in answer.json["detail"]
    assert shared.send("POST", path, {**body, "threshold": 0}).status == 422
    assert shared.send("POST", path, {**body, "leave_out": ["nowhere"]}).status == 404
    assert shared.send("POST", "/v1/classes/nothing/accept", body).status == 404
    assert shared.get("/v1/classes/nothing/members").status == 404
    assert shared.get("/v1/classes/class-01/members?limit=100000").status == 413
