"""Leave-one-out logits for calibration: labelled nodes are scored by class sums that do not include these nodes.

Leaving out a few labels is a low-rank change of W in the metric (``class_sums.py``), so A is updated by the Woodbury
identity instead of a new decomposition of B. Let d = x − μ_c for each of the k_c nodes of class c that are left out,
and let w be the factor of W in B::

    W' = W − U Uᵀ,   U = [d …, Σ d/√(n_c − k_c) …],   A' = A + A U (I/w − UᵀAU)⁻¹ UᵀA

Both A and A' use the degrees of freedom N that remain after the nodes are left out.
"""

from dataclasses import replace

import torch

from graphfcl.methods.anchor.class_sums import Anchors, class_sums
from graphfcl.methods.anchor.metric import Inverse, directions_of, in_blocks, logits_of
from graphfcl.methods.anchor.settings import AnchorSettings


def logits_without(
    anchors: Anchors, points: torch.Tensor, labels: torch.Tensor, settings: AnchorSettings
) -> torch.Tensor:
    """Compute (n, C) logits of (n, D) labelled points from the sums of all other labelled nodes."""
    inverse = _inverse_without(anchors, points, labels)
    if inverse is None:
        return anchors.minus(points, labels).logits(points, settings)
    sums, taken = class_sums(points, labels, len(anchors.counts))
    less = replace(anchors, sums=anchors.sums - sums, counts=anchors.counts - taken)  # products still include all
    directions = directions_of(less.means, less.counts, less.metric_by(inverse), settings)
    return logits_of(points, directions, less.counts, settings.temperature)


def _inverse_without(anchors: Anchors, points: torch.Tensor, labels: torch.Tensor) -> Inverse | None:
    """Update A to A'. Return None if the update is impossible or would be slower than a new decomposition."""
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
