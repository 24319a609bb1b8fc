"""A classifier in scikit-learn's manner: parameters by name, clones, scores, and one sentence for a mistake."""

from typing import Any

import networkx
import numpy as np
import pyarrow as pa
import pytest
import torch
from sklearn.base import clone, is_classifier
from sklearn.metrics import balanced_accuracy_score, f1_score, recall_score
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from graphfcl import (
    Anchor,
    Graph,
    GraphClassifier,
    GraphfclWarning,
    InputError,
    Progress,
    find_method,
    register_metric,
    to_networkx,
    to_pyg,
)
from graphfcl.metrics import SessionMetric, built_in
from tests.production.models import HIDDEN, members, quick, small_graph

RIDGE = "sgc-ridge"


@pytest.fixture(scope="module")
def ridge() -> GraphClassifier:
    return GraphClassifier(RIDGE, max_loss=1.0).fit(small_graph(), hide_classes=HIDDEN)


def test_parameters_are_the_arguments_of_the_constructor() -> None:
    given = {
        "method": "proto-gcn",
        "settings": {"pretraining.epochs": 3},
        "way": 3,
        "shot": 4,
        "seed": 5,
        "max_loss": 0.25,
        "standardise": False,
        "device": "cpu",
    }
    model = GraphClassifier(**given)  # type: ignore[arg-type]
    assert model.get_params(deep=False) == given
    deep = model.get_params()
    assert {name: value for name, value in deep.items() if not name.startswith("settings__")} == given
    model.get_params()["settings"]["pretraining.epochs"] = 9
    assert model.settings == {"pretraining.epochs": 3}
    assert model.set_params(way=1, seed=7) is model
    assert model.get_params(deep=False) == {**given, "way": 1, "seed": 7}


def test_settings_of_the_method_are_parameters() -> None:
    model = GraphClassifier("proto-gcn", {"pretraining": {"epochs": 3}})
    rows = {f"settings__{row.name.replace('.', '__')}" for row in find_method("proto-gcn").settings_rows()}
    deep = model.get_params()
    assert rows == {name for name in deep if name.startswith("settings__")}
    assert deep["settings__pretraining__epochs"] == 3
    assert model.set_params(settings__size=np.int64(8), settings__pretraining__epochs=4) is model
    assert model.settings == {"pretraining.epochs": 4, "size": 8}
    assert type(model.settings["size"]) is int
    assert clone(model).get_params() == model.get_params()
    everything = GraphClassifier("proto-gcn").set_params(**model.get_params())  # as a search does
    assert everything.get_params() == {**model.get_params(), "settings": everything.settings}
    model.set_params(settings={"size": 5}, settings__hidden=6)
    assert model.settings == {"size": 5, "hidden": 6}
    model.set_params(method=RIDGE, settings={}, settings__penalty=3.0)
    assert (model.method, model.get_params()["settings__penalty"]) == (RIDGE, 3.0)
    assert GraphClassifier("anchor").get_params()["settings__head_nodes"] == Anchor.production_settings["head_nodes"]


def test_a_search_over_settings(ridge: GraphClassifier) -> None:
    graph, scores = small_graph(), {}
    truth = [graph.class_names[label] for label in graph.labels]
    for grid in ParameterGrid({"settings__penalty": [0.01, 300.0], "settings__hop_weight": [2.0]}):
        model = clone(ridge).set_params(**grid).fit(graph)
        assert model.learner_.settings.penalty == grid["settings__penalty"]
        scores[grid["settings__penalty"]] = model.score(graph.node_ids, truth)
    assert len(set(scores.values())) == 2


def test_a_clone_is_equal_and_not_fitted(ridge: GraphClassifier) -> None:
    copy = clone(ridge)
    assert copy is not ridge
    assert copy.get_params() == ridge.get_params()
    assert not copy.__sklearn_is_fitted__()
    assert is_classifier(copy)
    again = copy.fit(small_graph(), hide_classes=HIDDEN)
    np.testing.assert_array_equal(again.predict_proba(), ridge.predict_proba())


def test_a_fitted_model_keeps_what_it_was_trained_with(ridge: GraphClassifier) -> None:
    before = ridge.get_params()
    assert ridge.set_params(max_loss=0.5, shot=2).max_loss == 0.5
    with pytest.raises(InputError, match="this classifier is fitted, so seed cannot change: make a new one"):
        ridge.set_params(way=4, seed=1)
    with pytest.raises(InputError, match="this classifier is fitted, so settings__penalty cannot change"):
        ridge.set_params(settings__penalty=1.0)
    assert ridge.way == before["way"]
    ridge.set_params(max_loss=before["max_loss"], shot=before["shot"])
    assert ridge.get_params() == before


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"seed": -1}, "the seed is -1: give 0 or a larger whole number"),
        ({"seed": "x"}, "the seed is 'x': give a whole number"),
        ({"way": 0}, "way is 0: give 1 or a larger whole number"),
        ({"shot": 2.5}, "shot is 2.5: give a whole number, such as 5"),
        ({"max_loss": float("nan")}, "max_loss is nan: give a share of accuracy"),
        ({"max_loss": "much"}, "max_loss is 'much': give a share of accuracy"),
        ({"max_loss": 5}, "max_loss is 5: give a share of accuracy of at most 1, such as 0.05 for 5 points."),
        ({"settings": ["epochs"]}, r"settings is \['epochs'\]: give a mapping"),
        ({"settings": [1], "settings__penalty": 2.0}, r"settings is \[1\]: give a mapping"),
        ({"settings__hop_weigth": 1}, "sgc-ridge has no setting 'hop_weigth': did you mean 'hop_weight'"),
        ({"settings__penalty": "much"}, "sgc-ridge.penalty is 'much'; it must be a number or none"),
        ({"settings__penalty": -1.0}, "penalty is -1.0; it must be above 0"),
        ({"seed": 2, "settings__rank": 0}, "rank is 0; it must be at least 1"),
        ({"sed": 1}, "GraphClassifier has no parameter 'sed': did you mean 'seed'"),
    ],
)
def test_parameters_that_cannot_be_used_are_refused(given: dict[str, Any], sentence: str) -> None:
    model = GraphClassifier(RIDGE)
    before = model.get_params()
    with pytest.raises(InputError, match=sentence):
        model.set_params(**given)
    assert model.get_params() == before
    if "sed" not in given and not any(name.startswith("settings__") for name in given):
        with pytest.raises(InputError, match=sentence):
            GraphClassifier(RIDGE, **given)


def test_a_score_is_the_share_of_right_answers(ridge: GraphClassifier) -> None:
    graph = small_graph()
    nodes = graph.node_ids[::7].tolist()
    truth = [graph.class_names[label] for label in graph.labels[::7]]
    right = sum(found == true for found, true in zip(ridge.predict(nodes), truth, strict=True))
    assert ridge.score(nodes, truth) == pytest.approx(right / len(nodes))
    assert ridge.score(nodes, [f" {name} " for name in truth]) == pytest.approx(right / len(nodes))
    with pytest.warns(GraphfclWarning, match="none of the classes"):
        assert ridge.score(nodes[:2], ["nowhere", "nothing"]) == 0


def test_scores_are_metrics_of_the_answers(ridge: GraphClassifier) -> None:
    """Metrics of scikit-learn are the reference; a class that the model does not have has recall 0."""
    graph = small_graph()
    nodes = graph.node_ids.tolist()
    truth = [graph.class_names[label] for label in graph.labels]
    found = ridge.predict(nodes)
    late = np.isin(truth, HIDDEN)
    assert late.any()
    assert ridge.score(nodes, truth, metric="balanced_accuracy") == pytest.approx(
        recall_score(truth, found, average="macro", zero_division=0)
    )
    known = np.flatnonzero(~late)
    some, classes = [nodes[place] for place in known], [truth[place] for place in known]
    assert ridge.score(some, classes, metric="balanced_accuracy") == pytest.approx(
        balanced_accuracy_score(classes, found[known])
    )
    assert ridge.score(some, classes, metric="macro_f1") == pytest.approx(
        f1_score(classes, found[known], average="macro")
    )
    learned = ridge.snapshot().learn({HIDDEN[0]: members(HIDDEN[0])[:5]})
    per_class = recall_score(truth, learned.predict(nodes), average=None, labels=graph.class_names, zero_division=0)
    is_late = np.isin(graph.class_names, HIDDEN)
    assert learned.score(nodes, truth, metric="base") == pytest.approx(per_class[~is_late].mean())
    assert learned.score(nodes, truth, metric="novel") == pytest.approx(per_class[is_late].mean())
    assert np.isnan(ridge.score(some, classes, metric="novel"))


def test_a_registered_metric_is_a_score(ridge: GraphClassifier, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(built_in.REGISTRY, "registered", {})
    register_metric(SessionMetric(name="answered", title="", what="", of=lambda table, *_: float(table.sum())))
    nodes = ridge.node_ids_[:7].tolist()
    assert ridge.score(nodes, ridge.predict(nodes), metric="answered") == 7


def test_features_and_classes_without_a_graph_get_one_sentence() -> None:
    features, classes = np.eye(4), ["a", "b", "a", "b"]
    frame = pa.table({"x": [1.0, 2.0]})
    for model in (GraphClassifier(RIDGE), make_pipeline(GraphClassifier(RIDGE))):
        with pytest.raises(InputError, match=r"fit takes a graph, .* and no y: give from_scipy\(adjacency, X, y\)"):
            model.fit(features, classes)  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"got ndarray of numpy: from_scipy\(adjacency, features, labels\) or"):
            model.fit(features)
        with pytest.raises(InputError, match=r"got Table of pyarrow: from_frames\(nodes, edges\) makes one"):
            model.fit(frame)
    with pytest.raises(InputError, match="fit takes a graph"):
        make_pipeline(StandardScaler(), GraphClassifier(RIDGE)).fit(features, classes)
    assert make_pipeline(GraphClassifier(RIDGE, max_loss=1.0)).fit(small_graph()).predict(None).size


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        (lambda model: model.predict("p1"), r"the nodes are 'p1': give a list of ids, such as \['p1'\]"),
        (lambda model: model.predict_proba(7), r"the nodes are 7: give a list of ids, such as \[7\]"),
        (lambda model: model.predictions("p1"), "the nodes are 'p1': give a list of ids"),
        (lambda model: model.unlearn("p1"), "the nodes are 'p1': give a list of ids"),
        (lambda model: model.remove_nodes("p1"), "the nodes are 'p1': give a list of ids"),
        (lambda model: model.learn({"c": "p3"}), "the nodes of class 'c' are 'p3': give a list of ids, such as"),
        (lambda model: model.learn({"c": 3}), "the nodes of class 'c' are 3: give a list of ids, such as"),
        (lambda model: model.learn(["p3"]), r"the supports are \['p3'\]: give classes with lists of their nodes"),
        (lambda model: model.add_nodes("p9", [[1.0]]), "the new nodes are 'p9': give a list of ids"),
        (lambda model: model.add_edges("a", ["b"]), "the sources of edges are 'a': give a list of ids"),
        (lambda model: model.grow(nodes="p9"), "nodes is 'p9': give a DataFrame, or ids, features and texts"),
        (lambda model: model.predict(np.array([[1], [2]])), r"the nodes are an array of shape \(2, 1\): give a list"),
        (lambda model: model.predict(np.array(1)), r"the nodes are an array of shape \(\): give a list of ids"),
        (lambda model: model.learn({"c": np.array([[1]])}), r"the nodes of class 'c' are an array of shape \(1, 1\)"),
        (lambda model: model.predictions([1], top="3"), "top is '3': give a whole number, such as 3"),
        (lambda model: model.grow(), "there is nothing to add: give nodes, edges or both"),
        (lambda model: model.add_nodes([], []), "there is nothing to add: give nodes, edges or both"),
        (lambda model: model.add_edges([], []), "there is nothing to add: give nodes, edges or both"),
        (lambda model: model.shrink(), "there is nothing to remove: give nodes, edges or both"),
        (lambda model: model.remove_nodes([]), "there is nothing to remove: give nodes, edges or both"),
        (lambda model: model.add_nodes([901], texts="a b"), "the texts are 'a b': give a list, a text for each new"),
        (lambda model: model.add_nodes([901], texts=[None]), "the text of new node 1 is None: give a text"),
        (
            lambda model: model.add_edges([1], [2, 3]),
            "there are 1 sources and 2 targets of edges: give as many of each",
        ),
        (lambda model: model.add_edges([1], [2], [1, 2]), "there are 1 edges and 2 weights: give a weight for each"),
        (lambda model: model.remove_edges([1], [2, 3]), "there are 1 sources and 2 targets of edges"),
        (lambda model: model.score([1, 2]), "score needs the true class of each node"),
        (lambda model: model.score([1, 2], ["a"]), "there are 2 nodes and 1 classes: give a class for each node"),
        (lambda model: model.score([1, 2], "ab"), "the classes are 'ab': give a list"),
        (lambda model: model.score([], []), "there is no node with a class to score"),
        (
            lambda model: model.score([1], ["a"], metric="macro_f"),
            "no session metric 'macro_f'.* did you mean 'macro_f1'",
        ),
        (lambda model: model.score([1], ["a"], metric="average"), "no session metric 'average'"),
        (lambda model: model.explain([30]), r"explain takes one node, and got \[30\]: give its id, such as 30"),
        (lambda model: model.explain(np.array([3, 4])), "explain takes one node, and got array"),
        (lambda model: model.explain(pa.table({"node": [3]})), "explain takes one node, and got pyarrow.Table"),
    ],
)
def test_a_mistake_gets_a_sentence_and_changes_nothing(ridge: GraphClassifier, act: Any, sentence: str) -> None:
    changes = len(ridge.history)
    with pytest.raises(InputError, match=sentence):
        act(ridge)
    assert len(ridge.history) == changes


def test_nodes_may_come_one_after_the_other(ridge: GraphClassifier) -> None:
    ids = ridge.node_ids_[:4].tolist()
    assert ridge.predict(each for each in ids).tolist() == ridge.predict(ids).tolist()
    assert ridge.predictions(map(str, ids)).to_pydict() == ridge.predictions(ids).to_pydict()
    assert ridge.predict(dict.fromkeys(ids)).tolist() == ridge.predict(ids).tolist()
    model, free = ridge.snapshot(), members(HIDDEN[0])[:2]
    model.learn({"c": (each for each in free)})
    assert model.label_columns(iter(free))["class"].tolist() == ["c", "c"]


def test_classes_to_hide_are_a_list() -> None:
    with pytest.raises(InputError, match=r"the classes to hide are 'class-08': give a list, such as \['class-08'\]"):
        GraphClassifier(RIDGE).fit(small_graph(), hide_classes="class-08")
    model = GraphClassifier(RIDGE, max_loss=1.0).fit(small_graph(), hide_classes=iter(HIDDEN))  # type: ignore[arg-type]
    assert model.history[0]["hidden"] == list(HIDDEN)


def test_graphs_of_other_libraries_can_be_fitted(ridge: GraphClassifier) -> None:
    graph = small_graph()
    for other in (to_pyg(graph), to_networkx(graph)):
        model = GraphClassifier(RIDGE, max_loss=1.0).fit(other, hide_classes=HIDDEN)
        assert model.classes_ == ridge.classes_
        np.testing.assert_allclose(model.predict_proba(), ridge.predict_proba(), atol=1e-5)


class _Planetoid(torch.utils.data.Dataset[Any]):
    """No dataset of PyG, but from outside."""


def data_without_edges(_: Graph) -> Any:
    from torch_geometric.data import Data

    return Data(x=torch.eye(2))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            lambda graph: (graph, None),
            "fit needs a graph, and got tuple: load_dataset returns the graph and a protocol",
        ),
        (lambda _: "debian", r"got str: load_dataset\(name\) reads one"),
        (lambda graph: graph.adjacency, r"got csr_array of scipy: from_scipy\(adjacency, features, labels\) or"),
        (lambda _: _Planetoid(), "got _Planetoid of tests: from_frames, from_pyg, from_networkx"),
        (data_without_edges, "the PyG data has no 'edge_index'"),
        (lambda _: networkx.path_graph(2), "no node has the attribute 'label'"),
    ],
)
def test_what_is_no_graph_is_refused_with_what_makes_one(given: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        GraphClassifier(RIDGE).fit(given(small_graph()))


class _Steps(Progress):
    def __init__(self) -> None:
        self.stages: list[str] = []

    def step(self, stage: str, *_: Any, **__: Any) -> None:
        self.stages.append(stage)


def test_progress_is_shown_heard_or_silent(capfd: pytest.CaptureFixture[str]) -> None:
    def fit(progress: Any) -> GraphClassifier:
        model = GraphClassifier("proto-gcn", quick("proto-gcn"))
        return model.fit(small_graph(), hide_classes=HIDDEN, progress=progress)

    heard = _Steps()
    fit(heard)
    assert heard.stages
    assert capfd.readouterr().err == ""
    fit(progress=True)
    assert heard.stages[0] in capfd.readouterr().err
    with pytest.raises(InputError, match="progress is 'loud': give True, False"):
        fit("loud")
