"""Ids and class names of a model: new ones are cleaned, stored ones stay, and what a user types is found."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphfcl import GraphClassifier, InputError
from graphfcl.graph.ids import NODE_ID
from graphfcl.production.graph.feature_columns import clean_new_ids
from tests.production.models import copy_of, graph_in_memory, members, with_parts

EIGHT = members("class-08")


def with_ids(model: GraphClassifier, ids: list[str]) -> GraphClassifier:
    """The same model, whose first nodes have these ids; all others are numbered texts."""
    texts = [*ids, *(f"node-{number}" for number in range(model.graph_.node_count - len(ids)))]
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    parts = model.parts()
    return GraphClassifier.from_parts(replace(parts, graph=replace(graph_in_memory(model), ids=array)))


def test_each_id_is_taken_by_itself(model: GraphClassifier) -> None:
    good = [str(node) for node in EIGHT[:20]]
    with pytest.raises(InputError) as refused:
        model.learn({"eight": [*good, "n0body"]})
    assert str(refused.value).count("is not in the graph") == 1
    assert "'n0body'" in str(refused.value)
    assert model.prediction_columns([EIGHT[0], f" {EIGHT[1]}", str(EIGHT[2])])["node"].tolist() == EIGHT[:3]
    with pytest.raises(InputError, match=r"node 'x' \(and 1 more\) is not in the graph"):
        model.predict([EIGHT[0], "x", EIGHT[1], "y"])
    with pytest.raises(InputError, match="node id 'x' is not a whole number"):
        model.add_nodes(["9000", "x"], np.zeros((2, 200)))
    model.add_nodes(["9000", 9001], np.zeros((2, 200)))
    assert model.node_ids_[-2:].tolist() == [9000, 9001]


STORED = [" a", "b ", "c\x1b[31m", "cafe\u0301", "a\t", "plain"]


def test_stored_ids_are_never_rewritten(model: GraphClassifier, tmp_path: Path) -> None:
    old = copy_of(with_ids(model, STORED))
    assert old.node_ids_[:6].tolist() == STORED
    old.learn({"eight": ["b", "café"]}, on_conflict="replace")
    old.save(tmp_path / "m")
    kept = GraphClassifier.load(tmp_path / "m")
    assert kept.node_ids_[:6].tolist() == STORED
    assert kept.prediction_columns(STORED)["node"].tolist() == STORED
    assert kept.label_columns(["b"])["node"].tolist() == ["b "]
    assert kept.history[-1]["supports"] == {"eight": ["b ", "cafe\u0301"]}
    with pytest.raises(InputError, match=r"node 'a' may be ' a' or 'a\\t'"):
        kept.predict(["a"])
    with pytest.raises(InputError, match=r"node 'b' is in the graph already \(as 'b '\)"):
        kept.add_nodes(["b"], np.zeros((1, 200)))
    kept.add_nodes([" new ", 7], np.zeros((2, 200)))
    assert kept.node_ids_[-2:].tolist() == ["new", "7"]
    assert kept.predict([7]).size == 1


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (["x", "x "], "'x ' and 'x' .*are the same id 'x'"),
        (["x", "y\x00z"], r"new node 2: .*U\+0000"),
        (["x", "\ud800"], "new node 2: .*surrogate"),
        (["x", "y" * 1001], "longer than 1,000 characters"),
        (["plain "], r"'plain ' is in the graph already \(as 'plain'\)"),
    ],
)
def test_new_ids_that_cannot_be_used(model: GraphClassifier, ids: list[str], words: str) -> None:
    old = with_ids(model, STORED)
    with pytest.raises(InputError, match=words):
        old.add_nodes(ids, np.zeros((len(ids), 200)))
    assert old.graph_.node_count == 500


@given(st.lists(st.text(st.characters() | st.sampled_from(" \te\u0301\x1b"), max_size=6), min_size=1, max_size=4))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_ids_that_are_taken_come_back_from_a_saved_model(start: GraphClassifier, texts: list[str]) -> None:
    model = with_ids(start, [])
    graph = graph_in_memory(model)
    try:
        grown, _ = graph.with_nodes(clean_new_ids(texts, graph), graph.features[: len(texts)])
    except InputError:
        return
    parts = replace(model.parts(), graph=grown)
    back = copy_of(GraphClassifier.from_parts(parts)).graph_
    taken = back.ids[-len(texts) :].tolist()
    assert all(NODE_ID.clean(text, "") == text for text in taken)
    rows = list(range(500, 500 + len(texts)))
    assert back.rows_of_ids(taken).tolist() == back.rows_of_ids(texts).tolist() == rows


def test_class_names_are_cleaned_and_found(model: GraphClassifier) -> None:
    model.learn({" café ": EIGHT[:3]})
    assert model.classes_[-1] == "café"
    model.learn({"cafe\u0301": EIGHT[3:5]})
    assert model.classes_[-1] == "café"
    model.rename("café ", "tea ")
    assert model.classes_[-1] == "tea"
    assert model.history[-1]["from"] == "café"
    with pytest.raises(InputError, match="there is a class 'class-01' already"):
        model.rename("tea", " class-01")
    with pytest.raises(InputError, match=r"'x' and 'x ' are one class once cleaned"):
        model.learn({"x": EIGHT[5:6], "x ": EIGHT[6:7]})
    for name, words in (
        ("a\x1bb", r"U\+001B"),
        ("\udc80", "surrogate"),
        ("n" * 201, "longer than 200"),
        (" ", "empty"),
    ):
        with pytest.raises(InputError, match=words):
            model.rename("tea", name)
        with pytest.raises(InputError, match=words):
            model.learn({name: EIGHT[5:6]})
    model.merge(" tea", "class-00 ")
    model.retire("class-01 ")
    assert not {"tea", "class-01"} & set(model.classes_)


def test_stored_class_names_are_never_rewritten(model: GraphClassifier) -> None:
    names = ("zero\x1b[2J", "one ", " two", "two\t", *model.label_store_.names[4:])
    old = copy_of(with_parts(model, label_store=replace(model.label_store_, names=names)))
    assert old.classes_[:4] == names[:4]
    old.learn({"zero\x1b[2J": EIGHT[:1], "one": EIGHT[1:2]})
    assert old.classes_[:4] == names[:4]
    assert len(old.classes_) == 8
    with pytest.raises(InputError, match=r"class 'two' may be ' two' or 'two\\t'"):
        old.retire("two")
    old.rename("one", "one")
    assert old.classes_[1] == "one"
    old.merge(" two", "two\t")
    assert old.classes_[2] == "two\t"
