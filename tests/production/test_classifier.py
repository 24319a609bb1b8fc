"""A classifier learns, forgets, grows and answers; every change is all or nothing."""

from typing import Any

import numpy as np
import pytest

from graphfcl import GraphClassifier, InputError
from graphfcl.methods import METHODS
from tests.marks import some_first
from tests.production.models import HIDDEN, copy_of, fitted, members, same_answers, small_graph

NAMES = [method.name for method in METHODS]


@pytest.mark.parametrize("name", some_first(NAMES))
def test_any_method_can_be_behind_it(name: str) -> None:
    model = fitted(name)
    assert model.classes_ == tuple(c for c in small_graph().class_names if c not in HIDDEN)
    first, second = members("class-08"), members("class-09")
    model.learn({"eight": first[:5], "nine": second[:5]})
    assert model.classes_[-2:] == ("eight", "nine")
    probabilities = model.predict_proba(first + second)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    found = model.predict(first[5:] + second[5:])
    right = found == np.array(["eight"] * (len(first) - 5) + ["nine"] * (len(second) - 5), dtype=object)
    assert right.mean() > 0.3
    columns = model.prediction_columns(first)
    assert list(columns) == ["node", "class", "probability", "unknown_score", "unknown"]
    assert columns["node"].tolist() == first
    same_answers(copy_of(model), model, 1e-5)
    model.add_nodes([9000], np.zeros((1, 200)))
    model.add_edges([9000, 9000], [first[0], first[1]])
    fresh = copy_of(model)
    same_answers(fresh, model, 1e-4)
    model.remove_nodes([first[2]])
    model.merge("nine", "eight")
    model.retire("eight")
    assert "eight" not in model.classes_
    assert set(model.predict()) <= set(model.classes_)


def test_two_classes_of_session_0_that_are_merged_are_one() -> None:
    """The head that was trained to tell them apart is trained again."""
    model = fitted("anchor", head_share=0.5)
    before = model.predict(members("class-00"))
    assert (before == "class-00").mean() > 0.8
    model.merge("class-00", "class-01")
    assert (model.predict(members("class-00")) == "class-01").mean() > 0.8
    assert (model.predict(members("class-01")) == "class-01").mean() > 0.8
    assert model.history[-1]["exact"]


def test_learning_needs_no_forward_pass_and_asking_none(
    model: GraphClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = type(model.learner_.network.encoder)  # type: ignore[attr-defined]
    passes = []
    forward = encoder.forward

    def counted(*arguments: Any, **options: Any) -> Any:
        passes.append(1)
        return forward(*arguments, **options)

    monkeypatch.setattr(encoder, "forward", counted)
    model.predict()
    asked = len(passes)
    assert asked <= 1
    model.learn({"eight": members("class-08")[:5]})
    model.predict()
    model.prediction_columns(members("class-08"))
    assert len(passes) == asked


BAD = [
    ({"eight": []}, "has no node"),
    ({}, "nothing to learn"),
    ({"eight": ["no such node"]}, "is not in the graph"),
    ({"eight": [123456]}, "is not in the graph"),
    ({" ": "members"}, "empty class"),
    ({"eight": "members", "nine": "members"}, "is labelled 'eight' in class 'eight', here it is 'nine'"),
    ({"eight": "labelled"}, "is labelled 'class-00' already"),
]


@pytest.mark.parametrize(("supports", "message"), BAD)
def test_bad_supports_are_refused_whole(model: GraphClassifier, supports: dict[str, Any], message: str) -> None:
    good = members("class-08")[:3]
    lists = {"members": good, "labelled": members("class-00")[:1]}
    before = model.predict_proba()
    with pytest.raises(InputError, match=message):
        model.learn({name: lists[nodes] if isinstance(nodes, str) else nodes for name, nodes in supports.items()})
    np.testing.assert_array_equal(model.predict_proba(), before)
    assert "eight" not in model.classes_
    assert len(model.history) == 1


def test_a_failure_in_the_middle_changes_nothing(model: GraphClassifier, monkeypatch: pytest.MonkeyPatch) -> None:
    before, classes = model.predict_proba(), model.classes_

    def fail(*_: object) -> None:
        raise RuntimeError("no more memory")

    with monkeypatch.context() as patch:
        patch.setattr("graphfcl.production.changes.draft.Draft.finalise", fail)
        for change in (
            lambda: model.learn({"eight": members("class-08")[:5]}),
            lambda: model.add_edges([members("class-08")[0]], [members("class-00")[0]]),
            lambda: model.retire("class-00"),
            lambda: model.remove_nodes(members("class-00")[:3]),
        ):
            with pytest.raises(RuntimeError):
                change()
    assert model.classes_ == classes
    np.testing.assert_allclose(model.predict_proba(), before, rtol=1e-6)
    np.testing.assert_allclose(copy_of(model).predict_proba(), before, rtol=1e-5, atol=1e-6)


KEEPS_NODES = ["anchor", "sgc-ridge", "proto-gcn", "gpn", "hag-meta"]


@pytest.mark.parametrize("name", KEEPS_NODES)
def test_what_is_taken_back_was_never_seen(name: str) -> None:
    model = fitted(name, **({"fine_tuning_steps": 0} if name == "hag-meta" else {}))
    eight, nine = members("class-08"), members("class-09")
    never = copy_of(model).learn({"eight": eight[:5]})
    once = copy_of(model).learn({"eight": eight[:6], "nine": nine[:5]})
    once.unlearn([eight[5]])
    once.retire("nine")
    assert all(entry["exact"] for entry in once.history[-2:])
    same_answers(once, never, 1e-6)
    together = copy_of(model).learn({"eight": [*eight[:5], *nine[:5]]})
    merged = copy_of(model).learn({"eight": eight[:5], "nine": nine[:5]}).merge("nine", "eight")
    same_answers(merged, together, 1e-6)
    emptied = copy_of(model).learn({"nine": nine[:1]}).unlearn(nine[:1])
    assert emptied.history[-1]["retired"] == ["nine"]
    same_answers(emptied, model, 1e-6)


def test_removed_nodes_and_edges_were_never_there(model: GraphClassifier) -> None:
    eight = members("class-08")
    model.learn({"eight": eight[:5]})
    grown = copy_of(model)
    grown.grow(nodes=([9000, 9001], np.ones((2, 200)), None), edges=([9000, 9001], [eight[0], 9000], None))
    grown.learn({"eight": [9000]})
    grown.remove_edges([9000], [eight[0]])
    grown.remove_nodes([9000, 9001])
    same_answers(grown, model, 1e-5)


def test_after_growth_too_what_is_taken_back_was_never_seen() -> None:
    eight, nine = members("class-08"), members("class-09")
    model = fitted("anchor").learn({"eight": eight[:5]})
    never = copy_of(model)
    model.learn({"nine": nine[:5]})
    for each in (never, model):
        each.add_edges(eight[:3], nine[:3])
    model.unlearn(nine[:5])
    assert model.history[-1]["exact"]
    same_answers(model, never, 1e-5)


def test_a_class_is_renamed_and_nothing_else(model: GraphClassifier) -> None:
    before = model.predict_proba()
    model.rename("class-00", "zero")
    np.testing.assert_array_equal(model.predict_proba(), before)
    assert model.classes_[0] == "zero"
    with pytest.raises(InputError, match="already"):
        model.rename("zero", "class-01")
    with pytest.raises(InputError, match="did you mean 'class-01'"):
        model.retire("class01")


def test_a_retired_name_can_be_learned_again(model: GraphClassifier) -> None:
    eight = members("class-08")
    model.learn({"eight": eight[:5]}).retire("eight")
    model.learn({"eight": eight[:5]})
    assert model.classes_[-1] == "eight"
    assert (model.predict(eight[5:]) == "eight").mean() > 0.3


def test_an_interrupted_change_changes_nothing(model: GraphClassifier, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    before = model.predict_proba()
    with monkeypatch.context() as patch:
        patch.setattr("graphfcl.production.changes.draft.Draft.finalise", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.learn({"eight": members("class-08")[:5]})
    assert "eight" not in model.classes_
    np.testing.assert_allclose(model.predict_proba(), before, rtol=1e-6)


def test_it_is_not_fitted_twice_nor_asked_before() -> None:
    empty = GraphClassifier()
    with pytest.raises(InputError, match="not fitted"):
        empty.predict()
    with pytest.raises(InputError, match="has no class 'nothing'"):
        empty.fit(small_graph(), hide_classes=["nothing"])
    with pytest.raises(InputError, match="no method"):
        GraphClassifier("hag").fit(small_graph())
    model = fitted()
    with pytest.raises(InputError, match="is fitted"):
        model.fit(small_graph())
    with pytest.raises(InputError, match="is not in the graph"):
        model.predict(["nobody"])
