"""What looks wrong with a graph: each finding on a graph that has it, and none on one that is fine."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from graphfcl import Graph, GraphFolder, InputError, check_graph, from_scipy
from graphfcl.graph.folder import write_folder
from graphfcl.production.graph_check import FOLDS, PENALTY, cross_predicted, propagated
from tests.cli.command import graphfcl_inside

COUNT, CLASSES = 240, 3


def sample(seed: int = 0, *, labels: Any = None, noise: float = 3.0, inside: float = 0.9, **more: Any) -> Graph:
    """Features that are noisy, and edges of which a share joins nodes of one class."""
    random = np.random.default_rng(seed)
    truth = np.arange(COUNT) % CLASSES
    features = np.eye(CLASSES)[truth] + random.normal(scale=noise, size=(COUNT, CLASSES))
    source = random.integers(0, COUNT, 900)
    step = np.where(random.random(900) < inside, CLASSES, 1) * random.integers(1, COUNT // CLASSES, 900)
    target = (source + step) % COUNT
    weights = more.pop("weights", np.ones(900))
    adjacency = sparse.coo_array((weights, (source, target)), shape=(COUNT, COUNT))
    return from_scipy(adjacency, more.pop("features", features), truth if labels is None else labels, **more)


def kinds(graph: Graph) -> dict[str, bool]:
    return {finding.kind: finding.serious for finding in check_graph(graph)}


def test_a_good_graph_has_no_findings() -> None:
    assert kinds(sample()) == {}


def test_weights_that_hurt_are_serious_and_edges_that_do_not_help_are_not() -> None:
    noise = np.exp(np.random.default_rng(1).normal(scale=3.0, size=900))
    assert kinds(sample(weights=noise)).get("weights-hurt") is True
    assert kinds(sample(noise=0.4, inside=0.0)).get("edges-do-not-help") is False


def test_columns_and_features() -> None:
    constant = np.column_stack([sample().features, np.full(COUNT, 7.0)])
    assert kinds(sample(features=constant)) == {"constant-column": False}
    with pytest.warns(UserWarning, match="no features"):
        without = sample(features=np.zeros((COUNT, 0)))
    assert kinds(without)["no-features"] is True


def test_a_column_that_is_the_label_is_serious_without_tables_too() -> None:
    told = np.column_stack([sample().features, np.arange(COUNT) % CLASSES])
    (finding,) = [each for each in check_graph(sample(features=told)) if each.kind == "column-tells-label"]
    assert finding.serious
    assert "Column feature_3" in finding.text


def test_a_graph_folder_and_what_is_no_graph(tmp_path: Path) -> None:
    write_folder(sample(), tmp_path / "folder")
    assert check_graph(GraphFolder.open(tmp_path / "folder")) == []
    with pytest.raises(InputError, match="check_graph needs a graph"):
        check_graph("folder")
    assert (
        kinds(sample(labels=np.where(np.arange(COUNT) < 45, np.arange(COUNT) % CLASSES, -1)))["not-measured"] is False
    )


def test_classes() -> None:
    names = np.array(["shoes", "jackets", "hats"])[np.arange(COUNT) % CLASSES].astype(object)
    names[:3] = ["Shoes", "jakets", "boots"]
    found = {finding.text: finding.serious for finding in check_graph(sample(labels=names.tolist()))}
    assert any("'Shoes'" in text and "fold=yes" in text and serious for text, serious in found.items())
    assert any("'jackets' and 'jakets'" in text and not serious for text, serious in found.items())
    assert any("3 of 6 classes have fewer than 7 labels" in text and not serious for text, serious in found.items())
    assert "one-class" in kinds(sample(labels=np.zeros(COUNT, dtype=int)))
    few = np.where(np.arange(COUNT) < 60, np.arange(COUNT) % CLASSES, -1)
    assert kinds(sample(labels=few)).get("labels") is False


def test_nodes_without_edges() -> None:
    graph = from_scipy(sparse.coo_array((COUNT, COUNT)), sample().features, np.arange(COUNT) % CLASSES)
    assert kinds(graph) == {"lone-nodes": True}


def test_predictions_are_those_of_a_plain_loop() -> None:
    random = np.random.default_rng(0)
    inputs, labels = random.normal(size=(60, 4)), random.permutation(np.repeat([2, 5, 9], [30, 20, 10]))
    folds = random.permutation(60) % FOLDS
    wanted = np.empty(60, dtype=int)
    for node in range(60):
        gram, right = np.zeros((4, 4)), np.zeros((4, 3))
        rest = [other for other in range(60) if folds[other] != folds[node]]
        for other in rest:
            share = 1 / (3 * sum(labels[each] == labels[other] for each in rest))
            gram += share * np.outer(inputs[other], inputs[other])
            right[:, [2, 5, 9].index(labels[other])] += share * inputs[other]
        gram += PENALTY * np.trace(gram) / 4 * np.eye(4)
        wanted[node] = [2, 5, 9][int(np.argmax(inputs[node] @ np.linalg.inv(gram) @ right))]
    np.testing.assert_array_equal(cross_predicted(inputs, labels, folds), wanted)


def test_propagated_features_are_those_of_dense_matrices() -> None:
    graph = sample(weights=np.random.default_rng(2).uniform(0.5, 2, 900))
    loops = graph.adjacency.toarray() + np.eye(COUNT)
    scale = np.diag(1 / np.sqrt(loops.sum(axis=1)))
    once = scale @ loops @ scale @ graph.features
    wanted = np.hstack([graph.features, once, scale @ loops @ scale @ once, np.ones((COUNT, 1))])
    np.testing.assert_allclose(propagated(graph.features, graph.adjacency), wanted, rtol=1e-4, atol=1e-5)


def test_the_command_line_has_an_exit_code(tmp_path: Path) -> None:
    lines = [f"{node},{'abc'[node % 3]},{node % 3 + node % 7 / 3},{node % 3}" for node in range(60)]
    (tmp_path / "nodes.csv").write_text("\n".join(["id,label,price,code", *lines]))
    edges = [f"{node},{(node + 3) % 60}" for node in range(60)]
    (tmp_path / "edges.csv").write_text("\n".join(["source,target", *edges]))
    found = graphfcl_inside("data", "check", "--graph", tmp_path)
    assert found.code == 1, found.err
    assert "serious: column 'code' nearly determines the label" in found.out
    assert found.out.rstrip().splitlines()[-1].endswith("serious.")
    fine = graphfcl_inside("data", "check", "--graph", f"{tmp_path}:drop=code", "--json")
    assert fine.code == 0, fine.out
    assert not any(each["serious"] for each in json.loads(fine.out)["findings"])
    (tmp_path / "nodes.csv").write_text("id,label,price\n1,a,2\n1,b,3\n")
    assert graphfcl_inside("data", "check", "--graph", tmp_path).code == 2
