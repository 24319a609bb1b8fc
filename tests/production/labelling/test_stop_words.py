"""Words that explain nothing are not shown as reasons."""

import numpy as np

from graphfcl import build_graph
from graphfcl.production.graph import kind_of
from graphfcl.production.labelling.groups import FeatureStatistics, common_words
from graphfcl.production.labelling.stop_words import explains
from tests.graphs import random_graph


def test_function_words_are_left_out_of_what_a_group_has_in_common() -> None:
    plain = random_graph(0, [20, 20])
    counts = np.zeros((40, 3), dtype=np.float32)
    counts[:20, :2] = 1
    counts[:, 2] = 1
    from scipy import sparse

    graph = build_graph(
        plain.adjacency,
        sparse.csr_array(counts),
        plain.labels,
        class_names=plain.class_names,
        node_ids=plain.node_ids,
        feature_names=["The", "rust", "package"],
    )
    model_graph = kind_of(graph).of(graph)
    assert common_words(model_graph, np.arange(8), FeatureStatistics(shares=np.array([0.05, 0.06, 1.0]))) == ("rust",)


def test_words_with_a_meaning_explain() -> None:
    assert [explains(word) for word in ("the", "For", "mine", "fire", "system", "AND", "it's")] == [
        False,
        False,
        True,
        True,
        True,
        False,
        True,
    ]
