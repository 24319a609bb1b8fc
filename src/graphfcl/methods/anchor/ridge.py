"""Ridge regression on the labels of all classes, in closed form.

Whitening gives all directions the same variance, but regression on few labels benefits from the directions of large
variance. The regression therefore uses u(v) = x(v) R⁻¹, which is f(v) − m up to its length. Let M = [m_1 … m_C]ᵀ be
the means of u over the labels of each of C classes, and V the within-class covariance of u::

    V = (1 − b) v₀/(D − tr E) S_w + b (Q_u − Σ_c n_c m_c m_cᵀ)/N                             (Σ over later classes)
    r(v) = u(v) K Mᵀ (I + M K Mᵀ)⁻¹,   K = (C V + λ/D tr(MᵀM + C V) · I)⁻¹

This equals u (MᵀM + K⁻¹)⁻¹ Mᵀ, where every class has the same weight. S_w = (R Rᵀ)⁻¹ − ρ̄ I is the within-class
covariance of session 0 in f, and v₀/(D − tr E) rescales it to vectors of unit length. Q_u is the sum of u uᵀ over
labelled nodes of later classes. S_w and Q_u are kept as block-diagonal matrices. ``class_sums.py`` defines b, N, v₀
and E.

The probabilities are softmax(8 r/r̄), where r̄ is the mean of r_c at m_c. Their weight for class c is g n_c/(n_c + 20).
"""

from dataclasses import dataclass, replace

import torch

from graphfcl.methods.anchor.class_sums import Anchors, products_of
from graphfcl.methods.anchor.metric import in_blocks, log_probabilities, probabilities
from graphfcl.methods.anchor.settings import AnchorSettings
from graphfcl.methods.blocks import NodeTables, RowBlock, Table
from graphfcl.methods.shared.untrained_features import symmetric
from graphfcl.methods.state import Labelled, Tensors

SCALE = 8.0  # factor of r before its softmax
LABELS_FOR_HALF = 20.0  # a class with this many labels has the weight g/2
LEAST_PENALTY = 1e-9
RAISES = 30  # maximum number of times that the penalty is raised until the matrix is positive definite


@dataclass(frozen=True, eq=False)
class RidgeFrame:
    """The parts of the regression that session 0 determines.

    Attributes:
        many: Number of classes of session 0.
        root: (D, D) R.
        spread: (b, w, w) diagonal blocks of S_w in 64 bits.
    """

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

    def unwhitened(self, points: torch.Tensor) -> torch.Tensor:
        """Compute (n, D) u in 64 bits from (n, D) x."""
        return _unwhitened(points, self.root)


@dataclass(frozen=True, eq=False)
class RidgeSums:
    """The immutable sums of the regression. ``products`` are the (b, w, w) diagonal blocks of Q_u in 64 bits."""

    frame: RidgeFrame
    products: torch.Tensor

    @classmethod
    def empty(cls, frame: RidgeFrame) -> "RidgeSums":
        return cls(frame, torch.zeros_like(frame.spread))

    @classmethod
    def of(cls, tables: NodeTables, x: Table, labelled: Labelled, frame: RidgeFrame) -> "RidgeSums":
        """Sum over all labelled nodes."""
        read, tensors = {"x": x, "labels": tables.labels(labelled)}, {"root": frame.root}
        values = {"many": frame.many, "columns": frame.spread.shape[1]}
        return cls(frame, **tables.sums("ridge", _products, tables=read, tensors=tensors, **values))

    def plus(self, points: torch.Tensor, labels: torch.Tensor) -> "RidgeSums":
        """Add labelled nodes."""
        later = self.frame.unwhitened(points[labels >= self.frame.many])
        return replace(self, products=self.products + products_of(later, self.frame.spread.shape[1]))

    def weights(self, anchors: Anchors, settings: AnchorSettings) -> torch.Tensor:
        """Compute the (C, D) weights whose products with x are 8 r/r̄. ``anchors`` are class sums of the same labels."""
        known, size, width = anchors.counts > 0, anchors.sums.shape[1], self.frame.spread.shape[1]
        means, share = self.frame.unwhitened(anchors.means), anchors.later_share
        within = (1 - share) * anchors.unit_variance * self.frame.spread
        if share > 0:
            later = in_blocks((means * anchors.counts.sqrt()[:, None])[self.frame.many :], width)
            within = within + share / anchors.spare * (self.products - later.transpose(1, 2) @ later)
        within = float(known.sum()) * within
        trace = float((means**2).sum()) + max(float(within.diagonal(dim1=1, dim2=2).sum()), 0.0)
        factor = _factor(within, max(settings.ridge_penalty * trace / size, LEAST_PENALTY))
        turned = torch.cholesky_solve(in_blocks(means, width).transpose(1, 2), factor)
        turned = turned.permute(2, 0, 1).flatten(1)[:, :size]
        one = torch.eye(len(means), dtype=torch.float64, device=means.device)
        weights = torch.linalg.solve(one + means @ turned.T, turned)
        own = (means * weights).sum(dim=1)[known].mean().clamp(min=1e-9)
        return (SCALE / own * torch.linalg.solve_triangular(self.frame.root.double(), weights.T, upper=True).T).float()

    # State

    def tensors(self) -> Tensors:
        rows, columns = torch.triu_indices(*self.products.shape[1:])
        return {"ridge.products": self.products.cpu()[:, rows, columns]}

    @classmethod
    def load(cls, tensors: Tensors, frame: RidgeFrame) -> "RidgeSums":
        products = symmetric(tensors["ridge.products"].to(frame.root.device))
        if products.shape != frame.spread.shape or products.dtype != torch.float64:
            raise ValueError("products of the ridge regression and the frame have different shapes")
        return cls(frame, products)


def shares_of(counts: torch.Tensor, settings: AnchorSettings) -> torch.Tensor:
    """Compute the (C,) weights g n_c/(n_c + 20) of the ridge regression from (C,) label counts."""
    return (settings.ridge_share * counts / (counts + LABELS_FOR_HALF)).float()


def with_ridge(
    posterior: torch.Tensor, ridge: torch.Tensor, shares: torch.Tensor, counts: torch.Tensor
) -> torch.Tensor:
    """Compute (n, C) P' ∝ P^(1−g_c) p_c^(g_c) with p = softmax(ridge). Classes without a label have probability 0.

    Args:
        posterior: (n, C) P.
        ridge: (n, C) logits of the ridge regression.
        shares: (C,) g_c.
        counts: (C,) number of labels.
    """
    absent = ~(counts > 0)
    chances = log_probabilities(ridge.masked_fill(absent, -torch.inf))
    mixed = (1 - shares) * torch.log(posterior.clamp(min=1e-12)) + shares * chances
    return probabilities(mixed.masked_fill(absent, -torch.inf))


def _factor(matrix: torch.Tensor, penalty: float) -> torch.Tensor:
    """Factorise (b, w, w) blocks plus a penalty.

    The blocks can be indefinite if vectors changed after they were added. The penalty is then raised.
    """
    one = torch.eye(matrix.shape[1], dtype=matrix.dtype, device=matrix.device)
    for _ in range(RAISES):
        factor, failed = torch.linalg.cholesky_ex(matrix + penalty * one)
        if not failed.any():
            break
        penalty *= 10
    return factor


def _unwhitened(points: torch.Tensor, root: torch.Tensor) -> torch.Tensor:
    return torch.linalg.solve_triangular(root.double(), points.double(), upper=True, left=False)


def _products(block: RowBlock) -> Tensors:
    points, labels = block.labelled("x")
    later = _unwhitened(points[labels >= block.values["many"]], block.tensors["root"])
    return {"products": products_of(later, block.values["columns"])}
