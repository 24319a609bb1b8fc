"""Labels and recall of classes over the changes of a model."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphfcl import GraphClassifier, InputError, ModelFolder
from graphfcl.production.labels.class_curves import class_curves, labels_text
from tests.cli.command import graphfcl_inside
from tests.production.models import copy_of, fitted, members


def entry(version: int, what: str, recalls: dict[str, float] | None = None, **rest: Any) -> dict[str, Any]:
    accuracy = {} if recalls is None else {"accuracy": {"classes": recalls}}
    return {"version": version, "when": f"day {version}", "what": what, **accuracy, **rest}


LIFE = [
    entry(1, "fit", {"a": 0.9, "b": 0.8}, label_counts={"a": 40, "b": 30}),
    entry(2, "learn", {"a": 0.9, "b": 0.8}, label_counts={"c": 1}),
    entry(3, "learn", {"a": 0.8, "b": 0.8, "c": 0.5}, label_counts={"c": 4}),
    entry(4, "rename", {"a": 0.8, "b": 0.8, "d": 0.5}, label_counts={"c": 0, "d": 4}, **{"from": "c", "to": "d"}),
    entry(5, "learn", {"a": 0.7, "b": 0.8, "d": 0.6}, label_counts={"d": 9}),
    entry(6, "retire", {"a": 0.9, "d": 0.6}, label_counts={"b": 0}),
]


def points(entries: list[dict[str, Any]], name: str) -> list[tuple[int | None, int, float | None]]:
    return [(each.version, each.labels, each.recall) for each in class_curves(entries)[name]]


def test_points_follow_a_class_through_a_life() -> None:
    assert list(class_curves(LIFE)) == ["a", "d"]
    assert points(LIFE, "a") == [(1, 40, 0.9)]
    assert points(LIFE[:5], "a") == [(1, 40, 0.9), (5, 40, 0.7)], "the recall as it was measured last"
    assert points(LIFE, "d") == [(2, 1, None), (3, 4, 0.5), (5, 9, 0.6)]
    back = entry(7, "rollback", LIFE[2]["accuracy"]["classes"], to=3)
    assert points([*LIFE, back], "c") == [(2, 1, None), (3, 4, 0.5)]
    assert points([*LIFE, back], "b") == [(1, 30, 0.8)]


def test_a_change_shows_the_classes_that_it_taught() -> None:
    assert [labels_text(each) for each in LIFE] == ["", "c (1): not measured", "c (4): 50.0", "", "d (9): 60.0", ""]
    many = entry(7, "learn", {}, label_counts={f"class {at}": 1000 for at in range(1000)})
    assert labels_text(many).endswith("class 2 (1,000): not measured, 997 more")
    assert labels_text(entry(8, "learn", label_counts=["x"])) == "", "an entry that graphfcl did not write"


def counted(entries: list[dict[str, Any]]) -> dict[str, int]:
    curves = class_curves(entries)
    return {name: each[-1].labels for name, each in curves.items()}


def stored(model: GraphClassifier) -> dict[str, int]:
    labels = model.label_columns()
    taught = labels["class"][labels["part"] != "validation"]
    return dict(zip(*(each.tolist() for each in np.unique(taught.astype(str), return_counts=True)), strict=True))


def test_the_history_counts_labels_through_every_change(tmp_path: Path) -> None:
    model, eight, nine = fitted(), members("class-08"), members("class-09")
    changes = [
        lambda: model,
        lambda: model.learn({"eight": eight[:4], "class-00": eight[4:5]}),
        lambda: model.learn({"eight": eight[4:6], "nine": nine[:3]}, on_conflict="replace"),
        lambda: model.learn({"nine": nine[:3]}, by="ann"),
        lambda: model.unlearn(eight[:1]),
        lambda: model.rename("eight", "8"),
        lambda: model.remove_nodes(nine[:1]),
        lambda: model.merge("nine", "class-01"),
        lambda: model.retire("class-02"),
        lambda: model.refit(anyway=True),
    ]
    for change in changes:
        change()
        assert counted(list(model.history)) == stored(model), model.history[-1]["what"]
    assert "label_counts" not in model.history[3], "it taught nothing new"
    model.save(tmp_path / "m")
    model.learn({"8": eight[10:12]}).save(tmp_path / "m")
    model.wait()
    folder = ModelFolder(tmp_path / "m")
    for change in (lambda: folder.rollback(1), lambda: folder.rollback(2), lambda: folder.erase(eight[10:11])):
        change()
        assert counted(folder.history()) == stored(folder.load()), folder.history()[-1]["what"]


def test_the_curve_of_one_class(start: GraphClassifier, tmp_path: Path) -> None:
    model, eight = copy_of(start), members("class-08")
    for low, high in ((0, 1), (1, 4), (4, 9)):
        model.learn({"eight": eight[low:high]})
    model.save(tmp_path / "m")
    model.wait()
    curve = model.class_history("eight")
    assert [each.labels for each in curve] == [1, 4, 9]
    recalls = [each["accuracy"]["classes"].get("eight") for each in model.history[1:]]
    assert [each.recall for each in curve] == recalls
    assert recalls[0] is None
    shown = graphfcl_inside("history", tmp_path / "m", "--class", "eight").out
    assert [line.split()[2:] for line in shown.splitlines()[3:6]] == [
        ["1", "not", "measured"],
        ["4", f"{100 * recalls[1]:.1f}"],
        ["9", f"{100 * recalls[2]:.1f}"],
    ]
    with pytest.raises(InputError, match="no class 'eigth': did you mean 'eight'"):
        model.class_history("eigth")


def test_many_versions_of_many_classes_take_little_time() -> None:
    recalls = {f"class {at}": 0.5 for at in range(1000)}
    first = entry(1, "fit", recalls, label_counts=dict.fromkeys(recalls, 50))
    names = list(recalls)
    life = [first, *(entry(at, "learn", recalls, label_counts={names[at % 7]: 50 + at}) for at in range(2, 2001))]
    started = time.process_time()
    curves = class_curves(life)
    assert time.process_time() - started < 0.5
    assert sum(map(len, curves.values())) == 1000 + 1999
