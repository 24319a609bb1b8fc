"""Session 0 of TAP: an encoder trained on three topologies, each with its own label space."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import nn

from graphfcl.errors import InputError
from graphfcl.graph.visible import VisibleGraph
from graphfcl.methods.bases.growing_head_learner import HeadSettings
from graphfcl.methods.learner import SILENT, Progress
from graphfcl.methods.settings import Fraction, Number, Positive, Weight
from graphfcl.methods.shared.fine_tuning import STEP_CANDIDATES, Steps
from graphfcl.methods.shared.heads import CosineHead, unit
from graphfcl.methods.shared.prototype_network import class_means, query_shares
from graphfcl.methods.shared.supervised_training import (
    HeadLoss,
    Places,
    SupervisedSettings,
    SupervisedTraining,
    class_balanced,
)
from graphfcl.methods.state import Labelled
from graphfcl.nn import Encoder, GatEncoder, GcnEncoder, GraphInputs, Linear, dropout
from graphfcl.nn.encoders import GatLayer


@dataclass(frozen=True)
class TapSettings(HeadSettings):
    """Settings of TAP. ``pretraining`` applies to all of session 0."""

    last_relu: bool = False
    """Apply a ReLU to the last encoder layer."""
    pretraining: SupervisedSettings = field(default_factory=lambda: SupervisedSettings(learning_rate=0.01))
    """Training on session 0, first on the base classes and then on all classes."""
    scale: Positive = 15.0
    """Factor of the cosines (s)."""
    margin: Weight = 0.1
    """Margin subtracted from the cosine to the true class in the loss (m)."""
    group_weight: Weight = 0.15
    """Weight of the graph of class groups in the loss of session 0; the visible graph has the remaining weight."""
    edgeless_weight: Weight = 0.15
    """Weight of the graph without edges in the loss of session 0."""
    random_edges: Weight = 0.3
    """Number of random edges added to the graph of class groups, as a fraction of its edges."""
    fine_tuning: tuple[Steps, ...] = (*STEP_CANDIDATES, (5, 0.01))
    """Candidate (steps, learning rate) pairs of a session, in addition to no steps; validation sessions choose one."""
    fine_tuning_rate: float = 0.01
    """Learning rate of a fixed number of steps."""
    weight_decay: float = 0.0
    """Weight decay of the steps. With Adam, any decay is a full step towards zero for weights without gradient."""
    step_share: Fraction = 0.05
    """Fraction of the weight change of a session's steps that is applied."""
    drift_width: Positive = 1.0
    """Distance scale within which supports determine the drift of an old prototype (σ)."""
    hops: Number = 2
    """Number of hops within which unlabelled nodes refine new prototypes."""
    rounds: Number = 2
    """Number of refinements of new prototypes."""
    temperature: Positive = 0.1
    """Temperature of the softmax that assigns unlabelled nodes to classes."""
    refined_share: Fraction = 0.7
    """Weight of the refined prototype against the previous one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.group_weight + self.edgeless_weight >= 1:
            raise InputError(
                "group_weight and edgeless_weight must sum to less than 1: the visible graph has the remaining weight."
            )


class ClassGroups:
    """Random graphs of class groups on the labelled nodes.

    A graph simulates separate sessions of N classes: edges between classes of different groups are removed. It contains
    no unlabelled nodes, because they belong to no group.

    Args:
        adjacency: (n, n) adjacency of all nodes.
        rows: (t,) rows of the labelled nodes.
        labels: (t,) their classes.
        way: N.
        share: Number of random edges as a fraction of the edges of each group.
    """

    def __init__(
        self, adjacency: sparse.csr_array, rows: np.ndarray, labels: np.ndarray, way: int, share: float
    ) -> None:
        self.edges = sparse.csr_array(adjacency[rows][:, rows])
        self.sources = np.repeat(np.arange(rows.size), np.diff(self.edges.indptr))
        self.labels, self.way, self.share = labels, way, share

    def draw(self, random: np.random.Generator) -> sparse.csr_array:
        """Draw groups of N classes, the last one possibly smaller, and return the (t, t) edges within groups."""
        count = int(self.labels.max(initial=0)) + 1
        group_of = np.empty(count, dtype=np.int64)
        group_of[random.permutation(count)] = np.arange(count) // self.way
        groups = group_of[self.labels]
        inside = groups[self.sources] == groups[self.edges.indices]
        ends = np.concatenate([[0], np.cumsum(inside)]).astype(self.edges.indptr.dtype)
        kept = (self.edges.data[inside], self.edges.indices[inside], ends[self.edges.indptr])
        inner = sparse.csr_array(kept, shape=self.edges.shape)
        edges = np.bincount(groups[self.sources[inside]], minlength=int(groups.max(initial=0)) + 1) / 2
        return inner.maximum(self._random_edges(groups, np.rint(self.share * edges).astype(np.int64), random))

    @staticmethod
    def _random_edges(groups: np.ndarray, counts: np.ndarray, random: np.random.Generator) -> sparse.csr_array:
        """Draw ``counts`` random edges between nodes of each group."""
        members = np.argsort(groups, kind="stable")
        sizes = np.bincount(groups, minlength=counts.size)
        starts = np.cumsum(sizes) - sizes
        of = np.repeat(np.arange(counts.size), counts)
        first, second = members[starts[of] + (random.random((2, of.size)) * sizes[of]).astype(np.int64)]
        proper = first != second
        first, second = first[proper], second[proper]
        both = (np.concatenate([first, second]), np.concatenate([second, first]))
        drawn = sparse.csr_array((np.ones(both[0].size, np.float32), both), shape=(groups.size, groups.size))
        drawn.data[:] = 1  # a pair drawn twice is one edge
        return drawn


def inputs_of(adjacency: sparse.csr_array, device: torch.device) -> GraphInputs:
    """Make a graph without features for :func:`encode`."""
    count = adjacency.shape[0]
    featureless = np.zeros((count, 0), dtype=np.float32)
    return GraphInputs(VisibleGraph(np.arange(count), adjacency, featureless), device)


def encode(
    encoder: GcnEncoder | GatEncoder,
    projected: torch.Tensor,
    graph: GraphInputs | None,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """Compute (n, size) embeddings from X W₁ on the edges of a graph, or without edges.

    The first layer is linear before aggregation, so all topologies share the product with the features.
    """
    hidden = torch.relu(_aggregated(encoder.first, projected, graph))
    hidden = dropout(hidden, encoder.dropout, generator)
    output = _aggregated(encoder.second, hidden @ encoder.second.weight, graph)
    return torch.relu(output) if encoder.last_relu else output


def _aggregated(layer: Linear | GatLayer, projected: torch.Tensor, graph: GraphInputs | None) -> torch.Tensor:
    """Apply a layer after its product with W. Without a graph, each node is its own only neighbour."""
    if graph is None:
        return projected + layer.bias
    if isinstance(layer, GatLayer):
        edges, own = graph.all_gat_rows.hops[0]
        return layer(projected, edges, own)
    return graph.adjacency @ projected + layer.bias


TOPOLOGY_SETTINGS = ("scale", "margin", "group_weight", "edgeless_weight", "random_edges")  # determine an encoder


def cosface(scale: float, margin: float) -> HeadLoss:
    """Make the loss (n,) −log softmax(s·(cos − m·1[y]))[y] of (n, C) logits s·cos and labels y."""

    def losses(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        own = torch.zeros_like(logits).scatter(1, labels[:, None], scale * margin)
        return nn.functional.cross_entropy(logits - own, labels, reduction="none")

    return losses


class TopologyTraining(SupervisedTraining):
    """Training on L = λ_a ℓ_a + λ_b ℓ_b + λ_c ℓ_c: visible graph, class groups, and no edges.

    Class k has the columns k, C + k and 2C + k of the head, one per topology. Validation classifies by the nearest
    prototype on the visible graph, as later predictions do.

    Attributes:
        weights: The three weights λ.
        way: N, the number of classes of a group.
        group_graph: The latest graph of class groups, on the labelled nodes.
    """

    encoder: GcnEncoder | GatEncoder
    head: CosineHead
    groups: ClassGroups
    group_graph: GraphInputs
    inputs: GraphInputs
    train: Places

    def __init__(self, encoder: Encoder, head: CosineHead, settings: TapSettings, *, way: int, **names: str) -> None:
        loss = class_balanced(cosface(settings.scale, settings.margin))
        super().__init__(encoder, head, settings.pretraining, loss=loss, balanced=True, **names)
        self.way, self.random_edges = way, settings.random_edges
        aside = (settings.group_weight, settings.edgeless_weight)
        self.weights = (1 - sum(aside), *aside)

    def run(
        self, train: Labelled, validation: Labelled, inputs: GraphInputs, learner: Any, progress: Progress = SILENT
    ) -> None:
        rows = inputs.visible.rows(train[0])
        self.groups = ClassGroups(inputs.visible.adjacency, rows, train[1], self.way, self.random_edges)
        self.inputs, self.train = inputs, Places.of(train, inputs)
        needed = self.encoder.rows(inputs, None)
        self.run_on(needed, self.train, needed, Places.of(validation, inputs), learner, progress)

    def _epoch(self, needed: Any, train: Places, generator: torch.Generator) -> torch.Tensor:
        """Draw groups, and take the steps of an epoch."""
        seed = torch.randint(2**62, (), generator=generator, device=generator.device)
        self.group_graph = inputs_of(self.groups.draw(np.random.default_rng(int(seed))), self.inputs.device)
        return super()._epoch(needed, train, generator)

    def _loss(self, needed: Any, train: Places, generator: torch.Generator) -> torch.Tensor:  # noqa: ARG002
        """Compute L of the labelled nodes with equal class weights."""
        encoder, count = self.encoder, self.head.weight.shape[1] // 3
        projected = self.inputs.raw() @ encoder.first.weight
        chosen = projected.index_select(0, train.rows)
        embeddings = (
            encode(encoder, projected, self.inputs, generator).index_select(0, train.rows),
            encode(encoder, chosen, self.group_graph, generator),
            encode(encoder, chosen, None, generator),
        )
        losses = [self.loss(self.head(values), place * count + train.labels) for place, values in enumerate(embeddings)]
        return sum((weight * loss for weight, loss in zip(self.weights, losses, strict=True)), losses[0].new_zeros(()))

    @torch.no_grad()
    def _accuracy(self, needed: Any, validation: Places) -> float:
        values, own = self.encoder(needed), self.train.labels
        count = int(own.max()) + 1
        prototypes = class_means(values[self.train.rows], own, count)
        right = (unit(values[validation.rows]) @ unit(prototypes).T).argmax(dim=1) == validation.labels
        return float((right * query_shares(validation.labels, count, by_class=True)).sum())
