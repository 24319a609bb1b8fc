"""Changes over HTTP: what they do, what they refuse, and that they are done once."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from graphfcl import Graph, GraphClassifier, ModelFolder
from graphfcl.client import ServiceError
from graphfcl.graph.tables.columns import ReadColumns
from graphfcl.production.model.versions import Versions
from graphfcl.production.store import parts
from graphfcl.service.metrics import Metrics
from graphfcl.service.problems import Problem
from graphfcl.service.security import Limits
from graphfcl.service.snapshots import Snapshot
from graphfcl.service.writer import ChangeRequest, Writer
from tests.cli.command import graphfcl_inside
from tests.production.crafting import opened
from tests.service.conftest import HIDDEN
from tests.service.servers import Client, Servers


def test_teach_see_it_take_it_back(server: Client, folder: Path, free: list[str]) -> None:
    answer = server.teach("new/class <b>", free[:3], by="ann")
    assert answer.status == 200
    assert (answer.json["version"], answer.headers["etag"][:3]) == (2, '"2-')
    assert answer.json["learned"] == 3
    assert answer.json["new_classes"] == ["new/class <b>"]
    assert server.node(free[0]).json["label"] == "new/class <b>"
    stored = GraphClassifier.load(folder)
    assert stored.version == 2
    assert stored.label_columns(free[:3])["by"].tolist() == ["ann"] * 3
    card = next(each for each in server.get("/v1/classes").json["classes"] if each["name"] == "new/class <b>")
    assert (card["labels"], card["session"]) == (3, 2)
    answer = server.send("DELETE", "/v1/labels", {"ids": free[:1]})
    assert answer.json["taken_back"] == 1
    assert server.node(free[0]).json["label"] is None
    answer = server.send("POST", "/v1/versions/1/rollback")
    assert (answer.json["version"], answer.json["equals"]) == (4, 1)
    assert server.node(free[1]).json["label"] is None
    listed = server.get("/v1/versions").json["versions"]
    assert [each["version"] for each in listed] == [4, 3, 2, 1]
    assert [each["kind"] for each in listed] == ["rollback", "unlearn", "learn", "fit"]
    client = server.typed()
    pages = client.pages(client.list_versions, 3)
    assert [[each.version for each in page.versions] for page in pages] == [[4, 3, 2], [1]]


def test_labels_that_were_known_already_are_counted(server: Client, free: list[str]) -> None:
    first = server.teach("twice", free[:2])
    assert (first.json["learned"], first.json["unchanged"]) == (2, 0)
    again = server.teach("twice", free[:3])
    assert (again.json["learned"], again.json["unchanged"], again.json["version"]) == (1, 2, 3)


def test_unknown_nodes_of_a_batch_are_left_out_if_that_is_wanted(
    server: Client, servers: Servers, folder: Path, free: list[str]
) -> None:
    client = server.typed()
    with pytest.raises(ServiceError, match=r"'nobody' \(and 1 more\) is not in the graph"):
        client.learn({"new": ["nobody", free[0], "none"]})
    done = client.learn({"new": ["nobody", free[0], "none", "none"]}, on_unknown="skip", key="k")
    assert (done.version, done.learned) == (2, 1)
    assert [(each.id, each.kind) for each in done.left_out] == [("nobody", "unknown-node"), ("none", "unknown-node")]
    again = (
        servers.start(folder).typed().learn({"new": ["nobody", free[0], "none", "none"]}, on_unknown="skip", key="k")
    )
    assert again == done, "another server reads from the folder what was left out"
    assert "nobody" not in str(GraphClassifier.load(folder).history.entries()), "an id that is none is not stored"
    nothing = client.learn({"newer": ["nobody"]}, on_unknown="skip")
    assert (nothing.version, nothing.learned, len(nothing.left_out)) == (2, 0, 1)
    answer = client.predict(["nobody", "n20", "n21"], on_unknown="skip")
    assert (answer.ids, [each.id for each in answer.left_out]) == (("n20", "n21"), ["nobody"])
    assert answer.classes == client.predict(["n20", "n21"]).classes
    assert client.predict(["nobody"], on_unknown="skip").ids == ()
    with pytest.raises(ServiceError, match="take 'refuse' or 'skip'"):
        client.predict(["n20"], on_unknown="ignore")


def test_what_is_known_writes_no_version(server: Client, folder: Path, free: list[str]) -> None:
    client = server.typed()
    client.learn({"twice": free[:2]}, by="ann")
    again = client.learn({"twice": free[:2]}, by="ann", key="k")
    assert (again.version, again.learned, again.unchanged, again.classes) == (2, 0, 2, ())
    client.unlearn(free[:1])
    assert client.learn({"twice": free[:2]}, by="ann", key="k") == again, "the key is known nevertheless"
    assert client.learn({"twice": free[1:2]}, by="bob").version == 4, "a second person is news"
    assert client.learn({"class-00": free[1:2]}, on_conflict="keep").version == 5, "so is another opinion"
    assert GraphClassifier.load(folder).version == 5


def test_classes_are_renamed_merged_and_retired(server: Client, free: list[str]) -> None:
    server.teach("one/two", free[:2])
    assert server.send("PATCH", "/v1/classes/one%2Ftwo", {"name": "%"}).status == 200
    assert server.send("POST", "/v1/classes/%25/merge", {"into": "class-01"}).status == 200
    assert server.node(free[0]).json["label"] == "class-01"
    assert server.send("DELETE", "/v1/classes/class-00").status == 200
    names = [each["name"] for each in server.get("/v1/classes").json["classes"]]
    assert not {"one/two", "%", "class-00"} & set(names)
    for name, text in (
        ("one/two", "is called '%'"),
        ("%", "was merged into 'class-01'"),
        ("class-00", "was retired"),
    ):
        refused = server.teach(name, free[4:5])
        assert refused.status == 409, name
        assert text in refused.json["detail"]
        assert "again" in refused.json["detail"]
    assert server.send("DELETE", "/v1/classes/class-00").status == 409
    assert server.get("/v1/model").json["version"] == 5
    assert server.teach("class-00", free[4:5], again=True).json["new_classes"] == ["class-00"]
    assert server.teach("class-00", free[5:6]).status == 200, "it is a class again"


def test_former_classes_are_refused_in_another_spelling_if_the_model_folds(
    servers: Servers, graph: Graph, tmp_path: Path, free: list[str]
) -> None:
    columns = ReadColumns("id", "label", "source", "target", fold=True)
    model = GraphClassifier("sgc-ridge").fit(replace(graph, columns=columns), hide_classes=HIDDEN)
    model.save(tmp_path / "folds")
    model.wait()
    server = servers.start(tmp_path / "folds")
    assert server.send("DELETE", "/v1/classes/CLASS-00").status == 200
    refused = server.teach("Class-00", free[:1])
    assert (refused.status, "was retired" in refused.json["detail"]) == (409, True)
    assert server.send("DELETE", "/v1/classes/Class-00").status == 409
    assert server.teach("Class-00", free[:1], again=True).json["new_classes"] == ["Class-00"]


def test_the_graph_grows(server: Client, free: list[str]) -> None:
    features = [{"feature_0": 1.0, "feature_3": 1.0}]
    answer = server.send("POST", "/v1/nodes", {"ids": ["fresh"], "features": features})
    assert answer.status == 200, answer.content
    answer = server.send("POST", "/v1/edges", {"sources": ["fresh"], "targets": [free[0]], "weights": [2.0]})
    assert answer.status == 200, answer.content
    assert server.node("fresh").json["degree"] == 1
    assert server.get("/v1/nodes?q=fresh").json["nodes"] == [{"id": "fresh", "label": None}]
    assert server.send("POST", "/v1/edges", {"sources": ["nobody"], "targets": [free[0]]}).status == 404
    assert server.send("POST", "/v1/edges", {"sources": ["fresh"], "targets": []}).status == 422
    other = {"ids": ["fresh"], "features": [{"feature_0": 2.0}]}
    assert server.send("POST", "/v1/nodes", other).status == 422
    for source, target, weights in ((free[0], "fresh", [1.0]), ("fresh", "fresh", None)):
        answer = server.send("POST", "/v1/edges", {"sources": [source], "targets": [target], "weights": weights})
        assert answer.status == 422
    again = server.send("POST", "/v1/edges", {"sources": [free[0]], "targets": ["fresh"], "weights": [2.0]})
    assert (again.status, again.json["version"], again.json["same_edges"]) == (200, 3, 1), "nothing is new"
    for on_existing, version in (("skip", 3), ("update", 4)):
        answer = server.send("POST", "/v1/nodes", {**other, "on_existing": on_existing})
        assert (answer.status, answer.json["version"]) == (200, version), answer.content
        assert answer.json["skipped_nodes"] == int(version == 3)
    assert "updated 1 node" in server.get("/v1/versions?limit=1").json["versions"][0]["what"]
    assert server.send("POST", "/v1/nodes", {**other, "on_existing": "replace"}).status == 422


def test_numbers_as_large_as_can_be(server: Client, free: list[str]) -> None:
    huge = {"sources": free[1:4], "targets": free[2:5], "weights": [3e38] * 3}
    for path, body in (
        ("/v1/edges", huge),
        ("/v1/nodes", {"ids": ["huge"], "features": [{"feature_0": 3e38, "feature_1": 3e38}]}),
        ("/v1/nodes", {"ids": ["huge"], "features": [{"feature_0": 1e300}]}),
        ("/v1/nodes", {"ids": ["huge"], "features": [[1e300] * 60]}),
        ("/v1/edges", huge | {"weights": [1e300] * 3}),
    ):
        answer = server.send("POST", path, body)
        assert answer.status == 422, (answer.content, body)
        assert server.get("/readyz").status == 200
    assert server.get("/v1/model").json["version"] == 1
    assert server.send("POST", "/v1/nodes", {"ids": ["huge"], "features": [[1e15] * 60]}).status == 200
    large = {"sources": ["huge"] * 3, "targets": free[2:5], "weights": [1e15, 1e15, 1e-30]}
    assert server.send("POST", "/v1/edges", large).status == 200
    for node in ("huge", *free[2:5]):
        assert server.node(node).status == 200
    assert server.teach("large", ["huge", free[2]]).status == 200
    for path in ("/v1/nodes/huge", "/v1/nodes/huge/explanation", "/v1/nodes/huge/neighbours", "/v1/classes"):
        assert server.get(path).status == 200


def test_what_no_version_can_hold(folder: Path, free: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(folder, Metrics(), Limits())
    writer.start()
    monkeypatch.setattr(parts, "LARGEST_PART", 10)
    monkeypatch.setattr(Versions, "refuse_missing_chunks", lambda *_: None)  # reads parts too

    def apply(model: GraphClassifier, _: Snapshot) -> None:
        model.learn({"x": free[:2]})

    with pytest.raises(Problem) as caught:
        writer.change(ChangeRequest("hash"), apply)
    assert (caught.value.status, writer.trouble) == (422, None)
    assert "cannot be stored" in caught.value.detail
    assert ModelFolder(folder).current() == 1


def test_bad_changes_change_nothing(server: Client, folder: Path, free: list[str]) -> None:
    labelled = GraphClassifier.load(folder).label_columns()
    node, name = labelled["node"][0], labelled["class"][0]
    other = next(each for each in GraphClassifier.load(folder).classes_ if each != name)
    cases = [
        (server.teach("x", ["nobody"]), 404, "'nobody'"),
        (server.teach(other, [node]), 409, "on_conflict"),
        (server.teach("x\u0007", free[:1]), 422, "control character"),
        (server.teach("..", free[:1]), 422, "address"),
        (server.teach(" . ", free[:1]), 422, "address"),
        (server.send("PATCH", "/v1/classes/class-00", {"name": ".."}), 422, "address"),
        (server.send("POST", "/v1/nodes", {"ids": ["."], "features": [{"feature_0": 1.0}]}), 422, "address"),
        (server.teach("x", free[:1], on_conflict="shrug"), 422, "shrug"),
        (server.send("DELETE", "/v1/labels", {"ids": free[:1]}), 422, "no label"),
        (server.send("DELETE", "/v1/classes/nothing"), 404, "nothing"),
        (server.send("POST", "/v1/versions/77/rollback"), 404, "77"),
        (server.teach("x", free[:1], {"If-Match": '"9"'}), 412, "version 1"),
        (server.teach("x", free[:1], {"If-Match": "nine"}), 422, "If-Match"),
        (server.teach("x", free[:1], {"Idempotency-Key": "k" * 201}), 422, "key"),
        (server.send("POST", "/v1/predictions", {"ids": ["n20"] * 1001}), 413, "1,000"),
    ]
    for answer, status, message in cases:
        assert answer.status == status, answer.content
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json["status"] == status
        assert message in answer.json["detail"]
    assert server.teach(other, [node], {"If-Match": '"1"'}, on_conflict="replace").status == 200
    assert ModelFolder(folder).current() == 2


def test_a_key_is_answered_once(server: Client, servers: Servers, folder: Path, free: list[str]) -> None:
    key = {"Idempotency-Key": "k-1", "If-Match": '"1"'}
    first = server.teach("x", free[:2], key)
    assert first.json["version"] == 2
    server.teach("y", free[2:4])
    again = server.teach("x", free[:2], key)
    assert (again.status, again.json) == (200, first.json), "the first answer, although the version is stale"
    assert server.teach("x", free[4:5], {"Idempotency-Key": "k-1"}).status == 422
    assert server.send("DELETE", "/v1/classes/x", headers={"Idempotency-Key": "k-1"}).status == 422
    server.kill()
    other = servers.start(folder)
    assert other.teach("x", free[:2], key).json == first.json, "the key is in the folder"
    graphfcl_inside("prune", "--model", folder, "--keep", 1)
    third = servers.start(folder)
    assert third.teach("x", free[:2], key).json == first.json, "also if its version was pruned"
    assert third.get("/v1/model").json["version"] == 3


def test_one_key_sent_many_times_at_once(server: Client, free: list[str]) -> None:
    answers = []

    def send() -> None:
        answers.append(server.teach("x", free[:2], {"Idempotency-Key": "same"}).json)

    threads = [threading.Thread(target=send) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [answers[0]] * 6
    assert server.get("/v1/model").json["version"] == 2


def test_two_servers_on_one_folder(server: Client, servers: Servers, folder: Path, free: list[str]) -> None:
    second = servers.start(folder)
    done: dict[int, list[str]] = {}
    lock = threading.Lock()

    def teach(client: Client, nodes: list[str]) -> None:
        for node in nodes:
            answer = client.teach("x", [node])
            assert answer.status == 200, answer.content
            with lock:
                assert answer.json["version"] not in done, "each version belongs to one change"
                done[answer.json["version"]] = [node]
            assert client.node(node).json["label"] == "x", "who wrote it sees it"

    threads = [
        threading.Thread(target=teach, args=(client, free[start::2][:4]))
        for start, client in enumerate((server, second))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == list(range(2, 10))
    for client in (server, second):
        client.wait_for_version(9)
        assert all(client.node(node).json["label"] == "x" for nodes in done.values() for node in nodes)
    assert server.teach("z", free[20:21], {"Idempotency-Key": "shared"}).json["version"] == 10
    assert second.teach("z", free[20:21], {"Idempotency-Key": "shared"}).json["version"] == 10


def test_a_command_beside_is_seen(server: Client, folder: Path, free: list[str], tmp_path: Path) -> None:
    table = tmp_path / "supports.csv"
    table.write_text(f"node,class\n{free[0]},beside\n")
    assert graphfcl_inside("learn", "--model", folder, table).code == 0
    server.wait_for_version(2)
    assert server.node(free[0]).json["label"] == "beside"
    table.write_text(f"node,class\n{free[1]},beside\n")
    assert graphfcl_inside("learn", "--model", folder, table).code == 0
    answer = server.teach("beside", free[2:3])
    assert (answer.status, answer.json["version"]) == (200, 4), "a change starts from what another process wrote"


@pytest.mark.parametrize("harm", ["nonsense", "chunk", "cut", "gone"])
def test_a_damaged_folder(server: Client, folder: Path, free: list[str], harm: str) -> None:
    before = server.node("n20").json
    moved = folder.with_name("moved")
    if harm == "nonsense":
        (folder / "model.sqlite").write_text("{}")
    elif harm in ("chunk", "cut"):
        change = "DELETE FROM chunk" if harm == "chunk" else "UPDATE chunk SET size = size - 1"
        with opened(folder / "model.sqlite") as connection:
            connection.execute(f"{change} WHERE length(data) = (SELECT max(length(data)) FROM chunk)")
    else:
        folder.rename(moved)
    answer = server.teach("x", free[:1])
    assert answer.status == 503, answer.content
    assert "version 1" in answer.json["detail"]
    assert server.node("n20").json == before
    ready = server.get("/readyz")
    assert ready.status == 503
    assert ready.json["warning"]
    assert not folder.exists() or harm != "gone"
    if harm == "gone":
        moved.rename(folder)
        assert server.teach("x", free[:1]).json["version"] == 2
        assert server.get("/readyz").status == 200


def test_a_class_that_looks_like_a_known_one_is_learned_if_it_is_meant(server: Client, free: list[str]) -> None:
    labels = [{"id": free[0], "class": "Class-00"}]
    refused = server.send("POST", "/v1/labels", {"labels": labels})
    assert refused.status == 422
    assert "'Class-00' is a new class, but 'class-00' is known" in refused.json["detail"]
    for new_classes in (False, [], ["other"]):
        none = {"labels": [{"id": free[1], "class": "other one"}], "new_classes": new_classes}
        assert "'other one' is a new class" in server.send("POST", "/v1/labels", none).json["detail"]
    assert server.send("POST", "/v1/labels", {"labels": labels, "new_classes": "Class-00"}).status == 422
    assert server.get("/v1/model").json["version"] == 1
    done = server.send("POST", "/v1/labels", {"labels": labels, "new_classes": ["Class-00"]})
    assert done.json["new_classes"] == ["Class-00"]
