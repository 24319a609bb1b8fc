"""What the rounds found is kept with the scores: an explanation then reads the neighbourhood of a node alone."""

from typing import Any

import numpy as np
import pytest
import torch

from graphfcl import Anchor, Protocol, Session, Stream, find_method, load_dataset, make_stream
from graphfcl.methods.anchor.rounds import answers
from graphfcl.methods.blocks.resident import ResidentTables
from graphfcl.nn import GraphInputs
from tests.methods.anchor.whole_rounds import links_of, posteriors, ratios_of

QUICK: dict[str, Any] = {"pretraining.epochs": 5, "hidden": 32, "size": 16, "rank": 32}
KINDS = [("words", 0.5), ("words", 0.0), ("dense", 0.5)]


def fitted(kind: str, links: float) -> tuple[Anchor, Stream]:
    graph, _ = load_dataset(f"synthetic:nodes=700,edges=2800,classes=9,features=100,kind={kind},signal=0.6")
    stream = make_stream(graph, Protocol(base=4, pseudo_novel=3, way=1, shot=5), seed=0, track="open")
    learner = find_method("anchor").make({**QUICK, "links": links, "smoothing": 0.3}, seed=0)
    assert isinstance(learner, Anchor)
    learner.fit(stream.base)
    learner.learn(session(stream, 1))
    return learner, stream


def session(stream: Stream, number: int) -> Session:
    actual = stream.session(number)
    visible = stream.base.visible_graph
    return Session(number, actual.new_classes, actual.supports, actual.support_labels, visible, "open")


@pytest.mark.parametrize(("kind", "links"), KINDS)
def test_explanations_are_the_same_to_the_digit_with_and_without_what_is_kept(kind: str, links: float) -> None:
    learner, stream = fitted(kind, links)
    visible, nodes = stream.base.visible_graph, stream.base.validation[:6].tolist()

    def fresh() -> Anchor:
        other = find_method("anchor").make({**QUICK, "links": links, "smoothing": 0.3}, seed=0)
        assert isinstance(other, Anchor)
        other.load_state(learner.state())
        return other

    alone = [fresh().explain(visible, node) for node in nodes]
    assert [learner.explain(visible, node) for node in nodes] == alone
    scored = fresh()
    scored.scores(visible, visible.nodes)
    copy = scored.copy(visible)
    for each in (scored, copy):
        assert [each.explain(visible, node) for node in nodes] == alone
    copy.learn(session(stream, 2))
    learner.learn(session(stream, 2))
    after = [fresh().explain(visible, node) for node in nodes]
    assert after != alone
    assert [copy.explain(visible, node) for node in nodes] == after
    assert [scored.explain(visible, node) for node in nodes] == alone


@pytest.mark.parametrize(("kind", "links"), KINDS)
def test_an_explanation_is_that_of_a_pass_over_all_nodes(kind: str, links: float) -> None:
    learner, stream = fitted(kind, links)
    visible, settings = stream.base.visible_graph, learner.settings
    table, known = torch.from_numpy(learner.embeddings(visible)), learner.knowledge
    posterior, directions = posteriors(known.anchors, table, visible.loaded(), known.neighbourhood, settings)
    tensors = known.answer_tensors()
    answer = answers(posterior, table.float(), tensors, 0.5).numpy()
    own = torch.softmax(settings.temperature * table.float() @ directions.T, dim=1).numpy()
    weights = links * links_of(visible.loaded()) if links else np.zeros((700, 700))
    for node in stream.base.validation[:6].tolist():
        actual = learner.explain(visible, node, top=10_000)
        assert actual is not None
        row = int(visible.rows(np.array([node]))[0])
        columns = [column for column, _ in actual.classes]
        assert columns == np.argsort(-answer[row], kind="stable").tolist()
        np.testing.assert_allclose([p for _, p in actual.classes], answer[row, columns], rtol=1e-4, atol=1e-7)
        np.testing.assert_allclose(actual.before_smoothing, own[row], rtol=1e-4, atol=1e-7)
        first, second = columns[:2]
        says = np.zeros(700)
        if links:
            ratios = ratios_of(visible.loaded(), posterior.double().numpy())
            says = posterior.double().numpy() @ (ratios[first] - ratios[second])
        assert len(actual.neighbours) == np.diff(visible.loaded().adjacency.indptr)[row]
        for number, share, probability, adds in actual.neighbours:
            place = int(visible.rows(np.array([number]))[0])
            assert share == visible.loaded().normalised[row, place]
            assert probability == pytest.approx(own[place, first], rel=1e-4, abs=1e-7)
            assert adds == pytest.approx(weights[row, place] * says[place], rel=1e-4, abs=1e-6)


@pytest.mark.parametrize(("kind", "links"), KINDS)
def test_once_it_was_asked_an_explanation_takes_no_pass(
    kind: str, links: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner, stream = fitted(kind, links)
    visible = stream.base.visible_graph
    learner.use_embeddings(visible, learner.embeddings(visible).copy())
    learner.scores(visible, visible.nodes)

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("a pass over the graph")

    for name in ("table", "sums", "linked", "smoothed", "side_by_side"):
        monkeypatch.setattr(ResidentTables, name, fail)
    monkeypatch.setattr(GraphInputs, "_smoothed", property(fail))
    monkeypatch.setattr(GraphInputs, "_raw", property(fail))
    assert learner.explain(visible, int(visible.nodes[0])) is not None


def test_scores_keep_no_second_copy_of_the_vectors() -> None:
    """The rounds read words in 32 bits; what is kept for explanations has 16."""
    learner, stream = fitted("words", 0.5)
    visible = stream.base.visible_graph
    learner.scores(visible, visible.nodes)
    tables = learner.cache.inputs(visible)
    rounds = learner.cache.intermediate(tables)
    assert rounds.x.rows_at(np.arange(3)).dtype == torch.float16
    assert tables.widened(rounds.x).rows_at(np.arange(3)).dtype == torch.float32
