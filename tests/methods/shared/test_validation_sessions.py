"""Validation sessions: what they ask, how they count, and the stream they make."""

import numpy as np
import pytest

from graphfcl import Protocol, Stream, make_stream
from graphfcl.methods.shared.validation_sessions import ValidationSessions, all_held_out, held_out_draws
from tests.graphs import random_graph
from tests.methods.test_checks import make, stream_of


@pytest.fixture(scope="module")
def stream() -> Stream:
    return stream_of(pseudo_novel=5, way=2, base=3)


def test_calling_every_node_new_is_worth_nothing(stream: Stream) -> None:
    validation = ValidationSessions.draw(stream.base, 0)
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
    validation = ValidationSessions.draw(base, 0)
    reduced, sessions = validation.only(1).as_stream(base)
    held_out = {base.classes[column] for column in base.validation_columns}
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
    validation = ValidationSessions.draw(stream.base, 0)
    reduced, sessions = validation.as_stream(stream.base)
    learner = make("sgc-ridge")
    learner.fit(reduced)
    for session in sessions:
        learner.learn(session)
    nodes, _ = validation.queries
    found = learner.scores(stream.base.visible_graph, nodes).argmax(axis=1)
    assert validation.only(0).score(lambda *_: found) > 2 / validation.class_count


def test_held_out_classes_are_drawn_several_times() -> None:
    graph = random_graph(0, [40] * 3 + [20] * 17, density=0.01)
    base = make_stream(graph, Protocol(base=3, pseudo_novel=15, way=2), seed=1).base
    draws = held_out_draws(base, 1, 4)
    columns = [draw.validation_columns for draw in draws]
    assert columns[0] == base.validation_columns
    assert [len(each) for each in columns] == [3] * 4
    held_out = [column for each in columns for column in each]
    assert len(set(held_out)) == 12, "no class twice as long as others are left"
    assert set(held_out) <= set(range(3, 18))
    assert [draw.validation_columns for draw in held_out_draws(base, 1, 4)] == columns
    assert [draw.validation_columns for draw in held_out_draws(base, 2, 4)] != columns
    assert all_held_out(base).validation_columns == tuple(range(3, 18))


def test_few_pseudo_novel_classes_give_fewer_draws() -> None:
    graph = random_graph(0, [40] * 3 + [20] * 6, density=0.01)
    two = make_stream(graph, Protocol(base=3, pseudo_novel=2, way=1), seed=1).base
    assert sorted(draw.validation_columns for draw in held_out_draws(two, 0, 3)) == [(3,), (4,)]
    none = make_stream(graph, Protocol(base=3, pseudo_novel=0, way=1), seed=1).base
    assert [draw.validation_columns for draw in held_out_draws(none, 0, 3)] == [()]
