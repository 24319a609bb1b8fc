"""Geometer's network: an encoder, and an attention that makes the prototype of a class from its labelled nodes."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from graphfcl.methods.learner import Labelled, join_labelled
from graphfcl.methods.shared.episodes import Episode
from graphfcl.methods.shared.prototype_network import (
    NodeEmbeddings,
    PrototypeNetwork,
    class_shares,
    squared_distances,
    weighted_prototypes,
)
from graphfcl.nn import Encoder, GraphInputs, Linear, tensor_of


class PrototypeAttention(nn.Module):
    """p_k = a_k + o_0: a_k is the mean of the nodes of class k weighed by degree, o_0 what multi-head attention answers
    to a_k as the query, with a_k and the nodes as keys and values.

    W_o starts at zero, so that prototypes start as a_k.
    """

    def __init__(self, size: int, heads: int, generator: torch.Generator) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (Linear(size, size, generator) for _ in range(3))
        self.out = Linear(size, size, generator)
        nn.init.zeros_(self.out.weight)
        self.scale = (size // heads) ** -0.5

    def forward(
        self, embeddings: torch.Tensor, degrees: torch.Tensor, classes: torch.Tensor, count: int
    ) -> torch.Tensor:
        """(count, h) prototypes.

        embeddings: (s, h) labelled nodes. degrees: (s,) with the self loop. classes: (s,) in 0..count−1. The prototype
        of a class without a node is finite and has no meaning.
        """
        shares = class_shares(classes, count, degrees, softmax=False)
        means = weighted_prototypes(embeddings, shares, classes, count)
        queries = self._split(self.query(means))
        itself = (queries * self._split(self.key(means))).sum(dim=2) * self.scale  # (count, heads)
        to_nodes = (queries[classes] * self._split(self.key(embeddings))).sum(dim=2) * self.scale  # (s, heads)
        # Softmax over {a_k} and the nodes of k, shifted by its largest score.
        largest = itself.detach().scatter_reduce(
            0, classes[:, None].expand(-1, self.heads), to_nodes.detach(), reduce="amax"
        )
        own, others = torch.exp(itself - largest), torch.exp(to_nodes - largest[classes])
        total = own.index_add(0, classes, others)
        sums = (own[:, :, None] * self._split(self.value(means))).index_add(
            0, classes, others[:, :, None] * self._split(self.value(embeddings))
        )
        return means + self.out((sums / total[:, :, None]).flatten(1))

    def _split(self, values: torch.Tensor) -> torch.Tensor:
        """(s, h) → (s, heads, h / heads)."""
        return values.view(len(values), self.heads, values.shape[1] // self.heads)


@dataclass(frozen=True, eq=False)
class Geometry:
    """What an episode looks like to a network: (classes, h) prototypes, and (q, classes) squared distances of queries
    to them.
    """

    prototypes: torch.Tensor
    distances: torch.Tensor


def geometry(
    attention: PrototypeAttention, embeddings: torch.Tensor, degrees: torch.Tensor, episode: Episode
) -> Geometry:
    """Prototypes of an episode's supports, and the distances of its queries.

    embeddings: (s + q, h) of supports and queries. degrees: (s,). A query that is also a support (``episode.own``) is
    compared with the prototype that its class has without it.
    """
    device, count = embeddings.device, episode.class_count
    supports, queries = embeddings[: episode.supports.size], embeddings[episode.supports.size :]
    classes = torch.from_numpy(episode.support_classes).to(device)
    prototypes = attention(supports, degrees, classes, count)
    distances = squared_distances(queries, prototypes)
    supporting = np.flatnonzero(episode.own >= 0)
    if not supporting.size:
        return Geometry(prototypes, distances)
    labels = episode.query_classes[supporting]
    others = episode.support_classes[None] == labels[:, None]
    others[np.arange(supporting.size), episode.own[supporting]] = False
    case, support = (torch.from_numpy(each).to(device) for each in np.nonzero(others))
    without = attention(supports[support], degrees[support], case, supporting.size)
    places = (torch.from_numpy(supporting).to(device), torch.from_numpy(labels).to(device))
    replaced = ((queries[places[0]] - without) ** 2).sum(dim=1)
    return Geometry(prototypes, distances.index_put(places, replaced))


class GeometerNetwork(PrototypeNetwork):
    """Encoder g_θ and the attention over labelled nodes; scores are −‖z − p_k‖²."""

    def __init__(self, encoder: Encoder, attention: PrototypeAttention) -> None:
        super().__init__(encoder)
        self.attention = attention

    @torch.no_grad()
    def prototypes(
        self, embedding: NodeEmbeddings, train: Labelled, supports: Labelled, class_count: int
    ) -> torch.Tensor:
        """(classes, h), of all labelled nodes of each class, whether it has few or many."""
        (nodes, columns), device = join_labelled(train, supports), embedding.values.device
        degrees = degrees_of(embedding.visible.degrees[embedding.visible.rows(nodes)], device)
        return self.attention(embedding.values[embedding.rows(nodes)], degrees, tensor_of(columns, device), class_count)

    def geometry(self, inputs: GraphInputs, episode: Episode, generator: torch.Generator | None) -> Geometry:
        """What the network makes of an episode; dropout is off without a generator."""
        rows = inputs.visible.rows(np.concatenate([episode.supports, episode.queries]))
        embeddings = self.encoder(self.encoder.rows(inputs, rows), generator)
        degrees = degrees_of(inputs.visible.degrees[rows[: episode.supports.size]], inputs.device)
        return geometry(self.attention, embeddings, degrees, episode)


def degrees_of(degrees: np.ndarray, device: torch.device) -> torch.Tensor:
    """(s,) degrees with the self loop, from those of the visible graph, which leave it out."""
    return torch.from_numpy(degrees.astype(np.float32) + 1).to(device)


def uniformity(prototypes: torch.Tensor) -> torch.Tensor:
    """L_U = mean_k max(0, max_{j≠k} cos(p_k − p̄, p_j − p̄)) of (classes, h) prototypes.

    Two classes lie opposite to each other as seen from their mean: L_U is 0 and teaches nothing. So is it with one.
    """
    directions = nn.functional.normalize(prototypes - prototypes.mean(dim=0), dim=1)
    cosines = directions @ directions.T
    others = cosines.masked_fill(torch.eye(len(cosines), dtype=torch.bool, device=cosines.device), 0.0)
    return others.max(dim=1).values.mean()  # the 0 of the diagonal is the hinge


def separability(new: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
    """L_S = mean_{new k} exp(−min_{old j} ‖p_k − p_j‖²); 0 without a new class."""
    if not len(new) or not len(old):
        return new.sum() * 0
    nearest = squared_distances(new, old).min(dim=1).values
    return torch.exp(-nearest.clamp(min=0)).mean()


def memorability(student: torch.Tensor, teacher: torch.Tensor, direction: str) -> torch.Tensor:
    """L_M = mean_{q, j} π_qj (log π_qj − log τ_qj), π = softmax_j(±δ_student/2), τ the same of the teacher.

    student, teacher: (q, old classes) distances. direction: ``far`` takes plus, as released, and keeps which classes a
    query is far from; ``near`` takes minus. In logarithms: as a quotient of two softmax it is NaN once distances differ
    by some hundreds.
    """
    sign = 0.5 if direction == "far" else -0.5
    log_student = torch.log_softmax(sign * student, dim=1)
    log_teacher = torch.log_softmax(sign * teacher, dim=1)
    return (log_student.exp() * (log_student - log_teacher)).mean()
