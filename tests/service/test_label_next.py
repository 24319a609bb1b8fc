"""Suggestions, groups and the meter of a basket over HTTP, compared with the model itself."""

import time
from pathlib import Path
from typing import Any

from graphfcl import GraphClassifier
from tests.service.servers import Client


def ready(server: Client, path: str) -> dict[str, Any]:
    """The answer once it is computed."""
    until = time.monotonic() + 60
    while (answer := server.get(path)).json["status"] != "ready":
        assert time.monotonic() < until
        time.sleep(0.05)
    return answer.json


def test_suggestions_and_the_basket(shared: Client, fitted_folder: Path, free: list[str]) -> None:
    model = GraphClassifier.load(fitted_folder)
    listed = ready(shared, "/v1/suggestions?budget=4&strategy=typical")
    expected = model.suggest(4, strategy="typical")
    assert [each["id"] for each in listed["suggestions"]] == [str(each.node) for each in expected]
    assert [each["why"] for each in listed["suggestions"]] == [each.why for each in expected]
    assert listed["version"] == 1
    answer = shared.send("POST", "/v1/spread", {"ids": free[:4]}).json
    spread = model.spread(free[:4])
    assert (answer["spread"], answer["alike"], answer["say"]) == (spread.value, spread.alike, spread.say)


def test_a_strategy_that_is_none(shared: Client) -> None:
    for name in ("nothing", "os:system"):
        answer = shared.get(f"/v1/suggestions?strategy={name}")
        assert answer.status == 422, "it is refused at once"
        assert name in answer.json["detail"]
    assert shared.get("/v1/suggestions?budget=201").status == 413


def test_a_group_is_named(server: Client, fitted_folder: Path) -> None:
    groups = GraphClassifier.load(fitted_folder).groups(3)
    assert groups
    ready_groups = ready(server, "/v1/groups?count=3")["groups"]
    assert [each["nodes"] for each in ready_groups] == [[str(node) for node in each.nodes] for each in groups]
    path, body = "/v1/groups/1/name", {"name": "named", "version": 1, "count": 3, "by": "ann"}
    assert server.send("POST", "/v1/groups/99/name", body).status == 404
    assert server.send("POST", path, {**body, "version": 7}).status == 412
    answer = server.send("POST", path, body)
    assert answer.json["new_classes"] == ["named"]
    members = set(map(str, groups[0].nodes))
    labelled = {node for node in members if server.node(node).json["label"] == "named"}
    assert len(labelled) == answer.json["learned"] > 0
    assert server.send("POST", path, body).status == 412, "the model has moved on"
