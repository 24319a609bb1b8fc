"""A classifier in scikit-learn's manner: parameters by name, clones, scores, and one sentence for a mistake."""

from typing import Any

import networkx
import numpy as np
import pytest
import torch
from sklearn.base import clone, is_classifier

from graphfcl import Graph, GraphClassifier, GraphfclWarning, InputError, Progress, to_networkx, to_pyg
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
    assert model.get_params() == model.get_params(deep=False) == given
    model.get_params()["settings"]["pretraining.epochs"] = 9
    assert model.settings == {"pretraining.epochs": 3}
    assert model.set_params(way=1, seed=7) is model
    assert model.get_params() == {**given, "way": 1, "seed": 7}


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
        ({"settings": ["epochs"]}, r"settings is \['epochs'\]: give a mapping"),
        ({"sed": 1}, "GraphClassifier has no parameter 'sed': did you mean 'seed'"),
    ],
)
def test_parameters_that_cannot_be_used_are_refused(given: dict[str, Any], sentence: str) -> None:
    model = GraphClassifier(RIDGE)
    before = model.get_params()
    with pytest.raises(InputError, match=sentence):
        model.set_params(**given)
    assert model.get_params() == before
    if "sed" not in given:
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
        (lambda graph: graph.adjacency, r"got csr_array of scipy: from_scipy\(adjacency, features, labels\) makes one"),
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
