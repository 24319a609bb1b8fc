"""Kinds of problems: a client tells them apart; typing errors are answered with a hint."""

import time
from typing import Any

import pytest

from graphfcl.client import ServiceError
from graphfcl.client.problems import KINDS, PREFIX
from tests.service.schemas import faults
from tests.service.servers import Client

LABEL = {"id": "n20", "class": "x"}


@pytest.mark.parametrize(
    ("method", "path", "body", "kind", "text"),
    [
        ("GET", "/v1/nodes?limt=3", None, "unknown-parameter", "no parameter 'limt': did you mean 'limit'?"),
        ("GET", "/v1/nodes?frog=3", None, "unknown-parameter", "no parameter 'frog': there are q, limit, cursor."),
        ("GET", "/v1/model?q=3", None, "unknown-parameter", "no parameter 'q': there are none: leave it out."),
        ("POST", "/v1/labels?by=ann", {"labels": [LABEL]}, "unknown-parameter", "no parameter 'by'"),
        ("GET", "/v1/nodes?q=a&q=b", None, "invalid-request", "'q' is there twice: send it once."),
        ("POST", "/v1/labels", {"labels": [LABEL], "bye": ""}, "unknown-field", "no field 'bye': did you mean 'by'?"),
        ("POST", "/v1/labels", {"labels": [{**LABEL, "clas": 1}]}, "unknown-field", "labels.0: there is no field"),
        ("POST", "/v1/predictions", {"ids": ["a"], "{0}": 1}, "unknown-field", "no field '{0}': there are ids"),
        ("POST", "/v1/labels", {"labels": [{"id": "n20"}]}, "invalid-request", "labels.0.class: Field required."),
        ("POST", "/v1/labels", {"labels": [LABEL], "on_conflict": "kep"}, "invalid-request",
         "on_conflict is 'kep': take 'refuse', 'keep' or 'replace'."),
        ("POST", "/v1/nodes", {"ids": ["a"], "on_existing": 7}, "invalid-request", "on_existing is 7: take"),
        ("GET", "/v1/suggestions?strategy=unkown", None, "invalid-request", "did you mean 'unknown'?"),
        ("GET", "/v1/nodes?cursor=abc", None, "lost-cursor", "start again without a cursor"),
        ("GET", "/v1/nodes/nobody", None, "unknown-node", "'nobody' is not in the graph"),
        ("GET", "/v1/classes/nothing", None, "unknown-class", "no class 'nothing'"),
        ("POST", "/v1/versions/7/rollback", None, "unknown-version", "no version 7"),
        ("GET", "/nothing", None, "no-such-address", "nothing at this address"),
        ("PUT", "/v1/labels", {}, "method-not-allowed", "does not take this method"),
    ],
)  # fmt: skip
def test_a_problem_says_its_kind_and_what_to_do(
    shared: Client, method: str, path: str, body: Any, kind: str, text: str
) -> None:
    answer = shared.send(method, path, body)
    assert answer.json["type"] == f"{PREFIX}{kind}"
    assert (answer.json["status"], answer.json["title"]) == KINDS[kind]
    assert answer.status == answer.json["status"]
    assert text in answer.json["detail"]
    schemas = shared.get("/openapi.json").json["components"]["schemas"]
    assert faults(schemas["Problem"], {**answer.json, "version": None}, schemas) == []


def test_all_nodes_and_versions_can_be_enumerated(server: Client) -> None:
    client = server.typed()
    every = client.get_model().nodes
    first = client.list_nodes(limit=100)
    client.add_nodes(["0 new"], [{"feature_0": 1.0}])  # between two pages
    rest = list(client.pages(lambda cursor: client.list_nodes(limit=100, cursor=cursor or first.next_cursor)))
    listed = [node.id for page in (first, *rest) for node in page.nodes]
    assert len(listed) == len(set(listed)) == every + 1
    found = [node.id for page in client.pages(client.list_nodes, "n2", limit=7) for node in page.nodes]
    assert found == [node.id for node in client.list_nodes("n2", limit=150).nodes]
    assert len(found) > 50
    assert [len(page.versions) for page in client.pages(client.list_versions, limit=1)] == [1, 1]


def test_the_queue_has_cursors_of_one_list(server: Client, free: list[str]) -> None:
    client = server.typed()
    while client.list_queue().status == "computing":
        time.sleep(0.05)
    pages = list(client.pages(client.list_queue, limit=7))
    listed = [node.id for page in pages for node in page.nodes]
    assert len(listed) == len(set(listed)) == pages[0].unlabelled
    first = client.list_queue(limit=7)
    client.learn({"new": free[:2]})
    with pytest.raises(ServiceError, match="start again without a cursor"):
        client.list_queue(cursor=first.next_cursor)
    with pytest.raises(ServiceError, match="start again without a cursor"):
        client.list_queue(cursor=client.list_nodes(limit=1).next_cursor)
