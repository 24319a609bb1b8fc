"""Accepted labels: predictions that a person keeps, which nothing of the model depends on."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphfcl import GraphClassifier, InputError
from graphfcl.production.answers.expected_errors import expected_errors
from graphfcl.production.labels.label_store import LabelRole
from tests.production.models import fitted, members, same_answers


@pytest.fixture
def model() -> GraphClassifier:
    return fitted("sgc-ridge").learn({"class-08": members("class-08")[:5]})


def unlabelled(model: GraphClassifier) -> list[Any]:
    numbers = model.graph_.numbers_of(model.node_ids_)
    return model.node_ids_[~np.isin(numbers, model.label_store_.nodes)].tolist()


def label_of(model: GraphClassifier, node: Any) -> tuple[Any, str]:
    columns = model.label_columns([node])
    return (columns["class"][0], columns["part"][0]) if columns["class"].size else (None, "")


def test_nothing_but_the_label_changes(model: GraphClassifier, tmp_path: Path) -> None:
    before, nodes = model.snapshot(), unlabelled(model)[:12]
    predicted = model.prediction_columns(nodes)
    model.accept(nodes, by="ann", when="2026-11-19", reason="0.9 or more")
    assert [label_of(model, node)[0] for node in nodes] == predicted["class"].tolist()
    same_answers(before, model)
    assert model.calibration_ == before.calibration_
    assert model.accuracy() == before.accuracy()
    assert [each.labels for each in model.class_table()] == [each.labels for each in before.class_table()]
    row = {name: values[0] for name, values in model.label_columns(nodes[:1]).items()}
    assert (row["part"], row["by"], row["when"], row["reason"]) == ("accepted", "ann", "2026-11-19", "0.9 or more")
    entry = model.history[-1]
    assert entry["what"] == "accept"
    assert sum(entry["accepted"].values()) == 12
    assert entry["expected_errors"]["mean"] == pytest.approx(float((1 - predicted["probability"]).sum()), abs=0.01)
    model.save(tmp_path / "model")
    loaded = GraphClassifier.load(tmp_path / "model")
    same_answers(before, loaded)
    assert [label_of(loaded, node) for node in nodes] == [label_of(model, node) for node in nodes]
    model.unlearn(nodes[:7])
    model.unlearn(nodes[7:])
    assert (model.label_store_.nodes == before.label_store_.nodes).all()
    assert model.label_store_.statements == before.label_store_.statements
    same_answers(before, model)


def test_no_measurement_and_no_later_change_sees_them(model: GraphClassifier) -> None:
    """A model with accepted labels goes on as the same model without them."""
    plain, nodes = model.snapshot(), unlabelled(model)[:40]
    model.accept(nodes)
    teach = [node for node in members("class-09") if node not in nodes][:5]
    changes: list[Callable[[GraphClassifier], object]] = [
        lambda each: each.learn({"class-09": teach}),
        lambda each: each.rename("class-09", "nine"),
        lambda each: each.unlearn(teach[:2]),
        lambda each: each.merge("nine", "class-01"),
    ]
    for change in changes:
        change(plain)
        change(model)
        same_answers(plain, model)
        assert model.accuracy() == plain.accuracy()
    first, second = (each.label_issues(threshold=0.0, folds=2).to_pydict() for each in (plain, model))
    assert first == second, "they are neither disputed nor trained on"
    assert not set(nodes) & set(second["node"])
    assert (
        model.label_store_.with_role(LabelRole.ACCEPTED)[0].size,
        model.label_store_.without_accepted().nodes.size,
    ) == (
        40,
        plain.label_store_.nodes.size,
    )


def test_a_refit_keeps_them_apart(model: GraphClassifier) -> None:
    plain, nodes = model.snapshot(), unlabelled(model)[:20]
    model.accept(nodes, by="ann")
    labels = [label_of(model, node) for node in nodes]
    refits = [each.refit(anyway=True) for each in (plain, model)]
    assert refits[0].comparison == refits[1].comparison
    same_answers(plain, model)
    assert [label_of(model, node) for node in nodes] == labels
    assert model.label_columns(nodes[:1])["by"].tolist() == ["ann"]


def test_a_person_confirms_or_corrects_one(model: GraphClassifier) -> None:
    plain, (first, second, *_) = model.snapshot(), unlabelled(model)
    model.accept([first, second])
    name = label_of(model, first)[0]
    other = next(each for each in model.classes_ if each != label_of(model, second)[0])
    with pytest.raises(InputError, match="labelled"):
        model.learn({other: [second]})
    for each in (plain, model):
        each.learn({name: [first]}, by="ann")
        each.learn({other: [second]}, on_conflict="replace")
    same_answers(plain, model)
    assert [label_of(model, node) for node in (first, second)] == [(name, "support"), (other, "support")]
    assert not model.label_store_.accepted().any()
    with pytest.raises(InputError, match="has a label already"):
        model.accept([first])
    with pytest.raises(InputError, match="nothing to accept"):
        model.accept([])
    with pytest.raises(InputError, match="not in the graph"):
        model.accept(["nowhere"])


def test_a_class_that_goes_takes_them_along(model: GraphClassifier) -> None:
    columns = model.prediction_columns(unlabelled(model))
    nodes = columns["node"][columns["class"] == "class-08"].tolist()
    assert nodes
    model.accept(nodes)
    model.unlearn(members("class-08")[:5])
    assert "class-08" not in model.classes_
    assert [label_of(model, node)[0] for node in nodes] == [None] * len(nodes)


def test_expected_errors_against_draws() -> None:
    """The mean is exact; the range holds at least 95 % of the counts of independent errors."""
    random = np.random.default_rng(5)
    for size, low in ((3, 0.9), (80, 0.5), (2000, 0.97)):
        probabilities = random.uniform(low, 1, size)
        expected = expected_errors(probabilities)
        drawn = (random.random((4000, size)) > probabilities).sum(axis=1)
        assert expected.mean == pytest.approx(sum(1 - p for p in probabilities.tolist()))
        assert abs(drawn.mean() - expected.mean) < 4 * drawn.std() / np.sqrt(4000) + 1e-9
        assert ((drawn >= expected.low) & (drawn <= expected.high)).mean() >= 0.95
    assert expected_errors(np.ones(5)).as_json() == {"mean": 0.0, "low": 0, "high": 0}
