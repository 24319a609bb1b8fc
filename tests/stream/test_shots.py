"""Streams that differ in K alone: the rules ``split_shot`` and ``pool_as_supports``."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphfcl import Graph, InputError, Protocol, Session, Stream, evaluate, load_stream, make_stream, save_stream
from graphfcl.stream import PooledSession, stream_hash
from tests.evaluation.test_evaluate import NearestMean
from tests.graphs import graphs, random_graph

pytestmark = pytest.mark.filterwarnings("ignore:.*were left out")
SHOTS = (1, 2, 4, 6)
MOST = SHOTS[-1]
TRACKS = ("transductive", "isolated", "open")


def nested_streams(graph: Graph, seed: int, **rules: Any) -> list[Stream]:
    """A stream for each K and one with all pool labels, the fewest labels first."""
    shared = {"base": 2, "pseudo_novel": 1, "way": 1, "split_shot": MOST, **rules}
    ways: list[dict[str, Any]] = [*({"shot": shot} for shot in SHOTS), {"shot": MOST, "pool_as_supports": True}]
    return [make_stream(graph, Protocol(**shared, **way), seed=seed) for way in ways]


def numbers(stream: Stream) -> range:
    return range(1, len(stream) + 1)


class Recording(NearestMean):
    """Keeps the sessions that it was handed."""

    def __init__(self) -> None:
        super().__init__()
        self.sessions: list[Session] = []

    def learn(self, session: Session) -> None:
        self.sessions.append(session)
        super().learn(session)


@given(graphs(), st.integers(0, 99), st.sampled_from(TRACKS), st.sampled_from(["size", "random"]))
@settings(max_examples=25, deadline=None)
def test_only_the_supports_differ(graph: Graph, seed: int, track: Any, order: Any) -> None:
    streams = nested_streams(graph, seed, track=track, class_order=order)
    largest = make_stream(graph, Protocol(2, 1, way=1, shot=MOST, track=track, class_order=order), seed=seed)
    for stream in streams:
        assert stream.classes == largest.classes
        assert stream.session_of_class.tolist() == largest.session_of_class.tolist()
        base, other = stream.base, largest.base
        assert base.pseudo_novel_tasks == other.pseudo_novel_tasks
        for part in ("train", "train_labels", "validation", "validation_labels"):
            np.testing.assert_array_equal(getattr(base, part), getattr(other, part))
        for number in (0, *numbers(stream)):
            for actual, expected in zip(
                (stream.visible_graph(number), stream.evaluation_graph(number)),
                (largest.visible_graph(number), largest.evaluation_graph(number)),
                strict=True,
            ):
                np.testing.assert_array_equal(actual.nodes, expected.nodes)
                np.testing.assert_array_equal(actual.adjacency.toarray(), expected.adjacency.toarray())  # type: ignore[attr-defined]
                np.testing.assert_array_equal(actual.features.toarray(), expected.features.toarray())  # type: ignore[attr-defined]
            np.testing.assert_array_equal(stream.queries(number).nodes, largest.queries(number).nodes)
            np.testing.assert_array_equal(stream.queries(number).labels, largest.queries(number).labels)


@given(graphs(), st.integers(0, 99), st.sampled_from(TRACKS))
@settings(max_examples=15, deadline=None)
def test_supports_are_nested_and_no_further_label_reaches_a_learner(graph: Graph, seed: int, track: Any) -> None:
    before: list[set[int]] = []
    for shot, stream in zip((*SHOTS, None), nested_streams(graph, seed, track=track), strict=True):
        learner = Recording()
        evaluate(learner, stream)
        assert not any(isinstance(session, PooledSession) for session in learner.sessions)
        if shot is not None:
            assert all(session.supports.size == shot for session in learner.sessions)
            assert stream.base.shot == shot
        supports = [set(session.supports.tolist()) for session in learner.sessions]
        assert all(few <= many for few, many in zip(before, supports, strict=bool(before)))
        before = supports


@given(graphs(), st.integers(0, 99))
@settings(max_examples=15, deadline=None)
def test_supports_and_pool_are_the_same_labels_at_every_k(graph: Graph, seed: int) -> None:
    streams = nested_streams(graph, seed)
    for number in numbers(streams[0]):
        labelled, pools = [], []
        for stream in streams:
            session = stream.session(number, with_pool_labels=True)
            assert isinstance(session, PooledSession)
            assert not set(session.pool) & set(session.supports)
            pools.append(session.pool.size)
            labelled.append(sorted([*session.supports.tolist(), *session.pool.tolist()]))
        assert all(nodes == labelled[0] for nodes in labelled)
        assert pools[-1] == 0, "all are supports"
        assert not set(labelled[0]) & set(streams[0].queries(number).nodes.tolist())


def test_a_smaller_k_alone_changes_classes_and_test_nodes() -> None:
    """What the rule is for: without it the K of a stream decides which classes are large enough."""
    graph = random_graph(0, [40, 40, 40, 12, 12, 8, 8, 5], density=0.02)
    few, many = (make_stream(graph, Protocol(2, 1, way=1, shot=shot), seed=1) for shot in (2, 6))
    assert set(many.classes) < set(few.classes)
    nested = nested_streams(graph, 1)
    assert {stream.classes for stream in nested} == {many.classes}
    assert nested[0].split.left_out == {"c7": "5 nodes, fewer than 7"}


def test_a_stream_of_its_own_k_is_that_of_the_plain_rules(tmp_path: Path) -> None:
    graph = random_graph(0, [30] * 6, density=0.02)
    plain, split = Protocol(2, 1, shot=5), Protocol(2, 1, shot=5, split_shot=5)
    assert stream_hash(make_stream(graph, plain, seed=3)) == stream_hash(make_stream(graph, split, seed=3))
    assert not {"split_shot", "pool_as_supports"} & plain.as_json().keys(), "stored protocols stay what they are"
    hashes = {stream_hash(stream) for stream in nested_streams(graph, 3)}
    assert len(hashes) == len(SHOTS) + 1
    for stream in nested_streams(graph, 3):
        save_stream(stream, tmp_path / "stream.json")
        loaded = load_stream(tmp_path / "stream.json", graph)
        assert loaded.protocol == stream.protocol
        assert stream_hash(loaded) == stream_hash(stream)


def test_sampled_queries_are_the_same_at_every_k() -> None:
    graph = random_graph(0, [60] * 6, density=0.01)
    streams = nested_streams(graph, 0, name="paper")
    for number in (0, *numbers(streams[0])):
        assert len({tuple(stream.queries(number).nodes.tolist()) for stream in streams}) == 1


def test_a_graph_without_rules_is_split_for_the_largest_k() -> None:
    graph = random_graph(0, [60] * 8 + [10] * 8, density=0.01)
    streams = [make_stream(graph, seed=0, split_shot=20, shot=shot) for shot in (1, 20)]
    assert streams[0].classes == streams[1].classes
    assert all(graph.class_sizes[number] == 60 for number in streams[0].split.classes)
    assert make_stream(graph, seed=0, split_shot=20).protocol.shot == 5


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"shot": 9}, "shot is 9, but classes and test nodes are chosen for 6: raise split_shot"),
        ({"split_shot": 0}, "split_shot is 0; it must be at least 1"),
        ({"split_shot": 40}, "leaves no novel class with 41 nodes or more: ask for fewer"),
        ({"track": "active", "pool_as_supports": True}, "the track 'active' has no pool"),
    ],
)
def test_rules_that_do_not_fit(rules: dict[str, Any], message: str) -> None:
    graph = random_graph(0, [80, 80, 80, 30, 30], density=0.01)
    shared = {"base": 2, "pseudo_novel": 1, "way": 1, "shot": 3, "split_shot": MOST}
    with pytest.raises(InputError, match=message):
        make_stream(graph, Protocol(**{**shared, **rules}))
