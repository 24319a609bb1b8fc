"""The labelling queue: its order against a plain loop, and over HTTP."""

import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphfcl import Graph, GraphClassifier
from graphfcl.service.queue import mixed_order
from tests.service.conftest import HIDDEN
from tests.service.servers import Client, Servers

PAGE = 50


@pytest.fixture(scope="module")
def partly_labelled(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of a graph in which every second node has no label, of whatever class it is."""
    labels = np.where(np.arange(graph.node_count) % 2 == 0, graph.labels, -1)
    folder = tmp_path_factory.mktemp("partly") / "model"
    model = GraphClassifier("sgc-ridge").fit(replace(graph, labels=labels), hide_classes=HIDDEN)
    model.save(folder)
    model.wait()
    return folder


@pytest.fixture
def server(servers: Servers, partly_labelled: Path, tmp_path: Path) -> Client:
    return servers.start(Path(shutil.copytree(partly_labelled, tmp_path / "model")))


def looped_order(
    free: list[int], chosen: list[int], probabilities: np.ndarray, scores: np.ndarray, unknown: np.ndarray
) -> list[int]:
    """The order of the docstring, one node at a time."""
    others = sorted((row for row in free if unknown[row] and row not in chosen), key=lambda row: -scores[row])
    first = [row for row in chosen if unknown[row]] + others
    of_class: dict[int, list[int]] = {}
    for row in free:
        if not unknown[row]:
            of_class.setdefault(int(probabilities[row].argmax()), []).append(row)

    def margin(row: int) -> float:
        ordered = sorted(probabilities[row], reverse=True)
        return ordered[0] - ordered[1]

    waiting = [sorted(rows, key=margin) for rows in of_class.values()]
    second: list[int] = []
    while any(waiting):
        second += sorted((rows.pop(0) for rows in waiting if rows), key=margin)
    order: list[int] = []
    while first or second:
        order += first[:1] + second[:1]
        first, second = first[1:], second[1:]
    return order


@pytest.mark.parametrize("share", [0.0, 0.2, 0.8, 1.0])
def test_the_order_is_that_of_a_plain_loop(share: float) -> None:
    random = np.random.default_rng(7)
    probabilities = random.dirichlet(np.full(5, 0.3), 80)
    scores, free = random.random(80), np.sort(random.permutation(80)[:60])
    unknown, chosen = scores > 1 - share, random.permutation(free)[:9]
    order = mixed_order(free, chosen, probabilities, scores, unknown).tolist()
    assert order == looped_order(free.tolist(), chosen.tolist(), probabilities, scores, unknown)
    assert sorted(order) == free.tolist()


def test_an_order_of_nothing_and_of_one_class() -> None:
    none, nothing = np.zeros(0, dtype=np.int64), np.zeros(4)
    assert mixed_order(none, none, np.ones((4, 1)), nothing, nothing > 0).size == 0
    free = np.array([1, 3])
    assert mixed_order(free, none, np.ones((4, 1)), nothing, nothing > 0).tolist() == [1, 3]


def whole_queue(server: Client, *, computed: bool = True) -> dict[str, Any]:
    """All pages of the queue as one answer; ``computed``: only once its order is of this version."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        answer = server.get(f"/v1/queue?limit={PAGE}").json
        page = answer
        while page.get("next_cursor"):
            page = server.get(f"/v1/queue?limit={PAGE}&cursor={page['next_cursor']}").json
            answer["nodes"] += page.get("nodes", [])
        if "nodes" in page and (answer["status"] == "ready" or not computed):
            return answer
        time.sleep(0.05)
    raise AssertionError("the order was not computed")


def test_the_queue_holds_every_node_without_a_label_once(server: Client, partly_labelled: Path) -> None:
    model = GraphClassifier.load(partly_labelled)
    labelled = set(model.label_columns()["node"].tolist())
    queue = whole_queue(server)
    ids = [each["id"] for each in queue["nodes"]]
    assert sorted(ids) == sorted(set(model.node_ids_.tolist()) - labelled)
    assert queue["unlabelled"] == len(ids) > 2 * PAGE
    assert queue["order_version"] == queue["version"] == 1
    predicted = [each["classes"][0]["name"] for each in queue["nodes"][:20] if not each["unknown"]]
    assert set(predicted) == set(model.classes_), "known classes are asked about"
    assert 5 <= len(predicted) <= 15, "and so are nodes that look unknown"
    assert server.get("/v1/queue?limit=151").status == 413
    assert server.get("/v1/queue?offset=3").status == 422


def test_labelled_nodes_never_come_back_and_answers_agree_with_the_card(server: Client) -> None:
    """Also while the order of the new version is not computed yet, and among suggestions."""
    before = whole_queue(server)
    taught = [each["id"] for each in before["nodes"][:6]]
    suggested = {each["id"] for each in _ready(server, "/v1/suggestions")["suggestions"]}
    taught += [node for node in suggested if node not in taught][:2]
    assert server.teach("fresh", taught).status == 200
    at_once = server.get("/v1/suggestions").json
    for answer in (server.get("/v1/queue?limit=20").json, whole_queue(server, computed=False), whole_queue(server)):
        assert answer["version"] == 2
        assert answer["unlabelled"] == before["unlabelled"] - len(taught)
        assert answer["nodes"], "there is an order at once: that of the version before"
        assert not {each["id"] for each in answer["nodes"]} & set(taught)
        for each in answer["nodes"][:8]:
            card = server.node(each["id"]).json
            assert (each["classes"], each["unknown"]) == (card["classes"], card["unknown"])
    for answer in (at_once, _ready(server, "/v1/suggestions")):
        assert not {each["id"] for each in answer["suggestions"]} & set(taught)
    assert server.send("DELETE", "/v1/labels", {"ids": taught[:1]}).status == 200
    answer = whole_queue(server, computed=False)
    assert taught[0] in {each["id"] for each in answer["nodes"]}, "its label was taken back"
    assert len(answer["nodes"]) == answer["unlabelled"] == before["unlabelled"] - len(taught) + 1


def test_new_nodes_join_the_queue(server: Client) -> None:
    before = whole_queue(server)
    features = [{"feature_1": 1.0, "feature_2": 2.0}]
    assert server.send("POST", "/v1/nodes", {"ids": ["late"], "features": features}).status == 200
    for computed in (False, True):
        answer = whole_queue(server, computed=computed)
        assert answer["unlabelled"] == len(answer["nodes"]) == before["unlabelled"] + 1
        assert "late" in {each["id"] for each in answer["nodes"]}


def _ready(server: Client, path: str) -> dict[str, Any]:
    until = time.monotonic() + 60
    while (answer := server.get(path).json)["status"] != "ready":
        assert time.monotonic() < until
        time.sleep(0.05)
    return answer
