"""The network of Geometer: an encoder, and an attention that computes prototypes from labelled nodes."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from graphfcl.methods.shared.episodes import Episode
from graphfcl.methods.shared.prototype_network import (
    NodeEmbeddings,
    PrototypeNetwork,
    class_shares,
    squared_distances,
    weighted_prototypes,
)
from graphfcl.methods.state import Labelled, join_labelled
from graphfcl.nn import Encoder, GraphInputs, Linear, tensor_of


class PrototypeAttention(nn.Module):
    """Compute prototypes p_k = a_k + o_0 by attention.

    a_k is the mean of the nodes of class k, weighted by degree. o_0 is the output of multi-head attention with a_k as
    the query, and a_k and the nodes as keys and values. W_o is initialised with zeros, so prototypes start as a_k.
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
        """Compute (count, h) prototypes. The prototype of a class without nodes is finite but meaningless.

        Args:
            embeddings: (s, h) embeddings of labelled nodes.
            degrees: (s,) degrees of these nodes, including the self loop.
            classes: (s,) classes of these nodes, in 0..count−1.
            count: Number of classes.
        """
        shares = class_shares(classes, count, degrees, softmax=False)
        means = weighted_prototypes(embeddings, shares, classes, count)
        queries = self._split(self.query(means))
        itself = (queries * self._split(self.key(means))).sum(dim=2) * self.scale  # (count, heads)
        to_nodes = (queries[classes] * self._split(self.key(embeddings))).sum(dim=2) * self.scale  # (s, heads)
        # Softmax over a_k and the nodes of class k, shifted by the largest score.
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
        """Reshape (s, h) to (s, heads, h / heads)."""
        return values.view(len(values), self.heads, values.shape[1] // self.heads)


@dataclass(frozen=True, eq=False)
class Geometry:
    """The (classes, h) prototypes of an episode, and the (q, classes) squared distances of its queries to them."""

    prototypes: torch.Tensor
    distances: torch.Tensor


def geometry(
    attention: PrototypeAttention, embeddings: torch.Tensor, degrees: torch.Tensor, episode: Episode
) -> Geometry:
    """Compute the prototypes of an episode and the distances of its queries.

    A query that is also a support (``episode.own``) is compared with the prototype of its class without this support.

    Args:
        attention: Attention that computes prototypes.
        embeddings: (s + q, h) embeddings of supports and queries.
        degrees: (s,) degrees of the supports.
        episode: Supports and queries, with their classes.
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
    """Encoder g_θ and attention over labelled nodes. The score of class k is −‖z − p_k‖²."""

    def __init__(self, encoder: Encoder, attention: PrototypeAttention) -> None:
        super().__init__(encoder)
        self.attention = attention

    @torch.no_grad()
    def prototypes(
        self, embedding: NodeEmbeddings, train: Labelled, supports: Labelled, class_count: int
    ) -> torch.Tensor:
        """Compute the (classes, h) prototypes of all classes by attention over all labelled nodes."""
        (nodes, columns), device = join_labelled(train, supports), embedding.values.device
        degrees = degrees_of(embedding.visible.degrees[embedding.visible.rows(nodes)], device)
        return self.attention(embedding.values[embedding.rows(nodes)], degrees, tensor_of(columns, device), class_count)

    def geometry(self, inputs: GraphInputs, episode: Episode, generator: torch.Generator | None) -> Geometry:
        """Compute prototypes and distances of an episode. Without a generator, dropout is off."""
        rows = inputs.visible.rows(np.concatenate([episode.supports, episode.queries]))
        embeddings = self.encoder(self.encoder.rows(inputs, rows), generator)
        degrees = degrees_of(inputs.visible.degrees[rows[: episode.supports.size]], inputs.device)
        return geometry(self.attention, embeddings, degrees, episode)


def degrees_of(degrees: np.ndarray, device: torch.device) -> torch.Tensor:
    """Add the self loop to (s,) degrees of the visible graph."""
    return torch.from_numpy(degrees.astype(np.float32) + 1).to(device)


def uniformity(prototypes: torch.Tensor) -> torch.Tensor:
    """Compute L_U = mean_k max(0, max_{j≠k} cos(p_k − p̄, p_j − p̄)) of (classes, h) prototypes.

    With one or two classes, L_U is 0 and has no effect, because two prototypes lie on opposite sides of their mean.
    """
    directions = nn.functional.normalize(prototypes - prototypes.mean(dim=0), dim=1)
    cosines = directions @ directions.T
    others = cosines.masked_fill(torch.eye(len(cosines), dtype=torch.bool, device=cosines.device), 0.0)
    return others.max(dim=1).values.mean()  # the 0 of the diagonal is the hinge


def separability(new: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
    """Compute L_S = mean_{new k} exp(−min_{old j} ‖p_k − p_j‖²); 0 without new classes or without old classes."""
    if not len(new) or not len(old):
        return new.sum() * 0
    nearest = squared_distances(new, old).min(dim=1).values
    return torch.exp(-nearest.clamp(min=0)).mean()


def memorability(student: torch.Tensor, teacher: torch.Tensor, direction: str) -> torch.Tensor:
    """Compute L_M = mean_{q, j} π_qj (log π_qj − log τ_qj), π = softmax_j(±δ_student/2), τ = softmax_j(±δ_teacher/2).

    Log-softmax is used because a quotient of two softmax values can be NaN if distances differ by several hundred.

    Args:
        student: (q, old classes) distances of the student.
        teacher: (q, old classes) distances of the teacher.
        direction: ``far`` uses plus as the released code does, and preserves the classes that a query is far from.
            ``near`` uses minus, and preserves the classes that a query is near to.
    """
    sign = 0.5 if direction == "far" else -0.5
    log_student = torch.log_softmax(sign * student, dim=1)
    log_teacher = torch.log_softmax(sign * teacher, dim=1)
    return (log_student.exp() * (log_student - log_teacher)).mean()
