"""The directions of classes in the metric A, and the logits and probabilities that follow from them.

Class c has the direction Aμ_c/(ℓ_c √q), where q is the mean of xᵀAx over labelled nodes of session 0.
If the true mean has the squared length ℓ², the mean of n vectors has the expected squared length ℓ² + (q − ℓ²)/n. The
estimate is therefore ℓ_c² = (μ_cᵀAμ_c − q/n)/(1 − 1/n), shrunk towards the squared length of classes with many labels.
"""

from dataclasses import dataclass

import torch

from graphfcl.methods.anchor.settings import AnchorSettings

CHUNK = 16_384  # rows that are converted from 16 to 32 bits at a time
MIN_LABELS_FOR_LENGTH = 20  # classes with this many labels determine the usual length of means


@dataclass(frozen=True, eq=False)
class Inverse:
    """The metric A, the inverse of the covariance B, as diagonal blocks ``values + rowsᵀ rows`` in 64 bits.

    ``class_sums.py`` defines B, E, W and b.

    Args:
        values: (b, w, w) blocks.
        trace: Trace of ``values`` times E.
        weight: Factor of W in B.
        halved: Whether b was halved to make B positive definite.
        rows: (b, k, w) low-rank part, or None.
    """

    values: torch.Tensor
    trace: float
    weight: float
    halved: bool
    rows: torch.Tensor | None = None

    def times(self, vectors: torch.Tensor) -> torch.Tensor:
        """Multiply (m, D) vectors by A."""
        parts = in_blocks(vectors, self.values.shape[1])
        turned = parts @ self.values
        if self.rows is not None:
            turned += parts @ self.rows.transpose(1, 2) @ self.rows
        return turned.transpose(0, 1).flatten(1)[:, : vectors.shape[1]]

    def trace_with(self, added: torch.Tensor) -> float:
        """Compute tr(AE)."""
        return self.trace if self.rows is None else self.trace + float((self.rows @ added * self.rows).sum())


@dataclass(frozen=True, eq=False)
class Metric:
    """The metric A (``inverse``, None for I) and the mean squared length q (``length``) under it."""

    inverse: Inverse | None
    length: float

    def times(self, vectors: torch.Tensor) -> torch.Tensor:
        """Multiply (m, D) vectors by A in 64 bits."""
        vectors = vectors.double()
        return vectors if self.inverse is None else self.inverse.times(vectors)

    def squares(self, vectors: torch.Tensor) -> torch.Tensor:
        """Compute (m,) vᵀAv."""
        return (vectors * self.times(vectors)).sum(dim=1)


def lengths_of(squares: torch.Tensor, weights: torch.Tensor, length: float, settings: AnchorSettings) -> torch.Tensor:
    """Compute (C,) ℓ_c √q.

    Args:
        squares: (C,) μ_cᵀAμ_c.
        weights: (C,) effective number of nodes of each mean.
        length: q.
        settings: Settings of ANCHOR.
    """
    noise = 1 / weights.clamp(min=1)
    squares = ((squares - length * noise) / (1 - noise).clamp(min=0.3)).clamp(0, length)
    squares = torch.where(weights > 1.5, squares, torch.zeros_like(squares))
    well_known = weights >= MIN_LABELS_FOR_LENGTH
    if not well_known.any():
        well_known = weights > 0
    usual = squares[well_known].mean().clamp(min=1e-4)
    squares = (weights * squares + settings.length_prior * usual) / (weights + settings.length_prior).clamp(min=1e-6)
    return (length * squares.clamp(min=1e-8)).sqrt()


def directions_of(means: torch.Tensor, weights: torch.Tensor, metric: Metric, settings: AnchorSettings) -> torch.Tensor:
    """Compute the (C, D) directions Aμ_c/(ℓ_c √q). ``weights`` are the effective numbers of nodes."""
    turned = metric.times(means)
    lengths = lengths_of((means * turned).sum(dim=1), weights, metric.length, settings)
    return (turned / lengths[:, None]).float()


def logits_of(points: torch.Tensor, directions: torch.Tensor, counts: torch.Tensor, temperature: float) -> torch.Tensor:
    """Compute (n, C) logits, ``temperature`` times x·direction; −∞ for a class without a label."""
    return products_with(points, directions, temperature).masked_fill(~(counts > 0), -torch.inf)


def probabilities(logits: torch.Tensor) -> torch.Tensor:
    """Softmax over the last axis, in 64 bits so that the last digits do not depend on the order of classes."""
    return torch.softmax(logits, dim=-1, dtype=torch.float64).float()


def log_probabilities(logits: torch.Tensor) -> torch.Tensor:
    """The logarithms of :func:`probabilities`."""
    return torch.log_softmax(logits, dim=-1, dtype=torch.float64).float()


def products_with(points: torch.Tensor, directions: torch.Tensor, factor: float) -> torch.Tensor:
    """Compute the (n, C) products ``factor`` · x·direction."""
    parts = [points[start : start + CHUNK].float() @ directions.T for start in range(0, len(points), CHUNK)]
    return factor * (torch.cat(parts) if parts else points.float() @ directions.T)


def in_blocks(vectors: torch.Tensor, columns: int) -> torch.Tensor:
    """Split (m, D) vectors into (b, m, w) column blocks of equal width w ≤ ``columns``, padded with zeros."""
    count = max(1, -(-vectors.shape[1] // columns))
    width = -(-vectors.shape[1] // count)
    padded = torch.nn.functional.pad(vectors, (0, count * width - vectors.shape[1]))
    return padded.unflatten(1, (count, width)).transpose(0, 1)
