"""Logits of labelled nodes by class sums from which they are left out, for calibration.

A few labels change W of the metric (``class_sums.py``) in as many dimensions, so A needs no decomposition of B. With
d = x − μ_c over the k_c nodes of class c that are left out, and w the factor of W in B::

    W' = W − U Uᵀ,   U = [d …, Σ d/√(n_c − k_c) …],   A' = A + A U (I/w − UᵀAU)⁻¹ UᵀA

A is that of W with the degrees of freedom N that are left, as A' is.
"""

from dataclasses import replace

import torch

from graphfcl.methods.anchor.class_sums import (
    Anchors,
    Inverse,
    class_sums,
    directions_of,
    in_blocks,
    logits_of,
)
from graphfcl.methods.anchor.settings import AnchorSettings


def logits_without(
    anchors: Anchors, points: torch.Tensor, labels: torch.Tensor, settings: AnchorSettings
) -> torch.Tensor:
    """(n, C) logits of (n, D) points by the sums of all other labelled nodes. labels: (n,) their columns."""
    inverse = _inverse_without(anchors, points, labels)
    if inverse is None:
        return anchors.minus(points, labels).logits(points, settings)
    sums, taken = class_sums(points, labels, len(anchors.counts))
    less = replace(anchors, sums=anchors.sums - sums, counts=anchors.counts - taken)  # with the products of all
    directions = directions_of(less.means, less.counts, less.metric_by(inverse), settings)
    return logits_of(points, directions, less.counts, settings.temperature)


def _inverse_without(anchors: Anchors, points: torch.Tensor, labels: torch.Tensor) -> Inverse | None:
    """A'; None if it is not worth or not possible to get it from A."""
    sums, taken = class_sums(points, labels, len(anchors.counts))
    counts, some = anchors.counts - taken, taken > 0
    spare = anchors.spare - len(points)
    whole = anchors.inverse_at(spare)
    if whole is None or whole.halved or bool((labels < anchors.first.stop).any()) or not torch.all(counts[some] > 0):
        return None
    width = whole.values.shape[1]
    if len(points) + int(some.sum()) >= width or not anchors.scaled_by_session_0:
        return None
    apart = points.double() - anchors.means[labels]
    of_classes = sums[some] - taken[some, None] * anchors.means[some]
    parts = in_blocks(torch.cat([apart, of_classes / counts[some].sqrt()[:, None]]), width)
    turned = parts @ whole.values
    one = torch.eye(parts.shape[1], dtype=torch.float64, device=parts.device)
    factor, failed = torch.linalg.cholesky_ex(one / whole.weight - turned @ parts.transpose(1, 2))
    if failed.any():
        return None
    return replace(whole, rows=torch.linalg.solve_triangular(factor, turned, upper=False))
