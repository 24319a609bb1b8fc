"""Integer classes over HTTP: numbers go in and come out, and a class in an address is its number as a text."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphfcl import GraphClassifier, load_dataset
from tests.service.conftest import NAME
from tests.service.pages import Page, serving
from tests.service.servers import Client, Servers

LARGE = 2**60  # beyond what JavaScript can hold


@pytest.fixture(scope="module")
def whole_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    graph, _ = load_dataset(NAME)
    names = (*map(str, range(10, 17)), str(LARGE))
    folder = tmp_path_factory.mktemp("whole") / "model"
    model = GraphClassifier("sgc-ridge").fit(replace(graph, class_names=names, integer_classes=True), hide_classes=[16])
    model.save(folder)
    model.wait()
    return folder


@pytest.fixture
def client(servers: Servers, whole_folder: Path, tmp_path: Path) -> Client:
    return servers.start(Path(shutil.copytree(whole_folder, tmp_path / "model")))


def names(client: Client) -> list[Any]:
    return [each["name"] for each in client.get("/v1/classes").json["classes"]]


def test_numbers_go_in_and_come_out(client: Client, whole_folder: Path) -> None:
    model = GraphClassifier.load(whole_folder)
    graph, _ = load_dataset(NAME)
    assert names(client) == [*range(10, 16), str(LARGE)], "what a client would round travels as a text"
    ids = model.node_ids_[:20].tolist()
    classes = client.send("POST", "/v1/predictions", {"ids": ids}).json["classes"]
    assert classes == [str(label) if label == LARGE else label for label in model.predict(ids).tolist()]
    free = [int(node) for node in graph.node_ids[graph.labels == 6]]
    taught = client.send("POST", "/v1/labels", {"labels": [{"id": node, "class": 16} for node in free[:3]]})
    assert taught.status == 200, taught.json
    assert taught.json["classes"] == taught.json["new_classes"] == [16]
    again = client.send("POST", "/v1/labels", {"labels": [{"id": free[3], "class": "16"}]})
    assert (again.json["classes"], again.json["new_classes"]) == ([16], [])
    card = client.node(free[0]).json
    assert card["label"] == 16
    assert all(isinstance(each["name"], int) or each["name"] == str(LARGE) for each in card["classes"])
    near = client.node(free[0], "/neighbours").json["nodes"]
    assert {each["label"] for each in near if each["id"] == str(free[0])} == {16}
    assert client.get("/v1/classes/16").json["name"] == 16
    assert client.send("PATCH", "/v1/classes/16", {"name": 26}).status == 200
    assert client.send("POST", "/v1/classes/10/merge", {"into": 11}).status == 200
    assert client.send("DELETE", "/v1/classes/12").status == 200
    assert names(client) == [11, 13, 14, 15, str(LARGE), 26]
    assert client.get("/v1/versions").json["versions"][0]["classes"] == [12]
    gone = client.send("POST", "/v1/labels", {"labels": [{"id": free[4], "class": 12}]})
    assert gone.status == 409
    conflict = client.send("POST", "/v1/labels", {"labels": [{"id": free[0], "class": 11}]})
    assert conflict.status == 409
    assert client.send("POST", "/v1/labels", {"labels": [{"id": free[0], "class": 26}]}).json["unchanged"] == 1
    assert client.send("POST", "/v1/labels", {"labels": [{"id": free[4], "class": True}]}).status == 422
    assert client.send("POST", "/v1/labels", {"labels": [{"id": free[4], "class": -1}]}).status == 422
    inferred = client.send(
        "POST",
        "/v2/models/model/infer",
        {"inputs": [{"name": "ids", "datatype": "BYTES", "shape": [1], "data": [free[0]]}]},
    )
    assert inferred.status == 200, inferred.json
    assert all(isinstance(label, str) for label in inferred.json["outputs"][0]["data"])


def test_the_page_labels_with_integer_classes(browser: Any, whole_folder: Path, tmp_path: Path) -> None:
    """The page knows classes as texts; what it sends comes back as the same integer class."""
    graph, _ = load_dataset(NAME)
    node = str(graph.node_ids[graph.labels == 6][0])
    folder = Path(shutil.copytree(whole_folder, tmp_path / "model"))
    with serving(folder) as served:
        page = Page(browser, served)
        page.open()
        page.wait(lambda: page.texts(".class-key span"), "classes have keys")
        assert set(page.texts(".class-key span")) == {*map(str, range(10, 16)), str(LARGE)}
        page.show(node)
        page.press("n")
        page.enter("dialog[open] input", "16")
        page.says("The model learned in")
        assert served.ask("GET", f"/v1/nodes/{node}")["label"] == 16
    assert GraphClassifier.load(folder).classes_[-1] == 16
