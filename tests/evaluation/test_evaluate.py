"""Walking a learner through a stream."""

from typing import Any

import numpy as np
import pytest
import torch

from graphfcl import (
    NO_STORE,
    SILENT,
    BaseSession,
    DivergenceError,
    EncoderStore,
    InputError,
    Learner,
    LearnerState,
    PaperSession,
    Progress,
    Protocol,
    Session,
    Stream,
    VisibleNodes,
    evaluate,
    find_method,
    load_dataset,
    make_stream,
)
from tests.graphs import random_graph

SMALL = "synthetic:nodes=200,edges=800,classes=6,features=30"


class NearestMean(Learner):
    """Cosine to the class means of once propagated features; keeps the labelled nodes."""

    def __init__(self) -> None:
        self.nodes = np.zeros(0, dtype=np.int64)
        self.labels = np.zeros(0, dtype=np.int64)

    def fit(
        self,
        base: BaseSession,
        progress: Progress = SILENT,  # noqa: ARG002
        encoders: EncoderStore = NO_STORE,  # noqa: ARG002
    ) -> None:
        self.nodes, self.labels = base.train, base.train_labels

    def learn(self, session: Session) -> None:
        self.nodes = np.concatenate([self.nodes, session.supports])
        self.labels = np.concatenate([self.labels, session.support_labels])

    def scores(self, visible: VisibleNodes, nodes: np.ndarray) -> np.ndarray:
        spread = (visible.loaded().normalised @ visible.loaded().features).toarray()
        spread /= np.linalg.norm(spread, axis=1, keepdims=True) + 1e-9
        known = visible.contains(self.nodes)
        rows, labels = visible.rows(self.nodes[known]), self.labels[known]
        means = np.stack([spread[rows[labels == c]].mean(axis=0) for c in range(self.labels.max() + 1)])
        return spread[visible.rows(nodes)] @ means.T

    def state(self) -> LearnerState:
        return LearnerState({"nodes": torch.from_numpy(self.nodes), "labels": torch.from_numpy(self.labels)})

    def load_state(self, state: LearnerState) -> None:
        self.nodes, self.labels = state.tensors["nodes"].numpy(), state.tensors["labels"].numpy()

    def stored(self) -> dict[str, int]:
        return {"nodes": self.nodes.nbytes + self.labels.nbytes}


@pytest.fixture(scope="module")
def stream() -> Stream:
    graph, _ = load_dataset("synthetic:nodes=1200,edges=5000,classes=10,features=400")
    return make_stream(graph, Protocol(base=4, pseudo_novel=2, way=2, shot=5), seed=0)


@pytest.mark.parametrize("track", ["transductive", "isolated", "open"])
def test_a_simple_learner_beats_chance_in_every_session(stream: Stream, track: Any) -> None:
    seen: list[int] = []
    other = make_stream(stream.graph, stream.protocol, seed=1, track=track)
    evaluation = evaluate(
        NearestMean(), other, on_session=lambda so_far: seen.append(so_far.metrics.sessions[-1].classes)
    )
    assert seen == [6, 8, 10]
    assert len(evaluation.confusions) == len(evaluation.seconds) == 3
    for session in evaluation.metrics.sessions:
        assert session.balanced_accuracy > 3 / session.classes
    queries = evaluation.confusions[-1].sum()
    assert queries == other.queries(2).nodes.size


def test_confusion_matrix_counts_every_query_of_every_class(stream: Stream) -> None:
    evaluation = evaluate(NearestMean(), stream)
    for number, confusion in enumerate(evaluation.confusions):
        np.testing.assert_array_equal(confusion.sum(axis=1), np.bincount(stream.queries(number).labels))


class Watching(NearestMean):
    """Notes what it is handed."""

    def __init__(self, *, takes_labels: bool) -> None:
        super().__init__()
        self.trains_on_query_labels = takes_labels  # type: ignore[misc]
        self.handed: list[type] = []

    def learn(self, session: Session) -> None:
        self.handed.append(type(session))
        super().learn(session)


def test_query_labels_go_only_to_learners_that_declare_it(stream: Stream) -> None:
    paper = make_stream(stream.graph, stream.protocol, name="paper")
    for rules, takes_labels, expected in (
        (paper, True, PaperSession),
        (paper, False, Session),
        (stream, True, Session),
    ):
        learner = Watching(takes_labels=takes_labels)
        evaluate(learner, rules)
        assert set(learner.handed) == {expected}


class Broken(NearestMean):
    def __init__(self, answer: float, columns: int) -> None:
        super().__init__()
        self.answer, self.columns = answer, columns

    def scores(self, visible: VisibleNodes, nodes: np.ndarray) -> np.ndarray:  # noqa: ARG002
        return np.full((nodes.size, self.columns), self.answer)


def test_scores_of_the_wrong_shape_or_nan_are_refused() -> None:
    stream = make_stream(random_graph(0, [20] * 4), Protocol(base=2, pseudo_novel=0, way=1))
    with pytest.raises(InputError, match="shape"):
        evaluate(Broken(0.0, 5), stream)
    with pytest.raises(DivergenceError, match=r"after session 0 .*NaN"):
        evaluate(Broken(float("nan"), 2), stream)


@pytest.mark.parametrize(
    ("learner", "settings", "message"),
    [
        ("sgc-rigde", None, "there is no method 'sgc-rigde': did you mean 'sgc-ridge'"),
        ("sgc-ridge", {"penaltie": 1.0}, "sgc-ridge has no setting 'penaltie': did you mean 'penalties'"),
        (NearestMean, None, r"got the class NearestMean: make one with NearestMean\(seed=0\)"),
        (NearestMean(), {"hops": 1}, "settings need the name of a method"),
    ],
)
def test_what_is_neither_name_nor_learner(learner: Any, settings: dict[str, Any] | None, message: str) -> None:
    graph, protocol = load_dataset(SMALL)
    with pytest.raises(InputError, match=message):
        evaluate(learner, make_stream(graph, protocol, seed=0), settings=settings)
    with pytest.raises(InputError, match=r"got a graph: make one with make_stream\(graph, seed=0\)"):
        evaluate("sgc-ridge", graph)  # type: ignore[arg-type]


def test_a_name_is_a_learner_with_the_seed_of_the_stream() -> None:
    graph, protocol = load_dataset(SMALL)
    stream, settings = make_stream(graph, protocol, seed=3), {"penalty": 2.0, "hop_weight": 1.0}
    expected = evaluate(find_method("sgc-ridge").make(settings, seed=3), stream)
    found = evaluate("sgc-ridge", stream, settings=settings)
    for one, other in zip(found.confusions, expected.confusions, strict=True):
        np.testing.assert_array_equal(one, other)
