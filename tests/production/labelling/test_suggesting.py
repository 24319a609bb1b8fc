"""What to label next, and why."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import sparse

from graphfcl import (
    ActiveLearningState,
    Graph,
    GraphClassifier,
    InputError,
    Query,
    Strategy,
    VisibleGraph,
    build_graph,
    load_dataset,
    suggest_for_graph,
)
from graphfcl.active.untrained import untrained_vectors
from graphfcl.production import suggestion_table
from graphfcl.production.labelling import node_vectors
from graphfcl.production.model.state import AnsweringLearner
from tests.production.models import HIDDEN, fitted, members, quick, small_graph


@pytest.fixture(scope="module")
def ridge() -> GraphClassifier:
    return fitted("sgc-ridge")


class FirstTwo(Strategy):
    """The first two candidates"""

    def choose(self, state: ActiveLearningState) -> list[Query]:
        return [Query(int(row), "unknown") for row in np.sort(state.candidates)[:2]]


@pytest.mark.parametrize("strategy", ["auto", "typical", "uncertain", "unknown", "random"])
def test_suggestions_have_no_label_and_say_what_the_model_thinks(ridge: GraphClassifier, strategy: str) -> None:
    found = ridge.suggest(12, strategy=strategy)
    nodes = [each.node for each in found]
    assert len(nodes) == len(set(nodes)) == 12
    assert not set(nodes) & set(ridge.label_columns()["node"].tolist())
    said = ridge.prediction_columns(nodes)
    assert [each.classes[0] for each in found] == said["class"].tolist()
    assert [each.probabilities[0] for each in found] == pytest.approx(said["probability"].tolist())
    assert [each.unknown for each in found] == said["unknown"].tolist()
    assert [each.unknown_score for each in found] == pytest.approx(said["unknown_score"].tolist())
    for each in found:
        assert len(each.classes) == 5
        assert each.why
        assert json.loads(json.dumps(each.as_json()))["node"] == each.node
    assert ridge.suggest(12, strategy=strategy) == found


def test_typical_nodes_are_of_the_classes_that_nobody_taught(ridge: GraphClassifier) -> None:
    hidden = {node for name in HIDDEN for node in members(name)}
    found = ridge.suggest(6, strategy="typical")
    assert {each.node for each in found} <= hidden
    counts = [int(re.findall(r"typical of ([\d,]+) nodes", each.why)[0]) for each in found if "typical of" in each.why]
    assert counts
    assert sum(counts) <= len(hidden)


def test_reasons_in_plain_words(ridge: GraphClassifier) -> None:
    (between,) = ridge.suggest(1, strategy="uncertain")
    (first, second), (one, two) = between.classes[:2], between.probabilities[:2]
    assert between.why == f"it lies between {first} ({100 * one:.0f} %) and {second} ({100 * two:.0f} %)"
    (strange,) = ridge.suggest(1, strategy="unknown")
    assert strange.why.startswith("it looks like none of the known classes")
    assert ridge.suggest(1, strategy="random")[0].why == "it was drawn at random"


class CallsAllUnknown(Strategy):
    """Every candidate, each called unknown"""

    def choose(self, state: ActiveLearningState) -> list[Query]:
        return [Query(int(row), "unknown") for row in state.candidates[: state.wanted]]


@pytest.mark.parametrize("method", ["sgc-ridge", "proto-gcn", "teen"])
@pytest.mark.parametrize("signal", [0.3, 1.0])
def test_no_row_calls_a_node_unknown_that_it_calls_known(method: str, signal: float) -> None:
    name = f"synthetic:nodes=300,edges=900,classes=8,features=80,signal={signal},seed=3"
    graph, _ = load_dataset(name)
    labels = np.where(np.arange(graph.node_count) % 3 == 0, -1, graph.labels)  # nodes of known classes are asked too
    part = replace(graph, labels=labels)
    model = GraphClassifier(method, quick(method)).fit(part, hide_classes=graph.class_names[-2:])
    seen = set()
    for strategy in ("auto", "typical", "uncertain", "unknown", "random", CallsAllUnknown):
        found = model.suggest(60, strategy=strategy)
        table, said = suggestion_table(found), model.prediction_columns([each.node for each in found])
        assert table["unknown"].tolist() == ["yes" if unknown else "no" for unknown in said["unknown"].tolist()]
        for unknown, reason, why in zip(table["unknown"], table["reason"], table["why"], strict=True):
            calls_unknown = reason == "unknown" or "none of the known classes" in why
            assert unknown == "yes" or not calls_unknown, (strategy, reason, why)
            assert calls_unknown == (reason == "unknown")
            seen.add((unknown, reason))
    assert ("no", "uncovered") in seen
    assert ("yes", "unknown") in seen


def test_without_a_model_no_node_is_called_unknown() -> None:
    for strategy in ("auto", CallsAllUnknown):
        table = suggestion_table(suggest_for_graph(small_graph(), 10, strategy=strategy))
        assert set(table["unknown"]) == {"no"}
        assert "unknown" not in set(table["reason"])


def test_a_strategy_of_your_own(ridge: GraphClassifier) -> None:
    labelled = set(ridge.label_columns()["node"].tolist())
    free = [node for node in ridge.node_ids_.tolist() if node not in labelled]
    assert [each.node for each in ridge.suggest(5, strategy=FirstTwo)] == free[:2]
    assert [each.node for each in ridge.suggest(5, strategy="first-two")] == free[:2]


class Remembering(Strategy):
    """The first candidates, and how often it had to compute anything"""

    computed: ClassVar[list[int]] = []

    def choose(self, state: ActiveLearningState) -> list[Query]:
        def compute() -> np.ndarray:
            self.computed.append(1)
            return np.sort(state.candidates)

        rows = state.memory.find("remembering", compute)
        return [Query(int(row), "random") for row in rows[: state.wanted]]


def test_what_is_costly_is_computed_once_for_a_version(monkeypatch: pytest.MonkeyPatch) -> None:
    model, tables = fitted("sgc-ridge"), list[int]()
    real = node_vectors.vectors_of_all

    def noted(*given: Any) -> np.ndarray:
        tables.append(1)
        return real(*given)

    monkeypatch.setattr(node_vectors, "vectors_of_all", noted)
    Remembering.computed.clear()
    for budget in (3, 5):
        first = [each.node for each in model.suggest(budget, strategy=Remembering)]
    model.suggest(3, strategy="typical")
    model.rename("class-00", "first")
    model.suggest(3, strategy=Remembering)
    assert (len(Remembering.computed), len(tables)) == (1, 1)
    model.suggest(3, strategy=Remembering, seed=1)
    assert (len(Remembering.computed), len(tables)) == (2, 1), "what is drawn differs"
    model.learn({"other": first[:2]})
    found = [each.node for each in model.suggest(3, strategy=Remembering)]
    assert (len(Remembering.computed), len(tables)) == (3, 2)
    assert found == [*first[2:5]], "two of them have a label"


def test_a_budget_beyond_all_nodes(ridge: GraphClassifier) -> None:
    free = len(ridge.node_ids_) - len(ridge.label_columns()["node"])
    assert len(ridge.suggest(10_000, strategy="random")) == free
    assert GraphClassifier("sgc-ridge").fit(small_graph()).suggest(5) == ()


def test_bad_input(ridge: GraphClassifier) -> None:
    with pytest.raises(InputError, match="the budget is 0"):
        ridge.suggest(0)
    with pytest.raises(InputError, match="there is no strategy 'typicl': did you mean 'typical'"):
        ridge.suggest(3, strategy="typicl")


def anything(value: object) -> Any:
    """A value whose type is not checked, as a user hands it in."""
    return value


@pytest.mark.parametrize(
    ("misuse", "says"),
    [
        (lambda model: model.suggest("3"), "the budget is '3': give a whole number"),
        (lambda model: model.suggest(2.5), "the budget is 2.5: give a whole number"),
        (lambda model: model.suggest(None), "the budget is None"),
        (lambda model: model.suggest(3, seed=-1), "the seed is -1: give 0 or a larger"),
        (lambda model: model.suggest(3, seed="a"), "the seed is 'a': give a whole number"),
        (lambda model: model.suggest(3, strategy=5), "derives from graphfcl.Strategy"),
        (lambda model: model.groups("5"), "the number of groups is '5'"),
        (lambda model: model.groups(2.5), "the number of groups is 2.5"),
        (lambda model: model.groups(3, seed=-1), "the seed is -1"),
        (lambda model: model.name_group(1, "x"), "1 is not a group: give a group that"),
        (lambda model: model.name_group(model.groups()[0], None), "a class is None: give a name or a whole number"),
        (lambda model: model.spread(None), "the nodes are None: give a list of ids"),
        (lambda model: model.spread(5), "the nodes are 5"),
        (lambda model: model.spread("abc"), "the nodes are 'abc'"),
        (lambda _: suggest_for_graph(anything("debian")), "suggest_for_graph needs a graph, and got str: load_dataset"),
        (lambda _: suggest_for_graph(small_graph(), anything(2.0)), "the budget is 2.0"),
        (lambda _: suggest_for_graph(small_graph(), 2, seed=-1), "the seed is -1"),
    ],
)
def test_misuse_gets_one_sentence(
    ridge: GraphClassifier, misuse: Callable[[GraphClassifier], object], says: str
) -> None:
    with pytest.raises(InputError, match=re.escape(says)):
        misuse(ridge)


def test_numbers_of_numpy_are_numbers(ridge: GraphClassifier) -> None:
    one, three = anything(np.int32(1)), anything(np.int64(3))
    assert ridge.suggest(three, seed=one) == ridge.suggest(3, seed=1)
    assert ridge.groups(one) == ridge.groups(1)
    some = anything(np.array(members("class-00")[:3]))
    assert ridge.spread(some) == ridge.spread(some.tolist())


# A graph without a model


def test_a_graph_without_a_model() -> None:
    """With as many nodes as twice the classes, most classes are among them."""
    graph = small_graph()
    found = suggest_for_graph(graph, 20)
    assert len({each.node for each in found}) == 20
    rows = [int(np.flatnonzero(graph.node_ids == each.node)[0]) for each in found]
    assert len(set(graph.labels[rows].tolist())) >= 8
    assert all(each.classes == each.probabilities == () and not each.unknown and each.why for each in found)
    assert suggest_for_graph(graph, 20) == found
    for strategy in ("uncertain", "unknown"):
        with pytest.raises(InputError, match="needs a model"):
            suggest_for_graph(graph, 5, strategy=strategy)


def test_nodes_that_have_a_label_are_not_named_again() -> None:
    graph = small_graph()
    labels = np.where(np.isin(graph.labels, [0, 1, 2, 3, 4]), graph.labels, -1)
    part = build_graph(graph.adjacency, graph.features, labels, class_names=graph.class_names, node_ids=graph.node_ids)
    found = suggest_for_graph(part, 10)
    rows = [int(np.flatnonzero(graph.node_ids == each.node)[0]) for each in found]
    assert (graph.labels[rows] >= 5).all()
    said = {(each.reason, each.why) for each in found if each.reason != "cluster"}
    assert said == {("uncovered", "few of the nodes like it have a label")}


def without_features(features: np.ndarray | None) -> tuple[Graph, np.ndarray]:
    """Six communities of 40 nodes, and 20 nodes without links; and the community of each node."""
    random, community = np.random.default_rng(0), np.repeat(np.arange(6), 40)
    near = community[:, None] == community[None]
    links = np.zeros((260, 260))
    links[:240, :240] = random.random((240, 240)) < np.where(near, 0.2, 0.005)
    return build_graph(links, features, np.full(260, -1), class_names=["any"]), community


@pytest.mark.parametrize("strategy", ["auto", "typical"])
@pytest.mark.parametrize("columns", [0, 1])
def test_nodes_are_compared_by_links_where_features_say_nothing(strategy: str, columns: int) -> None:
    features = None if columns == 0 else np.ones((260, columns))
    graph, community = without_features(features)
    found = [each.node for each in suggest_for_graph(graph, 12, strategy=strategy)]
    assert len(set(found)) == 12
    assert len({int(community[node]) for node in found if node < 240}) == 6


def test_one_number_a_node_is_compared_by_how_large_it_is() -> None:
    """Without links; a direction alone would leave two kinds of nodes."""
    values = np.repeat([-3.0, -1.0, 0.0, 1.0, 4.0], 30)
    links = sparse.csr_array((150, 150), dtype=np.float32)
    visible = VisibleGraph(np.arange(150), links, values[:, None].astype(np.float32))
    vectors = untrained_vectors(visible)[:, :4]
    for one, other in ((0, 30), (90, 120), (60, 90)):
        assert np.linalg.norm(vectors[one] - vectors[other]) > 0.2
    np.testing.assert_allclose(vectors[0], vectors[29])


def test_nodes_that_are_all_alike_are_drawn_and_not_taken_in_the_order_of_the_file() -> None:
    graph = build_graph(np.ones((60, 60)), np.ones((60, 20)), np.full(60, -1), class_names=["any"])
    for strategy in ("auto", "typical"):
        found = [[each.node for each in suggest_for_graph(graph, 5, strategy=strategy, seed=seed)] for seed in (0, 1)]
        assert found[0] != found[1]
        assert max(found[0] + found[1]) > 20


def test_a_model_of_a_graph_without_features() -> None:
    graph, community = without_features(None)
    labels = np.where(np.arange(260) < 120, np.repeat(np.arange(6), [40, 40, 40, 40, 40, 60]), -1)
    taught = build_graph(graph.adjacency, None, labels, class_names=["a", "b", "c"])
    model = GraphClassifier("sgc-ridge", quick("sgc-ridge"), way=1).fit(taught)
    found = [each.node for each in model.suggest(9)]
    assert {int(community[node]) for node in found if node < 240} >= {3, 4, 5}


def test_the_table_has_an_empty_column_to_fill_in(ridge: GraphClassifier) -> None:
    found = ridge.suggest(3)
    table = suggestion_table(found)
    assert list(table) == ["node", "class", "guess", "probability", "unknown", "reason", "why"]
    assert table["node"].tolist() == [each.node for each in found]
    assert table["class"].tolist() == ["", "", ""]
    assert table["guess"].tolist() == [each.classes[0] for each in found]
    assert suggestion_table(suggest_for_graph(small_graph(), 2))["guess"].tolist() == ["", ""]
    assert [column.size for column in suggestion_table(()).values()] == [0] * 7


@pytest.mark.parametrize("strategy", ["nothing", "os:system"])
def test_a_strategy_that_does_not_exist_is_refused_before_anything_is_computed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, strategy: str
) -> None:
    def compute(*_: object) -> None:
        raise AssertionError("something is computed")

    monkeypatch.setattr(AnsweringLearner, "answers", compute)
    monkeypatch.setattr("graphfcl.production.graph.growing_graph.GrowingGraph.of", compute)
    with pytest.raises(InputError, match=strategy):
        GraphClassifier.load(folder).suggest(strategy=strategy)
    with pytest.raises(InputError, match=strategy):
        suggest_for_graph(small_graph(), strategy=strategy)
