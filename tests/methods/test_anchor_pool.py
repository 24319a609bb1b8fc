"""ANCHOR with pool labels against ANCHOR that is handed the same labels as supports."""

import numpy as np
import pytest

from graphfcl import Session, Stream, evaluate, find_method
from graphfcl.experiments.paper_grids import all_methods
from tests.golden.samples import SHORT, golden_stream


@pytest.fixture(scope="module")
def stream() -> Stream:
    return golden_stream("transductive")


def test_it_is_anchor_with_the_pool_among_the_supports(stream: Stream) -> None:
    pooled, plain, few = (find_method(name).make(SHORT["anchor"], seed=0) for name in ("anchor-pool", *2 * ["anchor"]))
    for learner in (pooled, plain, few):
        learner.fit(stream.base)
    for number in range(1, len(stream) + 1):
        session = stream.session(number, with_pool_labels=True)
        pooled.learn(session)
        few.learn(stream.session(number))
        nodes = np.append(session.supports, session.pool)  # type: ignore[attr-defined]
        columns = np.append(session.support_labels, session.pool_labels)  # type: ignore[attr-defined]
        plain.learn(Session(number, session.new_classes, nodes, columns, session.visible_graph, session.track))
    visible, queries = stream.evaluation_graph(len(stream)), stream.queries(len(stream)).nodes
    np.testing.assert_array_equal(pooled.scores(visible, queries), plain.scores(visible, queries))
    assert not np.allclose(pooled.scores(visible, queries), few.scores(visible, queries))


def test_without_pool_labels_it_is_anchor(stream: Stream) -> None:
    """As under the track ``active`` and in production."""
    pooled, plain = (find_method(name).make(SHORT["anchor"], seed=0) for name in ("anchor-pool", "anchor"))
    for learner in (pooled, plain):
        learner.fit(stream.base)
        learner.learn(stream.session(1))
    visible, queries = stream.evaluation_graph(1), stream.queries(1).nodes
    np.testing.assert_array_equal(pooled.scores(visible, queries), plain.scores(visible, queries))


def test_it_is_a_row_of_table_2_that_receives_pool_labels(stream: Stream) -> None:
    learner = find_method("anchor-pool").make(SHORT["anchor"], seed=0)
    assert learner.uses_pool_labels
    evaluate(learner, stream)
    pools = sum(stream.session(number, with_pool_labels=True).pool.size for number in range(1, len(stream) + 1))  # type: ignore[attr-defined]
    supports = sum(stream.session(number).supports.size for number in range(1, len(stream) + 1))
    counts = learner.state().tensors["anchors.counts"]
    assert float(counts.sum()) == stream.base.train.size + supports + pools
    assert "anchor-pool" in all_methods()
