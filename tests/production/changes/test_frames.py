"""Models take DataFrames wherever they take nodes, supports and edges, and answer with the same kind of table."""

from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphfcl import GraphClassifier, InputError, from_frames, suggest_for_graph
from tests.frames import LIBRARIES, columns_of, frame_of, kind_of
from tests.production.models import small_graph

OPTIONS: dict[str, Any] = {"id": "sku", "label": "category"}


def tables() -> tuple[dict[str, Any], dict[str, Any]]:
    """The sample graph as columns; ten features are enough."""
    graph = small_graph()
    ids = [f"p{node}" for node in graph.node_ids.tolist()]
    names = [graph.class_names[label] if label < 8 else None for label in graph.labels.tolist()]
    dense = graph.features[:, :10].toarray()
    upper = graph.adjacency.tocoo()
    kept = upper.row < upper.col
    nodes = {"sku": ids, "category": names, **{f"x{column}": dense[:, column].tolist() for column in range(10)}}
    ends = {"source": upper.row[kept], "target": upper.col[kept]}
    return nodes, {name: [ids[row] for row in rows.tolist()] for name, rows in ends.items()}


def made(library: str) -> GraphClassifier:
    nodes, edges = tables()
    graph = from_frames(frame_of(library, nodes), frame_of(library, edges), **OPTIONS)
    return GraphClassifier("sgc-ridge", max_loss=1.0).fit(graph)


@pytest.mark.parametrize("library", LIBRARIES)
def test_predictions_come_back_as_they_came(library: str) -> None:
    model, (nodes, _) = made(library), tables()
    asked = frame_of(library, {name: values[:20] for name, values in nodes.items()})
    found = model.predictions(asked, coverage=0.9)
    assert isinstance(found, kind_of(library))
    listed = model.predictions(nodes["sku"][:20], coverage=0.9)
    assert isinstance(listed, pa.Table)
    expected = model.prediction_columns(nodes["sku"][:20], coverage=0.9)
    for table in (columns_of(found), columns_of(listed)):
        assert list(table) == ["node", "class", "probability", "unknown_score", "unknown", "set"]
        assert table["class"] == expected["class"].tolist() == model.predict(asked).tolist()
        assert table["set"] == [list(each) for each in expected["set"]]
        np.testing.assert_array_equal(table["probability"], expected["probability"])
    np.testing.assert_array_equal(model.predict_proba(asked), model.predict_proba(nodes["sku"][:20]))
    np.testing.assert_array_equal(model.unknown_scores(asked), expected["unknown_score"])
    known = frame_of(library, {name: values[:8] for name, values in nodes.items()})
    assert isinstance(model.labels(known), kind_of(library))
    truth = [name or "?" for name in nodes["category"][:20]]
    assert model.score(asked) == model.score(nodes["sku"][:20], truth) == model.score(asked, truth)
    right = [found == true for found, true in zip(expected["class"], truth, strict=True) if true != "?"]
    assert 0 < len(right) < 20
    assert model.score(asked) == pytest.approx(sum(right) / len(right))


@pytest.mark.parametrize("library", LIBRARIES)
def test_models_learn_grow_and_shrink_by_frames(library: str) -> None:
    model, (nodes, _) = made(library), tables()
    free = [node for node, name in zip(nodes["sku"], nodes["category"], strict=True) if name is None][:4]
    model.learn(frame_of(library, {"sku": free, "category": ["new"] * 4, "why": list("abcd")}), by="ann")
    assert model.classes_[-1] == "new"
    kept = columns_of(model.labels(frame_of(library, {"node": free})))
    assert (kept["by"], kept["why"]) == (["ann"] * 4, list("abcd"))
    more = {"sku": ["q1", "q2"], **{f"x{column}": [0.5, 1.0] for column in range(10)}}
    ends = {"source": ["q1", "q2"], "target": [free[0], "q1"]}
    model.grow(nodes=frame_of(library, more), edges=frame_of(library, ends))
    assert (model.history[-1]["nodes"], model.history[-1]["edges"]) == (2, 2)
    assert model.predict(frame_of(library, {"sku": ["q1"]})).shape == (1,)
    model.shrink(edges=frame_of(library, ends), nodes=frame_of(library, {"sku": ["q2"]}))
    assert model.graph_.node_count == len(nodes["sku"]) + 1
    model.unlearn(frame_of(library, {"sku": free}))
    assert "new" not in model.classes_


def test_a_frame_of_pandas_keeps_its_index() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed, and nothing here needs it")
    model, (nodes, _) = made("pandas"), tables()
    asked = pandas.DataFrame({"sku": nodes["sku"][:5]}, index=[3, 1, 4, 15, 9])
    assert model.predictions(asked).index.tolist() == [3, 1, 4, 15, 9]
    assert asked.join(model.predictions(asked))["node"].tolist() == nodes["sku"][:5]
    series = model.predictions(asked["sku"])
    assert isinstance(series, pandas.DataFrame)
    assert series["class"].tolist() == model.predict(asked).tolist()


def test_labels_stand_beside_the_nodes_that_were_asked_for() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed, and nothing here needs it")
    model, (nodes, _) = made("pandas"), tables()
    truth = pandas.Series(nodes["category"], nodes["sku"])
    known = pandas.DataFrame({"sku": truth.dropna().index[::-1]})
    known.index = known.index + 100
    joined = known.join(model.labels(known))
    assert joined["node"].tolist() == known["sku"].tolist()
    assert joined["class"].tolist() == truth[known["sku"]].tolist()
    assert model.labels(known).index.tolist() == known.index.tolist()
    # Nodes without a label have no row, a node with two statements has two; each has the index of its node.
    free = truth.index[truth.isna()][0]
    model.learn({"new": [free]}, by="ann").learn({"new": [free]}, by="bob")
    asked = pandas.DataFrame({"sku": [truth.index[truth.isna()][1], free, known["sku"].iloc[0]]}, index=list("abc"))
    found = model.labels(asked)
    assert (found.index.tolist(), found["by"].tolist()) == (["b", "b", "c"], ["ann", "bob", ""])
    assert found["node"].tolist() == asked.loc[found.index, "sku"].tolist()
    assert model.labels(asked["sku"]).equals(found)
    assert model.labels(asked.iloc[:1]).empty


def test_frames_that_cannot_be_used_are_refused_and_change_nothing() -> None:
    model, (nodes, _) = made("pyarrow"), tables()
    for act, sentence in (
        (lambda: model.predict(pa.table({"name": ["p1"]})), "nodes has no column 'sku' .*it has name: rename one"),
        (lambda: model.predict(pa.table({"sku": ["p1", "zz"]})), "node 'zz' is not in the graph"),
        (lambda: model.learn(pa.table({"sku": ["p1"]})), "supports has no column 'category'"),
        (lambda: model.learn(pa.table({"sku": ["zz"], "category": ["a"]})), "supports, row 1: node 'zz' is not in"),
        (lambda: model.grow(nodes=pa.table({"sku": ["q1"], "x0": [1.0]})), "nodes lacks the feature column 'x1'"),
        (lambda: model.grow(edges=pa.table({"source": ["p1"]})), "edges has no column 'target'"),
        (
            lambda: GraphClassifier().fit(pa.table(nodes)),
            r"got Table of pyarrow: from_frames\(nodes, edges\) makes one",
        ),
        (lambda: model.score(pa.table({"sku": ["p1"]})), "nodes has no column 'category'"),
    ):
        with pytest.raises(InputError, match=sentence):
            act()
    assert len(model.history) == 1


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_what_a_model_answers_without_a_frame_becomes_one(library: str) -> None:
    """By the constructor for tuples of dataclasses; tables of pyarrow become pandas' by their own method."""
    model, make = made(library), pytest.importorskip(library).DataFrame
    for answer in (model.suggest(5), model.groups(2), model.class_table(), suggest_for_graph(small_graph(), 3)):
        frame = make(answer)
        assert len(frame) == len(answer) > 0
        for each in fields(answer[0]):
            if each.name != "earlier":
                values = [getattr(row, each.name) for row in answer]
                found = frame[each.name].to_list()
                assert [list(v) if isinstance(v, tuple) else v for v in values] == [
                    list(v) if isinstance(v, tuple) else v for v in found
                ], each.name
    if library == "polars":
        assert str(make(model.suggest(5)).schema["probabilities"]) == "List(Float64)"
    for table in (model.predictions(), model.labels(), model.label_issues(threshold=0.0)):
        frame = make(table) if library == "polars" else table.to_pandas()
        assert columns_of(frame) == table.to_pydict()
