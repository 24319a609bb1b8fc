"""The graph of ``make serve-demo``."""

import numpy as np

from graphfcl import load_dataset
from scripts.demo_model import KNOWN, LARGEST, TO_TEACH, demo_graph


def test_the_demo_has_nine_sections_with_something_to_teach() -> None:
    graph, (whole, _) = demo_graph(), load_dataset("debian")
    assert set(graph.class_names) == {*KNOWN, *TO_TEACH}
    section = dict(zip(whole.node_ids.tolist(), np.array(whole.class_names)[whole.labels], strict=True))
    for name in graph.class_names:
        own = [row for row, node in enumerate(graph.node_ids.tolist()) if section[node] == name]
        assert 50 <= len(own) <= LARGEST
        without = float(np.mean(graph.labels[own] < 0))
        assert 0.2 < without < 0.5, "about a third of each section has no label"
        assert {graph.class_names[label] for label in graph.labels[own] if label >= 0} == {name}
    assert (np.diff(graph.adjacency.indptr) > 0).mean() > 0.95, "there is something to look at around a node"
