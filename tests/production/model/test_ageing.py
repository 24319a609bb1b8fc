"""What a model says of itself, and of its age."""

from pathlib import Path
from typing import Any

import pytest

from graphfcl import GraphClassifier, InputError
from graphfcl.production.graph.growing_graph import GrowingGraph
from graphfcl.production.labels.history import lineage
from graphfcl.production.model.info import Sign, signs_in_history, signs_of_age
from graphfcl.production.model.parts import Configuration
from tests.production.models import copy_of, members

CONFIGURATION = Configuration("proto-gcn", {}, 2, 5, 0, 0.05)


def entry(what: str, version: int, **rest: Any) -> dict[str, Any]:
    return {"what": what, "version": version, "when": "2026-11-16T00:00:00+00:00", **rest}


def accuracy(unknown: float = 0.05, confidence: float = 0.8, **recalls: float) -> dict[str, Any]:
    return {"classes": recalls, "unknown": unknown, "confidence": confidence}


def sign(entries: list[dict[str, Any]], words: str) -> Sign:
    found = [each for each in signs_in_history(entries, CONFIGURATION) if words in each.what]
    assert len(found) == 1
    return found[0]


FIT = entry("fit", 1, words=100, unknown_words=5, accuracy=accuracy(a=0.9, b=0.8))


@pytest.mark.parametrize(
    ("words", "later", "over"),
    [
        ("unknown", entry("grow", 2, accuracy=accuracy(unknown=0.09)), False),
        ("unknown", entry("grow", 2, accuracy=accuracy(unknown=0.11)), True),
        ("vocabulary", entry("grow", 2, words=20, unknown_words=3), False),
        ("vocabulary", entry("grow", 2, words=20, unknown_words=4), True),
        ("lost", entry("learn", 2, accuracy=accuracy(a=0.86, b=0.76)), False),
        ("lost", entry("learn", 2, accuracy=accuracy(a=0.84, b=0.99)), True),
        ("probability", entry("learn", 2, accuracy=accuracy(confidence=0.72)), False),
        ("probability", entry("learn", 2, accuracy=accuracy(confidence=0.69)), True),
        ("probability", entry("learn", 2, accuracy=accuracy(confidence=0.91)), True),
    ],
)
def test_each_sign_has_its_limit(words: str, later: dict[str, Any], over: bool) -> None:
    assert sign([FIT, later], words).over is over
    again = entry("refit", 3, words=100, unknown_words=5, accuracy=later.get("accuracy"))
    assert not sign([FIT, later, again], words).over  # it starts again


def test_what_a_rollback_undid_is_no_sign() -> None:
    worse = entry("grow", 2, words=20, unknown_words=20, accuracy=accuracy(unknown=0.5, a=0.1, b=0.1))
    back = entry("rollback", 3, to=1, accuracy=FIT["accuracy"])
    assert [each["version"] for each in lineage([FIT, worse, back])] == [1, 3]
    assert all(each.over for each in signs_in_history([FIT, worse], CONFIGURATION)[:3])
    assert not any(each.over for each in signs_in_history([FIT, worse, back], CONFIGURATION))
    again = entry("rollback", 4, to=2, accuracy=worse["accuracy"])
    assert [each["version"] for each in lineage([FIT, worse, back, again])] == [1, 2, 4]
    assert sign([FIT, worse, back, again], "vocabulary").over


def test_a_class_is_followed_by_its_name_and_starts_anew_after_it_was_gone() -> None:
    renamed = entry("rename", 2, **{"from": "a", "to": "x"}, accuracy=accuracy(x=0.9, b=0.8))
    assert "x -40.0" in sign([FIT, renamed, entry("grow", 3, accuracy=accuracy(x=0.5, b=0.8))], "lost").figure
    gone = entry("retire", 2, accuracy=accuracy(b=0.8))
    assert not sign([FIT, gone, entry("learn", 3, accuracy=accuracy(a=0.5, b=0.8))], "lost").over


def test_histories_without_the_numbers_ask_for_nothing() -> None:
    old = [entry("fit", 1, accuracy={"classes": {"a": 0.9}}), entry("damaged", 2), entry("learn", 3)]
    found = signs_of_age(old, CONFIGURATION, label_store=None, unknown=None)
    assert not any(each.over for each in found)
    assert [each.value for each in found] == [None, 0.0, None]


@pytest.mark.parametrize(
    "wrong", [{"words": "x", "unknown_words": 1}, {"accuracy": {"unknown": "x"}}, {"accuracy": {"classes": [1]}}]
)
def test_a_history_that_makes_no_sense_is_one_sentence(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="history"):
        signs_in_history([entry("fit", 1, **wrong), entry("learn", 2, accuracy=accuracy(a=0.5))], CONFIGURATION)


def test_info_of_a_model(start: GraphClassifier) -> None:
    model = copy_of(start)
    plain = model.info()
    assert (plain.version, plain.bytes_on_disk) == (None, None)
    assert (plain.nodes, plain.edges) == (500, model.graph_.edge_count)
    assert (plain.classes, plain.few_shot) == (8, 0)
    assert not plain.refit_due
    assert plain.verdict == "no refit is due"
    model.learn({"eight": members("class-08")[:6]})
    assert not model.info().refit_due
    model.learn({"eight": members("class-08")[6:7]})
    found = model.info()
    assert found.few_shot == 1
    assert found.verdict == "a refit is due (few-shot classes with 7 labels or more)"
    assert "eight 7" in found.signs[-1].figure
    assert found.as_json()["refit_due"] is True
    model.refit(anyway=True)
    assert not model.info().refit_due
    assert model.info().fitted == model.history[-1]["when"]


def test_each_change_says_how_sure_the_model_is_and_what_it_calls_unknown(start: GraphClassifier) -> None:
    model = copy_of(start).learn({"eight": members("class-08")[:5]})
    measured = model.history[-1]["accuracy"]
    assert measured["unknown"] == pytest.approx(model.prediction_columns()["unknown"].mean(), abs=1e-4)
    validation = model.label_columns()["node"][model.label_columns()["part"] == "validation"].tolist()
    assert measured["confidence"] == pytest.approx(model.predict_proba(validation).max(axis=1).mean(), abs=1e-4)


def test_info_reads_little_and_computes_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "cache.sqlite").unlink()
    monkeypatch.setattr(GrowingGraph, "all_scores", lambda *_: pytest.fail("a forward pass"))
    model = GraphClassifier.load(folder)
    found = model.info()
    assert model._state is not None
    assert not {"graph", "learner"} & set(vars(model._state.parts))
    monkeypatch.undo()
    whole = GraphClassifier.load(folder)
    assert (found.nodes, found.edges) == (whole.graph_.node_count, whole.graph_.edge_count)
    assert found.version == 3
    assert found.bytes_on_disk == {"versions": (folder / "model.sqlite").stat().st_size, "cache": 0}
