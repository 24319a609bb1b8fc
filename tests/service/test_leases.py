"""Nodes of the queue are leased, so that two people are not asked about the same one."""

from typing import Any

from graphfcl.service.leases import SECONDS, Leases
from tests.service.servers import Client


def claimed(server: Client, holder: str, ids: list[str]) -> tuple[list[str], list[str]]:
    answer = server.send("POST", "/v1/queue/leases", {"holder": holder, "ids": ids})
    assert answer.status == 200, answer.json
    return answer.json["held"], answer.json["taken"]


def test_two_holders_have_no_node_in_common(shared: Client) -> None:
    first, second, third, fourth = [each["id"] for each in shared.get("/v1/queue?limit=4").json["nodes"]]
    assert claimed(shared, "one", [first, second]) == ([first, second], [])
    assert claimed(shared, "two", [first, second, third]) == ([third], [first, second])
    assert claimed(shared, "one", [second, fourth]) == ([second, fourth], []), "the first is given back"
    assert claimed(shared, "two", [first, third]) == ([first, third], [])
    assert claimed(shared, "one", []) == ([], [])
    assert claimed(shared, "two", [second, fourth]) == ([second, fourth], [])


def test_a_lease_ends_by_itself() -> None:
    time = [0.0]
    leases = Leases(lambda: time[0])
    leases.claim("one", ["a", "b"])
    time[0] = SECONDS - 1
    assert leases.claim("two", ["a"])["taken"] == ["a"]
    leases.claim("one", ["a"])
    time[0] = SECONDS + 1
    assert leases.claim("two", ["a", "b"]) == {"held": ["b"], "taken": ["a"], "seconds": SECONDS}
    time[0] = 3 * SECONDS
    assert leases.claim("two", ["a"])["held"] == ["a"]


def test_what_cannot_be_leased_is_refused(shared: Client) -> None:
    bodies: list[dict[str, Any]] = [{"ids": []}, {"holder": "", "ids": []}, {"holder": "one", "ids": ["x"] * 21}]
    for body in bodies:
        assert shared.send("POST", "/v1/queue/leases", body).status == 422
    without = Client(shared.port, token=None)
    assert without.send("POST", "/v1/queue/leases", {"holder": "one", "ids": []}).status == 401
