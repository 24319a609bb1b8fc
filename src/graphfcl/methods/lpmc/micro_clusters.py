"""Micro-clusters, the groups of labelled vectors of a class.

DBSCAN on cosine distance computes them for all classes at once::

    a point is a core point if at least ``min_points`` points of its class, itself included, lie within ``eps``
    core points within ``eps`` of each other belong to the same cluster
    any other point within ``eps`` of a core point belongs to the cluster of the nearest core point
    a remaining point is noise and forms a separate cluster

A cluster has S1 = Σ x, S2 = Σ x², n, the centre c = S1/n, and the radius r, the mean over dimensions of
sqrt(max(S2/n − (S1/n)², 1e-5)). Points of a large class are processed in chunks: a point joins the nearest cluster of
its class if ‖x − c‖ ≤ r, and DBSCAN groups the points that join none. Distance tables then compare a chunk with itself
or with the clusters of the class, and never all pairs of points. The radius of a noise point is 1e-5, so only an equal
point can join it.
"""

from dataclasses import dataclass, replace
from typing import Self

import torch

from graphfcl.methods.shared.heads import unit

SMALLEST_VARIANCE = 1e-5
RADIUS_OF_NOISE = 1e-5
CHUNK = 256  # points of a class that DBSCAN processes at a time


@dataclass(frozen=True, eq=False)
class MicroClusters:
    """K clusters of the labelled vectors of C classes.

    Args:
        sums: (K, h) S1.
        squares: (K, h) S2.
        counts: (K,) n.
        classes: (K,) class of each cluster.
        members: (n,) cluster of each vector.
    """

    sums: torch.Tensor
    squares: torch.Tensor
    counts: torch.Tensor
    classes: torch.Tensor
    members: torch.Tensor

    @classmethod
    def of(cls, vectors: torch.Tensor, classes: torch.Tensor, eps: float, min_points: int, chunk: int = CHUNK) -> Self:
        """Cluster (n, h) vectors with (n,) classes. S1 is differentiable in the vectors."""
        values = vectors.detach()
        order = torch.argsort(classes, stable=True)
        piece = torch.empty_like(classes)
        piece[order] = _rank(classes[order]) // chunk
        members = torch.full_like(classes, -1)
        clusters = cls._empty(values)
        for number in range(int(piece.max()) + 1 if piece.numel() else 0):
            here = torch.nonzero(piece == number).squeeze(1)
            joined = clusters.joined(values[here], classes[here])
            free = joined < 0
            if free.any():
                fresh = dbscan(values[here[free]], classes[here[free]], eps, min_points)
                joined[free] = fresh + clusters.counts.numel()
            members[here] = joined
            clusters = clusters._with(values[here], classes[here], joined)
        whole = cls._empty(values)._with(vectors, classes, members)
        return replace(whole, members=members)

    @classmethod
    def _empty(cls, vectors: torch.Tensor) -> Self:
        none, whole = vectors.new_zeros(0, vectors.shape[1]), torch.zeros(0, dtype=torch.int64, device=vectors.device)
        return cls(sums=none, squares=none, counts=whole, classes=whole, members=whole)

    def _with(self, vectors: torch.Tensor, classes: torch.Tensor, members: torch.Tensor) -> Self:
        """Add vectors to clusters, which may be new."""
        before = self.counts.numel()
        more = max(before, int(members.max()) + 1 if members.numel() else 0) - before
        zeros, none = self.sums.new_zeros(more, self.sums.shape[1]), self.counts.new_zeros(more)
        cluster_classes = torch.cat([self.classes, none])
        cluster_classes[members] = classes
        return replace(
            self,
            sums=torch.cat([self.sums, zeros]).index_add(0, members, vectors),
            squares=torch.cat([self.squares, zeros]).index_add(0, members, vectors.detach() ** 2),
            counts=torch.cat([self.counts, none]).index_add(0, members, torch.ones_like(members)),
            classes=cluster_classes,
        )

    @property
    def radii(self) -> torch.Tensor:
        """(K,) radius r of each cluster."""
        counts = self.counts[:, None]
        variance = self.squares / counts - (self.sums / counts) ** 2
        spread = variance.clamp(min=SMALLEST_VARIANCE).sqrt().mean(dim=1)
        return torch.where(self.counts > 1, spread, RADIUS_OF_NOISE)

    def joined(self, vectors: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
        """Find the (m,) cluster that each new vector joins, or −1."""
        result = torch.full_like(classes, -1)
        if self.counts.numel() == 0 or classes.numel() == 0:
            return result
        # Only classes with new vectors need memory; in the last chunks these are few.
        present, groups = torch.unique(classes, return_inverse=True)
        here = torch.nonzero(torch.isin(self.classes, present)).squeeze(1)
        points = padded(groups, present.numel())
        clusters = padded(torch.searchsorted(present, self.classes[here]), present.numel())
        centres = self.sums[here] / self.counts[here, None]
        distances = torch.cdist(vectors[points.clamp(min=0)], centres[clusters.clamp(min=0)])  # (groups, points, k)
        distances.masked_fill_((clusters < 0)[:, None, :], torch.inf)
        nearest, place = distances.min(dim=2)
        cluster = here[clusters.gather(1, place).clamp(min=0)]
        inside = (points >= 0) & (nearest <= self.radii[cluster])
        result[points[inside]] = cluster[inside]
        return result

    def class_vectors(self, count: int) -> torch.Tensor:
        """Compute the (count, h) class vectors Σ_k δ_k ĉ_k with δ_k = n_k/Σn, from which scores are computed."""
        weights = self.counts.to(self.sums.dtype)
        totals = weights.new_zeros(count).index_add(0, self.classes, weights)
        parts = (weights / totals[self.classes])[:, None] * unit(self.sums)
        return parts.new_zeros(count, parts.shape[1]).index_add(0, self.classes, parts)

    def vectors_without(self, left_out: torch.Tensor, vectors: torch.Tensor, whole: torch.Tensor) -> torch.Tensor:
        """Compute the (m, h) class vectors without one labelled vector each.

        Args:
            left_out: (m,) vectors to leave out, of classes with at least one more vector.
            vectors: (n, h) all labelled vectors.
            whole: (count, h) class vectors of all labelled vectors.
        """
        cluster = self.members[left_out]
        label, size = self.classes[cluster], self.counts[cluster].to(whole.dtype)[:, None]
        totals = torch.zeros(len(whole), dtype=torch.int64, device=whole.device)
        total = totals.index_add(0, self.classes, self.counts)[label].to(whole.dtype)[:, None]
        with_it = size * unit(self.sums[cluster])
        without = (size - 1) * unit(self.sums[cluster] - vectors[left_out])
        return (total * whole[label] - with_it + without) / (total - 1)


@torch.no_grad()
def dbscan(vectors: torch.Tensor, groups: torch.Tensor, eps: float, min_points: int) -> torch.Tensor:
    """Run DBSCAN in each group; return (n,) cluster numbers 0, 1, …, with separate numbers for noise points."""
    points = padded(groups, int(groups.max()) + 1)
    points = points[(points >= 0).any(dim=1)]
    present = points >= 0
    width = points.shape[1]
    directions = unit(vectors)[points.clamp(min=0)]  # (groups, width, h)
    cosines = directions @ directions.transpose(1, 2)
    near = cosines >= 1 - eps
    near |= torch.eye(width, dtype=torch.bool, device=near.device)  # a zero vector is also its own neighbour
    near &= present[:, :, None] & present[:, None, :]
    core = near.sum(dim=2) >= min_points
    linked = near & core[:, :, None] & core[:, None, :]
    own = torch.arange(width, device=near.device).expand(points.shape)
    label = own  # becomes the first core point of the cluster; a noise point keeps its own label
    while True:
        smallest = torch.where(linked, label[:, None, :], width).amin(dim=2)
        smallest = torch.where(core, smallest, own)
        if torch.equal(smallest, label):
            break
        label = smallest
    to_core = torch.where(near & core[:, None, :], cosines, -torch.inf)
    closest, place = to_core.max(dim=2)
    label = torch.where(~core & (closest > -torch.inf), label.gather(1, place), label)
    first = torch.arange(len(points), device=near.device)[:, None] * width
    result = torch.empty_like(groups)
    result[points[present]] = torch.unique((first + label)[present], return_inverse=True)[1]
    return result


def padded(groups: torch.Tensor, count: int) -> torch.Tensor:
    """Return (count, largest group) positions of the members of each group in their order, padded with −1."""
    order = torch.argsort(groups, stable=True)
    of_place = groups[order]
    rank = _rank(of_place)
    table = torch.full((count, int(rank.max()) + 1 if rank.numel() else 0), -1, dtype=torch.int64, device=groups.device)
    table[of_place, rank] = order
    return table


def _rank(groups: torch.Tensor) -> torch.Tensor:
    """Number the members of each group, for (n,) ascending group numbers."""
    counts = torch.bincount(groups)
    starts = torch.cumsum(counts, dim=0) - counts
    return torch.arange(groups.numel(), device=groups.device) - starts[groups]
