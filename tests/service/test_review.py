"""Labels that need a second look, over HTTP: disputed by the model, or by people."""

import time
from pathlib import Path
from typing import Any

import pytest

from graphfcl import GraphClassifier, InputError
from tests.service.servers import Client, Servers


def issues(server: Client) -> dict[str, Any]:
    """All of them by node, once the disputes are computed."""
    until = time.monotonic() + 60
    while (answer := server.get("/v1/label-issues?limit=150").json)["status"] == "computing":
        if answer["disputes_version"] is not None:  # an older version, whose labels are checked
            break
        assert time.monotonic() < until
        time.sleep(0.05)
    assert answer["total"] == len(answer["issues"])
    return {each["id"]: each for each in answer["issues"]}


@pytest.fixture
def mislabelled(folder: Path, servers: Servers, graph: Any) -> tuple[Client, list[str]]:
    """A server of a model in which labels of three nodes of the fit were replaced by wrong ones, and these nodes."""
    ids = graph.node_ids[graph.labels == graph.class_number("class-00")].tolist()
    wrong = [str(node) for node in ids if str(node).startswith("n")][:3]
    GraphClassifier.load(folder).learn({"class-01": wrong}, by="ann", on_conflict="replace").save(folder)
    return servers.start(folder), wrong


def test_disputed_labels_are_those_of_label_issues(
    mislabelled: tuple[Client, list[str]], folder: Path, servers: Servers
) -> None:
    server, wrong = mislabelled
    listed = issues(server)
    expected = GraphClassifier.load(folder).label_issues().to_pydict()
    assert list(listed) == list(map(str, expected["node"]))
    assert set(wrong) & set(listed)
    for node, given, confidence, guess in zip(
        *(expected[name] for name in ("node", "given", "confidence", "guess")), strict=True
    ):
        shown = listed[str(node)]
        assert (shown["class"], shown["dispute"]["guess"]) == (given, guess)
        assert shown["dispute"]["confidence"] == pytest.approx(confidence)
        assert shown["disagreement"] == []
    kept, changed, *_ = [node for node in wrong if node in listed]
    assert server.send("POST", "/v1/labels/review", {"ids": [kept], "by": "bob"}).json["reviewed"] == 1
    server.teach("class-00", [changed], on_conflict="replace", by="ann")
    assert not {kept, changed} & set(issues(server))
    assert kept not in set(issues(servers.start(folder))), "also after a restart"
    body = {"labels": [{"id": changed, "class": "class-01", "reason": "review"}], "by": "bob"}
    assert server.send("POST", "/v1/labels", {**body, "on_conflict": "replace"}).status == 200
    assert changed not in set(issues(servers.start(folder))), "a wrong label that was given in a review"
    assert server.get("/v1/label-issues?limit=100000").status == 413


def test_a_review_stays_with_the_label(folder: Path, free: list[str]) -> None:
    model = GraphClassifier.load(folder)
    node = model.label_columns()["node"].tolist()[0]
    before = model.label_issues(threshold=0.0, folds=2).num_rows
    model.review([node], by="bob", when="2026-11-19")
    columns = model.label_columns([node])
    assert (columns["reviewed"].tolist()[-1], columns["by"].tolist()[-1]) == ("kept", "bob")
    assert model.label_issues(threshold=0.0, folds=2).num_rows == before - 1
    assert model.label_issues([node], threshold=0.0, folds=2).num_rows == 1, "unless it is asked for"
    with pytest.raises(InputError, match="has no label to review"):
        model.review([free[0]])
    other = next(name for name in model.classes_ if name != model.label_columns([node])["class"][0])
    model.learn({other: [node]}, on_conflict="replace")
    assert model.label_issues(threshold=0.0, folds=2).num_rows == before, "the new label was not reviewed"


def test_people_who_disagree(server: Client, free: list[str], folder: Path, servers: Servers) -> None:
    first, second, third, fourth = free[:4]
    server.teach("new", [first, second, third, fourth], by="ann")
    server.teach("class-00", [first], by="bob", on_conflict="replace")
    server.teach("class-00", [second], by="ann", on_conflict="replace")  # her own correction
    server.teach("class-00", [third], by="bob", on_conflict="keep")
    server.send("DELETE", "/v1/labels", {"ids": [fourth]})
    server.teach("class-00", [fourth], by="bob")  # ann's label was taken back before
    server.send("PATCH", "/v1/classes/new", {"name": "newer"})

    def people(at: Client) -> dict[str, list[tuple[str, str]]]:
        return {
            node: [(each["by"], each["label"]) for each in issue["disagreement"]]
            for node, issue in issues(at).items()
            if issue["disagreement"]
        }

    expected = {node: [("ann", "newer"), ("bob", "class-00")] for node in (first, third)}
    assert people(server) == expected
    assert people(servers.start(folder)) == expected
    server.send("POST", "/v1/labels/review", {"ids": [first], "by": "cem"})
    assert people(server) == {third: expected[third]}
    server.send("DELETE", "/v1/labels", {"ids": [third]})
    assert people(server) == {}
    version = server.get("/v1/model").json["version"]
    server.send("POST", f"/v1/versions/{version - 1}/rollback")
    assert people(server) == {third: expected[third]}, "what was rolled back does not count"
