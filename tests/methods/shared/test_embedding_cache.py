"""The one cache of a learner: what it keeps, and what makes it forget."""

import numpy as np
import pytest
import torch

from graphfcl import Session, VisibleGraph, find_method
from graphfcl.methods.shared.embedding_cache import EmbeddingCache
from graphfcl.nn import GraphInputs
from tests.golden.samples import SHORT, golden_stream


def cache_of() -> tuple[EmbeddingCache, list[VisibleGraph]]:
    """A cache, and the graphs that were put on the device for it."""
    prepared: list[VisibleGraph] = []

    def prepare(visible: VisibleGraph) -> GraphInputs:
        prepared.append(visible)
        return GraphInputs(visible, torch.device("cpu"))

    return EmbeddingCache(prepare), prepared


def test_a_graph_is_put_on_the_device_once_and_another_takes_its_place() -> None:
    stream, (cache, prepared) = golden_stream("transductive"), cache_of()
    first, second = stream.visible_graph(0), stream.visible_graph(1)
    inputs = cache.inputs(first)
    cache.keep_embeddings(first, torch.ones(first.node_count, 2))
    assert cache.inputs(first) is inputs
    assert cache.embeddings(inputs) is not None
    assert cache.embeddings(GraphInputs(first.loaded(), torch.device("cpu"))) is None, (
        "they are of the graph that is kept"
    )
    cache.inputs(second)
    assert cache.embeddings(inputs) is None
    assert [id(visible) for visible in prepared] == [id(first), id(second)]


def test_changed_weights_forget_both_and_changed_classes_the_scores() -> None:
    stream, (cache, _) = golden_stream("transductive"), cache_of()
    visible, asked = stream.visible_graph(0), []

    def compute(inputs: GraphInputs) -> torch.Tensor:
        asked.append(inputs)
        return torch.zeros(inputs.visible.node_count, 3)

    cache.keep_embeddings(visible, torch.ones(visible.node_count, 2))
    for _ in range(2):
        cache.scores(visible, compute)
    assert len(asked) == 1
    cache.classes_changed()
    assert cache.embeddings(cache.inputs(visible)) is not None
    cache.scores(visible, compute)
    assert len(asked) == 2
    cache.weights_changed()
    assert cache.embeddings(cache.inputs(visible)) is None
    cache.scores(visible, compute)
    assert len(asked) == 3


@pytest.mark.parametrize("name", ["hag-meta", "meta-gnn", "finetune", "icarl"])
def test_embeddings_do_not_outlive_a_session_that_changes_weights(name: str) -> None:
    """Several sessions on one graph, as in production."""
    stream, found = golden_stream("open"), []
    visible, settings = stream.base.visible_graph, {**SHORT[name], "fine_tuning_steps": 3, "fine_tuning_rate": 0.05}
    for asks in (False, True):
        learner = find_method(name).make(settings)
        learner.fit(stream.base)
        for number in (1, 2):
            if asks:
                learner.use_embeddings(visible, learner.embeddings(visible))
            whole = stream.session(number)
            learner.learn(Session(number, whole.new_classes, whole.supports, whole.support_labels, visible, "open"))
        found.append(learner.scores(visible, visible.nodes))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-5)
