"""Geometer: what a session does, what it keeps, and the leaks of the released code."""

from typing import Any

import numpy as np
import pytest
import torch

from graphfcl import InputError, Protocol, Stream, find_method, load_dataset, make_stream
from graphfcl.methods.geometer.learner import Geometer, SessionClasses, Teacher, proximity
from graphfcl.methods.geometer.network import memorability, separability, uniformity
from graphfcl.methods.state import join_labelled
from graphfcl.nn import GraphInputs
from tests.golden.samples import SHORT
from tests.methods.geometer.test_network import plain_prototype

GRAPH = "synthetic:nodes=300,edges=1200,classes=9,features=60,signal=0.9,skew=0.4"


def stream_of(**changes: Any) -> Stream:
    rules = Protocol(**{"base": 4, "pseudo_novel": 3, "way": 1, "shot": 4, **changes})
    return make_stream(load_dataset(GRAPH)[0], rules, seed=0)


def fitted(stream: Stream, **changes: Any) -> Geometer:
    quick = {**SHORT["geometer"], "episodes": 4, "size": 6, "validation_folds": 1, **changes}
    learner = find_method("geometer").make(quick)
    assert isinstance(learner, Geometer)
    learner.fit(stream.base)
    return learner


@pytest.fixture(scope="module")
def stream() -> Stream:
    return stream_of()


@pytest.fixture(scope="module")
def walked(stream: Stream) -> Geometer:
    """After two sessions with steps."""
    learner = fitted(stream, fine_tuning_steps=3, fine_tuning_rate=0.01, distil="near")
    learner.learn(stream.session(1))
    learner.learn(stream.session(2))
    return learner


def session_classes(learner: Geometer, stream: Stream, number: int) -> SessionClasses:
    session, memory = stream.session(number), learner.memory
    arrived = (session.supports, session.support_labels)
    return learner._session_classes(
        join_labelled(memory.train, memory.supports), arrived, np.unique(session.support_labels)
    )


def test_scores_are_distances_to_prototypes_of_all_labelled_nodes(walked: Geometer, stream: Stream) -> None:
    """On the graph visible now, degrees included, and without dropout, which the released code has on at test."""
    visible, asked = stream.evaluation_graph(2), stream.queries(2).nodes[::7]
    embeddings = torch.from_numpy(walked.embeddings(visible))
    encoder = walked.network.encoder
    with torch.no_grad():
        evaluated = encoder(encoder.rows(GraphInputs(visible.loaded(), walked.device), None))
    torch.testing.assert_close(embeddings, evaluated)
    sessions = [stream.session(number) for number in (1, 2)]
    nodes = np.concatenate([stream.base.train, *(each.supports for each in sessions)])
    columns = np.concatenate([stream.base.train_labels, *(each.support_labels for each in sessions)])
    expected = np.empty((asked.size, 9))
    for k in range(9):
        rows = visible.rows(nodes[columns == k])
        degrees = torch.tensor([1 + visible.loaded().adjacency[[row]].sum() for row in rows])
        prototype = plain_prototype(walked.network.attention, embeddings[torch.from_numpy(rows)], degrees)
        expected[:, k] = -((embeddings[torch.from_numpy(visible.rows(asked))] - prototype) ** 2).sum(dim=1)
    np.testing.assert_allclose(walked.scores(visible, asked), expected, rtol=1e-3, atol=1e-4)


def test_the_loss_of_a_session_is_the_weighed_sum(walked: Geometer, stream: Stream) -> None:
    inputs = GraphInputs(stream.evaluation_graph(2).loaded(), walked.device)
    classes = session_classes(walked, stream, 2)
    episode = classes.sample("balanced", leave_out=True, random=np.random.default_rng(0))
    teacher = Teacher(walked.network, inputs, [episode]).geometry(episode)
    with torch.no_grad():
        student = walked.network.geometry(inputs, episode, torch.Generator().manual_seed(0))
    new = torch.from_numpy(classes.new)
    assert new.tolist() == [False] * 8 + [True]
    found = walked._session_loss(student, teacher, episode, new, "near")
    p, d = student.prototypes, student.distances
    likelihood = torch.log_softmax(-d, dim=1)[torch.arange(len(d)), torch.from_numpy(episode.query_classes)]
    by_class = [likelihood[torch.from_numpy(episode.query_classes == k)].mean() for k in range(9)]
    expected = (
        -1.5 * torch.stack(by_class).mean()
        + 2 * memorability(d[:, :8], teacher.distances[:, :8], "near")
        + 2 * separability(p[8:], p[:8])
        + uniformity(p)
    )
    torch.testing.assert_close(found, expected)
    base = walked._episode_loss(inputs, episode)
    assert bool(base.isfinite())
    assert float(proximity(student, episode, by_class=False)) == pytest.approx(-float(likelihood.mean()), rel=1e-5)


def test_the_teacher_is_what_the_session_found_and_is_encoded_once(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = fitted(stream, fine_tuning_steps=3, fine_tuning_rate=0.05, distil="far")
    learner.learn(stream.session(1))
    inputs = GraphInputs(stream.evaluation_graph(1).loaded(), learner.device)
    classes = session_classes(learner, stream, 1)
    episode = classes.sample("released", leave_out=True, random=np.random.default_rng(0))
    teacher = Teacher(learner.network, inputs, [episode])
    with torch.no_grad():
        before = learner.network.geometry(inputs, episode, None)
    torch.testing.assert_close(teacher.geometry(episode).distances, before.distances, rtol=1e-4, atol=1e-4)
    assert float(memorability(before.distances, teacher.geometry(episode).distances, "far")) < 1e-6
    calls = []
    plain = learner.network.embed
    monkeypatch.setattr(learner.network, "embed", lambda *found: calls.append(found) or plain(*found))  # type: ignore[func-returns-value]
    learner._take_steps(inputs, classes, 3, 0.05, "far")
    assert len(calls) == 1, "the three steps share it"
    torch.testing.assert_close(teacher.geometry(episode).distances, before.distances, rtol=1e-4, atol=1e-4)
    with torch.no_grad():
        after = learner.network.geometry(inputs, episode, None)
    assert float((after.distances - before.distances).abs().max()) > 1e-3


def test_the_encoder_has_a_rate_of_its_own(stream: Stream) -> None:
    """The first step of Adam is the rate itself, in every number that has a slope."""
    learner = fitted(stream, fine_tuning_steps=1, distil="far", weight_decay=0.0, encoder_rate=0.1)
    learner.learn(stream.session(1))
    before = {name: value.clone() for name, value in learner.network.state_dict().items()}
    inputs = GraphInputs(stream.session(1).visible_graph.loaded(), learner.device)
    learner._take_steps(inputs, session_classes(learner, stream, 1), 1, 0.01, "far")
    moved = {n: float((v - before[n]).abs().max()) for n, v in learner.network.state_dict().items()}
    assert moved["encoder.second.weight"] == pytest.approx(0.001, rel=0.01)
    assert moved["attention.out.weight"] == pytest.approx(0.01, rel=0.01)


def test_a_session_scores_nothing(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leak: the released code scores test nodes after every step and keeps what was best."""
    learner = fitted(stream, fine_tuning_steps=2, distil="far")

    def refuse(*_: Any) -> None:
        raise AssertionError("asked for scores")

    for name in ("scores", "_score_all", "_validate"):
        monkeypatch.setattr(learner, name, refuse)
    learner.learn(stream.session(1))


def test_steps_are_chosen_in_validation_sessions(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[Any] = []

    def score(*_: Any) -> float:
        return 1.0 if taken and taken[-1] == (3, 0.005, "near") else 0.5

    monkeypatch.setattr(Geometer, "_take_steps", lambda self, inputs, classes, *steps: taken.append(steps))  # noqa: ARG005
    monkeypatch.setattr(Geometer, "_validate", score)
    assert fitted(stream, fine_tuning_steps=None, fine_tuning=((3, 0.005),)).chosen() == {
        "episodes": pytest.approx(0, abs=4),
        "fine_tuning_steps": 3,
        "fine_tuning_rate": 0.005,
        "distil": "near",
    }


def test_labelled_nodes_are_kept_and_declared_or_prototypes_where_sessions_are_isolated(walked: Geometer) -> None:
    nodes = walked.memory.train[0].size + walked.memory.supports[0].size
    assert walked.stored()["nodes"] == 16 * nodes
    assert walked.stored()["embeddings"] == 0
    stream = stream_of(track="isolated")
    learner = fitted(stream)
    learner.learn(stream.session(1))
    assert learner.chosen()["fine_tuning_steps"] == 0
    assert learner.stored()["nodes"] == 0
    assert learner.stored()["embeddings"] == 8 * (6 * 4 + 8)
    before = learner.state().tensors["memory.kept"]
    learner.learn(stream.session(2))
    np.testing.assert_array_equal(learner.state().tensors["memory.kept"][:8], before)


def test_two_base_classes_and_one_support_are_enough() -> None:
    """L_U is silent then, and no query can be left out of its prototype."""
    stream = stream_of(base=2, shot=1)
    learner = fitted(stream, fine_tuning_steps=2, distil="far")
    for number in range(1, len(stream) + 1):
        learner.learn(stream.session(number))
        assert np.isfinite(learner.scores(stream.evaluation_graph(number), stream.queries(number).nodes)).all()


def test_a_class_without_a_node_does_not_stop_the_steps(stream: Stream) -> None:
    learner = fitted(stream, fine_tuning_steps=2, distil="far")
    learner.learn(stream.session(1))
    train, supports = learner.memory.train, learner.memory.supports
    gone = train[1] == 2
    visible = stream.evaluation_graph(2)
    assert learner.restate(visible, (train[0][~gone], train[1][~gone]), supports)
    learner.learn(stream.session(2))
    assert np.isfinite(learner.scores(visible, stream.queries(2).nodes)).all()


def test_validation_chooses_among_no_fewer_episodes_than_were_asked_for(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where every episode makes validation worse."""
    falling = iter(range(1000, 0, -1))
    monkeypatch.setattr(Geometer, "_validate", lambda *_: next(falling) / 1000)
    few = {"episodes": 12, "validate_every": 2, "validation_window": 1, "patience": 2, "fine_tuning_steps": 0}
    assert fitted(stream, least_episodes=0, **few).chosen()["episodes"] == 0
    assert fitted(stream, least_episodes=6, **few).chosen()["episodes"] == 6
    assert fitted(stream, least_episodes=200, **few).chosen()["episodes"] == 12


def test_a_random_start_does_not_ask_for_the_shared_encoder(stream: Stream) -> None:
    assert fitted(stream, pretrained=False).pretraining_seconds_ == 0.0
    assert fitted(stream).pretraining_seconds_ > 0.0


def test_settings_that_cannot_be_are_refused() -> None:
    for changes, what in (
        ({"heads": 3}, "multiple of heads"),
        ({"distil": "away"}, "distil"),
        ({"replay": "all"}, "replay"),
        ({"most_supports": 0}, "most_supports"),
        ({"separability": -1.0}, "separability"),
    ):
        with pytest.raises(InputError, match=what):
            find_method("geometer").make(changes)
