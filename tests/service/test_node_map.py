"""The map over HTTP: positions of all nodes, stable from version to version, and a sample of large graphs."""

import time
from typing import Any

import numpy as np

from graphfcl import GraphClassifier
from graphfcl.service.node_map import CHANGED, LABELLED, MOST, SHARE, UNKNOWN, by_rank, drawn
from tests.service.conftest import HOSTILE
from tests.service.servers import Client


def ready_map(client: Client) -> dict[str, Any]:
    """The map, once it is laid out for the current version."""
    until = time.monotonic() + 60
    while True:
        answer = client.get("/v1/map")
        assert answer.status == 200, answer.content
        if answer.json["status"] == "ready" or time.monotonic() > until:
            return dict(answer.json)
        time.sleep(0.05)


def test_all_nodes_are_on_the_map_with_their_answers(shared: Client) -> None:
    first = shared.get("/v1/map").json
    assert first["status"] in ("computing", "ready")
    answer = ready_map(shared)
    assert (answer["shown"], answer["total"]) == (300, 300)
    assert (answer["layout_version"], answer["changed_since"]) == (1, None)
    assert len(set(answer["ids"])) == 300
    assert set(HOSTILE) < set(answer["ids"])
    assert {len(answer[name]) for name in ("x", "y", "class_places", "doubts", "flags")} == {300}
    assert all(0 <= value <= 10_000 for value in (*answer["x"], *answer["y"]))
    for place in (0, 7, 150, 299):
        card = shared.node(answer["ids"][place]).json
        flags, (first, second) = answer["flags"][place], card["classes"][:2]
        assert answer["classes"][answer["class_places"][place]] == (card["label"] or first["name"])
        assert bool(flags & LABELLED) == (card["label"] is not None)
        assert bool(flags & UNKNOWN) == (card["label"] is None and card["unknown"])
        assert answer["doubts"][place] == round(100 * (1 - first["probability"] + second["probability"]))


def test_nodes_stay_where_they_are_when_a_class_is_learned(server: Client, free: list[str]) -> None:
    before = ready_map(server)
    server.teach("gears", free[:4])
    between = server.get("/v1/map").json
    assert between["version"] == 2
    assert between["ids"] == before["ids"], "while the new one is being laid out, the old one is shown"
    assert between["classes"][-1] == "gears"
    after = ready_map(server)
    assert [after[axis] for axis in "xy"] == [before[axis] for axis in "xy"]
    assert after["changed_since"] == 1
    old, new = answers_of(before), answers_of(after)
    changed = {node for node, flags in zip(after["ids"], after["flags"], strict=True) if flags & CHANGED}
    assert changed, "some nodes look like the new class"
    assert {node for node in old if node not in free[:4] and old[node] != new[node]} <= changed
    names = [each["name"] for each in server.node("n20").json["features"][:2]]
    server.send("POST", "/v1/nodes", {"ids": ["new"], "features": [dict.fromkeys(names, 1.0)]})
    server.send("PATCH", "/v1/classes/gears", {"name": "wheels"})
    grown = ready_map(server)
    assert grown["shown"] == 301
    assert grown["changed_since"] == 3
    assert not any(flags & CHANGED for flags in grown["flags"]), "a class that is only renamed is the same"
    place = {node: place for place, node in enumerate(grown["ids"])}
    both = [place[node] for node in after["ids"]]
    assert [[grown[axis][each] for each in both] for axis in "xy"] == [after[axis] for axis in "xy"]


def answers_of(answer: dict[str, Any]) -> dict[str, Any]:
    """The class on the map of each node, None for an unknown one."""
    columns = zip(answer["ids"], answer["class_places"], answer["flags"], strict=True)
    return {node: None if flags & UNKNOWN else answer["classes"][place] for node, place, flags in columns}


def test_changes_are_found_after_a_restart(servers: Any, folder: Any, free: list[str]) -> None:
    model = GraphClassifier.load(folder)
    model.learn({"gears": free[:4]}).save(folder)
    model.wait()
    answer = ready_map(servers.start(folder))
    assert (answer["version"], answer["changed_since"]) == (2, 1)
    assert any(flags & CHANGED for flags in answer["flags"])


def test_of_many_nodes_a_sample_is_drawn_that_stays() -> None:
    numbers = np.arange(0, 1_000_000, 2)
    assert drawn(numbers[:MOST]).size == MOST
    sample = drawn(numbers)
    assert sample.size == MOST
    assert (np.diff(sample) > 0).all()
    counts = np.histogram(sample, bins=20, range=(0, 1_000_000))[0]
    assert abs(counts - MOST / 20).max() < 5 * (MOST / 20) ** 0.5, "it is uniform"

    changed, labelled = by_rank(np.arange(200_000, 200_500, 2)), by_rank(np.arange(300_000, 340_000, 2))
    mixed = drawn(numbers, changed, labelled)
    assert mixed.size == MOST
    assert np.isin(changed, mixed).all(), "all that changed are there"
    assert np.isin(labelled[: int(SHARE * MOST)], mixed).all(), "labelled ones up to their share"
    assert np.isin(labelled, mixed).sum() < 0.3 * MOST
    grown = drawn(np.arange(0, 1_010_000, 2))
    assert np.isin(sample, grown).mean() > 0.98, "few leave when the graph grows"
    assert np.isin(sample, mixed).sum() >= MOST - changed.size - int(SHARE * MOST)
