"""SimGRACE on the parts of one graph: contrast of an encoder with a perturbed copy of itself, without a label.

Jun Xia, Lirong Wu, Jintao Chen, Bozhen Hu, Stan Li: SimGRACE: A Simple Framework for Graph Contrastive Learning without
Data Augmentation. WWW 2022.

With g the mean embedding of the nodes of a part, h = head(g), and h' the same under weights θ + η,
η ~ N(0, (noise · std(θ))²), drawn again in each step and without a gradient::

    L = mean over parts i of −log( exp(cos(h_i, h'_i)/T) / Σ_j exp(cos(h_i, h'_j)/T) )
"""

import time
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
import torch
from scipy.sparse import csgraph, csr_matrix
from torch import nn

from graphfcl.graph.visible import VisibleGraph
from graphfcl.methods.learner import Progress, Tensors
from graphfcl.methods.settings import CheckedSettings, Limits, Number, Positive, Weight
from graphfcl.methods.shared.heads import unit
from graphfcl.methods.shared.supervised_training import TrainingLoop
from graphfcl.methods.shared.training_state import Adam, check_finite, make_adam, take_step
from graphfcl.nn import GraphInputs, Linear

SMALLEST_PART = 5  # nodes; a small graph has fewer parts
STEPS_PER_CHECKPOINT = 20


@dataclass(frozen=True)
class ContrastSettings(CheckedSettings):
    """Contrastive pre-training."""

    prefix = "contrast."
    epochs: Number = 200
    """Epochs; each is one step on all parts of the graph."""
    parts: Annotated[int, Limits(least=2)] = 300
    """Parts that the graph is cut into, fewer where a part would have less than 5 nodes."""
    temperature: Positive = 0.1
    """Cosines are divided by it."""
    noise: Weight = 0.1
    """Standard deviation of the change of a weight, as a share of that of its tensor."""
    train_head: bool = True
    """Train the head on top of the parts; in the released code it stays random."""
    learning_rate: Positive = 0.01
    """Adam's rate."""
    weight_decay: Weight = 0.0001
    """Adam's weight decay."""


class ProjectionHead(nn.Module):
    """Two layers with a ReLU between."""

    def __init__(self, size: int, generator: torch.Generator) -> None:
        super().__init__()
        self.first, self.second = Linear(size, size, generator), Linear(size, size, generator)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(values)))


def graph_parts(visible: VisibleGraph, count: int, random: np.random.Generator) -> np.ndarray:
    """(n,) the part of each node: that of the nearest of ``count`` seeds, nodes drawn at random.

    Components without a seed are put together, one after another, into parts of the mean size.
    """
    size = visible.node_count
    count = max(1, min(count, size // SMALLEST_PART))
    seeds = random.permutation(size)[:count]
    edges = visible.adjacency
    # Copies of 32 bits: scipy before 1.13 takes no others here, and none that are read-only.
    places = (edges.indices.astype(np.int32), edges.indptr.astype(np.int32))
    adjacency = csr_matrix((edges.data.copy(), *places), shape=edges.shape)
    _, _, nearest = csgraph.dijkstra(
        adjacency, directed=False, indices=seeds, unweighted=True, min_only=True, return_predecessors=True
    )
    left = np.flatnonzero(nearest < 0)
    _, component = csgraph.connected_components(adjacency, directed=False)
    left = left[np.argsort(component[left], kind="stable")]
    nearest[left] = size + np.arange(left.size) // max(1, size // count)
    return np.unique(nearest, return_inverse=True)[1].astype(np.int64)


def pooled(values: torch.Tensor, parts: torch.Tensor) -> torch.Tensor:
    """(parts, h) the mean of the rows of each part."""
    counts = torch.bincount(parts)
    sums = values.new_zeros(counts.numel(), values.shape[1]).index_add(0, parts, values)
    return sums / counts[:, None]


def contrast_loss(seen: torch.Tensor, perturbed: torch.Tensor, temperature: float) -> torch.Tensor:
    """The loss in the module docstring, of (parts, h) outputs of the head."""
    logits = unit(seen) @ unit(perturbed).T / temperature
    return nn.functional.cross_entropy(logits, torch.arange(len(logits), device=logits.device))


@torch.no_grad()
def perturbed_weights(module: nn.Module, noise: float, generator: torch.Generator) -> Tensors:
    """θ + η for every weight."""
    return {
        name: weight
        + noise * weight.std(correction=0) * torch.randn(weight.shape, generator=generator, device=weight.device)
        for name, weight in module.named_parameters()
    }


class ContrastiveTraining(TrainingLoop):
    """The loss above on all parts of a graph; without ``train_head`` its head stays random."""

    @cached_property
    def optimiser(self) -> Adam:
        settings = self.settings
        trained = [*self.encoder.parameters(), *(self.head.parameters() if settings.train_head else ())]
        return make_adam(trained, settings.learning_rate, settings.weight_decay)

    def run(self, inputs: GraphInputs, learner: Any, progress: Progress) -> None:
        """All epochs that are left. learner: holds this loop and the generator; checkpoints are taken of it."""
        total = self.settings.epochs
        if self.epoch >= total:
            return
        needed = self.encoder.rows(inputs, None)
        random = np.random.default_rng([learner.seed, 5])  # its own: a loop that goes on has the same parts
        parts = torch.from_numpy(graph_parts(inputs.visible, self.settings.parts, random)).to(inputs.device)
        while self.epoch < total:
            start = time.perf_counter()
            for _ in range(min(STEPS_PER_CHECKPOINT, total - self.epoch)):
                loss = take_step(self.optimiser, lambda: self._loss(needed, parts, learner.generator))
                self.epoch += 1
            value = check_finite(loss, self.stage, self.epoch)
            self.seconds += time.perf_counter() - start
            progress.step(self.stage, self.epoch, total, loss=value)
            progress.checkpoint(learner)

    def _loss(self, needed: Any, parts: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        weights = perturbed_weights(self.encoder, self.settings.noise, generator)
        with torch.no_grad():
            other = torch.func.functional_call(self.encoder, weights, (needed, generator))
            perturbed = self.head(pooled(other, parts))
        seen = self.head(pooled(self.encoder(needed, generator), parts))
        return contrast_loss(seen, perturbed, self.settings.temperature)
