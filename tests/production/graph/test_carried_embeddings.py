"""Embeddings after a change of the graph are those of a fresh forward pass."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphfcl import GraphClassifier
from tests.production.models import copy_of, fitted, graph_in_memory, same_answers, small_graph


@pytest.fixture(scope="module")
def far_start() -> GraphClassifier:
    return fitted("anchor", hops=4)


@pytest.mark.parametrize("far", [False, True])
@settings(max_examples=15, deadline=None)
@given(st.data())
def test_growth_recomputes_exactly_what_it_reaches(
    start: GraphClassifier, far_start: GraphClassifier, far: bool, data: st.DataObject
) -> None:
    graph = small_graph()
    model = copy_of(far_start if far else start)
    ids = st.sampled_from(graph.node_ids.tolist())
    for _ in range(2):
        if data.draw(st.booleans()):
            count = data.draw(st.integers(1, 3))
            fresh = [10000 + model.graph_.next_number + number for number in range(count)]
            targets = data.draw(st.lists(ids, min_size=count, max_size=count))
            features = np.random.default_rng(0).random((count, 200)).astype(np.float32)
            model.grow(nodes=(fresh, features, None), edges=(fresh, targets, None))
        else:
            adjacency = graph_in_memory(model).adjacency.tocoo()
            place = data.draw(st.integers(0, adjacency.nnz - 1))
            ends = model.node_ids_[[adjacency.row[place], adjacency.col[place]]]
            model.remove_edges([ends[0]], [ends[1]])
    found = model.learner_.embeddings(model.graph_.visible)
    again = copy_of(model)
    expected = again.learner_.embeddings(again.graph_.visible)
    digits = 1e-4 if found.dtype == np.float32 else 2e-3  # kept in 16 bits
    np.testing.assert_allclose(found, expected, rtol=digits, atol=digits / 10)
    same_answers(again, model, digits)
