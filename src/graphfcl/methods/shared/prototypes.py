"""Class prototypes, distances to them, and the loss of queries. Nothing here loops over classes."""

import torch

SMALLEST = 1e-12  # value of a node-level attention


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
    asked = torch.nonzero(own >= 0).squeeze(1)
    if asked.numel() == 0:
        return distances
    support = own[asked]
    share, label = shares[support].to(prototypes.dtype)[:, None], classes[support]
    without = (prototypes[label] - share * embeddings[support]) / (1 - share)
    replaced = ((queries[asked] - without) ** 2).sum(dim=1)
    return distances.index_put((asked, label), replaced)


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
