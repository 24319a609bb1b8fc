"""New nodes by their words and by named features."""

import numpy as np
import pytest

from graphfcl import GraphClassifier, InputError, build_graph
from tests.production.models import copy_of, graph_in_memory, quick


def test_text_nodes_grow_in_by_their_words() -> None:
    import scipy.sparse as sp

    from graphfcl.graph import TextSettings

    random = np.random.default_rng(0)
    words = np.array(["apple", "banana", "cherry", "dragon", "engine", "forest"])
    labels = np.repeat(np.arange(3), 60)
    counts = sp.csr_array((random.random((180, 6)) < 0.15).astype(np.float32))
    counts = sp.csr_array(counts + sp.csr_array(np.eye(6, dtype=np.float32)[labels * 2]))
    adjacency = sp.random_array((180, 180), density=0.005, random_state=random)
    graph = build_graph(adjacency, counts, labels, feature_names=words, text=TextSettings(1))
    model = GraphClassifier("proto-gcn", quick("proto-gcn"), shot=3).fit(graph)
    model.add_nodes(
        ["a", "b"] if model.node_ids_.dtype.kind != "i" else [1000, 1001], texts=["Cherry cherry!", "engine"]
    )
    assert model.predict([1000]).tolist() == [1]
    with pytest.raises(InputError, match="no features"):
        model.add_nodes([1002])


def test_nodes_grow_in_by_named_features(start: GraphClassifier) -> None:
    model = copy_of(start)
    names = [f"feature_{column}" for column in range(200)]
    row = graph_in_memory(model).features[[3]].toarray()[0]
    model.add_nodes([9000, 9001], [{n: v for n, v in zip(names, row, strict=True) if v}, {}])
    model.add_nodes([9002], row[None])
    np.testing.assert_array_equal(
        graph_in_memory(model).features[[500]].toarray(), graph_in_memory(model).features[[502]].toarray()
    )
    with pytest.raises(InputError, match="no feature 'colour'"):
        model.add_nodes([9003], [{"colour": 1}])
