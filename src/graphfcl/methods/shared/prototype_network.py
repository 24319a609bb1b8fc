"""A prototypical network on a graph: encoder, node-level attention (NLA), prototypes, and the loss of an episode."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from graphfcl.graph.visible import VisibleGraph
from graphfcl.methods.shared.episodes import DeviceEpisode, Episode
from graphfcl.methods.shared.validation_sessions import ValidationSessions
from graphfcl.methods.state import Labelled, no_labels
from graphfcl.nn import Encoder, GcnEncoder, GcnRows, GraphInputs, Linear, tensor_of

SMALLEST = 1e-12  # lower bound of attention values


@dataclass(frozen=True, eq=False)
class NodeEmbeddings:
    """(n, h) embeddings of all visible nodes, and their (n,) attention values λ̃ if the network has an attention."""

    visible: VisibleGraph
    values: torch.Tensor
    attention: torch.Tensor | None

    def rows(self, nodes: np.ndarray) -> torch.Tensor:
        """Return the rows of some nodes."""
        return torch.from_numpy(self.visible.rows(nodes)).to(self.values.device)


class PrototypeNetwork(nn.Module):
    """A prototypical network.

    Args:
        encoder: Graph encoder g_θ.
        nla: Node-level attention g_ψ, or None for equal weights.
        softmax: Whether attention values become weights by a softmax within a class, or by division by their sum.
    """

    def __init__(self, encoder: Encoder, nla: nn.Module | None = None, *, softmax: bool = True) -> None:
        super().__init__()
        self.encoder, self.nla, self.softmax = encoder, nla, softmax

    def embed(self, inputs: GraphInputs, rows: np.ndarray | None = None) -> torch.Tensor:
        """Compute (r, h) embeddings of some rows or of all. With an attention, its values are appended as a column."""
        needed = self.encoder.rows(inputs, rows)
        values = self.encoder(needed)
        if self.nla is None:
            return values
        if not isinstance(needed, GcnRows):
            needed = inputs.all_gcn_rows if rows is None else inputs.gcn_rows(rows)
        return torch.cat([values, self.nla(needed)[:, None]], dim=1)

    @torch.no_grad()
    def node_embeddings(self, inputs: GraphInputs, known: torch.Tensor | None = None) -> NodeEmbeddings:
        """Embed all nodes in evaluation mode. ``known`` is an earlier result of :meth:`embed` for this graph."""
        embedded = self.embed(inputs) if known is None else known
        if self.nla is None:
            return NodeEmbeddings(inputs.visible, embedded, None)
        return NodeEmbeddings(inputs.visible, embedded[:, :-1], embedded[:, -1])

    @torch.no_grad()
    def prototypes(
        self, embedding: NodeEmbeddings, train: Labelled, supports: Labelled, class_count: int
    ) -> torch.Tensor:
        """Compute (classes, h) prototypes: means over ``train``, and attention-weighted sums over ``supports``."""
        parts = []
        for (nodes, columns), attention in ((supports, embedding.attention), (train, None)):
            rows, classes = embedding.rows(nodes), tensor_of(columns, embedding.values.device)
            values = None if attention is None else attention[rows]
            shares = class_shares(classes, class_count, values, softmax=self.softmax)
            parts.append(weighted_prototypes(embedding.values[rows], shares, classes, class_count))
        return parts[0] + parts[1]

    @torch.no_grad()
    def scores(self, values: torch.Tensor, prototypes: torch.Tensor) -> torch.Tensor:
        """Compute (n, classes) scores −‖z − p_k‖² of (n, h) embeddings."""
        return -squared_distances(values, prototypes)

    def validate(self, inputs: GraphInputs, validation: ValidationSessions) -> float:
        """Score the validation sessions with the current prototypes."""
        embedding, count = self.node_embeddings(inputs), validation.known_count
        known_prototypes = self.prototypes(embedding, validation.train, no_labels(), count)  # the same in every draw
        values = embedding.values[embedding.rows(validation.queries[0])]

        def predict(supports: Labelled) -> np.ndarray:
            few = self.prototypes(embedding, no_labels(), supports, validation.class_count)[count:]
            return self.scores(values, torch.cat([known_prototypes, few])).argmax(dim=1).cpu().numpy()

        return validation.score(predict)

    def encode_episode(
        self, inputs: GraphInputs, episode: Episode, generator: torch.Generator | None
    ) -> tuple[torch.Tensor, ...]:
        """Return (s, h) and (q, h) embeddings of supports and queries, and their (s,) and (q,) classes."""
        rows = inputs.visible.rows(np.concatenate([episode.supports, episode.queries]))
        embeddings = self.encoder(self.encoder.rows(inputs, rows), generator)
        classes = (tensor_of(each, inputs.device) for each in (episode.support_classes, episode.query_classes))
        return *embeddings.tensor_split([episode.supports.size]), *classes

    def episode_loss(
        self, inputs: GraphInputs, episode: Episode, generator: torch.Generator | None, *, by_class: bool = False
    ) -> torch.Tensor:
        """Compute the loss of an episode, without dropout if there is no generator.

        With ``by_class``, all classes have the same weight.
        """
        return self.device_loss(inputs, DeviceEpisode.of(episode, inputs), generator, by_class=by_class)

    def device_loss(
        self, inputs: GraphInputs, episode: DeviceEpisode, generator: torch.Generator | None, *, by_class: bool = False
    ) -> torch.Tensor:
        """Compute :meth:`episode_loss` of an episode on the device."""
        count, few, first = episode.host.class_count, episode.host.few_shot, episode.host.supports.size
        rows = episode.device_rows if self.computes_whole(inputs) else episode.rows
        needed = self.encoder.rows(inputs, rows, lead=few)
        embeddings = self.encoder(needed, generator)
        supports, queries = embeddings[:first], embeddings[first:]
        classes, labels = episode.support_classes, episode.query_classes

        attention = None
        if self.nla is not None and few:
            attention = self.nla(needed.head() if isinstance(needed, GcnRows) else inputs.gcn_rows(episode.rows[:few]))
        attended = class_shares(classes[:few], count, attention, softmax=self.softmax)
        shares = torch.cat([attended, class_shares(classes[few:], count)])
        prototypes = weighted_prototypes(supports, shares, classes, count)
        distances = squared_distances(queries, prototypes)
        if episode.leaves_out:
            own = episode.own
            distances = leave_one_out_distances(distances, queries, prototypes, own, supports, shares, classes)
        return self.loss(distances, prototypes, query_shares(labels, count, by_class), episode)

    def computes_whole(self, inputs: GraphInputs) -> bool:
        """Whether all rows are computed for every episode, so that rows are selected on the device."""
        return isinstance(self.encoder, GcnEncoder) and inputs.whole_is_cheaper

    def loss(
        self, distances: torch.Tensor, prototypes: torch.Tensor, shares: torch.Tensor, episode: DeviceEpisode
    ) -> torch.Tensor:
        """Compute the loss from (q, classes) distances and (q,) query weights ``shares``.

        This class uses the cross-entropy. Subclasses may weight classes.
        """
        weights = prototypes.new_zeros(len(prototypes))
        return weighted_cross_entropy(distances, episode.query_classes, weights, shares)


class NodeLevelAttention(nn.Module):
    """Node-level attention g_ψ, the weight of each support in the prototype of its class.

    λ_j = MLP(h_j), where h is the output of two graph convolutions of X (d → 32 → 16, ReLU on both).
    λ̃_j = σ(log(degree_j + ε) · λ_j). The weights are softmax(λ̃) over the supports of a class.
    """

    def __init__(self, features: int, hidden: int, size: int, generator: torch.Generator) -> None:
        super().__init__()
        self.first = Linear(features, hidden, generator)
        self.second = Linear(hidden, size, generator)
        self.last = Linear(size, 1, generator)

    def forward(self, rows: GcnRows) -> torch.Tensor:
        """Compute (r,) λ̃ in (0, 1)."""
        hidden = torch.relu(rows.inputs @ self.first.weight + self.first.bias)
        hidden = torch.relu(rows.aggregate(hidden @ self.second.weight) + self.second.bias)
        value = self.last(hidden).squeeze(1)
        return torch.sigmoid(rows.log_degrees.to(value.dtype) * value)


def class_shares(
    classes: torch.Tensor, count: int, values: torch.Tensor | None = None, *, softmax: bool = True
) -> torch.Tensor:
    """Compute (s,) weights of supports that sum to 1 in each class.

    Without ``values``, weights are 1/|S_k|. With attention values, weights are softmax(values) or values/Σ values over
    S_k. Attention values are in (0, 1), so the softmax needs no shift.
    """
    if values is None:
        raw = torch.ones(classes.shape, device=classes.device)
    else:
        # Attention values can underflow to 0; a class with only such values would be divided by 0.
        raw = torch.exp(values) if softmax else values.clamp(min=SMALLEST)
    total = torch.zeros(count, dtype=raw.dtype, device=raw.device).index_add(0, classes, raw)
    return raw / total[classes]


def weighted_prototypes(
    embeddings: torch.Tensor, shares: torch.Tensor, classes: torch.Tensor, count: int
) -> torch.Tensor:
    """Compute (count, h) prototypes p_k = Σ_{j∈S_k} share_j z_j."""
    start = torch.zeros(count, embeddings.shape[1], dtype=embeddings.dtype, device=embeddings.device)
    return start.index_add(0, classes, shares.to(embeddings.dtype)[:, None] * embeddings)


def class_means(embeddings: torch.Tensor, classes: torch.Tensor, count: int) -> torch.Tensor:
    """Compute the (count, h) class means of (s, h) embeddings; zeros for a class without nodes."""
    return weighted_prototypes(embeddings, class_shares(classes, count), classes, count)


def squared_distances(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Compute (a, b) squared distances ‖x_i − y_j‖²."""
    cross = first @ second.T
    return (first**2).sum(dim=1)[:, None] - 2 * cross + (second**2).sum(dim=1)[None]


def leave_one_out_distances(
    distances: torch.Tensor,
    queries: torch.Tensor,
    prototypes: torch.Tensor,
    own: torch.Tensor,
    embeddings: torch.Tensor,
    shares: torch.Tensor,
    classes: torch.Tensor,
) -> torch.Tensor:
    """Replace the distance of each query that is a support by the distance to its prototype without it.

    For a support s of class k with weight λ_s, the prototype without it is (p_k − λ_s z_s)/(1 − λ_s), that is, with
    renormalised weights. ``own`` is the (q,) position of each query among the supports, or −1.
    """
    supporting = torch.nonzero(own >= 0).squeeze(1)
    if supporting.numel() == 0:
        return distances
    support = own[supporting]
    share, label = shares[support].to(prototypes.dtype)[:, None], classes[support]
    without = (prototypes[label] - share * embeddings[support]) / (1 - share)
    replaced = ((queries[supporting] - without) ** 2).sum(dim=1)
    return distances.index_put((supporting, label), replaced)


def query_shares(labels: torch.Tensor, classes: int, by_class: bool) -> torch.Tensor:
    """Compute (q,) query weights that sum to 1, equal for all queries or, with ``by_class``, for all classes."""
    if not by_class:
        return torch.full(labels.shape, 1 / labels.numel(), device=labels.device)
    counts = torch.zeros(classes, device=labels.device).index_add(
        0, labels, torch.ones(labels.shape, device=labels.device)
    )
    return 1 / (counts[labels] * (counts > 0).sum())


def weighted_cross_entropy(
    distances: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor, shares: torch.Tensor
) -> torch.Tensor:
    """L = −Σ_q share_q (1 + w_{y_q}) log p(y_q | q), where p is the softmax of negative squared distances."""
    log_likelihood = torch.log_softmax(-distances, dim=1).gather(1, labels[:, None]).squeeze(1)
    return -(shares.to(distances.dtype) * (1 + weights[labels]) * log_likelihood).sum()
