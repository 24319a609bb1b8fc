"""Who gave a label and when; people who agree, and people who do not."""

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphfcl import GraphClassifier, InputError
from graphfcl.production.labels.history import change_text
from graphfcl.production.labels.statements import Statement, Support
from tests.production.models import copy_of, fitted, members, same_answers, with_parts

EIGHT, NINE = members("class-08"), members("class-09")


def support(node: Any, name: str, by: str = "", when: str = "", place: str = "here", **kept: str) -> Support:
    return Support(node, name, place, Statement.of(by, when, kept, place))


def rows(model: GraphClassifier, *nodes: Any) -> list[tuple[Any, ...]]:
    found = model.label_columns(list(nodes))
    return list(zip(*(values.tolist() for values in found.values()), strict=True))


def test_who_and_when_are_kept_with_a_label(model: GraphClassifier, tmp_path: Path) -> None:
    when = datetime.datetime(2026, 11, 16, 9, 30, tzinfo=datetime.UTC)
    model.learn({"eight": EIGHT[:3]}, by=" ann ", when=when)
    model.learn_listed([support(NINE[0], "nine", "bob", "today", colour="red"), support(NINE[1], "nine")])
    labels = {
        EIGHT[0]: (EIGHT[0], "eight", "support", "ann", "2026-11-16T09:30:00+00:00", ""),
        NINE[0]: (NINE[0], "nine", "support", "bob", "today", "red"),
        NINE[1]: (NINE[1], "nine", "support", "", "", ""),
    }
    assert sorted(rows(model, *labels)) == sorted(labels.values())
    said = {"by": "bob", "when": "today", "kept": {"colour": "red"}}
    assert model.history[-1]["statements"] == [{"node": NINE[0], "class": "nine", **said}]
    model.save(tmp_path / "m")
    kept = GraphClassifier.load(tmp_path / "m")
    assert sorted(rows(kept, *labels)) == sorted(labels.values())
    assert list(kept.label_columns()) == ["node", "class", "part", "by", "when", "colour"]
    assert len(kept.label_columns()["node"]) == kept.label_store_.nodes.size
    kept.unlearn([NINE[0]])
    assert rows(kept, NINE[0]) == []
    kept.learn({"nine": [NINE[0]]})
    assert [row[:5] for row in rows(kept, NINE[0])] == [(NINE[0], "nine", "support", "", "")]
    kept.remove_nodes([EIGHT[0]])
    assert kept.label_store_.statements.keys() == set(kept.graph_.numbers_of(EIGHT[1:3]).tolist())


def test_two_who_agree_give_one_label(model: GraphClassifier) -> None:
    once = copy_of(model).learn({"eight": EIGHT[:5]})
    model.learn_listed(
        [support(node, "eight", who, place=f"{who} {node}") for node in EIGHT[:5] for who in ("ann", "bob")]
    )
    same_answers(model, once)
    assert [row[3] for row in rows(model, EIGHT[0])] == ["ann", "bob"]
    answers = model.predict_proba()
    model.learn({"eight": EIGHT[:2]}, by="carl")
    assert [row[3] for row in rows(model, EIGHT[0])] == ["ann", "bob", "carl"]
    assert model.history[-1]["confirmed"] == EIGHT[:2]
    np.testing.assert_array_equal(model.predict_proba(), answers)
    assert (model.label_store_.nodes == model.graph_.numbers_of([EIGHT[0]])[0]).sum() == 1
    for who in ("carl", ""):
        model.learn({"eight": EIGHT[:1]}, by=who)
        assert model.history[-1]["unchanged"] == EIGHT[:1]
        assert model.history[-1]["supports"] == {}
        assert "unchanged: " in change_text(model.history[-1])
        assert [row[3] for row in rows(model, EIGHT[0])] == ["ann", "bob", "carl"]
    np.testing.assert_array_equal(model.predict_proba(), answers)
    labelled = members("class-00")[0]
    model.learn({"class-00": [labelled], "eight": EIGHT[5:6]}, by="ann")  # a label of the fit, and a new one
    assert [row[2:4] for row in rows(model, labelled)] in ([("train", "ann")], [("validation", "ann")])
    for place, pair in ((6, ("ann", "ann")), (7, ("ann", "")), (8, ("", "ann"))):
        model.learn_listed([support(EIGHT[place], "eight", who) for who in pair])
        assert [row[3] for row in rows(model, EIGHT[place])] == ["ann"]
        assert model.history[-1]["supports"] == {"eight": [EIGHT[place]]}


def test_a_conflict_names_both_people_and_both_classes(model: GraphClassifier) -> None:
    with pytest.raises(InputError) as refused:
        model.learn_listed(
            [support(EIGHT[0], "eight", "ann", "monday"), support(EIGHT[0], "nine", "bob", place="b.csv")]
        )
    assert "b.csv: node" in str(refused.value)
    assert "is labelled 'eight' in here (by ann, monday), here it is 'nine' (by bob)" in str(refused.value)
    model.learn({"eight": EIGHT[:30]}, by="ann", when="monday")
    before = model.predict_proba()
    with pytest.raises(InputError) as refused:
        model.learn({"nine": [*EIGHT[:30], NINE[0]]}, by="bob")
    message = str(refused.value)
    for node in EIGHT[:30]:
        assert f"node '{node}' is labelled 'eight' already (by ann, monday), here it is 'nine' (by bob)" in message
    assert "keep or replace" in message
    assert "nothing was learned" in message
    np.testing.assert_array_equal(model.predict_proba(), before)
    with pytest.raises(InputError, match="on_conflict is 'mine': choose one of refuse, keep, replace"):
        model.learn({"nine": EIGHT[:1]}, on_conflict="mine")


@pytest.mark.parametrize("method", ["proto-gcn", "anchor", "finetune"])
def test_a_conflict_is_settled_as_it_is_asked_for(method: str) -> None:
    model = fitted(method).learn({"eight": EIGHT[:5]}, by="ann")
    ann, bob = (Statement(name).as_json() for name in ("ann", "bob"))
    said = {"node": EIGHT[4], "label": "eight", "statements": [ann], "new_label": "nine", "new_statements": [bob]}
    kept = copy_of(model).learn({"nine": [EIGHT[4], *NINE[:4]]}, by="bob", on_conflict="keep")
    assert kept.history[-1]["conflicts"] == [said]
    assert kept.history[-1]["on_conflict"] == "keep"
    assert [row[1:4] for row in rows(kept, EIGHT[4])] == [("eight", "support", "ann")]
    same_answers(kept, copy_of(model).learn({"nine": NINE[:4]}))
    replaced = copy_of(model).learn({"nine": [EIGHT[4], *NINE[:4]]}, by="bob", on_conflict="replace")
    assert replaced.history[-1]["conflicts"] == [said]
    assert replaced.history[-1]["on_conflict"] == "replace"
    assert [row[1:4] for row in rows(replaced, EIGHT[4])] == [("nine", "support", "bob")]
    assert replaced.history[-1]["exact"] == (method != "finetune")
    if method != "finetune":
        never = fitted(method).learn({"eight": EIGHT[:4]}).learn({"nine": [EIGHT[4], *NINE[:4]]})
        same_answers(replaced, never, 1e-6)


def test_a_class_that_loses_its_last_label_to_another_is_retired(model: GraphClassifier) -> None:
    model.learn({"eight": EIGHT[:2]}, by="ann")
    model.learn({"acht": EIGHT[:2]}, by="bob", on_conflict="replace")
    assert "eight" not in model.classes_
    assert "acht" in model.classes_
    assert model.history[-1]["retired"] == ["eight"]
    only_kept = len(model.history)
    model.learn({"neun": EIGHT[:2]}, by="carl", on_conflict="keep")
    assert "neun" not in model.classes_
    assert len(model.history) == only_kept + 1


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ({"by": "a" * 201}, "longer than 200 characters"),
        ({"by": "a\x1b[2Jb"}, r"U\+001B"),
        ({"when": "1" * 101}, "longer than 100 characters"),
        ({"kept": {"note": "x" * 1001}}, "longer than 1,000 characters"),
        ({"kept": {str(number): "x" for number in range(21)}}, "at most 20"),
    ],
)
def test_statements_have_limits(statement: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=f"^here: .*{words}"):
        Statement.of(**{"by": "", "when": "", "kept": {}, **statement}, place="here")


WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf", "Zl", "Zp"]), max_size=5)


@given(st.lists(st.builds(Statement, WORDS, WORDS, st.lists(st.tuples(WORDS, WORDS), max_size=2).map(dict).map(
    lambda kept: tuple(kept.items()))), max_size=3))  # fmt: skip
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_statements_come_back_from_files(start: GraphClassifier, statements: list[Statement]) -> None:
    number = int(start.label_store_.nodes[0])
    kept = start.label_store_.with_statements({number: tuple(statements)} if statements else {})
    model = with_parts(start, label_store=kept)
    assert copy_of(model).label_store_.statements == model.label_store_.statements


@pytest.mark.parametrize(("on_conflict", "first"), [("keep", True), ("replace", False)])
def test_supports_that_contradict_each_other_are_settled_like_those_that_contradict_the_model(
    on_conflict: str, first: bool
) -> None:
    """As if they were given one after the other, also if a name has a comma."""
    supports = [
        support(EIGHT[0], "eight", "Lee, Ann"),
        support(EIGHT[0], "nine", "bob"),
        *(support(node, "eight", "Lee, Ann") for node in EIGHT[1:4]),
        *(support(node, "nine", "bob") for node in NINE[:4]),
    ]
    model = fitted("proto-gcn").learn_listed(supports, on_conflict=on_conflict)
    entry = model.history[-1]
    (conflict,) = entry["conflicts"]
    assert entry["on_conflict"] == on_conflict
    assert (conflict["node"], conflict["label"], conflict["new_label"]) == (EIGHT[0], "eight", "nine")
    assert [each["by"] for each in (*conflict["statements"], *conflict["new_statements"])] == ["Lee, Ann", "bob"]
    assert [row[1:4] for row in rows(model, EIGHT[0])] == [
        ("eight", "support", "Lee, Ann") if first else ("nine", "support", "bob")
    ]
    settled = {"eight": EIGHT[:4], "nine": NINE[:4]} if first else {"nine": [EIGHT[0], *NINE[:4]], "eight": EIGHT[1:4]}
    same_answers(model, fitted("proto-gcn").learn(settled))


def test_a_support_that_agrees_with_the_model_confirms_it_beside_one_that_does_not(model: GraphClassifier) -> None:
    """In either order; what contradicts the label is kept out, or would replace it and be replaced again."""
    model.learn({"eight": EIGHT[:3]}, by="zoe")
    for on_conflict in ("keep", "replace"):
        for pair in (("nine", "ann"), ("eight", "bob")), (("eight", "bob"), ("nine", "ann")):
            taught = copy_of(model).learn_listed([support(EIGHT[0], *each) for each in pair], on_conflict=on_conflict)
            if on_conflict == "replace" and pair[1][0] == "nine":
                assert [row[1:4] for row in rows(taught, EIGHT[0])] == [("nine", "support", "ann")]
                continue
            assert [row[1:4] for row in rows(taught, EIGHT[0])] == [
                ("eight", "support", "zoe"),
                ("eight", "support", "bob"),
            ]
            same_answers(taught, model)
