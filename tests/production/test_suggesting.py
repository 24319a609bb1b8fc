"""What to label next, and why."""

import json
import re

import numpy as np
import pytest

from graphfcl.asking import Situation, Strategy, Wish
from graphfcl.errors import InputError
from graphfcl.graph import build_graph
from graphfcl.production import GraphClassifier, suggest_for_graph
from graphfcl.production.suggesting import suggestion_table
from tests.production.models import HIDDEN, fitted, members, small_graph


@pytest.fixture(scope="module")
def ridge() -> GraphClassifier:
    return fitted("sgc-ridge")


class FirstTwo(Strategy):
    """The first two candidates"""

    def choose(self, situation: Situation) -> list[Wish]:
        return [Wish(int(row), "unknown") for row in situation.candidates[:2]]


@pytest.mark.parametrize("strategy", ["auto", "typical", "uncertain", "unknown", "random"])
def test_suggestions_have_no_label_and_say_what_the_model_thinks(ridge: GraphClassifier, strategy: str) -> None:
    found = ridge.suggest(12, strategy=strategy)
    nodes = [each.node for each in found]
    assert len(nodes) == len(set(nodes)) == 12
    assert not set(nodes) & set(ridge.labels()["node"].tolist())
    said = ridge.predictions(nodes)
    assert [each.classes[0][0] for each in found] == said["class"].tolist()
    assert [each.classes[0][1] for each in found] == pytest.approx(said["probability"].tolist())
    assert [each.unknown for each in found] == said["unknown"].tolist()
    assert [each.strangeness for each in found] == pytest.approx(said["unknown_score"].tolist())
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
    (first, one), (second, two) = between.classes[:2]
    assert between.why == f"it lies between {first} ({100 * one:.0f} %) and {second} ({100 * two:.0f} %)"
    (strange,) = ridge.suggest(1, strategy="unknown")
    assert strange.why.startswith("it looks like none of the known classes")
    assert ridge.suggest(1, strategy="random")[0].why == "it was drawn at random"


def test_a_strategy_of_your_own(ridge: GraphClassifier) -> None:
    labelled = set(ridge.labels()["node"].tolist())
    free = [node for node in ridge.node_ids_.tolist() if node not in labelled]
    assert [each.node for each in ridge.suggest(5, strategy=FirstTwo)] == free[:2]
    assert [each.node for each in ridge.suggest(5, strategy="first-two")] == free[:2]


def test_a_budget_beyond_all_nodes(ridge: GraphClassifier) -> None:
    free = len(ridge.node_ids_) - len(ridge.labels()["node"])
    assert len(ridge.suggest(10_000, strategy="random")) == free
    assert GraphClassifier("sgc-ridge").fit(small_graph()).suggest(5) == ()


def test_bad_input(ridge: GraphClassifier) -> None:
    with pytest.raises(InputError, match="a budget of 0 makes no sense"):
        ridge.suggest(0)
    with pytest.raises(InputError, match="there is no strategy 'typicl': did you mean 'typical'"):
        ridge.suggest(3, strategy="typicl")


# A graph without a model


def test_a_graph_without_a_model() -> None:
    """With as many nodes as twice the classes, most classes are among them."""
    graph = small_graph()
    found = suggest_for_graph(graph, 20)
    assert len({each.node for each in found}) == 20
    rows = [int(np.flatnonzero(graph.node_ids == each.node)[0]) for each in found]
    assert len(set(graph.labels[rows].tolist())) >= 8
    assert all(each.classes == () and not each.unknown and each.why for each in found)
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


def test_the_table_has_an_empty_column_to_fill_in(ridge: GraphClassifier) -> None:
    found = ridge.suggest(3)
    table = suggestion_table(found)
    assert list(table) == ["node", "class", "guess", "probability", "unknown", "reason", "why"]
    assert table["node"].tolist() == [each.node for each in found]
    assert table["class"].tolist() == ["", "", ""]
    assert table["guess"].tolist() == [each.classes[0][0] for each in found]
    assert suggestion_table(suggest_for_graph(small_graph(), 2))["guess"].tolist() == ["", ""]
    assert [column.size for column in suggestion_table(()).values()] == [0] * 7
