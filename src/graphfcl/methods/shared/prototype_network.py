"""A prototypical network on a graph: encoder, node-level attention, prototypes, and the loss of an episode."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from graphfcl.graph.visible import VisibleGraph
from graphfcl.methods.learner import Labelled, no_labels
from graphfcl.methods.shared.episodes import DeviceEpisode, Episode
from graphfcl.methods.shared.validation_sessions import ValidationSessions
from graphfcl.nn import Encoder, GcnEncoder, GcnRows, GraphInputs, Linear, tensor_of

SMALLEST = 1e-12  # value of a node-level attention


@dataclass(frozen=True, eq=False)
class NodeEmbeddings:
    """Every node of a visible graph: (n, h) embeddings, and (n,) attention values λ̃ if there is such an attention."""

    visible: VisibleGraph
    values: torch.Tensor
    attention: torch.Tensor | None

    def rows(self, nodes: np.ndarray) -> torch.Tensor:
        """Where some nodes stand."""
        return torch.from_numpy(self.visible.rows(nodes)).to(self.values.device)


class PrototypeNetwork(nn.Module):
    """encoder: g_θ. nla: node-level attention g_ψ, or None.

    softmax: whether the values of ``nla`` become weights by a softmax inside a class, or by division by their sum.
    """

    def __init__(self, encoder: Encoder, nla: nn.Module | None = None, *, softmax: bool = True) -> None:
        super().__init__()
        self.encoder, self.nla, self.softmax = encoder, nla, softmax

    def embed(self, inputs: GraphInputs, rows: np.ndarray | None = None) -> torch.Tensor:
        """(r, h) embeddings of some rows or of all; with a node-level attention (r, h + 1), its values last."""
        needed = self.encoder.rows(inputs, rows)
        values = self.encoder(needed)
        if self.nla is None:
            return values
        if not isinstance(needed, GcnRows):
            needed = inputs.all_gcn_rows if rows is None else inputs.gcn_rows(rows)
        return torch.cat([values, self.nla(needed)[:, None]], dim=1)

    @torch.no_grad()
    def node_embeddings(self, inputs: GraphInputs, known: torch.Tensor | None = None) -> NodeEmbeddings:
        """All nodes, in evaluation mode. known: what :meth:`embed` answered for this graph before."""
        embedded = self.embed(inputs) if known is None else known
        if self.nla is None:
            return NodeEmbeddings(inputs.visible, embedded, None)
        return NodeEmbeddings(inputs.visible, embedded[:, :-1], embedded[:, -1])

    @torch.no_grad()
    def prototypes(
        self, embedding: NodeEmbeddings, train: Labelled, supports: Labelled, class_count: int
    ) -> torch.Tensor:
        """(classes, h): means over the nodes of ``train``, attended sums over ``supports``; both (nodes, columns)."""
        parts = []
        for (nodes, columns), attention in ((supports, embedding.attention), (train, None)):
            rows, classes = embedding.rows(nodes), tensor_of(columns, embedding.values.device)
            values = None if attention is None else attention[rows]
            shares = class_shares(classes, class_count, values, softmax=self.softmax)
            parts.append(weighted_prototypes(embedding.values[rows], shares, classes, class_count))
        return parts[0] + parts[1]

    @torch.no_grad()
    def scores(self, values: torch.Tensor, prototypes: torch.Tensor) -> torch.Tensor:
        """(n, classes): −‖z − p_k‖² of (n, h) embeddings."""
        return -squared_distances(values, prototypes)

    def validate(self, inputs: GraphInputs, validation: ValidationSessions) -> float:
        """Score of the validation sessions, with the prototypes that classes have then."""
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
        """(s, h) and (q, h) embeddings of supports and queries, and (s,) and (q,) their classes on the device."""
        rows = inputs.visible.rows(np.concatenate([episode.supports, episode.queries]))
        embeddings = self.encoder(self.encoder.rows(inputs, rows), generator)
        classes = (tensor_of(each, inputs.device) for each in (episode.support_classes, episode.query_classes))
        return *embeddings.tensor_split([episode.supports.size]), *classes

    def episode_loss(
        self, inputs: GraphInputs, episode: Episode, generator: torch.Generator | None, *, by_class: bool = False
    ) -> torch.Tensor:
        """The loss of one episode; dropout is off without a generator. by_class: every class counts the same."""
        return self.device_loss(inputs, DeviceEpisode.of(episode, inputs), generator, by_class=by_class)

    def device_loss(
        self, inputs: GraphInputs, episode: DeviceEpisode, generator: torch.Generator | None, *, by_class: bool = False
    ) -> torch.Tensor:
        """The same of an episode on the device."""
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
        """Whether all rows are computed, whatever the episode: then rows are chosen on the device."""
        return isinstance(self.encoder, GcnEncoder) and inputs.whole_is_cheaper

    def loss(
        self, distances: torch.Tensor, prototypes: torch.Tensor, shares: torch.Tensor, episode: DeviceEpisode
    ) -> torch.Tensor:
        """Of (q, classes) distances of queries to the prototypes; shares: (q,) what each query counts.

        Here the cross-entropy; a method may weigh classes.
        """
        weights = prototypes.new_zeros(len(prototypes))
        return weighted_cross_entropy(distances, episode.query_classes, weights, shares)


class NodeLevelAttention(nn.Module):
    """g_ψ: how much each support counts in its class's prototype.

    λ_j = MLP(h_j) with h two graph convolutions of X (d → 32 → 16, ReLU on both); λ̃_j = σ(log(degree_j + ε) · λ_j);
    the weights are softmax(λ̃) over the supports of the class.
    """

    def __init__(self, features: int, hidden: int, size: int, generator: torch.Generator) -> None:
        super().__init__()
        self.first = Linear(features, hidden, generator)
        self.second = Linear(hidden, size, generator)
        self.last = Linear(size, 1, generator)

    def forward(self, rows: GcnRows) -> torch.Tensor:
        """(r,) λ̃ of the rows, each in (0, 1)."""
        hidden = torch.relu(rows.inputs @ self.first.weight + self.first.bias)
        hidden = torch.relu(rows.aggregate(hidden @ self.second.weight) + self.second.bias)
        value = self.last(hidden).squeeze(1)
        return torch.sigmoid(rows.log_degrees.to(value.dtype) * value)


def class_shares(
    classes: torch.Tensor, count: int, values: torch.Tensor | None = None, *, softmax: bool = True
) -> torch.Tensor:
    """(s,) weights of supports that add up to 1 in each class: 1/|S_k|, or softmax(values) or values/Σ values over S_k.

    ``values`` are those of a node-level attention, in (0, 1), so their exponentials need no shift.
    """
    if values is None:
        raw = torch.ones(classes.shape, device=classes.device)
    else:
        # Values of far-off nodes are 0 in 32 bits; a class that has no other ones would be divided by 0.
        raw = torch.exp(values) if softmax else values.clamp(min=SMALLEST)
    total = torch.zeros(count, dtype=raw.dtype, device=raw.device).index_add(0, classes, raw)
    return raw / total[classes]


def weighted_prototypes(
    embeddings: torch.Tensor, shares: torch.Tensor, classes: torch.Tensor, count: int
) -> torch.Tensor:
    """(count, h): p_k = Σ_{j∈S_k} share_j z_j."""
    start = torch.zeros(count, embeddings.shape[1], dtype=embeddings.dtype, device=embeddings.device)
    return start.index_add(0, classes, shares.to(embeddings.dtype)[:, None] * embeddings)


def class_means(embeddings: torch.Tensor, classes: torch.Tensor, count: int) -> torch.Tensor:
    """(count, h) the means of (s, h) embeddings with (s,) classes; zeros for a class without any."""
    return weighted_prototypes(embeddings, class_shares(classes, count), classes, count)


def squared_distances(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """(a, b): ‖x_i − y_j‖²."""
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
    """The distances, with each query that is itself a support left out of its own prototype.

    own: (q,) position of a query among the supports, -1 if it is none. For support s of class k with share λ_s the
    prototype without it is (p_k − λ_s z_s)/(1 − λ_s): the other weights, renormalised.
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
    """(q,) weights that add up to 1: the same for every query, or for every class that has queries."""
    if not by_class:
        return torch.full(labels.shape, 1 / labels.numel(), device=labels.device)
    counts = torch.zeros(classes, device=labels.device).index_add(
        0, labels, torch.ones(labels.shape, device=labels.device)
    )
    return 1 / (counts[labels] * (counts > 0).sum())


def weighted_cross_entropy(
    distances: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor, shares: torch.Tensor
) -> torch.Tensor:
    """L = −Σ_q share_q (1 + w_{y_q}) log p(y_q | q), p the softmax over negative squared distances."""
    log_likelihood = torch.log_softmax(-distances, dim=1).gather(1, labels[:, None]).squeeze(1)
    return -(shares.to(distances.dtype) * (1 + weights[labels]) * log_likelihood).sum()
