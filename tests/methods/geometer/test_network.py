"""Geometer's prototypes against torch's own attention, one class at a time."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from graphfcl.methods.geometer.network import PrototypeAttention, geometry
from graphfcl.methods.shared.episodes import Episode
from graphfcl.methods.shared.prototype_network import squared_distances

SIZE = 6
CLASSES = np.array([0, 2, 1, 2, 0, 0, 2, 2, 0])


def attention() -> PrototypeAttention:
    made = PrototypeAttention(SIZE, 2, torch.Generator().manual_seed(0))
    for number, parameter in enumerate(made.parameters()):
        nn.init.normal_(parameter, generator=torch.Generator().manual_seed(number))
    return made


def nodes() -> tuple[torch.Tensor, torch.Tensor]:
    """Embeddings and degrees with the self loop."""
    generator = torch.Generator().manual_seed(9)
    return torch.randn(CLASSES.size, SIZE, generator=generator), torch.arange(1.0, CLASSES.size + 1)


@torch.no_grad()
def plain_prototype(made: PrototypeAttention, embeddings: torch.Tensor, degrees: torch.Tensor) -> torch.Tensor:
    """a + o_0 of one class, by torch's attention with the same weights."""
    plain = nn.MultiheadAttention(SIZE, 2, batch_first=True)
    own = (made.query, made.key, made.value)
    plain.in_proj_weight.copy_(torch.cat([layer.weight.T for layer in own]))
    plain.in_proj_bias.copy_(torch.cat([layer.bias for layer in own]))
    plain.out_proj.weight.copy_(made.out.weight.T)
    plain.out_proj.bias.copy_(made.out.bias)
    mean = sum(d / degrees.sum() * z for d, z in zip(degrees, embeddings, strict=True))
    assert isinstance(mean, torch.Tensor)
    tokens = torch.cat([mean[None], embeddings])[None]
    return mean + plain(tokens, tokens, tokens)[0][0, 0]


def test_prototypes_are_weighed_means_and_what_attention_adds() -> None:
    made, (embeddings, degrees) = attention(), nodes()
    found = made(embeddings, degrees, torch.from_numpy(CLASSES), 3)
    for k in range(3):
        here = torch.from_numpy(np.flatnonzero(CLASSES == k))
        torch.testing.assert_close(found[k], plain_prototype(made, embeddings[here], degrees[here]))


def test_large_scores_do_not_overflow_and_a_class_without_a_node_is_finite() -> None:
    made, (embeddings, degrees) = attention(), nodes()
    found = made(100 * embeddings, degrees, torch.from_numpy(CLASSES), 4)
    assert bool(found.isfinite().all())
    found.sum().backward()
    assert all(bool(p.grad.isfinite().all()) for p in made.parameters() if p.grad is not None)


def test_prototypes_start_as_means_weighed_by_degree() -> None:
    made, (embeddings, degrees) = PrototypeAttention(SIZE, 2, torch.Generator().manual_seed(0)), nodes()
    found = made(embeddings, degrees, torch.from_numpy(CLASSES), 3)
    here = torch.from_numpy(np.flatnonzero(CLASSES == 2))
    expected = (degrees[here, None] * embeddings[here]).sum(dim=0) / degrees[here].sum()
    torch.testing.assert_close(found[2], expected)


def test_a_query_is_left_out_of_its_own_prototype_alone() -> None:
    made, (embeddings, degrees) = attention(), nodes()
    queries = np.array([3, 0, 2])  # supports of classes 2, 0 and 1; the last is the only one and stays in
    episode = Episode(
        class_count=3,
        base_count=0,
        supports=np.arange(CLASSES.size),
        support_classes=CLASSES,
        few_shot=0,
        queries=queries,
        query_classes=CLASSES[queries],
        own=np.array([3, 0, -1]),
        tasks=np.arange(3)[None],
    )
    found = geometry(made, torch.cat([embeddings, embeddings[torch.from_numpy(queries)]]), degrees, episode)
    for place, query in enumerate(queries):
        for k in range(3):
            leave = k == CLASSES[query] and episode.own[place] >= 0
            here = torch.from_numpy(np.flatnonzero((CLASSES == k) & ~(leave & (np.arange(CLASSES.size) == query))))
            prototype = plain_prototype(made, embeddings[here], degrees[here])
            expected = ((embeddings[query] - prototype) ** 2).sum()
            torch.testing.assert_close(found.distances[place, k], expected, rtol=1e-4, atol=1e-4)


class _Largest(TorchDispatchMode):
    """Notes the size of the largest tensor that an operation answers."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if isinstance(found, torch.Tensor):
            self.numbers = max(self.numbers, found.numel())
        return found


@pytest.mark.parametrize("classes", [40])
def test_no_tensor_has_a_place_for_every_node_class_and_dimension(classes: int) -> None:
    """Trap: the released distances subtract (n, 1, d) and (1, C, d)."""
    made = PrototypeAttention(32, 2, torch.Generator().manual_seed(0))
    embeddings, columns = torch.randn(800, 32), torch.arange(800) % classes
    with torch.no_grad(), _Largest() as largest:
        prototypes = made(embeddings, torch.ones(800), columns, classes)
        squared_distances(embeddings, prototypes)
    assert 0 < largest.numbers <= 800 * max(classes, 32)
