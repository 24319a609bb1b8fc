"""A model trained again: what it keeps, what it is compared on, and when it is taken."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from graphfcl import Graph, GraphClassifier, InputError, ModelFolder, Progress, build_graph
from graphfcl.graph import TextSettings
from graphfcl.graph.tables.columns import ReadColumns
from graphfcl.graph.tables.words import count_words
from graphfcl.production import Comparison
from graphfcl.production.changes.refitting import ClassComparison
from graphfcl.production.labels.label_store import LabelRole
from tests.production.models import copy_of, everything, graph_in_memory, members, quick, same_answers, small_graph

EIGHT = members("class-08")[:12]


@pytest.fixture(scope="module")
def aged(start: GraphClassifier) -> GraphClassifier:
    """A model that has a class with twelve labels that it knows as a few-shot class."""
    return copy_of(start).learn({"eight": EIGHT}, by="ann", when="2026-11-16")


def changed_graph(graph: Graph, **changes: Any) -> Graph:
    """The same graph with some things changed."""
    fields = {
        "features": graph.features,
        "labels": graph.labels,
        "class_names": graph.class_names,
        "node_ids": graph.node_ids,
        "name": "brought",
    }
    return build_graph(graph.adjacency, **{**fields, **changes})


def said(labels: dict[str, Any]) -> dict[Any, tuple[Any, ...]]:
    """What a table of labels says of each node, but for what it is used for."""
    columns = (labels[key].tolist() for key in ("node", "class", "by", "when"))
    return {node: tuple(rest) for node, *rest in zip(*columns, strict=True)}


def rows(graph: Graph, nodes: np.ndarray) -> dict[str, Any]:
    """The fields of some nodes, in this order."""
    return {"features": graph.features[nodes], "labels": graph.labels[nodes], "node_ids": graph.node_ids[nodes]}


def test_a_refit_keeps_who_is_who_and_makes_classes_with_many_labels_base(aged: GraphClassifier) -> None:
    model = copy_of(aged)
    before, labels = model.label_store_, model.label_columns()
    result = model.refit(anyway=True)
    after = model.label_store_
    assert result.taken
    assert set(model.classes_) == set(aged.classes_)
    assert after.session_zero_columns == before.session_zero_columns + 1
    assert model.history[-1]["grown"] == ["eight"]
    assert np.array_equal(graph_in_memory(model).numbers, graph_in_memory(aged).numbers)
    assert model.node_ids_.tolist() == aged.node_ids_.tolist()
    assert said(model.label_columns()) == said(labels)
    assert (model.predict(EIGHT) == "eight").mean() > 0.5


def test_the_comparison_asks_both_about_nodes_that_neither_was_trained_on(
    start: GraphClassifier, aged: GraphClassifier
) -> None:
    model = copy_of(aged)
    compared = {each.name: each for each in model.refit(anyway=True).comparison.classes}
    (old, _), (new, columns) = (
        label_store.with_role(LabelRole.VALIDATION) for label_store in (aged.label_store_, model.label_store_)
    )
    names = np.array(model.label_store_.names, dtype=object)[columns]
    for name in start.classes_:
        nodes = np.intersect1d(old, new[names == name])
        assert nodes.size == (names == name).sum()  # all that are held out were held out before
        ids = model.graph_.ids[nodes].tolist()
        shares = [float((each.predict(ids) == name).mean()) for each in (aged, model)]
        assert compared[name] == ClassComparison(name, shares[0], shares[1], nodes.size)
    held_out = model.graph_.ids[new[names == "eight"]].tolist()
    assert 0 < len(held_out) < len(EIGHT)
    assert set(held_out) < set(EIGHT)
    without = [
        copy_of(start).learn({"eight": [each for each in EIGHT if each != node]}).predict([node])[0] == "eight"
        for node in held_out
    ]
    assert compared["eight"].before == pytest.approx(np.mean(without))
    assert compared["eight"].after == pytest.approx((model.predict(held_out) == "eight").mean())


def test_a_refit_that_is_no_better_changes_nothing(aged: GraphClassifier, tmp_path: Path) -> None:
    model = copy_of(aged)
    model.refit(anyway=True)  # the next one is trained on the same and is as good
    model.save(tmp_path / "m")
    model.wait()
    state = model._state
    assert not model.refit().taken
    assert model._state is state
    before = everything(tmp_path / "m")
    result = ModelFolder(tmp_path / "m").refit()
    assert not result.taken
    assert "no better" in result.why
    assert result.comparison.before == result.comparison.after
    assert everything(tmp_path / "m") == before


def test_a_better_refit_is_a_version_that_can_be_rolled_back(
    aged: GraphClassifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    better = Comparison((ClassComparison("eight", 0.5, 0.75, 4),))
    monkeypatch.setattr("graphfcl.production.changes.refitting.compare", lambda *_: better)
    copy_of(aged).save(tmp_path / "m")
    folder = ModelFolder(tmp_path / "m")
    assert folder.refit().taken
    entry = folder.history()[-1]
    assert (entry["what"], entry["version"]) == ("refit", 2)
    assert entry["why"] == (
        "the new model is better: 50.0 % balanced accuracy before, 75.0 % after, on 4 held-out nodes of 1 classes"
    )
    assert entry["compared"]["classes"] == [{"class": "eight", "before": 0.5, "after": 0.75, "nodes": 4}]
    assert folder.load().label_store_.session_zero_columns == aged.label_store_.session_zero_columns + 1
    assert folder.rollback(1) == 3
    same_answers(folder.load(), aged)


@pytest.mark.parametrize(("after", "better"), [(0.75, True), (0.5, False), (0.25, False)])
def test_equal_is_not_better(after: float, better: bool) -> None:
    assert Comparison((ClassComparison("a", 0.5, after, 4), ClassComparison("b", 0.5, 0.5, 9))).better is better
    assert not Comparison(()).better


def test_everybody_reads_the_model_of_before_until_the_refit_is_done(aged: GraphClassifier) -> None:
    model = copy_of(aged)
    before, seen = aged.predict_proba(), []

    class Reader(Progress):
        def step(self, *_: Any, **__: Any) -> None:
            seen.append(np.array_equal(model.predict_proba(), before))

    model.refit(anyway=True, progress=Reader())
    assert seen
    assert all(seen)
    assert not np.array_equal(model.predict_proba(), before)


def test_a_refit_that_fails_leaves_the_model_as_it_was(aged: GraphClassifier) -> None:
    model = copy_of(aged)

    class Failing(Progress):
        def step(self, *_: Any, **__: Any) -> None:
            raise RuntimeError("no power")

    with pytest.raises(RuntimeError):
        model.refit(anyway=True, progress=Failing())
    same_answers(model, aged)
    assert len(model.history) == len(aged.history)
    model.learn({"eight": members("class-08")[12:14]})  # it is not locked


def test_what_the_model_was_told_wins_over_a_graph_that_is_brought(aged: GraphClassifier) -> None:
    model, graph = copy_of(aged), small_graph()
    taken_back = members("class-00")[:3]
    model.unlearn(taken_back).rename("class-01", "one").retire("class-02").merge("class-04", "class-03")
    order = np.random.default_rng(0).permutation(graph.node_count)
    shuffled = build_graph(
        graph.adjacency[order][:, order], **rows(graph, order), class_names=graph.class_names, name="brought"
    )
    model.refit(shuffled, anyway=True)
    found = model.label_columns()
    label = dict(zip(found["node"].tolist(), found["class"].tolist(), strict=True))
    assert set(model.classes_) == (set(graph.class_names) | {"one", "eight"}) - {"class-01", "class-02", "class-04"}
    assert all(label[node] == "eight" for node in EIGHT)
    assert all(label[node] == "class-08" for node in members("class-08")[12:])
    assert not set(taken_back) & set(label)
    assert not set(members("class-02")) & set(label)
    assert {label[node] for node in members("class-01")} == {"one"}
    assert {label[node] for node in members("class-04")} == {"class-03"}
    assert set(model.history[-1]["new"]) == {"class-08", "class-09"}
    assert (graph_in_memory(model).adjacency != graph_in_memory(aged).adjacency).nnz == 0
    assert (graph_in_memory(model).features != graph_in_memory(aged).features).nnz == 0


@pytest.mark.parametrize("fold", [True, False])
def test_other_spellings_of_a_graph_that_is_brought_are_the_same_classes_if_the_model_folds(fold: bool) -> None:
    columns = ReadColumns("id", "label", "source", "target", fold=fold)
    graph = replace(small_graph(), columns=columns)
    labels = graph.labels.copy()
    labels[::2] = -1  # of these the graph that is brought says the class
    model = GraphClassifier("sgc-ridge").fit(replace(graph, labels=labels), hide_classes=["class-08", "class-09"])
    model.rename("class-01", "one").rename("one", "first").retire("class-02").merge("class-04", "class-03")
    louder = replace(graph, class_names=tuple(name.upper() for name in graph.class_names))
    kept = {"class-00", "first", "class-03", "class-05", "class-06", "class-07"}
    model.refit(louder, anyway=True)
    gone = {"CLASS-01", "CLASS-02", "CLASS-04"}
    assert kept <= set(model.classes_)
    assert (gone & set(model.classes_)) == (set() if fold else gone)
    assert {"CLASS-08", "CLASS-09"} <= set(model.classes_)


def test_a_graph_with_other_nodes_is_refused(aged: GraphClassifier) -> None:
    model, graph = copy_of(aged), small_graph()
    kept = np.arange(1, graph.node_count)
    fewer = build_graph(graph.adjacency[kept][:, kept], **rows(graph, kept), class_names=graph.class_names)
    with pytest.raises(InputError, match=f"lacks node '?{graph.node_ids[0]}'? .*graphfcl shrink"):
        model.refit(fewer)
    model.remove_nodes([graph.node_ids[0]])
    with pytest.raises(InputError, match=f"node '?{graph.node_ids[0]}'? of .* is not in the model: `graphfcl grow`"):
        model.refit(graph)
    assert model.history[-1]["what"] == "shrink"


def words_graph(extra: str = "") -> Graph:
    """Four classes of twelve nodes, each with words of its own."""
    random = np.random.default_rng(1)
    classes = np.repeat(np.arange(4), 12)
    texts = [
        " ".join([*random.choice([f"word{kind}{letter}" for letter in "abcdef"], 4), f"rare{node}", extra])
        for node, kind in enumerate(classes.tolist())
    ]
    counts, names = count_words(texts)
    nodes = np.arange(48)
    rings = (np.ones(48, np.float32), (nodes, (nodes + 1) % 12 + 12 * classes))
    adjacency = sparse.coo_array(rings, shape=(48, 48))
    return build_graph(
        adjacency,
        counts,
        classes,
        class_names=("a", "b", "c", "d"),
        node_ids=[f"n{node}" for node in range(48)],
        feature_names=names,
        text=TextSettings(min_nodes=3),
        name="words",
    )


def test_words_are_counted_weighed_again_and_brought_by_a_graph(tmp_path: Path) -> None:
    model = GraphClassifier("proto-gcn", quick("proto-gcn"), shot=3).fit(words_graph())
    assert model.history[-1]["words"] == 48 * 5
    assert model.history[-1]["unknown_words"] == 48  # each node has a word of its own
    model.add_nodes(["x", "y"], texts=["word0a word0a novel", "word1a rare7 rare7 a"])  # no word has one letter
    assert {key: model.history[-1][key] for key in ("words", "unknown_words")} == {"words": 6, "unknown_words": 3}
    model.add_nodes(["z"], [{"word2a": 2, "rare7": 1}])
    assert {key: model.history[-1][key] for key in ("words", "unknown_words")} == {"words": 3, "unknown_words": 1}
    model.save(tmp_path / "m")
    loaded = GraphClassifier.load(tmp_path / "m")
    loaded.refit(anyway=True)
    weights = loaded.graph_.text_weights
    assert weights is not None
    assert weights.min_nodes == 3
    words = [str(graph_in_memory(loaded).feature_names[column]) for column in weights.columns]  # type: ignore[index]
    assert "rare7" in words  # three nodes have it by now
    of_word = np.diff(graph_in_memory(loaded).features.tocsc().indptr)[weights.columns]
    np.testing.assert_allclose(weights.inverse_document_frequency, np.log(52 / (1 + of_word)) + 1)
    plain = copy_of(loaded).remove_nodes(["x", "y", "z"])
    plain.refit(words_graph("novel"), anyway=True)
    assert plain.history[-1]["graph"] == "words"
    assert "novel" in graph_in_memory(plain).feature_names.tolist()  # type: ignore[union-attr]


def test_dense_columns_are_standardised_again() -> None:
    graph = small_graph()
    assert not isinstance(graph.features, np.ndarray)
    dense = changed_graph(graph, features=graph.features.toarray())
    model = GraphClassifier("proto-gcn", quick("proto-gcn")).fit(dense)
    moved = changed_graph(dense, features=dense.features * 3 + 1)
    model.refit(moved, anyway=True)
    standard = graph_in_memory(model).standardisation
    train = model.label_store_.with_role(LabelRole.TRAIN)[0]
    assert standard is not None
    np.testing.assert_allclose(standard.mean, graph_in_memory(model).features[train].mean(axis=0), rtol=1e-4, atol=1e-5)


def test_the_configuration_is_the_model_s(aged: GraphClassifier) -> None:
    model = copy_of(aged)
    chosen = replace(model.configuration)
    model.refit(anyway=True)
    assert model.configuration == chosen
    assert model.parts().configuration == chosen
