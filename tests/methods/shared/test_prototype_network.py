"""The loss of a whole episode against a loop over nodes and classes in float64, values and gradients."""

import math
from collections.abc import Mapping
from typing import Literal

import numpy as np
import pytest
import torch

from graphfcl import VisibleGraph
from graphfcl.methods.hag_meta import LOSSES, TASK_ATTENTIONS, HagMetaNetwork
from graphfcl.methods.shared.episodes import Episode
from graphfcl.methods.shared.prototype_network import NodeLevelAttention, PrototypeNetwork
from graphfcl.nn import GcnEncoder, GraphInputs
from tests.graphs import random_graph

pytestmark = pytest.mark.usefixtures("double_precision")

Tla = Literal["printed", "invariant"]
Weights = Mapping[str, torch.Tensor]

BASE, WAY, SIZE = 3, 2, 4
LAST_IS_SMALLER, FIRST_IS_SMALLER = ((3, 4), (5, -1)), ((3, -1), (4, 5))


# What is tested


def network_of(tla: Tla | None, loss: str = "softmax", *, hard: bool = False, softmax: bool = True) -> PrototypeNetwork:
    """A prototypical network on 7 features, with weights that leave no part of it without effect."""
    start = torch.Generator().manual_seed(67)
    encoder, nla = GcnEncoder(7, 5, SIZE, start), NodeLevelAttention(7, 6, 3, start)
    attention = None if tla is None else TASK_ATTENTIONS[tla](BASE, WAY, SIZE, start)
    network: PrototypeNetwork
    if softmax:
        network = HagMetaNetwork(encoder, nla, attention, LOSSES[loss], hard=hard)
    else:
        network = PrototypeNetwork(encoder, nla, softmax=False)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=start))
    return network


def episode_loss(network: PrototypeNetwork, visible: VisibleGraph, episode: Episode, *, by_class: bool) -> torch.Tensor:
    return network.episode_loss(GraphInputs(visible, torch.device("cpu")), episode, None, by_class=by_class)


def weights_of(network: torch.nn.Module) -> dict[str, torch.Tensor]:
    return dict(network.named_parameters())


# The reference


def linear(weights: Weights, name: str, values: torch.Tensor) -> torch.Tensor:
    return values @ weights[f"{name}.weight"] + weights[f"{name}.bias"]


class LoopOverNodes:
    """Graph convolutions, node by node: row i of Â·H is Σ_j H_j / √((degree_i + 1)(degree_j + 1)) over i and its
    neighbours j.
    """

    def __init__(self, visible: VisibleGraph) -> None:
        self.around = [row.nonzero()[0].tolist() for row in visible.adjacency.toarray()]
        features = visible.features if isinstance(visible.features, np.ndarray) else visible.features.toarray()
        rows = [torch.from_numpy(row.astype(np.float64)) for row in features]
        self.smoothed = [self.gathered(rows, i) for i in range(len(rows))]

    def gathered(self, values: list[torch.Tensor], i: int) -> torch.Tensor:
        total = torch.zeros_like(values[i])
        for j in [i, *self.around[i]]:
            total = total + values[j] / math.sqrt((len(self.around[i]) + 1) * (len(self.around[j]) + 1))
        return total

    def convolved(self, weights: Weights, name: str, rows: list[int]) -> dict[int, torch.Tensor]:
        """ReLU(Â · ReLU(Â X W₁ + b₁) W₂ + b₂) of some rows."""
        hidden = [torch.relu(linear(weights, f"{name}.first", row)) for row in self.smoothed]
        return {i: torch.relu(linear(weights, f"{name}.second", self.gathered(hidden, i))) for i in rows}

    def attention(self, weights: Weights, rows: list[int]) -> dict[int, torch.Tensor]:
        """λ̃_i = σ(log(degree_i + ε) · MLP(h_i))."""
        hidden = self.convolved(weights, "nla", rows)
        return {
            i: torch.sigmoid(math.log(len(self.around[i]) + 1e-6) * linear(weights, "nla.last", hidden[i])[0])
            for i in rows
        }


def task_weights_by_loop(
    weights: Weights, tla: Tla, prototypes: list[torch.Tensor], base: int, tasks: np.ndarray
) -> list[torch.Tensor]:
    """softmax_j(u^i · u^j), i the last task, the base task first."""
    others = [[prototypes[k] for k in task if k >= 0] for task in tasks.tolist()]
    vectors = []
    if tla == "invariant":
        for task in [prototypes[:base], *others]:
            total = torch.zeros_like(prototypes[0])
            for p in task:
                inner = torch.relu(linear(weights, "tla.layers.0", p))
                total = total + linear(weights, "tla.layers.2", torch.relu(linear(weights, "tla.layers.1", inner)))
            vectors.append(total / len(task))
    else:
        size, way = prototypes[0].numel(), tasks.shape[1]
        matrices = [[torch.stack([p[d] for p in prototypes[:base]]) for d in range(size)]]
        for number in range(3):
            matrices[0] = [linear(weights, f"tla.base_layers.{number}", row) for row in matrices[0]]
            matrices[0] = [torch.relu(row) for row in matrices[0]] if number < 2 else matrices[0]
        for task in others:
            mean = sum(task, torch.zeros_like(task[0])) / len(task)
            filled = [*task, *[mean] * (way - len(task))]
            matrices.append([torch.stack([p[d] for p in filled]) for d in range(size)])
        vectors = [torch.stack([linear(weights, "tla.shared", row)[0] for row in matrix]) for matrix in matrices]
    raw = [torch.exp((vectors[-1] * vector).sum()) for vector in vectors]
    return [value / sum(raw) for value in raw]


def loss_by_loop(
    weights: Weights,
    visible: VisibleGraph,
    episode: Episode,
    *,
    tla: Tla | None,
    loss: str = "softmax",
    hard: bool = False,
    by_class: bool = False,
    softmax: bool = True,
) -> torch.Tensor:
    """−Σ_q share_q (1 + w_{y_q}) log p(y_q | q), or the binary form, from the formulas alone."""
    count, classes, labels = episode.class_count, episode.support_classes.tolist(), episode.query_classes.tolist()
    place = {node: row for row, node in enumerate(visible.nodes.tolist())}
    supports, queries = [place[n] for n in episode.supports.tolist()], [place[n] for n in episode.queries.tolist()]
    nodes = LoopOverNodes(visible)
    z = nodes.convolved(weights, "encoder", [*supports, *queries])
    few = range(episode.few_shot)
    attention = nodes.attention(weights, [supports[s] for s in few])

    def prototype(k: int, left_out: int = -1) -> torch.Tensor:
        members = [s for s, c in enumerate(classes) if c == k and s != left_out]
        raw = {s: torch.ones(()) for s in members}
        for s in members:
            if s in few:
                raw[s] = torch.exp(attention[supports[s]]) if softmax else attention[supports[s]]
        total = sum(raw.values(), torch.zeros(()))
        return sum((raw[s] / total * z[supports[s]] for s in members), torch.zeros_like(z[supports[0]]))

    prototypes = [prototype(k) for k in range(count)]
    likelihoods = []
    for q, row in enumerate(queries):
        own = int(episode.own[q])
        places = [prototype(k, own) if own >= 0 and classes[own] == k else prototypes[k] for k in range(count)]
        raw = [torch.exp(-((z[row] - p) ** 2).sum()) for p in places]
        likelihoods.append([value / sum(raw) for value in raw])

    task_of = [0] * count
    for number, task in enumerate(episode.tasks.tolist()):
        for k in task:
            if k >= 0:
                task_of[k] = number + 1
    w = [torch.zeros(())] * count
    teaching = torch.zeros(())
    if tla is not None:
        of_task = task_weights_by_loop(weights, tla, prototypes, episode.base_count, episode.tasks)
        w = [of_task[j] / task_of.count(j) for j in task_of]
        if hard:
            w = [value.detach() for value in w]
            teaching = hard_tasks_by_loop(likelihoods, labels, task_of, of_task)

    total = torch.zeros(())
    for p, y in zip(likelihoods, labels, strict=True):
        share = 1 / (labels.count(y) * len(set(labels))) if by_class else 1 / len(labels)
        if loss == "softmax":
            total = total - share * (1 + w[y]) * torch.log(p[y])
            continue
        for k in range(count):
            total = total - share * (1 + w[k]) * torch.log(p[k] if k == y else 1 - p[k])
    return total + teaching


def hard_tasks_by_loop(
    likelihoods: list[list[torch.Tensor]], labels: list[int], task_of: list[int], of_task: list[torch.Tensor]
) -> torch.Tensor:
    """Cross-entropy from softmax_j(mean loss of task j), over the tasks that have queries, to w."""
    raw = {}
    for j in {task_of[y] for y in labels}:
        losses = [-math.log(float(p[y].detach())) for p, y in zip(likelihoods, labels, strict=True) if task_of[y] == j]
        raw[j] = math.exp(sum(losses) / len(losses))
    total = torch.zeros(())
    for j, value in raw.items():
        total = total - value / sum(raw.values()) * torch.log(of_task[j])
    return total


# The tests


def graph_and_episode(tasks: tuple[tuple[int, ...], ...]) -> tuple[VisibleGraph, Episode]:
    """Three base classes, then three more in two tasks. Two are known by few supports, one of them by a single one.

    Some queries are supports and are left out of their own prototype; the class with one support has no query.
    """
    graph = random_graph(3, [9, 9, 9, 7, 9, 9], unlabelled=6, density=0.04)
    visible = graph.visible(np.flatnonzero(graph.labels != -1)[3:])
    random = np.random.default_rng(1)
    of_class = [random.permutation(visible.nodes[graph.labels[visible.nodes] == k]) for k in range(6)]
    few, few_classes = [of_class[5][0], of_class[3][0], of_class[5][1], of_class[5][2]], [5, 3, 5, 5]
    many_classes = [0, 4, 1, 2, 2, 0, 4, 1, 0, 4, 4]
    many = [of_class[k][many_classes[:i].count(k)] for i, k in enumerate(many_classes)]
    query_classes = [4, 0, 0, 2, 5, 1, 4, 0, 5, 2, 4, 5, 0]
    own = np.full(13, -1)
    own[[0, 4, 8, 11]] = [5, 2, 0, 3]
    supports = np.array([*few, *many])
    others = [of_class[k][6 - query_classes[:i].count(k)] for i, k in enumerate(query_classes)]
    return visible, Episode(
        class_count=6,
        base_count=BASE,
        supports=supports,
        support_classes=np.array(few_classes + many_classes),
        few_shot=4,
        queries=np.where(own >= 0, supports[own], others),
        query_classes=np.array(query_classes),
        own=own,
        tasks=np.array(tasks),
    )


def assert_same(found: torch.Tensor, expected: torch.Tensor, weights: Weights) -> None:
    """Value and gradients, to the digits of the graph's own matrix, which is float32."""
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=0)
    left = torch.autograd.grad(found, list(weights.values()))
    right = torch.autograd.grad(expected, list(weights.values()))
    for name, one, other in zip(weights, left, right, strict=True):
        largest = float(other.abs().max())
        assert largest > 1e-5, f"{name} has no part in it"
        assert float((one - other).abs().max()) < 1e-5 * largest, name


def test_the_episode_has_all_that_an_episode_can_have() -> None:
    visible, episode = graph_and_episode(LAST_IS_SMALLER)
    np.testing.assert_array_equal(episode.supports[episode.own[episode.own >= 0]], episode.queries[episode.own >= 0])
    np.testing.assert_array_equal(
        episode.support_classes[episode.own[episode.own >= 0]], episode.query_classes[episode.own >= 0]
    )
    assert not set(episode.queries[episode.own < 0]) & set(episode.supports)
    assert np.unique(episode.supports).size == episode.supports.size
    assert not np.array_equal(visible.rows(episode.supports), episode.supports), "a node's number is not its row"
    assert (visible.degrees[visible.rows(episode.supports)] != 1).any(), "log(degree) has a part in it"


@pytest.mark.parametrize("tasks", [LAST_IS_SMALLER, FIRST_IS_SMALLER], ids=["last is smaller", "first is smaller"])
@pytest.mark.parametrize("by_class", [False, True], ids=["by query", "by class"])
@pytest.mark.parametrize("hard", [False, True], ids=["printed weighting", "hard weighting"])
@pytest.mark.parametrize("loss", ["softmax", "binary"])
@pytest.mark.parametrize("tla", ["printed", "invariant"])
def test_the_loss_of_an_episode_against_a_loop(
    tla: Tla, loss: str, hard: bool, by_class: bool, tasks: tuple[tuple[int, ...], ...]
) -> None:
    visible, episode = graph_and_episode(tasks)
    network = network_of(tla, loss, hard=hard)
    found = episode_loss(network, visible, episode, by_class=by_class)
    weights = weights_of(network)
    expected = loss_by_loop(weights, visible, episode, tla=tla, loss=loss, hard=hard, by_class=by_class)
    assert_same(found, expected, weights)


@pytest.mark.parametrize("softmax", [False, True], ids=["values over their sum", "softmax of values"])
def test_the_loss_of_an_episode_without_task_level_attention(softmax: bool) -> None:
    visible, episode = graph_and_episode(LAST_IS_SMALLER)
    network = network_of(None, softmax=softmax)
    found = episode_loss(network, visible, episode, by_class=False)
    assert_same(
        found,
        loss_by_loop(weights_of(network), visible, episode, tla=None, softmax=softmax),
        weights_of(network),
    )
