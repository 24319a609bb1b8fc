"""The two attentions against plain loops, values and gradients."""

import math

import numpy as np
import pytest
import torch

from graphfcl.methods.hag_meta import InvariantTaskAttention, PrintedTaskAttention, hard_task_loss
from graphfcl.methods.shared.prototype_network import NodeLevelAttention
from graphfcl.nn import GraphInputs
from tests.graphs import random_graph

pytestmark = pytest.mark.usefixtures("double_precision")

CPU = torch.device("cpu")


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def layer_of(values: torch.Tensor, layer: torch.nn.Module) -> torch.Tensor:
    return values @ layer.weight + layer.bias  # type: ignore[operator]


def test_node_level_attention_against_a_loop() -> None:
    graph = random_graph(0, [10, 8], density=0.06)
    visible = graph.visible(np.arange(graph.node_count))
    attention = NodeLevelAttention(7, 6, 4, seeded(1))
    with torch.no_grad():
        attention.first.bias.add_(0.05)
        attention.last.bias.add_(0.3)
    features = torch.from_numpy(visible.features.toarray().astype(np.float64))
    neighbours = [row.nonzero()[0].tolist() for row in visible.adjacency.toarray()]

    def convolve(values: torch.Tensor, layer: torch.nn.Module) -> torch.Tensor:
        rows = []
        for j, around in enumerate(neighbours):
            total = torch.zeros(values.shape[1])
            for other in [j, *around]:
                total = total + values[other] / math.sqrt((len(around) + 1) * (len(neighbours[other]) + 1))
            rows.append(torch.relu(layer_of(total, layer)))
        return torch.stack(rows)

    hidden = convolve(convolve(features, attention.first), attention.second)
    expected = []
    for j, around in enumerate(neighbours):
        value = layer_of(hidden[j], attention.last)[0]
        expected.append(torch.sigmoid(math.log(len(around) + 1e-6) * value))
    wanted = torch.stack(expected)
    assert any(not around for around in neighbours), "the test needs an isolated node"

    rows = np.array([3, 0, 9, 17])
    found = attention(GraphInputs(visible, CPU).gcn_rows(rows))
    torch.testing.assert_close(found, wanted[torch.from_numpy(rows)], rtol=1e-5, atol=1e-6)
    parameters = list(attention.parameters())
    for left, right in zip(
        torch.autograd.grad(found.sum(), parameters),
        torch.autograd.grad(wanted[torch.from_numpy(rows)].sum(), parameters),
        strict=True,
    ):
        torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-6)


TASKS = [[4, 5], [6, 7], [8]]


def task_tensor() -> torch.Tensor:
    return torch.tensor([[4, 5], [6, 7], [8, -1]])


@pytest.mark.parametrize("current", [0, 2, 3])
def test_printed_task_attention_against_a_loop(current: int) -> None:
    prototypes = torch.randn(9, 5, generator=seeded(0), requires_grad=True)
    attention = PrintedTaskAttention(4, 2, 5, seeded(2))
    with torch.no_grad():
        attention.shared.bias.add_(0.2)
    vectors = []
    for task in [None, *TASKS]:
        entries = []
        for dimension in range(5):
            if task is None:
                values = prototypes[:4, dimension]
                values = torch.relu(layer_of(values, attention.base_layers[0]))
                values = torch.relu(layer_of(values, attention.base_layers[1]))
                values = layer_of(values, attention.base_layers[2])
            else:
                members = [prototypes[k, dimension] for k in task]
                members += [torch.stack(members).mean()] * (2 - len(members))
                values = torch.stack(members)
            entries.append((values * attention.shared.weight[:, 0]).sum() + attention.shared.bias[0])
        vectors.append(torch.stack(entries))
    raw = torch.stack([torch.exp((vectors[current] * vector).sum()) for vector in vectors])
    expected = raw / raw.sum()
    found = attention(prototypes, task_tensor(), 4, current)
    torch.testing.assert_close(found, expected)
    (gradient,) = torch.autograd.grad(found[1], prototypes, retain_graph=True)
    (wanted,) = torch.autograd.grad(expected[1], prototypes)
    torch.testing.assert_close(gradient, wanted)


def test_invariant_task_attention_against_a_loop_and_in_any_order() -> None:
    prototypes = torch.randn(9, 5, generator=seeded(0), requires_grad=True)
    attention = InvariantTaskAttention(4, 2, 5, seeded(3))

    def single(prototype: torch.Tensor) -> torch.Tensor:
        value = prototype
        for layer in list(attention.layers)[:-1]:
            value = torch.relu(layer_of(value, layer))
        return layer_of(value, attention.layers[-1])

    vectors = [torch.stack([single(prototypes[k]) for k in task]).mean(dim=0) for task in [range(4), *TASKS]]
    raw = torch.stack([torch.exp((vectors[3] * vector).sum()) for vector in vectors])
    expected = raw / raw.sum()
    found = attention(prototypes, task_tensor(), 4, 3)
    torch.testing.assert_close(found, expected)
    (gradient,) = torch.autograd.grad(found[2], prototypes, retain_graph=True)
    (wanted,) = torch.autograd.grad(expected[2], prototypes)
    torch.testing.assert_close(gradient, wanted)
    order = [2, 0, 3, 1, 5, 4, 7, 6, 8]
    torch.testing.assert_close(attention(prototypes[order], task_tensor(), 4, 3), found)
    # Sizes are free: other numbers of base classes and of classes a task.
    assert attention(prototypes, torch.tensor([[6, 7, 8]]), 6, 1).shape == (2,)


def test_the_printed_form_is_not_invariant() -> None:
    prototypes = torch.randn(9, 5, generator=seeded(0))
    attention = PrintedTaskAttention(4, 2, 5, seeded(2))
    order = [2, 0, 3, 1, 4, 5, 6, 7, 8]
    assert not torch.allclose(
        attention(prototypes[order], task_tensor(), 4, 3), attention(prototypes, task_tensor(), 4, 3)
    )


@pytest.mark.parametrize("queries", [(0, 1, 2, 3, 4, 4), (0, 0, 1, 4)])
def test_the_hard_loss_against_a_loop_also_with_a_task_without_queries(queries: tuple[int, ...]) -> None:
    """Target: softmax over the tasks of the mean loss of their queries; a task without queries has no share in it."""
    task_of_class = torch.tensor([0, 0, 1, 1, 2])
    labels = torch.tensor(queries)
    distances = 3 * torch.rand(len(queries), 5, generator=seeded(5))
    weights = torch.softmax(torch.randn(3, generator=seeded(6)), dim=0)
    losses: dict[int, list[float]] = {}
    for row, label in zip(distances.tolist(), queries, strict=True):
        likelihood = math.exp(-row[label]) / sum(math.exp(-value) for value in row)
        losses.setdefault(int(task_of_class[label]), []).append(-math.log(likelihood))
    powers = {task: math.exp(sum(values) / len(values)) for task, values in losses.items()}
    expected = -sum(power / sum(powers.values()) * math.log(float(weights[task])) for task, power in powers.items())
    assert float(hard_task_loss(distances, labels, weights, task_of_class)) == pytest.approx(expected)
