"""Contrastive pre-training against plain loops, and what it may see."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from graphfcl import SILENT, find_method
from graphfcl.methods.lpmc.contrast import (
    ContrastiveTraining,
    ContrastSettings,
    ProjectionHead,
    contrast_loss,
    graph_parts,
    perturbed_weights,
    pooled,
)
from graphfcl.methods.lpmc.learner import Lpmc
from graphfcl.methods.shared.training_state import copy_weights
from graphfcl.nn import GcnEncoder, GraphInputs
from tests.golden.samples import SHORT, golden_stream
from tests.graphs import random_graph


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_the_loss_against_a_loop() -> None:
    first, second = (torch.randn(6, 4, generator=seeded(s), dtype=torch.float64) for s in (1, 2))
    total = 0.0
    for i in range(6):
        cosines = [
            float(first[i] @ second[j]) / math.sqrt(float(first[i] @ first[i]) * float(second[j] @ second[j]))
            for j in range(6)
        ]
        total -= math.log(math.exp(cosines[i] / 0.1) / sum(math.exp(c / 0.1) for c in cosines))
    assert math.isclose(float(contrast_loss(first, second, 0.1)), total / 6, rel_tol=1e-9)


def test_a_part_is_the_mean_of_its_nodes() -> None:
    values, parts = torch.randn(7, 3, generator=seeded(0), dtype=torch.float64), torch.tensor([1, 0, 2, 1, 1, 0, 2])
    found = pooled(values, parts)
    for number in range(3):
        rows = [values[i] for i in range(7) if parts[i] == number]
        torch.testing.assert_close(found[number], sum(rows[1:], rows[0]) / len(rows))


def test_a_node_is_of_the_part_of_its_nearest_seed() -> None:
    visible = golden_stream("transductive").base.visible_graph
    size = visible.node_count
    parts = graph_parts(visible.loaded(), 12, np.random.default_rng(0))
    seeds = np.random.default_rng(0).permutation(size)[:12].tolist()
    hops = np.full((12, size), 10**6)
    for distances, seed in zip(hops, seeds, strict=True):  # breadth first from each seed
        distances[seed], edge = 0, [seed]
        while edge:
            reached = {int(j) for i in edge for j in visible.loaded().adjacency[[i]].indices if distances[j] == 10**6}
            distances[list(reached)] = distances[edge[0]] + 1
            edge = list(reached)
    part_of_seed = [parts[seed] for seed in seeds]
    assert len(set(part_of_seed)) == 12
    for node in range(size):
        if hops[:, node].min() < 10**6:
            nearest = {part_of_seed[s] for s in range(12) if hops[s, node] == hops[:, node].min()}
            assert parts[node] in nearest


def test_every_component_is_in_a_part() -> None:
    visible = random_graph(0, [30, 20], density=0.0).visible(np.arange(50))
    parts = graph_parts(visible, 10_000, np.random.default_rng(0))
    assert np.bincount(parts).tolist() == [1] * 10 + [5] * 8, "ten seeds without an edge, and the others together"


def test_weights_change_by_a_share_of_their_deviation() -> None:
    encoder = GcnEncoder(200, 100, 50, seeded(0))
    found = perturbed_weights(encoder, 0.1, seeded(1))
    weight = encoder.first.weight.detach()
    change = found["first.weight"] - weight
    assert math.isclose(float(change.std() / weight.std()), 0.1, rel_tol=0.02)
    assert abs(float(change.mean())) < 0.01 * float(weight.std())
    assert not found["first.bias"].any(), "weights that are all equal stay"


@pytest.mark.parametrize("train_head", [True, False])
def test_the_head_is_trained_or_stays_random(train_head: bool) -> None:
    graph = random_graph(0, [30, 20], density=0.1)
    visible = graph.visible(np.arange(graph.node_count))
    encoder, head = GcnEncoder(7, 8, 4, seeded(0), last_relu=False), ProjectionHead(4, seeded(1))
    before = encoder.first.weight.detach().clone(), head.first.weight.detach().clone()
    training = ContrastiveTraining(encoder, head, ContrastSettings(epochs=3, train_head=train_head))
    learner = Lpmc()
    learner.generator = seeded(2)
    training.run(GraphInputs(visible, torch.device("cpu")), learner, SILENT)
    assert training.epoch == 3
    assert not torch.equal(before[0], encoder.first.weight)
    assert torch.equal(before[1], head.first.weight) != train_head


def test_it_sees_no_label() -> None:
    base = golden_stream("transductive").base
    random = np.random.default_rng(0)
    shuffled = replace(base, train_labels=random.permutation(base.train_labels))
    found = []
    for session in (base, shuffled):
        learner = Lpmc(find_method("lpmc").settings_with(SHORT["lpmc"]))
        learner._start(session, learner.cache.inputs(session.visible_graph))
        learner.contrast.run(learner.cache.inputs(session.visible_graph), learner, SILENT)
        found.append(copy_weights(learner.network.encoder)["first.weight"])
    assert torch.equal(found[0], found[1])


def test_contrast_tells_parts_apart() -> None:
    """The loss falls well below that of guessing among the parts."""
    visible = golden_stream("transductive").base.visible_graph
    encoder = GcnEncoder(visible.loaded().features.shape[1], 16, 16, seeded(0), last_relu=False)
    head, inputs = ProjectionHead(16, seeded(1)), GraphInputs(visible.loaded(), torch.device("cpu"))
    training = ContrastiveTraining(encoder, head, ContrastSettings(epochs=30))
    training.run(inputs, Lpmc(seed=2), SILENT)
    with torch.no_grad():
        needed = encoder.rows(inputs, None)
        parts = torch.from_numpy(graph_parts(visible.loaded(), 300, np.random.default_rng(4)))
        other = torch.func.functional_call(encoder, perturbed_weights(encoder, 0.1, seeded(3)), (needed,))
        loss = contrast_loss(head(pooled(encoder(needed), parts)), head(pooled(other, parts)), 0.1)
    assert float(loss) < 0.5 * math.log(int(parts.max()) + 1)
