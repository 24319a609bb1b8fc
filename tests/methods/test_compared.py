"""The defining step of each compared method, against a plain version."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from graphfcl import PooledSession, Session, Stream, evaluate
from graphfcl.methods.cec import Cec, ClassifierAttention
from graphfcl.methods.er_gnn import ErGnn
from graphfcl.methods.finetune import Finetune
from graphfcl.methods.gpn import Gpn
from graphfcl.methods.icarl import ICarl, distillation_targets, one_hot_losses
from graphfcl.methods.joint import Joint
from graphfcl.methods.meta_gnn import MetaGnn, adapted, nearest_mean
from graphfcl.methods.proto import ProtoGcn
from graphfcl.methods.shared.episodes import NodePools, TaskSampler
from graphfcl.methods.shared.heads import CosineHead, LogitAdjustment, grown, head_of
from graphfcl.nn import GraphInputs
from tests.methods.test_checks import make, stream_of


@pytest.fixture(scope="module")
def stream() -> Stream:
    return stream_of()


def weights_of(learner: Any) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in learner.network.encoder.state_dict().items()}


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(first[name], second[name]) for name in first)


# Meta-GNN


class Affine(nn.Module):
    """An encoder small enough to differentiate by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3, 2, dtype=torch.float64))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return torch.tanh(values @ self.weight)


def task(seed: int) -> tuple[Affine, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(seed)
    encoder = Affine()
    with torch.no_grad():
        encoder.weight.copy_(torch.randn(3, 2, generator=random, dtype=torch.float64))
    labels = torch.tensor([0, 0, 1, 1, 2, 2])
    supports, queries = (torch.randn(6, 3, generator=random, dtype=torch.float64) for _ in range(2))
    return encoder, supports, labels, queries, labels.flip(0)


def query_loss(
    encoder: Affine,
    supports: torch.Tensor,
    labels: torch.Tensor,
    queries: torch.Tensor,
    asked: torch.Tensor,
    *,
    second: bool,
) -> torch.Tensor:
    embeddings = encoder(supports)
    prototypes = torch.stack([embeddings[labels == k].mean(dim=0) for k in range(3)])
    weights, head = adapted(
        encoder, {"weight": encoder.weight}, nearest_mean(prototypes), supports, labels, 3, 0.3, create_graph=second
    )
    logits = torch.func.functional_call(encoder, weights, (queries,)) @ head[0] + head[1]
    return nn.functional.cross_entropy(logits, asked)


@pytest.mark.parametrize("seed", range(3))
def test_meta_gnn_differentiates_through_its_inner_steps(seed: int) -> None:
    encoder, *rest = task(seed)
    (found,) = torch.autograd.grad(query_loss(encoder, *rest, second=True), [encoder.weight])
    step, expected = 1e-5, torch.zeros(3, 2, dtype=torch.float64)
    for row in range(3):
        for column in range(2):
            sides = []
            for sign in (1, -1):
                with torch.no_grad():
                    encoder.weight[row, column] += sign * step
                sides.append(float(query_loss(encoder, *rest, second=True).detach()))
                with torch.no_grad():
                    encoder.weight[row, column] -= sign * step
            expected[row, column] = (sides[0] - sides[1]) / (2 * step)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-7)
    (first,) = torch.autograd.grad(query_loss(encoder, *rest, second=False), [encoder.weight])
    assert not torch.allclose(first, expected, rtol=1e-2), "first order leaves the second derivatives out"


def test_inner_steps_are_gradient_descent() -> None:
    encoder, supports, labels, _, _ = task(0)
    weight = encoder.weight.detach().clone().requires_grad_()
    columns = torch.randn(2, 3, dtype=torch.float64).requires_grad_()
    biases = torch.zeros(3, dtype=torch.float64).requires_grad_()
    found, head = adapted(encoder, {"weight": weight}, (columns, biases), supports, labels, 2, 0.1, create_graph=False)
    plain = [value.detach().clone().requires_grad_() for value in (weight, columns, biases)]
    optimiser = torch.optim.SGD(plain, lr=0.1)
    for _ in range(2):
        optimiser.zero_grad()
        nn.functional.cross_entropy(torch.tanh(supports @ plain[0]) @ plain[1] + plain[2], labels).backward()
        optimiser.step()
    torch.testing.assert_close(found["weight"], plain[0])
    torch.testing.assert_close(head[0], plain[1])
    torch.testing.assert_close(head[1], plain[2])


def test_meta_gnn_s_columns_start_at_the_nearest_mean() -> None:
    prototypes, points = torch.randn(4, 3), torch.randn(9, 3)
    weight, bias = nearest_mean(prototypes)
    expected = torch.softmax(-(torch.cdist(points, prototypes) ** 2), dim=1)
    torch.testing.assert_close(torch.softmax(points @ weight + bias, dim=1), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("steps", [0, 3])
def test_meta_gnn_adapts_from_the_learned_encoder_at_every_session(stream: Stream, steps: int) -> None:
    steps_of: dict[str, Any] = {"fine_tuning_steps": steps, "fine_tuning_rate": 0.05}
    learner = make("meta-gnn", **steps_of, first_order=True, refresh_means=False)
    assert isinstance(learner, MetaGnn)
    learner.fit(stream.base)
    before, means = weights_of(learner), learner.memory.kept
    assert means is not None
    for session in (stream.session(1), stream.session(2)):
        learner.learn(session)
        assert same(before, weights_of(learner)), "the initialisation stays"
        assert learner.adaptation.head is not None
        assert same(before, learner.adaptation.weights) == (steps == 0)
        assert learner.memory.kept is not None
        torch.testing.assert_close(learner.memory.kept[:7], means)
    assert learner.stored()["nodes"] == 0, "no node is kept"
    visible, nodes = stream.evaluation_graph(2), stream.queries(2).nodes
    if steps == 0:
        points = learner.network.node_embeddings(GraphInputs(visible.loaded(), learner.device)).values[
            visible.rows(nodes)
        ]
        assert learner.memory.kept is not None
        nearest = torch.cdist(points, learner.memory.kept).argmin(dim=1)
        assert (learner.scores(visible, nodes).argmax(axis=1) == nearest.numpy()).mean() > 0.99


def test_meta_gnn_computes_class_means_again_on_the_graph_of_each_session(stream: Stream) -> None:
    learner = make("meta-gnn", fine_tuning_steps=0, first_order=True)
    assert isinstance(learner, MetaGnn)
    learner.fit(stream.base)
    labelled = [(stream.base.train, stream.base.train_labels)]
    for number in (1, 2):
        session = stream.session(number)
        learner.learn(session)
        labelled.append((session.supports, session.support_labels))
        visible, nodes = stream.evaluation_graph(number), stream.queries(number).nodes
        points = learner.network.node_embeddings(GraphInputs(visible.loaded(), learner.device)).values
        columns = np.concatenate([part[1] for part in labelled])
        rows = visible.rows(np.concatenate([part[0] for part in labelled]))
        means = torch.stack([points[rows[columns == c]].mean(dim=0) for c in range(columns.max() + 1)])
        nearest = torch.cdist(points[visible.rows(nodes)], means).argmin(dim=1)
        assert (learner.scores(visible, nodes).argmax(axis=1) == nearest.numpy()).mean() > 0.99
    assert learner.stored()["nodes"] > 0, "labelled nodes are kept"


# GPN and the prototypes


def test_tasks_are_ordinary_few_shot_tasks() -> None:
    labels = np.repeat(np.arange(6), 20)
    nodes = np.arange(120) + 1000
    sampler = TaskSampler(NodePools(nodes, labels, 6), np.array([0, 2, 3, 5]), way=3, shot=4, queries=5)
    random = np.random.default_rng(0)
    seen = set()
    for _ in range(30):
        episode = sampler.sample(random)
        assert episode.class_count == 3
        assert np.bincount(episode.support_classes).tolist() == [4, 4, 4]
        assert np.bincount(episode.query_classes).tolist() == [5, 5, 5]
        assert not set(episode.supports) & set(episode.queries)
        for place in range(3):
            columns = labels[episode.supports[episode.support_classes == place] - 1000]
            others = labels[episode.queries[episode.query_classes == place] - 1000]
            assert len(set(columns) | set(others)) == 1
            seen.add(int(columns[0]))
    assert seen == {0, 2, 3, 5}


def test_small_classes_give_no_more_than_k_supports() -> None:
    labels = np.repeat(np.arange(3), [14, 10, 3])
    sampler = TaskSampler(NodePools(np.arange(27), labels, 3), np.arange(3), way=3, shot=5, queries=10)
    episode = sampler.sample(np.random.default_rng(0))
    supports, queries = np.bincount(episode.support_classes), np.bincount(episode.query_classes)
    assert sorted(supports.tolist()) == [2, 5, 5]
    assert sorted(queries.tolist()) == [1, 3, 4]


def test_gpn_divides_the_valuator_s_scores_by_their_sum(stream: Stream) -> None:
    learner = make("gpn")
    assert isinstance(learner, Gpn)
    learner.fit(stream.base)
    before = weights_of(learner)
    learner.learn(stream.session(1))
    assert same(before, weights_of(learner)), "nothing is updated at a session"
    visible = stream.evaluation_graph(1)
    embedding = learner.network.node_embeddings(GraphInputs(visible.loaded(), learner.device))
    assert embedding.attention is not None
    rows = torch.from_numpy(visible.rows(stream.session(1).supports))
    values = embedding.attention[rows]
    expected = (values[:, None] * embedding.values[rows]).sum(dim=0) / values.sum()
    found = learner.memory.prototypes(learner.network, embedding, 8)
    torch.testing.assert_close(found[7], expected)


def test_proto_gcn_changes_no_weight_after_pre_training(stream: Stream) -> None:
    learner = make("proto-gcn")
    assert isinstance(learner, ProtoGcn)
    learner.fit(stream.base)
    before = weights_of(learner)
    assert same(before, {n.removeprefix("encoder."): v for n, v in learner.pretrained.items()})
    for session in stream:
        learner.learn(session)
    assert same(before, weights_of(learner))


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


# CEC


def test_cec_s_attention_is_self_attention_for_every_query() -> None:
    random = torch.Generator().manual_seed(1)
    attention = ClassifierAttention(5, random).double()
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=random, dtype=torch.float64))
    prototypes, queries = (torch.randn(n, 5, generator=random, dtype=torch.float64) for n in (4, 3))
    classes, asked = attention(prototypes, queries)
    for number, query in enumerate(queries):
        tokens = torch.cat([prototypes, query[None]])
        scores = attention.query(tokens) @ attention.key(tokens).T / 5**0.5
        mixed = torch.softmax(scores, dim=1) @ attention.value(tokens)
        expected = attention.norm(tokens + attention.out(mixed))
        torch.testing.assert_close(classes[number], expected[:-1])
        torch.testing.assert_close(asked[number], expected[-1])


def test_cec_s_encoder_is_frozen_after_session_0(stream: Stream) -> None:
    learner = make("cec")
    assert isinstance(learner, Cec)
    learner.fit(stream.base)
    assert learner.meta.best_episodes > 0
    before = {name: value.clone() for name, value in learner.network.state_dict().items()}
    kept = learner.memory.kept
    assert kept is not None
    for session in stream:
        learner.learn(session)
    assert same(before, learner.network.state_dict())
    assert not any(parameter.requires_grad for parameter in learner.network.parameters())
    assert learner.memory.kept is not None
    torch.testing.assert_close(learner.memory.kept[:7], kept, msg="old classifiers stay")
    assert learner.stored()["nodes"] == 0, "no node is kept"


def test_cec_can_train_its_attention_alone(stream: Stream) -> None:
    for train_encoder in (False, True):
        learner = make("cec", train_encoder=train_encoder)
        assert isinstance(learner, Cec)
        inputs = GraphInputs(stream.base.visible_graph.loaded(), learner.device)
        learner._start(stream.base, inputs)
        sampler = learner._sampler(stream.base, np.arange(4, 7))
        before, attention = weights_of(learner), learner.network.attention.out.weight.detach().clone()
        for _ in range(2):
            learner.meta.step(inputs, sampler.sample(learner.random), learner.meta.optimiser)
        assert same(before, weights_of(learner)) == (not train_encoder)
        assert not torch.equal(attention, learner.network.attention.out.weight)


def test_a_cosine_head_knows_directions_only() -> None:
    head = CosineHead(4, 3, 16.0, torch.Generator().manual_seed(0))
    points = torch.randn(5, 4)
    expected = 16 * nn.functional.cosine_similarity(points[:, None], head.weight.T[None], dim=2)
    torch.testing.assert_close(head(points), expected)
    torch.testing.assert_close(head(points * 7), expected)


# Joint


def test_only_joint_receives_pool_labels(stream: Stream) -> None:
    received: dict[str, list[Session]] = {"joint": [], "finetune": []}
    for name, sessions in received.items():
        learner = make(name)
        learn = learner.learn

        def watch(session: Session, learn: Any = learn, sessions: list[Session] = sessions) -> None:
            sessions.append(session)
            learn(session)

        learner.learn = watch  # type: ignore[method-assign]
        evaluate(learner, stream)
    assert all(isinstance(session, PooledSession) for session in received["joint"])
    assert not any(isinstance(session, PooledSession) for session in received["finetune"])
    queries = set(stream.queries(len(stream)).nodes)
    for session in received["joint"]:
        assert isinstance(session, PooledSession)
        assert session.pool.size > 0
        assert not queries & set(session.pool)
        names = {stream.classes[column] for column in session.pool_labels}
        assert names == set(session.new_classes)


def test_joint_trains_anew_from_the_pre_trained_encoder(stream: Stream) -> None:
    """What it knows after two sessions does not depend on the first one's training."""
    learner = make("joint", trunks=("gcn",))
    assert isinstance(learner, Joint)
    learner.fit(stream.base)
    generator = learner.generator.get_state()
    learner.learn(stream.session(1, with_pool_labels=True))
    learner.generator.set_state(generator)
    learner.learn(stream.session(2, with_pool_labels=True))
    expected = weights_of(learner)
    other = make("joint", trunks=("gcn",))
    assert isinstance(other, Joint)
    other.fit(stream.base)
    other.retraining.epochs = 0
    other.learn(stream.session(1, with_pool_labels=True))
    other.retraining.epochs = learner.retraining.epochs
    other.generator.set_state(generator)
    other.learn(stream.session(2, with_pool_labels=True))
    assert same(expected, weights_of(other))
    labelled = set(learner.memory.nodes)
    assert set(stream.base.train) <= labelled
