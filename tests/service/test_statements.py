"""Who gave a label, when and why: stored with it, and shown."""

import datetime

from tests.service.servers import Client


def test_a_label_says_who_gave_it_when_and_why(server: Client, free: list[str]) -> None:
    first, second, third = free[:3]
    labels = [
        {"id": first, "class": "class-00", "reason": "Looks unknown", "note": "seen\ntwice"},
        {"id": second, "class": "class-00"},
    ]
    before = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    assert server.send("POST", "/v1/labels", {"labels": labels, "by": "ann"}).status == 200
    (said,) = server.node(first).json["statements"]
    assert (said["by"], said["kept"]) == ("ann", {"reason": "Looks unknown", "note": "seen twice"})
    assert before <= datetime.datetime.fromisoformat(said["when"]) <= datetime.datetime.now(datetime.UTC)
    assert [(each["by"], each["kept"]) for each in server.node(second).json["statements"]] == [("ann", {})]
    assert server.node(third).json["statements"] == []
    assert server.teach("class-00", [first], by="bob").status == 200
    assert [each["by"] for each in server.node(first).json["statements"]] == ["ann", "bob"]


def test_a_note_that_is_too_long_is_refused(server: Client, free: list[str]) -> None:
    answer = server.send("POST", "/v1/labels", {"labels": [{"id": free[0], "class": "class-00", "note": "x" * 1001}]})
    assert answer.status == 422
    assert "note" in answer.json["detail"]


def test_the_ticked_members_of_a_group_are_taught_and_no_other(server: Client) -> None:
    while (answer := server.get("/v1/groups").json)["status"] != "ready":
        pass
    group = answer["groups"][0]
    body = {"name": "wheels", "version": answer["version"], "by": "ann"}
    wrong = server.send("POST", "/v1/groups/1/name", {**body, "nodes": ["nobody"]})
    assert wrong.status == 422
    assert "is not a member of group 1" in wrong.json["detail"]
    ticked = group["nodes"][1:5]
    assert server.send("POST", "/v1/groups/1/name", {**body, "nodes": ticked}).json["learned"] == 4
    assert [server.node(node).json["label"] for node in group["nodes"][:5]] == [None, *["wheels"] * 4]
    (said,) = server.node(ticked[0]).json["statements"]
    assert (said["by"], said["kept"]["reason"]) == (
        "ann",
        f"member of a group of {group['size']} similar nodes, estimated purity {100 * group['estimated_purity']:.0f} %",
    )
    assert said["when"]
