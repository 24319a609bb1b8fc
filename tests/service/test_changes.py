"""What the history tells about classes that are gone."""

from typing import Any

from graphfcl.service.changes import Change, ChangeLog, gone_classes, sessions_of


def changes(*entries: dict[str, Any]) -> list[Change]:
    return [Change.of({"version": number, "when": "", **entry}) for number, entry in enumerate(entries, 1)]


FIT = {"what": "fit", "graph": "g", "classes": ["a", "b", "c"], "labelled": 9}
LEARN = {"what": "learn", "supports": {"d": [1]}, "new": ["d"]}


def test_what_became_of_names() -> None:
    rename = {"what": "rename", "from": "d", "to": "e"}
    merge = {"what": "merge", "from": "e", "into": "a"}
    assert gone_classes(changes(FIT, LEARN)) == {}
    assert gone_classes(changes(FIT, LEARN, rename)) == {"d": "is called 'e' since version 3"}
    gone = gone_classes(changes(FIT, LEARN, rename, merge, {"what": "retire", "class": "b"}))
    assert gone["e"] == "was merged into 'a' in version 4"
    assert gone["b"] == "was retired in version 5"
    assert sessions_of(changes(FIT, LEARN, rename)) == {"d": 2, "e": 2}
    unlearn = {"what": "unlearn", "nodes": [1], "retired": ["d"]}
    assert "lost its last label" in gone_classes(changes(FIT, LEARN, unlearn))["d"]
    assert gone_classes(changes(FIT, LEARN, unlearn, LEARN)) == {}, "taught again"


def test_what_was_rolled_back_does_not_count() -> None:
    retire, back = {"what": "retire", "class": "b"}, {"what": "rollback", "to": 1}
    assert "b" in gone_classes(changes(FIT, retire))
    assert gone_classes(changes(FIT, retire, back)) == {}


def test_entries_that_say_anything() -> None:
    """A folder may come from anybody."""
    for entry in (
        {"what": "learn"},
        {"what": "learn", "supports": 7},
        {"what": "rename", "from": []},
        {"what": "x" * 999},
    ):
        (change,) = changes(entry)
        assert len(change.as_json()["what"]) <= 401


def test_old_keys_are_forgotten() -> None:
    log = ChangeLog(keys=2)
    for number in range(1, 4):
        log.add({"version": number, "when": "", **LEARN, "request": {"key": f"k{number}", "hash": "h"}})
    log.add({"version": 4, "when": "", **LEARN, "request": "nonsense"})
    assert log.completed.get("k1") is None
    completed = log.completed.get("k3")
    assert completed is not None
    assert (completed.fingerprint, completed.answer["version"]) == ("h", 3)
