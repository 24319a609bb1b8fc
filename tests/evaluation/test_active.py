"""The walk of the track ``active``: who sees what, what is answered, what counts."""

from typing import Any

import numpy as np
import pytest

from graphfcl import (
    ActiveLearningState,
    BaseSession,
    Evaluation,
    InputError,
    Learner,
    Protocol,
    Query,
    Session,
    Strategy,
    Stream,
    VisibleNodes,
    evaluate,
    evaluate_active,
    find_strategy,
    make_stream,
)
from graphfcl.active import STRATEGIES
from graphfcl.evaluation import active_record, find_chooser
from graphfcl.metrics import compute_active_metrics
from tests.graphs import random_graph

SIZES = [60, 55, 50, 45, 40, 35, 30, 25, 20]


@pytest.fixture(scope="module")
def stream() -> Stream:
    return make_stream(random_graph(0, SIZES, density=0.02), Protocol(base=3, pseudo_novel=2, way=2, track="active"))


class Nearest(Learner):
    """Nearest class mean of features; keeps what it was handed"""

    def fit(self, base: BaseSession, *_: Any) -> None:
        self.classes_, self.sessions = base.classes, [base]
        self.nodes_, self.labels_ = base.train, base.train_labels

    def learn(self, session: Session) -> None:
        self.sessions.append(session)  # type: ignore[arg-type]
        self.classes_ += session.new_classes
        self.nodes_ = np.concatenate([self.nodes_, session.supports])
        self.labels_ = np.concatenate([self.labels_, session.support_labels])

    def scores(self, visible: VisibleNodes, nodes: np.ndarray) -> np.ndarray:
        features = visible.loaded().features
        features = features if isinstance(features, np.ndarray) else features.toarray()
        rows = visible.rows(self.nodes_)
        means = [features[rows[self.labels_ == column]].mean(axis=0) for column in range(len(self.classes_))]
        return -np.stack([((features[visible.rows(nodes)] - mean) ** 2).sum(axis=1) for mean in means], axis=1)


class Watched(Strategy):
    """Names candidates at random, and keeps every state"""

    def __init__(self, few: bool = False) -> None:
        self.seen: list[ActiveLearningState] = []
        self.few = few

    def choose(self, state: ActiveLearningState) -> list[Query]:
        self.seen.append(state)
        actual = find_strategy("random").make().choose(state)
        return actual[:1] if self.few else actual


def test_who_sees_what(stream: Stream) -> None:
    learner, strategy = Nearest(), Watched()
    evaluation = evaluate_active(learner, stream, strategy)
    truth = {int(node): int(column) for node, column in zip(range(1000), stream._columns.tolist(), strict=False)}
    base = learner.sessions[0]
    known = {name: column for column, name in enumerate(stream.classes)}
    labelled = base.train.size + base.validation.size
    spent = 0
    for number, state in enumerate(strategy.seen, 1):
        session = learner.sessions[number]
        assert isinstance(session, Session)
        assert state.budget == stream.budget(number) == session.supports.size
        assert state.labelled.size == labelled + spent
        candidates = state.visible.nodes[state.candidates]
        assert set(session.supports.tolist()) <= set(candidates.tolist()) <= set(stream.candidates.tolist())
        assert not np.isin(state.candidates, state.labelled).any()
        assert candidates.size == stream.candidates.size - spent
        spent += session.supports.size
        assert state.scores is not None
        assert state.scores.shape[0] == state.visible.node_count == stream.graph.node_count
        every = np.arange(state.visible.node_count)
        np.testing.assert_allclose(state.scores[every].sum(axis=1), 1, atol=1e-5)
        # What is answered is the truth, in the learner's own columns.
        for node, column in zip(session.supports.tolist(), session.support_labels.tolist(), strict=True):
            assert known[learner.classes_[column]] == truth[node]
    firsts = list(dict.fromkeys(truth[int(node)] for nodes in evaluation.answered for node in nodes))
    assert learner.classes_[5:] == tuple(stream.classes[column] for column in firsts if column >= 5)
    assert len(set(learner.classes_)) == len(learner.classes_)


def test_a_strategy_cannot_repeat_the_draw_of_node_numbers(stream: Stream) -> None:
    """What its generator was seeded with can be read, and must hold neither the graph's fingerprint nor the seed."""
    watched = Watched()
    evaluate_active(Nearest(), stream, watched)
    fingerprint = int(stream.graph.sha256[:16], 16)
    for state in watched.seen:
        entropy = state.random.bit_generator.seed_seq.entropy  # type: ignore[attr-defined]
        assert isinstance(entropy, int)
        assert entropy not in (stream.seed, fingerprint)
        again = np.random.default_rng([stream.seed, 5, entropy]).permutation(stream.graph.node_count)
        assert not np.array_equal(again, stream.node_of_number)
    assert len({state.random.bit_generator.seed_seq.entropy for state in watched.seen}) == len(watched.seen)  # type: ignore[attr-defined]


def test_every_class_counts_and_one_never_found_counts_nothing(stream: Stream) -> None:
    learner = Nearest()
    evaluation = evaluate_active(learner, stream, Watched(few=True))
    actual = {stream.classes.index(name) for name in learner.classes_}
    queries, visible = stream.queries(len(stream)), stream.visible_graph(0)
    scores = learner.scores(visible, queries.nodes)
    recalls = []
    for column, name in enumerate(stream.classes):
        mine = [row for row, label in enumerate(queries.labels.tolist()) if label == column]
        hits = [learner.classes_[int(scores[row].argmax())] == name for row in mine]
        recalls.append(sum(hits) / len(mine))
        assert column in actual or recalls[-1] == 0
    record = active_record(evaluation, stream)
    assert record.balanced[-1] == pytest.approx(np.mean(recalls))
    assert record.novel[-1] == pytest.approx(np.mean(recalls[5:]))
    assert record.labels.tolist() == list(range(len(stream) + 1))
    assert record.classes_found[-1] == len(actual) - 5 < record.classes == 4
    assert evaluation.metrics.sessions[-1].balanced_accuracy == pytest.approx(np.mean(recalls))


def test_an_interrupted_walk_goes_on_the_same(stream: Stream) -> None:
    parts: list[Evaluation] = []
    expected = evaluate_active(Nearest(), stream, find_chooser("typical"), on_session=parts.append)
    for stop in range(len(parts) - 1):
        learner = Nearest()

        def interrupt(so_far: Evaluation, stop: int = stop) -> None:
            if len(so_far.confusions) == stop + 1:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            evaluate_active(learner, stream, find_chooser("typical"), on_session=interrupt)
        again = evaluate_active(learner, stream, find_chooser("typical"), done=parts[stop])
        for first, second in zip(expected.answered, again.answered, strict=True):
            np.testing.assert_array_equal(first, second)
        for first, second in zip(expected.confusions, again.confusions, strict=True):
            np.testing.assert_array_equal(first, second)


class Counting(Strategy):
    """One candidate more at each call: it keeps what a strategy must not keep"""

    def __init__(self) -> None:
        self.calls = 0

    def choose(self, state: ActiveLearningState) -> list[Query]:
        self.calls += 1
        return [Query(int(row), "random") for row in state.candidates[: self.calls]]


def test_a_strategy_is_made_for_each_session_anew(stream: Stream) -> None:
    assert [nodes.size for nodes in evaluate_active(Nearest(), stream, Counting).answered] == [1] * len(stream)
    kept = evaluate_active(Nearest(), stream, Counting()).answered
    assert [nodes.size for nodes in kept] == [1 + place for place in range(len(stream))]


def test_of_each_class_names_five_of_each_class_of_the_session(stream: Stream) -> None:
    evaluation = evaluate_active(Nearest(), stream, find_chooser("of-each-class"))
    for number, nodes in enumerate(evaluation.answered, 1):
        assert set(nodes.tolist()) <= set(stream.candidates.tolist())
        columns, counts = np.unique(stream._columns[nodes], return_counts=True)
        np.testing.assert_array_equal(columns, np.flatnonzero(stream.session_of_class == number))
        assert counts.tolist() == [5] * columns.size


class Cheats(Strategy):
    """Names what it may not"""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def choose(self, state: ActiveLearningState) -> list[Query]:
        rows = {
            "much": state.candidates[: state.budget + 1],
            "twice": state.candidates[[0, 0]],
            "labelled": state.labelled[:1],
            "test": np.setdiff1d(np.arange(state.visible.node_count), state.candidates)[:1],
        }[self.kind]
        if self.kind == "test":
            rows = np.setdiff1d(np.arange(state.visible.node_count), np.r_[state.candidates, state.labelled])[:1]
        return [Query(int(row), "random") for row in rows]


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("much", "with a budget of"),
        ("twice", "it chose before"),
        ("labelled", "already labelled"),
        ("test", "candidate"),
    ],
)
def test_what_may_not_be_named(stream: Stream, kind: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        evaluate_active(Nearest(), stream, Cheats(kind))


def test_all_strategies_walk_and_repeat(stream: Stream) -> None:
    for name in STRATEGIES:
        first, second = (evaluate_active(Nearest(), stream, find_chooser(name)) for _ in range(2))
        for one, other in zip(first.answered, second.answered, strict=True):
            np.testing.assert_array_equal(one, other)
        figures = compute_active_metrics(active_record(first, stream))
        assert 0 < figures["balanced_at_60"] <= 1
        assert figures["classes_found"] <= 1


def test_a_stream_that_is_asked_needs_a_strategy(stream: Stream) -> None:
    with pytest.raises(InputError, match="needs a strategy"):
        evaluate(Nearest(), stream)


def test_a_session_without_a_node(stream: Stream) -> None:
    class Silent(Strategy):
        def choose(self, state: ActiveLearningState) -> list[Query]:  # noqa: ARG002
            return []

    learner = Nearest()
    record = active_record(evaluate_active(learner, stream, Silent()), stream)
    assert record.labels.tolist() == [0] * (len(stream) + 1)
    assert len(learner.sessions) == 1, "there was nothing to learn"
    assert compute_active_metrics(record)["classes_found"] == 0


class Knowing(Strategy):
    """Names candidates at random; keeps each state and the scores that the learner gives at that moment"""

    def __init__(self, learner: Nearest) -> None:
        self.learner = learner
        self.seen: list[tuple[ActiveLearningState, np.ndarray, int]] = []

    def choose(self, state: ActiveLearningState) -> list[Query]:
        visible = state.visible.loaded()
        scores = self.learner.scores(visible, visible.nodes)
        self.seen.append((state, scores, len(self.learner.classes_)))
        return find_strategy("random").make().choose(state)


def test_what_a_strategy_is_told_of_the_model_against_a_loop(stream: Stream) -> None:
    """The unknown score is the energy −log Σ exp, standardised: larger where no class fits. Late: not of session 0."""
    learner = Nearest()
    strategy = Knowing(learner)
    evaluate_active(learner, stream, strategy)
    assert len(strategy.seen) == len(stream) > 1
    for state, scores, classes in strategy.seen:
        energy = np.array([-np.log(np.sum(np.exp(row - row.max()))) - row.max() for row in scores])
        assert state.unknown_score is not None
        np.testing.assert_allclose(state.unknown_score, (energy - energy.mean()) / energy.std(), atol=1e-4)
        assert state.late.tolist() == [False] * 5 + [True] * (classes - 5)
    assert strategy.seen[-1][0].late.any()


def test_the_budget_is_k_for_each_class_that_the_session_brings() -> None:
    rules = Protocol(base=3, pseudo_novel=2, way=3, shot=2, track="active")
    stream = make_stream(random_graph(0, SIZES, density=0.02), rules)
    assert [stream.budget(number) for number in (1, 2)] == [6, 2], "the last session brings one class"
    strategy = Watched()
    evaluation = evaluate_active(Nearest(), stream, strategy)
    assert [state.budget for state in strategy.seen] == [6, 2]
    assert [nodes.size for nodes in evaluation.answered] == [6, 2]
    assert active_record(evaluation, stream).budget == 8
