"""The defining step of growing heads, ER-GNN and iCaRL, against a plain version; who receives pool labels."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from graphfcl import PooledSession, Session, Stream, evaluate
from graphfcl.methods.er_gnn import ErGnn
from graphfcl.methods.finetune import Finetune
from graphfcl.methods.icarl import ICarl, distillation_targets, one_hot_losses
from graphfcl.methods.shared.heads import LogitAdjustment, grown, head_of
from graphfcl.nn import GraphInputs
from tests.methods.test_checks import make, stream_of


@pytest.fixture(scope="module")
def stream() -> Stream:
    return stream_of()


# Growing heads, ER-GNN, iCaRL


def test_a_head_grows_without_changing_what_it_knows() -> None:
    random = torch.Generator().manual_seed(0)
    head = head_of(torch.randn(4, 3, generator=random), torch.randn(3, generator=random))
    points, labels = torch.randn(5, 4, generator=random), torch.tensor([3, 3, 4, 4, 4])
    centre = torch.randn(4, generator=random)
    larger = grown(head, points, labels, 5, centre)
    torch.testing.assert_close(larger(points)[:, :3], head(points))
    at_centre = larger(centre[None])[0]
    torch.testing.assert_close(at_centre[3:], at_centre[:3].mean().expand(2))
    direction = points[:2].mean(dim=0) - centre
    cosine = nn.functional.cosine_similarity(larger.weight[:, 3], direction, dim=0)
    torch.testing.assert_close(cosine, torch.tensor(1.0))
    torch.testing.assert_close(larger.weight[:, 3].norm(), head.weight.norm(dim=0).mean())
    assert grown(head, points[:0], labels[:0], 3, centre) is head


def test_fine_tuning_sees_the_supports_alone(stream: Stream) -> None:
    learner = make("finetune", fine_tuning_steps=2)
    assert isinstance(learner, Finetune)
    learner.fit(stream.base)
    stored = learner.stored()
    assert stored["nodes"] == 0
    loss = learner._session_loss(torch.zeros(5, 7), (np.arange(5), np.array([7, 7, 7, 7, 7])))
    logits = torch.randn(5, 8)
    torch.testing.assert_close(loss(logits), -torch.log_softmax(logits, dim=1)[:, 7].mean())


def test_er_gnn_s_classes_count_the_same_by_default(stream: Stream) -> None:
    learner = make("er-gnn", buffer=24, fine_tuning_steps=1)
    assert isinstance(learner, ErGnn)
    learner.fit(stream.base)
    assert np.bincount(learner.memory.labels).tolist() == [24 // 7] * 7, "an equal share of the buffer"
    labels = [7, 7, *learner.memory.labels]
    logits = torch.randn(len(labels), 8)
    losses = [-float(torch.log_softmax(row, dim=0)[label]) for row, label in zip(logits, labels, strict=True)]
    by_class = [np.mean([loss for loss, label in zip(losses, labels, strict=True) if label == c]) for c in range(8)]
    found = learner._session_loss(logits, (np.arange(2), np.array([7, 7])))(logits)
    assert float(found) == pytest.approx(np.mean(by_class), rel=1e-5)
    learner.learn(stream.session(1))
    assert np.bincount(learner.memory.labels)[:7].tolist() == [24 // 8] * 7


def test_logits_are_adjusted_by_the_labels_learned(stream: Stream) -> None:
    learner, plain = (make("finetune", fine_tuning_steps=1, adjustments=taus) for taus in ((0.7,), (0.0,)))
    counts = np.zeros(8)
    for each in (learner, plain):
        assert isinstance(each, Finetune)
        each.fit(stream.base)
        each.learn(stream.session(1))
    for label in [*stream.base.train_labels, *stream.session(1).support_labels]:
        counts[label] += 1
    visible, nodes = stream.evaluation_graph(1), stream.queries(1).nodes
    expected = plain.scores(visible, nodes) + 0.7 * np.log(counts / counts.sum())
    np.testing.assert_allclose(learner.scores(visible, nodes), expected, rtol=1e-5, atol=1e-5)
    again = make("finetune", fine_tuning_steps=1, adjustments=(0.7,))
    again.load_state(learner.state())
    np.testing.assert_array_equal(again.scores(visible, nodes), learner.scores(visible, nodes))


def test_the_adjustment_of_logits_is_chosen_with_the_steps(monkeypatch: pytest.MonkeyPatch, stream: Stream) -> None:
    """Trials adjust unadjusted logits, each candidate once; the best mean is taken with the steps it was found with."""
    asked: list[tuple[float, float]] = []
    plain = LogitAdjustment.apply

    def watch(self: LogitAdjustment, logits: torch.Tensor, strength: float | None = None) -> torch.Tensor:
        asked.append((self.strength, self.strength if strength is None else strength))
        return plain(self, logits, strength)

    monkeypatch.setattr(LogitAdjustment, "apply", watch)
    for taus in ((0.7,), (0.0, 5.0)):
        asked.clear()
        learner = make("finetune", adjustments=taus, fine_tuning=((1, 0.01),))
        assert isinstance(learner, Finetune)
        learner.fit(stream.base)
        trials = [tau for own, tau in asked if own == 0.0]
        assert {tau for tau in trials if tau} == {tau for tau in taus if tau}
        assert learner.adjustment.strength in taus
        found = learner.chosen()
    assert found["logit_adjustment"] == 0.0, "a τ that calls every node base loses"


def test_er_gnn_weighs_current_and_buffer(stream: Stream) -> None:
    learner = make("er-gnn", replay="printed", experiences=3, fine_tuning_steps=1)
    assert isinstance(learner, ErGnn)
    learner.fit(stream.base)
    assert np.bincount(learner.memory.labels).tolist() == [3] * 7
    assert set(learner.memory.nodes) <= set(stream.base.train)
    current = np.array([7, 7])
    logits = torch.randn(2 + 21, 8)
    each = [
        -float(torch.log_softmax(row, dim=0)[label])
        for row, label in zip(logits, [*current, *learner.memory.labels], strict=True)
    ]
    beta = 21 / (21 + 2)
    expected = beta * np.mean(each[:2]) + (1 - beta) * np.mean(each[2:])
    found = learner._session_loss(logits, (np.arange(2), current))(logits)
    assert float(found) == pytest.approx(expected, rel=1e-5)
    learner.learn(stream.session(1))
    assert np.bincount(learner.memory.labels).tolist() == [3] * 8
    session = stream.session(1)
    learner.learn(Session(2, (), session.supports, session.support_labels, session.visible_graph, "transductive"))
    assert np.bincount(learner.memory.labels).tolist() == [3] * 8, "the same supports again change nothing"
    assert np.unique(learner.memory.nodes).size == learner.memory.nodes.size


@pytest.mark.parametrize("name", ["finetune", "er-gnn", "icarl", "meta-gnn", "hag-meta"])
def test_without_held_out_classes_a_session_takes_the_mildest_steps(name: str) -> None:
    learner = make(name)
    learner.fit(stream_of(way=3, pseudo_novel=0).base)
    assert learner.chosen()["fine_tuning_steps"] > 0


@pytest.mark.parametrize("selection", ["mean", "coverage", "influence"])
def test_er_gnn_runs_with_each_selection(stream: Stream, selection: str) -> None:
    measures = evaluate(make("er-gnn", selection=selection, fine_tuning=()), stream).metrics
    assert measures.sessions[-1].balanced_accuracy > 2.5 / 10


def test_icarl_s_targets() -> None:
    before = torch.randn(4, 3)
    targets = distillation_targets(before, torch.tensor([4, 0, 3, 1]), 5)
    for row in range(4):
        for column in range(3):
            assert float(targets[row, column]) == pytest.approx(1 / (1 + np.exp(-float(before[row, column]))), rel=1e-5)
    assert targets[:, 3:].tolist() == [[0, 1], [0, 0], [1, 0], [0, 0]]


def test_icarl_s_first_session_is_binary_cross_entropy() -> None:
    logits, labels = torch.randn(3, 4), torch.tensor([1, 3, 0])
    for row, label, found in zip(logits, labels, one_hot_losses(logits, labels), strict=True):
        p = torch.sigmoid(row)
        expected = -sum(torch.log(p[k]) if k == label else torch.log(1 - p[k]) for k in range(4))
        torch.testing.assert_close(found, expected)


def test_icarl_keeps_few_exemplars_and_answers_with_their_nearest_mean(stream: Stream) -> None:
    learner = make("icarl", exemplars=24)
    assert isinstance(learner, ICarl)
    learner.fit(stream.base)
    assert np.bincount(learner.memory.labels).tolist() == [3] * 7
    first = learner.memory.nodes.copy()
    learner.learn(stream.session(1))
    assert np.bincount(learner.memory.labels).tolist() == [3] * 8
    assert set(first) <= set(learner.memory.nodes)
    learner.learn(stream.session(2))
    assert np.bincount(learner.memory.labels).tolist() == [2] * 9, "the last ones chosen go"
    visible = stream.evaluation_graph(2)
    inputs = GraphInputs(visible.loaded(), learner.device)
    points = learner.network.encoder(inputs.all_gcn_rows).detach().numpy().astype(np.float64)
    points /= np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-12)
    means = []
    for column in range(9):
        mean = points[visible.rows(learner.memory.nodes[learner.memory.labels == column])].mean(axis=0)
        means.append(mean / max(np.linalg.norm(mean), 1e-12))
    nodes = stream.queries(2).nodes
    asked = points[visible.rows(nodes)]
    expected = -((asked[:, None] - np.array(means)[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(learner.scores(visible, nodes), expected, atol=1e-5)


# Pool labels


def test_only_upper_references_receive_pool_labels(stream: Stream) -> None:
    received: dict[str, list[Session]] = {"joint": [], "anchor-pool": [], "finetune": []}
    for name, sessions in received.items():
        learner = make(name)
        learn = learner.learn

        def watch(session: Session, learn: Any = learn, sessions: list[Session] = sessions) -> None:
            sessions.append(session)
            learn(session)

        learner.learn = watch  # type: ignore[method-assign]
        evaluate(learner, stream)
    assert not any(isinstance(session, PooledSession) for session in received["finetune"])
    queries = set(stream.queries(len(stream)).nodes)
    for session in received["joint"] + received["anchor-pool"]:
        assert isinstance(session, PooledSession)
        assert session.pool.size > 0
        assert not queries & set(session.pool)
        names = {stream.classes[column] for column in session.pool_labels}
        assert names == set(session.new_classes)
