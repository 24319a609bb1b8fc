"""SimGRACE on the parts of a graph: unsupervised contrast between an encoder and a perturbed copy of it.

Jun Xia, Lirong Wu, Jintao Chen, Bozhen Hu, Stan Li: SimGRACE: A Simple Framework for Graph Contrastive Learning without
Data Augmentation. WWW 2022.

Let g be the mean embedding of the nodes of a part, h = head(g), and h' the same with weights θ + η, where
η ~ N(0, (noise · std(θ))²) is drawn in each step and h' has no gradient::

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
from graphfcl.methods.learner import Progress
from graphfcl.methods.settings import CheckedSettings, Limits, Number, Positive, Weight
from graphfcl.methods.shared.heads import unit
from graphfcl.methods.shared.supervised_training import TrainingLoop
from graphfcl.methods.shared.training_state import Adam, check_finite, make_adam, take_step
from graphfcl.methods.state import Tensors
from graphfcl.nn import GraphInputs, Linear

SMALLEST_PART = 5  # minimum mean number of nodes of a part; small graphs have fewer parts
STEPS_PER_CHECKPOINT = 20


@dataclass(frozen=True)
class ContrastSettings(CheckedSettings):
    """Settings of contrastive pre-training."""

    prefix = "contrast."
    epochs: Number = 200
    """Number of epochs; an epoch is one step on all parts of the graph."""
    parts: Annotated[int, Limits(least=2)] = 300
    """Number of parts of the graph; fewer if parts would have less than 5 nodes."""
    temperature: Positive = 0.1
    """Temperature of the contrastive loss."""
    noise: Weight = 0.1
    """Standard deviation of the weight noise, relative to the standard deviation of the weight tensor."""
    train_head: bool = True
    """Train the projection head; in the released code it stays random."""
    learning_rate: Positive = 0.01
    """Learning rate of Adam."""
    weight_decay: Weight = 0.0001
    """Weight decay of Adam."""


class ProjectionHead(nn.Module):
    """Two linear layers with a ReLU."""

    def __init__(self, size: int, generator: torch.Generator) -> None:
        super().__init__()
        self.first, self.second = Linear(size, size, generator), Linear(size, size, generator)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(values)))


def graph_parts(visible: VisibleGraph, count: int, random: np.random.Generator) -> np.ndarray:
    """Assign each node to the part of the nearest of ``count`` random seed nodes; return (n,) part numbers.

    Components without a seed are merged, in order, into parts of the mean size.
    """
    size = visible.node_count
    count = max(1, min(count, size // SMALLEST_PART))
    seeds = random.permutation(size)[:count]
    edges = visible.adjacency
    # Writable copies in 32 bits: scipy before 1.13 accepts nothing else here.
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
    """Compute the (parts, h) means of the rows of each part."""
    counts = torch.bincount(parts)
    sums = values.new_zeros(counts.numel(), values.shape[1]).index_add(0, parts, values)
    return sums / counts[:, None]


def contrast_loss(seen: torch.Tensor, perturbed: torch.Tensor, temperature: float) -> torch.Tensor:
    """Compute the loss in the module docstring from (parts, h) outputs of the head."""
    logits = unit(seen) @ unit(perturbed).T / temperature
    return nn.functional.cross_entropy(logits, torch.arange(len(logits), device=logits.device))


@torch.no_grad()
def perturbed_weights(module: nn.Module, noise: float, generator: torch.Generator) -> Tensors:
    """Compute θ + η for each weight tensor."""
    return {
        name: weight
        + noise * weight.std(correction=0) * torch.randn(weight.shape, generator=generator, device=weight.device)
        for name, weight in module.named_parameters()
    }


class ContrastiveTraining(TrainingLoop):
    """Training with the contrastive loss on all parts of a graph. Without ``train_head``, the head stays random."""

    @cached_property
    def optimiser(self) -> Adam:
        settings = self.settings
        trained = [*self.encoder.parameters(), *(self.head.parameters() if settings.train_head else ())]
        return make_adam(trained, settings.learning_rate, settings.weight_decay)

    def run(self, inputs: GraphInputs, learner: Any, progress: Progress) -> None:
        """Run the remaining epochs. ``learner`` owns this loop and the generator, and is the object of checkpoints."""
        total = self.settings.epochs
        if self.epoch >= total:
            return
        needed = self.encoder.rows(inputs, None)
        random = np.random.default_rng([learner.seed, 5])  # separate, so that a resumed loop has the same parts
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
