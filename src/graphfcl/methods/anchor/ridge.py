"""Ridge regression on the labels of all classes, in closed form.

Whitening makes all directions alike; regression on few labels needs those that vary most. So it reads h(v) = x(v) R⁻¹,
which is f(v) − m but for its length. With M = [μ_1 … μ_C]ᵀ the means of h over the labels of C classes, every class
counting the same::

    W = (1 − b) v₀/(D − tr E) S_w + b (Q_h − Σ_c n_c μ_c μ_cᵀ)/N                             (Σ over later classes)
    r(v) = h(v) K Mᵀ (I + M K Mᵀ)⁻¹,   K = (C W + λ t/D · I)⁻¹,   t = Σ_c |μ_c|² + C tr W

which is h (MᵀM + C W + λ t/D · I)⁻¹ Mᵀ. S_w = (R Rᵀ)⁻¹ − ρ̄ I is the within-class covariance of session 0 in f, and
v₀/(D − tr E) brings it to vectors of unit length. Q_h is the sum of h hᵀ over labelled nodes of later classes. Of both
blocks on the diagonal are kept. b, N, v₀ and E are those of the metric (``class_sums.py``).

The probabilities are softmax(8 r/r̄), r̄ the mean of r_c at μ_c. Class c has the part g n_c/(n_c + 20) in the answer.
"""

from dataclasses import dataclass, replace

import torch

from graphfcl.methods.anchor.class_sums import Anchors, in_blocks, products_of
from graphfcl.methods.anchor.settings import AnchorSettings
from graphfcl.methods.blocks import NodeTables, RowBlock, Table
from graphfcl.methods.learner import Labelled, Tensors
from graphfcl.methods.shared.untrained_features import symmetric

SCALE = 8.0  # factor of r before its softmax
LABELS_FOR_HALF = 20.0  # with so many a class gives the ridge half of its share
LEAST_PENALTY = 1e-9


@dataclass(frozen=True, eq=False)
class RidgeFrame:
    """What session 0 fixed. many: its classes. root: (D, D) R. spread: (b, w, w) S_w in blocks, in 64 bits."""

    many: int
    root: torch.Tensor
    spread: torch.Tensor

    @classmethod
    def of(cls, many: int, frame: Tensors, settings: AnchorSettings) -> "RidgeFrame":
        root = frame["whitening"]
        one = torch.eye(len(root), device=root.device)
        parts = in_blocks(torch.linalg.solve_triangular(root, one, upper=True), settings.covariance_columns).double()
        shift = in_blocks(frame["shift"].double().expand(1, len(root)), settings.covariance_columns)[:, 0]
        return cls(many, root, parts.transpose(1, 2) @ parts - torch.diag_embed(shift))

    def lifted(self, points: torch.Tensor) -> torch.Tensor:
        """(n, D) h in 64 bits from (n, D) x."""
        return torch.linalg.solve_triangular(self.root.double(), points.double(), upper=True, left=False)


@dataclass(frozen=True, eq=False)
class RidgeSums:
    """Q_h, in blocks on the diagonal and 64 bits; all else follows from class sums. Immutable."""

    frame: RidgeFrame
    products: torch.Tensor

    @classmethod
    def empty(cls, frame: RidgeFrame) -> "RidgeSums":
        return cls(frame, torch.zeros_like(frame.spread))

    @classmethod
    def of(cls, tables: NodeTables, x: Table, labelled: Labelled, frame: RidgeFrame) -> "RidgeSums":
        """Over all labelled nodes."""
        read, tensors = {"x": x, "labels": tables.labels(labelled)}, {"root": frame.root}
        values = {"many": frame.many, "columns": frame.spread.shape[1]}
        return cls(frame, **tables.sums("ridge", _products, tables=read, tensors=tensors, **values))

    def plus(self, points: torch.Tensor, labels: torch.Tensor) -> "RidgeSums":
        """With more labelled nodes."""
        later = self.frame.lifted(points[labels >= self.frame.many])
        return replace(self, products=self.products + products_of(later, self.frame.spread.shape[1]))

    def weights(self, anchors: Anchors, settings: AnchorSettings) -> torch.Tensor:
        """(C, D) whose products with x are 8 r/r̄. anchors: the class sums of the same labels."""
        known, size = anchors.counts > 0, anchors.sums.shape[1]
        count, share = float(known.sum()), anchors.later_share
        means = self.frame.lifted(anchors.means)
        parts = in_blocks(means, self.frame.spread.shape[1])
        within = (1 - share) * anchors.unit_variance * self.frame.spread
        if share > 0:
            later = in_blocks((means * anchors.counts.sqrt()[:, None])[self.frame.many :], self.frame.spread.shape[1])
            within = within + share / anchors.spare * (self.products - later.transpose(1, 2) @ later)
        total = float((means**2).sum()) + count * float(within.diagonal(dim1=1, dim2=2).sum())
        penalty = max(settings.ridge_penalty * total / size, LEAST_PENALTY)
        one = torch.eye(within.shape[1], dtype=torch.float64, device=within.device)
        factor, failed = torch.linalg.cholesky_ex(count * within + penalty * one)
        if failed.any():  # the vectors of labelled nodes changed since they were added
            factor = torch.linalg.cholesky_ex(count * anchors.unit_variance * self.frame.spread + penalty * one)[0]
        turned = torch.cholesky_solve(parts.transpose(1, 2), factor).permute(2, 0, 1).flatten(1)[:, :size]
        similar = torch.eye(len(means), dtype=torch.float64, device=means.device) + means @ turned.T
        weights = torch.linalg.solve(similar, turned)
        own = (means * weights).sum(dim=1)[known].mean().clamp(min=1e-9)
        return (SCALE / own * torch.linalg.solve_triangular(self.frame.root.double(), weights.T, upper=True).T).float()

    # State

    def tensors(self) -> Tensors:
        rows, columns = torch.triu_indices(*self.products.shape[1:])
        return {"ridge.products": self.products.cpu()[:, rows, columns]}

    @classmethod
    def load(cls, tensors: Tensors, frame: RidgeFrame) -> "RidgeSums":
        return cls(frame, symmetric(tensors["ridge.products"].to(frame.root.device)))


def shares_of(counts: torch.Tensor, settings: AnchorSettings) -> torch.Tensor:
    """(C,) how much the ridge has to say of each class. counts: (C,) labels."""
    return (settings.ridge_share * counts / (counts + LABELS_FOR_HALF)).float()


def with_ridge(
    posterior: torch.Tensor, ridge: torch.Tensor, shares: torch.Tensor, counts: torch.Tensor
) -> torch.Tensor:
    """(n, C) P' ∝ P^(1−g_c) h_c^(g_c), h = softmax(ridge). ridge: (n, C) logits. shares: (C,) g. counts: (C,) labels.

    A class without a label has the probability 0.
    """
    absent = ~(counts > 0)
    chances = torch.log_softmax(ridge.masked_fill(absent, -torch.inf), dim=1)
    mixed = (1 - shares) * torch.log(posterior.clamp(min=1e-12)) + shares * chances
    return torch.softmax(mixed.masked_fill(absent, -torch.inf), dim=1)


def _products(block: RowBlock) -> Tensors:
    points, labels = block.labelled("x")
    later = points[labels >= block.values["many"]].double()
    root = block.tensors["root"].double()
    lifted = torch.linalg.solve_triangular(root, later, upper=True, left=False)
    return {"products": products_of(lifted, block.values["columns"])}
