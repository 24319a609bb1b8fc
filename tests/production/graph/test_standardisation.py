"""Dense features of a model: standardised at the fit, and for ever after by the same means."""

from pathlib import Path

import numpy as np
import pytest

from graphfcl import Graph, GraphClassifier, build_graph
from tests.methods.test_checks import QUICK
from tests.production.models import graph_in_memory


def dated_graph() -> Graph:
    """Six classes told by two of four numbers a node; one more is in seconds since 1970, one is always 1,000."""
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(6), 25)
    values = np.zeros((150, 4))
    values[:, :2] = 3 * np.array([[0, 0], [0, 2], [2, 0], [2, 2], [4, 0], [4, 2]])[labels] + random.normal(
        size=(150, 2)
    )
    values[:, 2] = 1.7e9 + 1e7 * random.random(150)
    values[:, 3] = 1000
    edges = (random.random((150, 150)) < 0.02) | (
        (random.random((150, 150)) < 0.15) & (labels[:, None] == labels[None])
    )
    return build_graph(edges, values, [f"c{label}" for label in labels], name="dated")


def test_means_are_those_of_the_train_nodes_and_stay(tmp_path: Path) -> None:
    graph = dated_graph()
    model = GraphClassifier("proto-gcn", QUICK["proto-gcn"]).fit(graph, hide_classes=["c5"])
    shown = model.graph_.visible.loaded().features
    start = model.label_store_
    train = model.graph_.visible.rows(start.nodes[start.parts == 0])
    np.testing.assert_allclose(shown[train][:, :3].mean(axis=0), 0, atol=1e-3)
    np.testing.assert_allclose(shown[train][:, :3].std(axis=0), 1, atol=1e-3)
    assert not shown[:, 3].any(), "a constant says nothing"
    model.save(tmp_path / "model")
    again = GraphClassifier.load(tmp_path / "model")
    assert again.standardise
    np.testing.assert_array_equal(again.graph_.visible.loaded().features, shown)
    np.testing.assert_array_equal(again.predict_proba(), model.predict_proba())
    again.grow(nodes=([1000], np.array([[3.0, 6.0, 1.7e9, 5.0]]), None))
    standard = graph_in_memory(again).standardisation
    assert standard is not None
    expected = (np.array([3.0, 6.0, 1.7e9]) - standard.mean[:3]) / standard.deviation[:3]
    np.testing.assert_allclose(again.graph_.visible.loaded().features[-1, :3], expected, rtol=1e-4)
    assert again.graph_.visible.loaded().features[-1, 3] == 0


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    graph = dated_graph()
    raw = GraphClassifier("sgc-ridge", {"rank": 4}, standardise=False).fit(graph, hide_classes=["c5"])
    np.testing.assert_array_equal(raw.graph_.visible.loaded().features, graph.features)
    raw.save(tmp_path / "model")
    again = GraphClassifier.load(tmp_path / "model")
    assert not again.standardise
    np.testing.assert_array_equal(again.graph_.visible.loaded().features, graph.features)


@pytest.mark.parametrize("method", ["hag-meta", "anchor", "finetune"])
def test_a_column_of_seconds_since_1970_breaks_nothing(method: str) -> None:
    """As it is, such a column makes training diverge or fall to chance."""
    graph = dated_graph()
    model = GraphClassifier(method, QUICK.get(method, {})).fit(graph, hide_classes=["c5"])
    found = np.array(model.predict(graph.node_ids[graph.labels < 5].tolist()))
    assert np.mean(found == np.array(graph.class_names)[graph.labels[graph.labels < 5]]) > 0.6
