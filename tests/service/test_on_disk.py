"""A served model whose graph stays on disk answers like the same model in memory, over HTTP and in the page."""

import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from graphfcl import Graph, GraphClassifier, GraphFolder, Resources
from graphfcl.graph.folder import write_folder
from tests.service.conftest import HIDDEN
from tests.service.pages import DECISIONS, Page, serving
from tests.service.servers import Answer, Client, Servers

CLOSE = 2e-2  # of probabilities and unknown scores: vectors are rounded to 16 bits


@dataclass(frozen=True)
class Both:
    """Two servers of the same model, in memory and on disk."""

    memory: Client
    disk: Client

    def same(self, method: str, path: str, body: Any = None) -> Any:
        """The answer that both give."""
        expected, actual = (ready(each, method, path, body) for each in (self.memory, self.disk))
        assert actual.status == expected.status, actual.content
        assert_close(expected.json, actual.json, path)
        return actual.json


def ready(client: Client, method: str, path: str, body: Any) -> Answer:
    """The answer, once it is computed."""
    until = time.monotonic() + 60
    while True:
        answer = client.send(method, path, body)
        if answer.json.get("status") != "computing" or time.monotonic() > until:
            return answer
        time.sleep(0.05)


def assert_close(expected: Any, actual: Any, where: str) -> None:
    """The same JSON but for times; numbers may differ by rounding.

    The history of a model on disk has no accuracy: a change is written before the pass that measures it.
    """
    assert type(actual) is type(expected), where
    if isinstance(expected, dict):
        assert actual.keys() | {"accuracy"} == expected.keys() | {"accuracy"}, where
        for key in expected.keys() - {"when", "changed_at", "accuracy"}:
            assert_close(expected[key], actual[key], f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(actual) == len(expected), where
        for place, (one, other) in enumerate(zip(expected, actual, strict=True)):
            assert_close(one, other, f"{where}[{place}]")
    elif isinstance(expected, float):
        assert actual == pytest.approx(expected, abs=CLOSE), where
    else:
        assert actual == expected, where


@pytest.fixture(scope="module")
def models(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the model in memory, the model on disk and its graph folder."""
    place = tmp_path_factory.mktemp("both")
    write_folder(graph, place / "graph")
    on_disk = GraphFolder.open(place / "graph", Resources(place / "work", 4 << 30))
    for name, shown in (("memory", on_disk.loaded()), ("disk", on_disk)):
        model = GraphClassifier("sgc-ridge").fit(shown, hide_classes=HIDDEN)
        model.save(place / name)
        model.wait()
    return place


@pytest.fixture
def both(servers: Servers, models: Path, tmp_path: Path) -> Both:
    place = Path(shutil.copytree(models, tmp_path / "both"))
    return Both(servers.start(place / "memory"), servers.start(place / "disk"))


def test_reads(both: Both, graph: Graph, free: list[str]) -> None:
    assert both.same("GET", "/v1/model")["nodes"] == 300
    both.same("GET", "/v1/classes")
    both.same("GET", "/v1/classes/class-01")
    both.same("GET", "/v1/versions")
    assert both.same("GET", "/v1/nodes?q=n299")["nodes"][0]["id"] == "n299"
    assert [each["id"] for each in both.disk.get("/v1/nodes?limit=20").json["nodes"]] == graph.node_ids[:20].tolist()
    for node in ("n20", free[0], "ü–ナ"):
        assert both.disk.node(node).json["features"]
        for what in ("", "/neighbours?limit=20", "/explanation"):
            expected, actual = (each.node(node, what).json for each in (both.memory, both.disk))
            assert_close(expected, actual, f"{node}{what}")
    both.same("POST", "/v1/predictions", {"ids": ["n20", *free[:30]]})
    both.same("POST", "/v1/spread", {"ids": free[:5]})
    infer = {"inputs": [{"name": "ids", "datatype": "BYTES", "shape": [2], "data": ["n20", free[0]]}]}
    expected = both.memory.send("POST", "/v2/models/memory/infer", infer).json["outputs"]
    assert_close(expected, both.disk.send("POST", "/v2/models/disk/infer", infer).json["outputs"], "infer")
    assert both.disk.get("/readyz").status == 200
    assert b"graphfcl_model_nodes 300" in both.disk.get("/metrics").content
    assert both.disk.node("nobody").status == 404


def test_what_to_label_next(both: Both) -> None:
    assert len(both.same("GET", "/v1/suggestions?budget=10")["suggestions"]) == 10
    assert both.same("GET", "/v1/suggestions?budget=5&strategy=uncertain")["suggestions"]
    assert both.same("GET", "/v1/groups?count=3")["groups"]
    queue = both.same("GET", "/v1/queue?limit=30")
    assert queue["order_version"] == 1
    assert queue["nodes"]


def test_the_map(both: Both, free: list[str]) -> None:
    """Positions are from vectors of 16 bits; all else is the same."""
    memory, disk = (ready(each, "GET", "/v1/map", None).json for each in (both.memory, both.disk))
    for name in ("shown", "total", "changed_since", "classes", "ids", "flags", "class_places"):
        assert disk[name] == memory[name], name
    for client in (both.memory, both.disk):
        client.teach("gears", free[:4])
    later = ready(both.disk, "GET", "/v1/map", None).json
    assert (later["layout_version"], later["changed_since"]) == (2, 1)
    assert later["x"] == disk["x"]
    assert any(flags & 2 for flags in later["flags"])


def test_changes(both: Both, free: list[str]) -> None:
    """Teach, take back, add nodes and edges, rename, merge, retire, name a group, roll back: version by version."""
    labels = [{"id": node, "class": "gears"} for node in free[:4]]
    assert both.same("POST", "/v1/labels", {"labels": labels, "by": "ann"})["new_classes"] == ["gears"]
    assert both.disk.node(free[0]).json["label"] == "gears"
    both.same("POST", "/v1/predictions", {"ids": free[:20]})
    card = {each["name"]: each for each in both.disk.get("/v1/classes").json["classes"]}
    assert card["class-00"]["recall"] is not None, "recalls are those of the pass over the graph folder"
    assert card["class-00"]["recall_before"] is not None
    both.same("DELETE", "/v1/labels", {"ids": free[:1]})
    names = [each["name"] for each in both.memory.node("n20").json["features"][:2]]
    both.same("POST", "/v1/nodes", {"ids": ["new"], "features": [dict.fromkeys(names, 1.0)]})
    edge = {"sources": ["new"], "targets": ["n20"]}
    assert both.same("POST", "/v1/edges", edge)["edges"] == 1
    again = both.disk.send("POST", "/v1/edges", {**edge, "weights": [2.0]})
    assert again.status == 422, "the edge is there already, with weight 1"
    assert both.disk.node("new").json["degree"] == 1
    assert both.disk.get("/v1/nodes?q=new").json["nodes"][0]["id"] == "new"
    both.same("PATCH", "/v1/classes/gears", {"name": "wheels"})
    both.same("POST", "/v1/classes/wheels/merge", {"into": "class-00"})
    both.same("DELETE", "/v1/classes/class-01")
    version = both.same("GET", "/v1/model")["version"]
    groups = both.same("GET", "/v1/groups?count=3")["groups"]
    both.same("POST", f"/v1/groups/{groups[0]['number']}/name", {"name": "cogs", "version": version, "count": 3})
    both.same("GET", "/v1/classes")
    assert both.same("POST", "/v1/versions/1/rollback")["equals"] == 1
    both.same("POST", "/v1/predictions", {"ids": free[:20]})
    for client in (both.memory, both.disk):
        kinds = [each["kind"] for each in client.get("/v1/versions").json["versions"]]
        assert kinds == ["rollback", "learn", "retire", "merge", "rename", "grow", "grow", "unlearn", "learn", "fit"]


def test_a_version_of_another_process_is_followed(both: Both, tmp_path: Path, free: list[str]) -> None:
    before = both.disk.get("/v1/queue").json["unlabelled"]
    model = GraphClassifier.load(tmp_path / "both" / "disk")
    model.learn({"gears": free[:4]}).save(tmp_path / "both" / "disk")
    both.disk.wait_for_version(2)
    assert both.disk.node(free[0]).json["label"] == "gears"
    model.remove_nodes([free[5]]).save(tmp_path / "both" / "disk")
    both.disk.wait_for_version(3)
    assert both.disk.node(free[5]).status == 404
    assert both.disk.get(f"/v1/nodes?q={free[5]}").json["nodes"] == []
    queue = both.disk.get("/v1/queue?limit=100").json
    assert queue["unlabelled"] == before - 5 == len(queue["nodes"])
    assert free[5] not in [each["id"] for each in queue["nodes"]]


@pytest.fixture
def page(browser: Any, models: Path, tmp_path: Path) -> Iterator[Page]:
    place = Path(shutil.copytree(models, tmp_path / "both"))
    with serving(place / "disk") as served:
        opened = Page(browser, served)
        browser.get("about:blank")
        opened.console()
        opened.open()
        yield opened
        assert opened.console() == []
        browser.get("about:blank")


@pytest.mark.long
def test_the_page(page: Page, free: list[str]) -> None:
    """Search, picture, teach a class, undo, name a group, catalogue, versions, roll back."""
    first, second, other = free[:3]
    page.show(first)
    page.wait(lambda: page.texts("#picture canvas"), "the picture is there")
    page.press("n")
    page.enter("dialog[open] input", "gears")
    page.says("The model learned in")
    page.show(second)
    page.wait(lambda: page.texts(".class-key")[-1].endswith("gears"), "the class has a key")
    page.press(page.texts(".class-key kbd")[-1])
    page.shows(f"{DECISIONS}:first-child", f"{second} is gears")
    page.wait(lambda: page.texts("#status-work") == [""], "all is learned")
    page.wait(lambda: "2 labels" in page.text("#catalogue"), "the catalogue counts labels")
    page.press("\ue003")
    page.says(f"{second} is not labelled gears")
    page.show(other)
    page.wait(lambda: page.text("#card-why p"), "it says why")
    page.wait(lambda: page.all("#groups article form button:enabled"), "groups are found")
    page.enter("#groups article:first-child input[data-node]", "wheels")
    page.says("The model learned “wheels”")
    page.wait(lambda: "wheels" in page.text("#catalogue .class-name"), "the class is in the catalogue")
    page.click("#versions button[aria-label='Go back to version 1']")
    page.click("dialog[open] .primary")
    page.says("equals version 1")
    page.wait(lambda: "wheels" not in page.text("#catalogue"), "the catalogue is as it was")
    assert json.dumps(page.served.ask("GET", f"/v1/nodes/{first}")["label"]) == "null"
