"""Validation sessions: what they ask, how they count, and the stream they make."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphfcl import BaseSession, Protocol, Stream, make_stream
from graphfcl.methods.shared.validation_sessions import ValidationSessions, held_out_folds
from tests.graphs import random_graph
from tests.methods.test_checks import make, stream_of


@pytest.fixture(scope="module")
def stream() -> Stream:
    return stream_of(pseudo_novel=5, way=2, base=3)


def test_calling_every_node_new_is_worth_nothing(stream: Stream) -> None:
    validation = ValidationSessions.draw(stream.base, (4, 6), 0)
    assert validation.has_new_classes
    nodes, labels = validation.queries
    new = np.full(nodes.size, validation.known_count)
    assert validation.score(lambda *_: new) < 0.01
    assert validation.score(lambda *_: labels) == pytest.approx(1.0)
    half = labels.copy()
    for column in np.unique(labels):
        members = np.flatnonzero(labels == column)
        half[members[: members.size // 2]] = (column + 1) % validation.class_count
    known, held_out = (
        np.mean([(half[labels == c] == c).mean() for c in part])
        for part in (range(validation.known_count), range(validation.known_count, validation.class_count))
    )
    assert validation.score(lambda *_: half) == pytest.approx(2 * known * held_out / (known + held_out))


def test_held_out_classes_arrive_in_a_stream(stream: Stream) -> None:
    base = stream.base
    validation = ValidationSessions.draw(base, (4, 6), 0)
    reduced, sessions = validation.only(1).as_stream(base)
    held_out = {base.classes[column] for column in validation.held_out}
    assert set(reduced.classes) == set(base.classes) - held_out
    assert reduced.base_classes == base.base_classes
    names = {node: base.classes[label] for node, label in zip(base.train, base.train_labels, strict=True)}
    for node, label in zip(reduced.train, reduced.train_labels, strict=True):
        assert names[node] == reduced.classes[label]
    arrived = [*reduced.classes]
    for session in sessions:
        arrived += session.new_classes
        assert len(session.new_classes) <= base.way
        for node, label in zip(session.supports, session.support_labels, strict=True):
            assert names[node] == arrived[label]
    assert set(arrived) == set(base.classes)
    assert not set(reduced.train) & {node for session in sessions for node in session.supports}


def test_any_learner_can_be_evaluated_on_that_stream(stream: Stream) -> None:
    validation = ValidationSessions.draw(stream.base, (4, 6), 0)
    reduced, sessions = validation.as_stream(stream.base)
    learner = make("sgc-ridge")
    learner.fit(reduced)
    for session in sessions:
        learner.learn(session)
    nodes, _ = validation.queries
    found = learner.scores(stream.base.visible_graph, nodes).argmax(axis=1)
    assert validation.only(0).score(lambda *_: found) > 2 / validation.class_count


def base_with(pseudo_novel: int, way: int) -> BaseSession:
    graph = random_graph(0, [40] * 3 + [20] * 20, density=0.01)
    return make_stream(graph, Protocol(base=3, pseudo_novel=pseudo_novel, way=way), seed=1).base


@given(st.integers(0, 12), st.integers(1, 4), st.integers(1, 6), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_every_pseudo_novel_class_is_held_out_once(pseudo_novel: int, way: int, count: int, seed: int) -> None:
    base = base_with(pseudo_novel, way)
    folds = held_out_folds(base, seed, count)
    assert folds == held_out_folds(base, seed, count)
    held_out = sorted(column for fold in folds for column in fold)
    assert len(set(held_out)) == len(held_out), "none twice"
    sizes = {len(fold) for fold in folds}
    assert max(sizes) - min(sizes) <= 1
    assert len(folds) <= count
    if pseudo_novel <= way:
        assert folds == [()], "none can be spared"
        return
    assert pseudo_novel - max(sizes) >= way, "so many are left to train on"
    if pseudo_novel >= 2 * way:
        assert min(sizes) >= way
        assert (held_out == list(base.pseudo_novel_columns)) == (count > 1)


def test_seeds_hold_out_different_parts() -> None:
    base = base_with(12, 2)
    drawn = [held_out_folds(base, seed, 3) for seed in range(8)]
    assert [len(fold) for fold in drawn[0]] == [4, 4, 4]
    assert len(set(map(tuple, drawn))) == 8
