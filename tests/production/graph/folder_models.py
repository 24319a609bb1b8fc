"""Small models of graph folders."""

from pathlib import Path
from typing import Any

import numpy as np

from graphfcl import GraphClassifier, GraphFolder, Resources
from graphfcl.graph.folder import write_folder
from tests.methods.blocks.samples import random_graph

HIDDEN = ["class 7", "class 8"]


SETTINGS: dict[str, dict[str, Any]] = {
    "sgc-ridge": {},
    "anchor": {"encoder_input": "hops", "pretraining.epochs": 3},
}


def folder_graph(path: Path, work: Path, *, words: bool = False) -> GraphFolder:
    if not path.exists():
        write_folder(random_graph(400, words=words), path)
    return GraphFolder.open(path, Resources(work, 4 << 30))


def fit(graph: Any, method: str = "sgc-ridge") -> GraphClassifier:
    return GraphClassifier(method, SETTINGS[method]).fit(graph, hide_classes=HIDDEN)


def supports(graph: GraphFolder) -> dict[str, list[int]]:
    number = {name: place for place, name in enumerate(graph.class_names)}
    return {name: graph.node_ids[np.flatnonzero(graph.labels == number[name])[:5]].tolist() for name in HIDDEN}


def assert_same(first: GraphClassifier, second: GraphClassifier) -> None:
    """Up to roundings of vectors to 16 bits that fall on the other side."""
    nodes = sorted(first.node_ids_.tolist())
    one, other = first.prediction_columns(nodes, coverage=0.8), second.prediction_columns(nodes, coverage=0.8)
    np.testing.assert_array_equal(one["node"], other["node"])
    assert (one["class"] == other["class"]).mean() > 0.99
    np.testing.assert_allclose(one["probability"], other["probability"], atol=5e-3)
    np.testing.assert_allclose(one["unknown_score"], other["unknown_score"], atol=2e-2)
    assert (one["unknown"] == other["unknown"]).mean() > 0.98
    assert (one["set"] == other["set"]).mean() > 0.97
    np.testing.assert_allclose(first.predict_proba(nodes), second.predict_proba(nodes), atol=5e-3)
