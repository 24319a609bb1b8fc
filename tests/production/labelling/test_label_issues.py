"""Labels that a model disputes, judged by models that have not seen them."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphfcl import Graph, GraphClassifier, InputError, Progress
from graphfcl.production.answers.ood_scores import separation
from graphfcl.production.labels.label_store import LabelStore
from graphfcl.production.model.cross_fitting import FEW, Folds, cross_fit
from tests.frames import LIBRARIES, columns_of, frame_of, kind_of
from tests.marks import some_first
from tests.production.models import HIDDEN, copy_of, fitted, members, quick, same_answers, small_graph

COLUMNS = ["node", "given", "given_by", "given_when", "confidence", "guess", "probability"]


def flipped_rows(count: int = 20) -> np.ndarray:
    """Rows of some nodes of classes that are not hidden."""
    known = np.flatnonzero(small_graph().labels < 8)
    return np.random.default_rng(4).choice(known, count, replace=False)


@cache
def noisy_graph() -> Graph:
    """The sample graph; some of its labels are of the next class."""
    labels = small_graph().labels.copy()
    rows = flipped_rows()
    labels[rows] = (labels[rows] + 1) % 8
    return replace(small_graph(), labels=labels)


def noisy_model(method: str) -> GraphClassifier:
    return GraphClassifier(method, quick(method)).fit(noisy_graph(), hide_classes=HIDDEN)


@pytest.fixture(scope="module")
def ridge() -> GraphClassifier:
    return noisy_model("sgc-ridge")


def by_node(model: GraphClassifier, **options: Any) -> dict[Any, dict[str, Any]]:
    return {row["node"]: row for row in model.label_issues(**{"threshold": 0, "folds": 3, **options}).to_pylist()}


@pytest.mark.parametrize("method", some_first(["sgc-ridge", "proto-gcn", "anchor", "cec"], ("sgc-ridge", "anchor")))
def test_wrong_labels_are_found_and_their_classes_guessed(method: str) -> None:
    model, graph, rows = noisy_model(method), small_graph(), flipped_rows()
    issues = by_node(model)
    names = np.array(graph.class_names, dtype=object)
    wrong = graph.node_ids[rows].tolist()
    confidence = np.array([row["confidence"] for row in issues.values()])
    is_wrong = np.isin(list(issues), wrong)
    assert len(issues) == (graph.labels < 8).sum()
    assert separation(confidence[is_wrong], confidence[~is_wrong]) > 0.93
    guessed = [issues[node]["guess"] == name for node, name in zip(wrong, names[graph.labels[rows]], strict=True)]
    assert np.mean(guessed) > 0.6
    assert [issues[node]["given"] for node in wrong] == names[noisy_graph().labels[rows]].tolist()


@pytest.mark.parametrize("method", ["sgc-ridge", "anchor"])
def test_a_label_has_no_influence_on_what_judges_it(method: str) -> None:
    """A node gets another label: its fold has the same probabilities, to the bit."""
    row = int(flipped_rows()[0])
    labels = noisy_graph().labels.copy()
    labels[row] = (labels[row] + 3) % 8
    other = GraphClassifier(method, quick(method)).fit(replace(noisy_graph(), labels=labels), hide_classes=HIDDEN)
    found, number = [], noisy_model(method).graph_.numbers_at(row)
    for model in (noisy_model(method), other):
        split = Folds.draw(model.label_store_, 3, 0)
        fold = split.fold_of == split.fold_of[split.nodes == number]
        parts = list(cross_fit(model.graph_, split, fold, model.configuration, device="cpu", progress=Progress()))
        assert len(parts) == 1
        np.testing.assert_array_equal(parts[0][0], np.flatnonzero(fold))
        found.append(parts[0][1])
    np.testing.assert_array_equal(found[0], found[1])


def test_a_fold_is_judged_by_a_fit_to_the_other_labels(ridge: GraphClassifier) -> None:
    issues, split = by_node(ridge), Folds.draw(ridge.label_store_, 3, 0)
    for fold in range(3):
        rows = ridge.graph_.rows_of(split.nodes[split.fold_of == fold])
        labels = noisy_graph().labels.copy()
        labels[rows] = -1
        without = GraphClassifier("sgc-ridge").fit(replace(noisy_graph(), labels=labels), hide_classes=HIDDEN)
        nodes = noisy_graph().node_ids[rows].tolist()
        for node, likeliest in zip(nodes, without.predict(nodes), strict=True):
            issue = issues[node]
            agrees = 1 - issue["confidence"] > issue["probability"]
            assert likeliest == (issue["given"] if agrees else issue["guess"])


def test_the_most_confident_come_first_and_the_model_stays_as_it_is(ridge: GraphClassifier) -> None:
    before = copy_of(ridge)
    table = ridge.label_issues(threshold=0, folds=2)
    assert table.column_names == COLUMNS
    confidence = table["confidence"].to_numpy()
    assert (np.diff(confidence) <= 0).all()
    assert 0 <= confidence.min() <= confidence.max() <= 1
    assert ridge.label_issues(folds=2).num_rows == (confidence >= 0.9).sum() > 0
    assert ridge.label_issues(count=7, threshold=0.1, folds=2) == table.slice(0, 7)
    assert ridge.label_issues(threshold=1, folds=2).num_rows == 0
    same_answers(ridge, before)
    assert list(ridge.history) == list(before.history)


def test_classes_learned_later_are_learned_in_each_fold() -> None:
    """A wrong support of a few-shot class is its most disputed one; the only label of a class is not listed."""
    model, eight, strange = fitted("sgc-ridge"), members("class-08")[:7], members("class-02")[:30]
    free = [node for node in strange if node not in model.label_columns()["node"].tolist()]
    assert not free  # all are labelled: one loses its label
    model.unlearn(strange[:1])
    model.learn({"eight": [*eight, strange[0]]}, by="ann", when="2026-11-16").learn({"eight": eight[:1]}, by="bob")
    model.learn({"nine": members("class-09")[:1]})
    issues = by_node(model, folds=4)
    of_eight = [row for row in issues.values() if row["given"] == "eight"]
    assert [row["node"] for row in of_eight[:1]] == strange[:1]
    assert issues[strange[0]]["guess"] == "class-02"
    assert max(row["confidence"] for row in of_eight[1:]) < 0.5
    assert {row["given_when"] for row in of_eight} == {"2026-11-16"}
    assert issues[eight[0]]["given_by"] == "ann and bob"
    assert len(issues) == model.label_store_.nodes.size - 1
    assert "nine" not in {row["given"] for row in issues.values()}


@pytest.mark.parametrize("library", LIBRARIES)
def test_some_nodes_of_a_frame(ridge: GraphClassifier, library: str) -> None:
    """Only folds that judge one of them are trained; each has the values that it has among all."""
    everything, wanted = by_node(ridge), [*members("class-03")[:3], members("class-08")[0], members("class-01")[0]]
    found = ridge.label_issues(frame_of(library, {"node": wanted}), threshold=0, folds=3)
    assert isinstance(found, kind_of(library))
    columns = columns_of(found)
    assert sorted(columns["node"]) == sorted(set(wanted) - {members("class-08")[0]})
    assert columns["confidence"] == [everything[node]["confidence"] for node in columns["node"]]
    if library == "pandas":
        assert [wanted[place] for place in found.index] == columns["node"]
    corrected = copy_of(ridge)
    corrected.learn(frame_of(library, {"node": columns["node"], "class": columns["guess"]}), on_conflict="replace")
    assert corrected.label_columns(wanted[:1])["class"].tolist() == [everything[wanted[0]]["guess"]]


def test_integer_classes_and_a_class_that_was_merged() -> None:
    graph = noisy_graph()
    labels = np.where(graph.labels < 8, graph.labels * 10, -1)
    numbered = replace(graph, labels=graph.labels, class_names=tuple(str(10 * c) for c in range(10)))
    model = GraphClassifier("cec", quick("cec")).fit(replace(numbered, integer_classes=True), hide_classes=[80, 90])
    model.merge(70, 60)
    table = model.label_issues(threshold=0, folds=2)
    assert pa.types.is_integer(table["given"].type)
    assert set(table["given"].to_pylist()) == set(range(0, 70, 10))
    assert table.num_rows == (labels >= 0).sum()


def test_progress_names_the_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    stages: list[str] = []
    watching = Progress()
    monkeypatch.setattr(watching, "step", lambda stage, *_, **__: stages.append(stage))
    noisy_model("proto-gcn").label_issues(folds=2, progress=watching)
    assert {stage.partition(",")[0] for stage in stages} == {"fold 1 of 2", "fold 2 of 2"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"folds": 1}, "at least two"),
        ({"folds": 2.5}, "give a whole number"),
        ({"threshold": 1.5}, "between 0 and 1"),
        ({"threshold": "high"}, "between 0 and 1"),
        ({"count": 0}, "at least one label"),
        ({"seed": -1}, "the seed is -1"),
        ({"nodes": ["none"]}, "not in the graph"),
    ],
)
def test_what_cannot_be_asked(ridge: GraphClassifier, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ridge.label_issues(**options)


def test_too_few_labels_are_refused_before_anything_is_trained() -> None:
    labels = np.where(np.isin(small_graph().labels, (0, 1)), small_graph().labels, -1)
    for number in (0, 1):
        labels[np.flatnonzero(labels == number)[7:]] = -1
    model = GraphClassifier("sgc-ridge").fit(replace(small_graph(), labels=labels))
    with pytest.raises(InputError, match="without one of 3 folds, 0 classes have 7 labelled nodes or more"):
        model.label_issues()


# Folds


def store_of(sizes: list[int], seed: int = 0) -> LabelStore:
    """Labels of classes of these sizes, on nodes in any order."""
    columns = np.repeat(np.arange(len(sizes)), sizes)
    nodes = np.random.default_rng(seed).choice(3 * columns.size, columns.size, replace=False)
    empty = nodes[:0]
    return LabelStore.of((nodes, columns), (empty, empty), [f"c{place}" for place in range(len(sizes))])


@pytest.mark.parametrize("seed", range(5))
def test_another_label_of_its_class_remains_for_each(seed: int) -> None:
    sizes = [1, 2, 3, 5, 7, FEW - 1, FEW, 400]
    split = Folds.draw(store_of(sizes, seed), 5, seed)
    for number, size in enumerate(sizes):
        folds = split.fold_of[split.classes == number]
        if size == 1:
            assert folds.tolist() == [-1]
            continue
        counts = np.bincount(folds, minlength=5)
        assert counts.max() < size
        if size < FEW:
            assert counts.max() - counts.min() <= 1
    assert np.unique(split.fold_of[split.classes == 2]).size == 3


def test_the_fold_of_a_node_does_not_depend_on_labels_of_large_classes() -> None:
    store = store_of([100, 100, 100])
    other = replace(store, columns=np.roll(store.columns, 17))
    fewer = replace(store, nodes=store.nodes[::2], columns=store.columns[::2], parts=store.parts[::2])
    split, changed, part = (Folds.draw(each, 4, 3) for each in (store, other, fewer))
    np.testing.assert_array_equal(split.fold_of, changed.fold_of)
    np.testing.assert_array_equal(split.fold_of[np.isin(split.nodes, part.nodes)], part.fold_of)
