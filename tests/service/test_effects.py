"""What a version changed: against a plain loop over nodes, over HTTP, for models in memory and on disk."""

import math
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from graphfcl import Graph, GraphClassifier, GraphFolder, Resources
from graphfcl.graph.folder import write_folder
from graphfcl.production.model.recalls import Recall, is_loss, measured_recalls
from tests.service.conftest import HIDDEN
from tests.service.servers import Client, Servers


def effect(server: Client, version: int) -> dict[str, Any]:
    """The effect of a version, once it is computed."""
    until = time.monotonic() + 60
    while (answer := server.get(f"/v1/versions/{version}/effect").json).get("status") == "computing":
        assert time.monotonic() < until
        time.sleep(0.05)
    return answer


def answers(folder: Path, version: int) -> dict[str, Any]:
    """The answer about each node: its likeliest class, or None if it looks unknown."""
    columns = GraphClassifier.load(folder, version=version).prediction_columns()
    listed = zip(*(columns[name].tolist() for name in ("node", "class", "unknown")), strict=True)
    return {str(node): None if unknown else label for node, label, unknown in listed}


def assert_effect(server: Client, folder: Path, version: int, renamed: dict[str, str] | None = None) -> dict[str, Any]:
    """The effect is that of a loop over the nodes of two versions."""
    shown = effect(server, version)
    before, after = answers(folder, version - 1), answers(folder, version)
    moves: dict[Any, list[str]] = {}
    for node in after.keys() & before.keys():
        old = (renamed or {}).get(before[node], before[node])
        if old != after[node]:
            moves.setdefault((old, after[node]), []).append(node)
    assert {(move["before"], move["after"]): move["nodes"] for move in shown["moves"]} == {
        pair: len(nodes) for pair, nodes in moves.items()
    }
    assert shown["nodes"] == len(after.keys() & before.keys())
    assert shown["changed"] == sum(map(len, moves.values()))
    for move in shown["moves"]:
        page = server.get(f"/v1/versions/{version}/moves/{move['number']}?limit=1000").json
        nodes = moves[move["before"], move["after"]]
        assert (page["total"], sorted(page["ids"])) == (len(nodes), sorted(nodes))
        labelled = [node for node in nodes if server.node(node).json["label"] is not None]
        assert move["labelled"] == len(labelled)
    return shown


def test_changes_of_a_model_in_memory(server: Client, folder: Path, free: list[str], servers: Servers) -> None:
    assert server.get("/v1/versions/9/effect").status == 404
    first = effect(server, 1)
    assert first["status"] == "none"
    assert "first one" in first["why"]
    assert server.teach("new", free[:6]).json["version"] == 2
    shown = assert_effect(server, folder, 2)
    assert any(move["after"] == "new" and move["labelled"] for move in shown["moves"])
    assert server.get("/v1/versions/2/moves/99").status == 404
    (named,) = (each for each in shown["classes"] if each["name"] == "new")
    assert (named["before"], named["after"]["of"]) == (None, 6)
    server.send("PATCH", "/v1/classes/new", {"name": "newer"})
    assert effect(server, 3)["moves"] == [], "a new name moves nothing"
    grown = {"ids": ["extra"], "features": [{}]}
    assert server.send("POST", "/v1/nodes", grown).status == 200
    assert assert_effect(server, folder, 4)["nodes"] == shown["nodes"]
    server.send("POST", "/v1/classes/newer/merge", {"into": "class-00"})
    assert_effect(server, folder, 5, {"newer": "class-00"})
    again = servers.start(folder)
    assert effect(again, 2)["moves"] == shown["moves"], "from the folder, after a restart"


def test_recalls_have_counts_and_intervals(server: Client, folder: Path, free: list[str]) -> None:
    server.teach("new", free[:5])
    model = GraphClassifier.load(folder)
    shown = effect(server, 2)
    recalls = (model.history.last_accuracy() or {})["classes"]
    for each in shown["classes"]:
        after = each["after"]
        assert after["right"] / after["of"] == pytest.approx(recalls[each["name"]], abs=1e-3)
        assert after["low"] < after["right"] / after["of"] + 1e-9
        assert after["high"] > after["right"] / after["of"] - 1e-9
    fit = [each["after"] for each in shown["classes"] if each["name"] != "new"]
    assert shown["accuracy"]["fit_after"]["right"] == sum(each["right"] for each in fit)
    assert shown["accuracy"]["later_after"]["of"] == 5
    measured = measured_recalls(model.label_store_, {"classes": recalls})
    counts = {name: int(sum(model.label_columns()["class"] == name)) for name in measured}
    assert all(recall.of <= counts[name] for name, recall in measured.items())


@pytest.mark.parametrize(
    ("right", "of", "low", "high"), [(8, 9, 0.565, 0.980), (3, 3, 0.4385, 1.0), (0, 5, 0.0, 0.4345)]
)
def test_the_interval_is_that_of_wilson(right: int, of: int, low: float, high: float) -> None:
    """The bounds solve (p̂ − p)² = z² p (1 − p) / n."""
    assert Recall(right, of).interval == pytest.approx((low, high), abs=1e-3)
    for bound in Recall(right, of).interval:
        if 0 < bound < 1:
            assert abs(right / of - bound) == pytest.approx(1.96 * math.sqrt(bound * (1 - bound) / of))


def test_a_loss_is_one_only_beyond_chance() -> None:
    assert not is_loss(Recall(9, 9), Recall(8, 9))
    assert not is_loss(Recall(3, 3), Recall(2, 3))
    assert is_loss(Recall(40, 40), Recall(34, 40))
    assert not is_loss(Recall(34, 40), Recall(40, 40))


def test_wrong_labels_raise_a_warning(server: Client, graph: Graph, folder: Path) -> None:
    """Labels are taken from nodes of which the model is sure, and others are given."""
    nodes = [
        str(node) for node in graph.node_ids[graph.labels == graph.class_number("class-00")] if str(node)[0] == "n"
    ]
    server.send("DELETE", "/v1/labels", {"ids": nodes})
    fine = server.teach("class-01", [nodes[0]], on_conflict="replace")
    assert fine.status == 200
    model = GraphClassifier.load(folder, version=2)
    columns = model.prediction_columns(nodes[1:])
    sure = columns["probability"] > 0.96
    sure &= ~columns["unknown"]
    doubted = [node for node, each in zip(nodes[1:], sure.tolist(), strict=True) if each][:5]
    assert doubted
    version = server.teach("class-01", doubted).json["version"]
    shown = effect(server, version)
    assert {each["id"] for each in shown["doubts"]} <= set(doubted)
    assert shown["doubts"], "the model before was sure of another class"
    assert all(each["label"] == "class-01" != each["guess"] for each in shown["doubts"])
    assert any("just given" in each for each in shown["warnings"])


def test_labels_that_the_model_goes_on_disputing(server: Client, graph: Graph) -> None:
    """A label of a node that was labelled before: only the version after, which learned it, can dispute it."""
    ids = graph.node_ids[graph.labels == graph.class_number("class-00")].tolist()
    nodes = [str(node) for node in ids if str(node).startswith("n")][:3]
    version = server.teach("class-01", nodes, on_conflict="replace").json["version"]
    shown = effect(server, version)
    after = {node: server.node(node).json for node in nodes}
    disputed = {
        node
        for node, card in after.items()
        if not card["unknown"] and card["classes"][0]["name"] != "class-01" and card["classes"][0]["probability"] > 0.95
    }
    assert disputed <= {each["id"] for each in shown["doubts"]} <= set(nodes)
    assert disputed


def test_a_model_on_disk(graph: Graph, servers: Servers, tmp_path: Path, free: list[str]) -> None:
    write_folder(graph, tmp_path / "graph")
    on_disk = GraphFolder.open(tmp_path / "graph", Resources(tmp_path / "work", 4 << 30))
    GraphClassifier("sgc-ridge").fit(on_disk, hide_classes=HIDDEN).save(tmp_path / "model")
    server = servers.start(tmp_path / "model")
    server.teach("new", free[:6])
    shown = effect(server, 2)
    assert shown["changed"] == sum(move["nodes"] for move in shown["moves"]) > 0
    before, after = answers(tmp_path / "model", 1), answers(tmp_path / "model", 2)
    assert shown["changed"] == sum(before[node] != after[node] for node in after)
    for name in free[6:9]:
        server.teach("newer", [name])
    old = effect(servers.start(Path(shutil.copytree(tmp_path / "model", tmp_path / "copy"))), 2)
    assert old["status"] == "none"
    assert "no longer on disk" in old["why"]
