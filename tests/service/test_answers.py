"""Operations have stable names and described answers, real answers are as described, and the client reads them."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from graphfcl import GraphClassifier
from graphfcl.client import Client as TypedClient
from graphfcl.client import NoAnswerError, ServiceError
from graphfcl.client.answers import Health, NodeLabel
from graphfcl.client.reading import UnreadableError, read_as
from graphfcl.errors import InputError
from tests.service.conftest import HOSTILE
from tests.service.schemas import faults
from tests.service.servers import Client, free_port

VERBS = (
    "accept", "add", "claim", "describe", "explain", "export", "get", "import", "infer", "learn", "list", "measure",
    "merge", "name", "predict", "rename", "retire", "review", "roll", "unlearn",
)  # fmt: skip


@pytest.fixture(scope="module")
def description(shared: Client) -> Any:
    return shared.get("/openapi.json").json


def operations(description: Any) -> dict[str, tuple[str, str, Any]]:
    """Method, path and description of each operation."""
    listed = [
        (route["operationId"], (method.upper(), path, route))
        for path, methods in description["paths"].items()
        for method, route in methods.items()
    ]
    assert len(dict(listed)) == len(listed), "every operation id is unique"
    return dict(listed)


def schema_of(route: Any) -> Any:
    (content,) = route["responses"]["200"]["content"].values()
    return content["schema"]


def test_every_operation_has_a_name_and_a_described_answer(description: Any) -> None:
    for name, (method, path, route) in operations(description).items():
        assert name.startswith(VERBS), f"{method} {path}: name the function as a verb and what it acts on"
        assert schema_of(route), f"{method} {path} has no response_model"


def test_the_client_has_a_method_for_operations_of_the_same_name(description: Any) -> None:
    own = {name for name in vars(TypedClient) if not name.startswith("_")} - {"pages"}
    assert own <= operations(description).keys()
    assert {"get_node", "learn", "list_labels", "name_group"} <= own


def test_real_answers_are_as_described(server: Client, description: Any, free: list[str], folder: Any) -> None:
    """Each is also read by the class that the client reads it into."""
    known, schemas = operations(description), description["components"]["schemas"]
    called = set()

    def check(name: str, body: Any = None, query: str = "", /, **steps: Any) -> Any:
        method, path, route = known[name]
        answer = server.send(method, path.format(**steps) + query, body)
        assert answer.status == 200, (name, answer.content)
        if answer.headers["content-type"].startswith("application/json"):
            assert faults(schema_of(route), answer.json, schemas, name) == []
        called.add(name)
        return answer

    for name in ("get_model", "list_classes", "list_versions", "list_nodes", "get_health", "get_readiness"):
        check(name)
    for name in ("get_metrics", "get_server_liveness", "get_server_readiness"):
        check(name)
    for name in ("get_node", "get_neighbours", "explain_node"):
        check(name, node="n20")
    check("get_class", name="class-00")
    check("predict", {"ids": ["n20", "n21"]})
    check("measure_spread", {"ids": ["n20", "n21"]})
    served = folder.name
    check("describe_model", name=served)
    check("get_model_readiness", name=served)
    data = {"name": "ids", "datatype": "BYTES", "shape": [1], "data": ["n20"]}
    check("infer", {"inputs": [data], "id": "7"}, name=served)
    until = time.monotonic() + 60
    for name in ("list_suggestions", "list_groups", "list_queue"):
        while check(name).json["status"] == "computing":
            assert time.monotonic() < until
            time.sleep(0.05)
    groups = check("list_groups").json["groups"]
    assert groups
    check("name_group", {"name": "grouped", "version": 1}, number=groups[0]["number"])
    left = [node for node in free if node not in groups[0]["nodes"]]
    labels = [{"id": node, "class": "new"} for node in left[:3]]
    version = check("learn", {"labels": labels, "by": "ann"}).json["version"]
    check("unlearn", {"ids": left[:1]})
    while check("get_effect", version=version).json["status"] == "computing":
        assert time.monotonic() < until
        time.sleep(0.05)
    check("list_label_issues")
    while check("get_map").json["status"] == "computing":
        assert time.monotonic() < until
        time.sleep(0.05)
    check("claim_nodes", {"holder": "a tab", "ids": left[3:5]})
    check("export_labels")
    check("export_history")
    check("review_labels", {"ids": left[1:2]})
    check("list_moved_nodes", version=version, number=1)
    names = [each["name"] for each in check("list_classes").json["classes"]]
    listed = [check("list_members", name=name).json for name in names]
    chosen = max(listed, key=lambda each: each["total"])
    check("accept_members", {"version": chosen["version"], "threshold": 0.01}, name=chosen["name"])
    check("list_labels", None, "?class=new")
    tasks = check("export_label_studio", None, "?nodes=labelled&limit=3").json["tasks"]
    check("import_label_studio", {"tasks": tasks})
    check("add_nodes", {"ids": ["fresh"], "features": [{"feature_0": 1.0}]})
    check("add_edges", {"sources": ["fresh"], "targets": ["n20"]})
    check("rename_class", {"name": "newer"}, name="new")
    check("merge_class", {"into": "class-00"}, name="newer")
    check("retire_class", name="class-01")
    check("roll_back", version=1)
    check("list_versions")
    check("list_classes")
    assert called == known.keys(), "send one request to each operation here"


def test_labels_are_listed_with_who_and_when(server: Client, free: list[str], folder: Any) -> None:
    client = server.typed()
    assert client.learn({"new": free[:3], "class-00": free[3:4]}, by="ann").learned == 4
    assert client.learn({"new": free[:1]}, by="bob").confirmed == 1
    pages = list(client.pages(client.list_labels, limit=7))
    labels = [label for page in pages for label in page.labels]
    assert {page.total for page in pages} == {len(labels)}
    table = GraphClassifier.load(folder).label_columns()
    stored = {
        (node, name, part)
        for node, name, part in zip(*(table[each].tolist() for each in ("node", "class", "part")), strict=True)
    }
    assert {(each.id, each.label, each.role) for each in labels} == stored
    assert len({each.id for each in labels}) == len(labels)
    assert set(HOSTILE) & {each.id for each in labels}
    new = client.list_labels("new")
    assert (new.total, {each.id for each in new.labels}) == (3, set(free[:3]))
    people = {each.id: [statement.by for statement in each.statements] for each in new.labels}
    assert people == {free[0]: ["ann", "bob"], free[1]: ["ann"], free[2]: ["ann"]}
    first = client.list_labels(limit=1)
    assert first.next_cursor is not None
    client.unlearn([first.labels[0].id])
    again = client.list_labels(limit=1, cursor=first.next_cursor)
    assert again.labels == pages[0].labels[1:2], "a cursor holds when its label is gone"
    for cursor in ("x", "é", "", "W10", first.next_cursor[:-2]):
        with pytest.raises(ServiceError, match="start again without a cursor"):
            client.list_labels(cursor=cursor)
    with pytest.raises(ServiceError, match="knows no class 'nothing'"):
        client.list_labels("nothing")


def test_the_client_changes_the_model(server: Client, free: list[str]) -> None:
    client = server.typed()
    assert client.get_model().version == 1
    done = client.learn({"a/b ü": free[:2]}, if_version=1, key="k")
    assert (done.version, done.new_classes) == (2, ("a/b ü",))
    assert client.learn({"a/b ü": free[:2]}, if_version=1, key="k") == done, "the same key, the same answer"
    with pytest.raises(ServiceError, match="the model is at version 2") as stale:
        client.retire_class("class-00", if_version=1)
    assert (stale.value.status, stale.value.version) == (412, 2)
    assert client.rename_class("a/b ü", "?").version == 3
    assert client.merge_class("?", "class-00").version == 4
    assert client.get_class("class-00").labels > 2
    assert client.unlearn(free[:1]).taken_back == 1
    assert client.add_nodes(["x y"], [{"feature_0": 1}]).version == 6
    assert client.add_edges(["x y"], [free[0]], [2.0]).version == 7
    assert client.get_node("x y").degree == 1
    assert client.retire_class("class-01").version == 8
    assert client.roll_back(1).equals == 1
    assert [each.version for each in client.list_versions(limit=2).versions] == [9, 8]


def test_the_client_reads_every_answer(shared: Client, free: list[str]) -> None:
    client = shared.typed()
    node = client.get_node("<img src=x onerror=alert(1)>")
    assert node.id == HOSTILE[9]
    assert sum(each.probability for each in node.classes) <= 1 + 1e-9
    assert client.get_neighbours("a/b", limit=3).nodes[0].id == "a/b"
    assert client.explain_node("a/b").summary
    assert client.predict(["a/b", free[0]]).ids == ("a/b", free[0])
    assert client.measure_spread(free[:5]).say
    assert client.list_nodes("a/b").nodes[0].id == "a/b"
    assert client.list_classes().classes[0].name == "class-00"
    assert client.list_suggestions(budget=3).status in ("computing", "ready")
    assert client.list_groups(count=2).status in ("computing", "ready")
    assert len(client.list_queue(limit=2).nodes) == 2
    with pytest.raises(ServiceError, match="node 'nobody' is not in the graph") as missing:
        client.get_node("nobody")
    assert (missing.value.status, missing.value.kind) == (404, "unknown-node")
    with pytest.raises(ServiceError, match="the token is missing or wrong") as refused:
        TypedClient(client.transport.url, "wrong").unlearn(free[:1])
    assert refused.value.status == 401


def test_the_client_repeats_what_got_no_answer(server: Client, free: list[str]) -> None:
    """The connection is cut after the change was made, so the client cannot know of it."""
    client = server.typed()
    opened: Callable[..., Any] = client.transport._opener.open
    failures: list[Any] = []

    def cut(*arguments: Any, **options: Any) -> Any:
        answer = opened(*arguments, **options)
        if len(failures) < 2:
            answer.close()
            failures.append(answer)
            raise ConnectionResetError("cut")
        return answer

    client.transport._opener.open = cut  # type: ignore[method-assign]
    assert client.learn({"new": free[:2]}).version == 2
    assert len(failures) == 2
    assert client.get_model().version == 2, "made once"
    nowhere = TypedClient(f"http://127.0.0.1:{free_port()}", retries=1)
    with pytest.raises(NoAnswerError, match=r"does not answer .*refused.*graphfcl serve"):
        nowhere.get_model()


@pytest.mark.parametrize("url", ["", "127.0.0.1:8765", "ftp://host", "http://", "http://127.0.0.1:8765/#token=abc"])
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(InputError, match=r"not the address of a service|after #"):
        TypedClient(url)


def test_answers_of_another_release() -> None:
    assert read_as(Health, json.loads('{"version": 1, "status": "ok", "new": 1}')) == Health(version=1, status="ok")
    for text in ('{"version": 1}', '{"version": "1", "status": "ok"}', '{"version": 1, "status": "up"}', "[]", "1"):
        with pytest.raises(UnreadableError, match="use the client of the same release"):
            read_as(Health, json.loads(text))
    label = {"id": "a", "class": 7, "role": "support", "statements": []}
    assert read_as(NodeLabel, label).label == 7
