"""Integer classes stay integers wherever a class is taken or returned, also after saving and loading."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphfcl import (
    Graph,
    GraphClassifier,
    InputError,
    Protocol,
    build_graph,
    from_networkx,
    from_pyg,
    make_stream,
    read_npz,
    read_tables,
    to_networkx,
    to_pyg,
    write_npz,
    write_tables,
)
from graphfcl.graph.folder import build_folder
from graphfcl.graph.folder.source import of_graph
from graphfcl.production.labels.label_store import LabelStore
from tests.production.models import small_graph

CLASSES = np.array([0, 3, 7, 12, 20, 21, 22, 40, 100, 2**60])
HIDDEN = 2**60


def truth() -> np.ndarray:
    return CLASSES[small_graph().labels]


def graph_of(labels: Any, **options: Any) -> Graph:
    graph = small_graph()
    return build_graph(graph.adjacency, graph.features, labels, node_ids=graph.node_ids, **options)


@pytest.fixture(scope="module")
def fitted() -> GraphClassifier:
    return GraphClassifier("sgc-ridge").fit(graph_of(truth()), hide_classes=[HIDDEN])


@pytest.fixture
def model(fitted: GraphClassifier) -> GraphClassifier:
    return fitted.snapshot()


def members(label: int, count: int = 5) -> list[Any]:
    return small_graph().node_ids[truth() == label][:count].tolist()


def is_integers(labels: Any) -> bool:
    return all(type(label) is int for label in labels)


# Predictions have the type that fit received


@pytest.mark.parametrize(
    "given_as",
    [
        lambda y: y,
        lambda y: y.tolist(),
        lambda y: y.astype(np.uint64),
        lambda y: y.astype(object),
        lambda y: [None if label == HIDDEN else np.int64(label) for label in y],
    ],
    ids=["int64", "list", "uint64", "objects", "numpy integers and None"],
)
def test_integers_in_integers_out(given_as: Callable[[np.ndarray], Any]) -> None:
    y = truth()
    model = GraphClassifier("sgc-ridge").fit(graph_of(given_as(y)))
    found = model.predict()
    assert found.dtype == np.int64
    assert is_integers(model.classes_)
    assert (found == y).mean() == model.score(model.node_ids_, y) > 0.7


def test_floats_with_gaps_and_truth_values_are_integers() -> None:
    y = truth() % 997
    floats = np.where(np.arange(y.size) % 7 == 0, np.nan, y)
    model = GraphClassifier("sgc-ridge").fit(graph_of(floats))
    assert model.predict().dtype == np.int64
    assert (model.predict() == y).mean() > 0.8
    truths = small_graph().labels > 4
    model = GraphClassifier("sgc-ridge").fit(graph_of(truths))
    assert model.classes_ == (0, 1)
    assert (model.predict() == truths).mean() == model.score(model.node_ids_, truths) > 0.8


def test_texts_in_texts_out() -> None:
    y = truth().astype(str)
    model = GraphClassifier("sgc-ridge").fit(graph_of(y))
    assert model.predict().dtype == object
    assert (model.predict() == y).mean() > 0.8
    model.learn({7: members(7, 2)}, on_conflict="keep")
    assert "7" in model.classes_
    assert 7 not in model.classes_


def test_class_names_are_the_classes() -> None:
    names = [f"class-{number}" for number in range(10)]
    assert GraphClassifier("sgc-ridge").fit(graph_of(small_graph().labels, class_names=names)).classes_[0] == "class-0"
    whole = GraphClassifier("sgc-ridge").fit(graph_of(small_graph().labels, class_names=CLASSES.tolist()))
    assert (whole.predict() == truth()).mean() > 0.8


# Everything that takes or returns a class


def test_every_verb_takes_and_returns_integers(model: GraphClassifier) -> None:
    nodes = model.node_ids_[:4]
    model.learn({HIDDEN: members(HIDDEN)})
    assert model.classes_[-1] == HIDDEN
    assert model.history[-1]["new"] == [HIDDEN]
    model.learn({np.int64(5): members(HIDDEN, 8)[5:]}, on_conflict="replace").rename(5, 6)
    assert (model.history[-1]["from"], model.history[-1]["to"]) == (5, 6)
    model.merge(6, HIDDEN).retire(0)
    assert model.history[-1]["class"] == 0
    assert model.history[-2]["into"] == HIDDEN
    assert is_integers(model.classes_)
    assert is_integers(label for row in model.prediction_sets(nodes, coverage=0.999) for label in row)
    columns = model.prediction_columns(nodes, top=2, coverage=0.9)
    assert columns["class"].dtype == columns["class_2"].dtype == np.int64
    assert model.label_columns()["class"].dtype == np.int64
    assert is_integers(label for each in model.suggest(3) for label in each.classes)
    assert is_integers(label for each in model.groups(2) for label in each.neighbours)
    assert is_integers(each.name for each in model.card().classes)
    assert str(model.card())
    assert is_integers(each.name for each in model.refit().comparison.classes)
    group = model.groups(1)
    if group:
        assert model.name_group(group[0], 55).classes_[-1] == 55
    model.unlearn(members(HIDDEN, 8))
    assert HIDDEN not in model.classes_
    assert model.history[-1]["retired"] == [HIDDEN]


def test_an_explanation_names_integers() -> None:
    model = GraphClassifier("anchor").fit(graph_of(truth()))
    assert is_integers(each["class"] for each in model.explain(model.node_ids_[0])["classes"])


@given(label=st.sampled_from(CLASSES[:-1].tolist()), data=st.data())
@settings(max_examples=30, deadline=None)
def test_all_spellings_of_an_integer_are_one_class(label: int, data: st.DataObject) -> None:
    label_store = LabelStore.of(
        (np.zeros(0, int),) * 2, (np.zeros(0, int),) * 2, [str(each) for each in CLASSES], integers=True
    )
    spelling = data.draw(
        st.sampled_from(
            [
                label,
                np.int64(label),
                np.uint64(label),
                float(label),
                str(label),
                f" {label} ",
                f"{label}.0",
                str(label).encode(),
            ]
        )
    )
    name = label_store.resolve(spelling)
    assert label_store.label(name) == label
    assert label_store.retired(spelling).find(label) is None


@given(number=st.integers(-(2**63), 2**63 - 1))
@settings(max_examples=50, deadline=None)
def test_an_integer_survives_its_name(number: int) -> None:
    label_store = LabelStore.of((np.zeros(0, int),) * 2, (np.zeros(0, int),) * 2, [str(number)], integers=True)
    assert label_store.labels == (number,)
    assert label_store.label_array().tolist() == [number]
    assert label_store.find(number) == label_store.find(str(number)) == str(number)


def test_a_later_class_may_have_a_name(model: GraphClassifier, tmp_path: Path) -> None:
    model.learn({"shoes": members(HIDDEN)})
    assert model.classes_[-1] == "shoes"
    found = model.predict()
    assert found.dtype == object
    assert {type(label) for label in found} == {int, str}
    assert (found == truth()).mean() > 0.7
    assert model.predictions(model.node_ids_[:3], coverage=0.9)["class"].to_pylist()  # a column has one type: texts
    model.save(tmp_path / "model")
    assert GraphClassifier.load(tmp_path / "model").classes_ == model.classes_


@pytest.mark.parametrize(
    ("misuse", "says"),
    [
        (lambda model: model.learn({-1: members(HIDDEN)}), "the class -1 is negative"),
        (lambda model: model.rename(3, -2), "the class -2 is negative"),
        (lambda model: model.rename(3, 7), "there is a class '7' already"),
        (lambda model: model.rename(3.5, 4), "a class is 3.5: give a name or a whole number"),
        (lambda model: model.retire(None), "a class is None: give a name or a whole number"),
        (lambda model: model.merge(3, "03"), "the model knows no class '03'"),
        (lambda model: model.learn({3: members(3), "3": members(3)}), "are one class once cleaned"),
    ],
)
def test_misuse_gets_one_sentence(model: GraphClassifier, misuse: Callable[[GraphClassifier], Any], says: str) -> None:
    before = model.classes_
    with pytest.raises(InputError, match=says):
        misuse(model)
    assert model.classes_ == before


def test_negative_labels_are_nodes_without_a_label() -> None:
    y = truth()
    part = GraphClassifier("sgc-ridge").fit(graph_of(np.where(y == 3, -1, np.where(y == 7, -5, y))))
    assert not {3, 7, -1, -5} & set(part.classes_)
    ids = part.node_ids_
    known = ~np.isin(y, [3, 7])
    assert part.score(ids, np.where(known, y, -5)) == part.score(ids[known], y[known])


def test_labels_beyond_64_bits_are_refused() -> None:
    with pytest.raises(InputError, match="too large for 64 bits"):
        graph_of(truth().astype(np.uint64) + np.uint64(2**63))


# Files


def test_after_saving_and_loading(model: GraphClassifier, tmp_path: Path) -> None:
    model.learn({HIDDEN: members(HIDDEN)}).rename(3, 4)
    model.save(tmp_path / "model")
    loaded = GraphClassifier.load(tmp_path / "model")
    assert loaded.classes_ == model.classes_
    assert loaded.predict().dtype == np.int64
    assert (loaded.predict() == model.predict()).all()
    assert loaded.history == model.history
    assert json.loads(json.dumps(loaded.history.entries())) == model.history.entries()
    assert loaded.learn({"55": members(100, 2)}, on_conflict="replace").classes_[-1] == 55


def with_gaps() -> Graph:
    y = truth()
    return graph_of(np.where(np.arange(y.size) % 5 == 0, -1, y))


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz", "pyg", "networkx", "folder"])
def test_a_graph_keeps_integer_classes(tmp_path: Path, suffix: str) -> None:
    graph = with_gaps()
    if suffix in ("csv", "parquet"):
        dense = replace(graph, features=np.asarray(graph.features.todense(), dtype=np.float32)[:, :3])
        write_tables(dense, tmp_path, suffix=suffix)
        found = read_tables(tmp_path)
        folder = build_folder(of_graph(found), tmp_path / "folder")
        assert folder.integer_classes
    elif suffix == "npz":
        write_npz(graph, tmp_path / "graph.npz")
        found = read_npz(tmp_path / "graph.npz")
    elif suffix == "folder":
        found = build_folder(of_graph(graph), tmp_path / "folder").graph()
    else:
        found = from_pyg(to_pyg(graph)) if suffix == "pyg" else from_networkx(to_networkx(graph))
    assert found.integer_classes
    assert set(found.class_labels) == set(graph.class_labels)
    assert found.class_number(7) == found.class_number("7")
    named = replace(graph, integer_classes=False)
    assert named.class_labels == graph.class_names


def test_texts_of_a_table_are_integers_only_if_all_are(tmp_path: Path) -> None:
    edges = "source,target\n1,2\n"
    for labels, whole in ((("3", "7", ""), True), (("3", "x", ""), False), (("03", "7", ""), False)):
        rows = "\n".join(f"{number},{label},{number}.5" for number, label in enumerate(labels, 1))
        (tmp_path / "nodes.csv").write_text(f"id,label,size\n{rows}\n")
        (tmp_path / "edges.csv").write_text(edges)
        assert read_tables(tmp_path).integer_classes is whole


def test_a_stream_takes_integer_classes() -> None:
    graph = graph_of(small_graph().labels)
    by_number, by_name = (
        make_stream(graph, Protocol(base=(one, two), pseudo_novel=0), seed=0) for one, two in ((0, 1), ("0", "1"))
    )
    assert by_number.split.classes == by_name.split.classes
    assert by_number.protocol.hash == by_name.protocol.hash


def test_integers_beside_names_are_refused() -> None:
    """`predict` could return neither type for all of them."""
    labels = truth().astype(object)
    labels[labels == 3] = "three"
    with pytest.raises(InputError, match="mix integers and texts such as 'three'; give all of them as texts"):
        graph_of(labels)
