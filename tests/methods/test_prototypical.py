"""The defining step of Meta-GNN, GPN, Proto-GCN and CEC, against a plain version."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from graphfcl import Stream
from graphfcl.methods.cec import Cec, ClassifierAttention
from graphfcl.methods.gpn import Gpn
from graphfcl.methods.meta_gnn import MetaGnn, Step, nearest_mean
from graphfcl.methods.proto import ProtoGcn
from graphfcl.methods.shared.episodes import NodePools, TaskSampler
from graphfcl.methods.shared.heads import CosineHead
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
    step = Step(encoder, supports, labels, 0.3, differentiable=second)
    weights, head = step.repeat({"weight": encoder.weight}, nearest_mean(prototypes), 3)
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
    step = Step(encoder, supports, labels, 0.1, differentiable=False)
    found, head = step.repeat({"weight": weight}, (columns, biases), 2)
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
        assert learner.adapted_head is not None
        assert same(before, learner.adapted_weights) == (steps == 0)
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
