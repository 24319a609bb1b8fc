"""Class sums of x, and the metric that follows from them in closed form.

**Metric.** Vectors are whitened by the within-class covariance of session 0, shrunk by ρ̄ = ρ tr(S_w)/D (``frame.py``).
Whitening turns the shrunk covariance into I. Of this, E = ρ̄ RᵀR comes from the shrinkage and I − E from S_w. Later
classes have another covariance. Their labelled nodes add x xᵀ to Q, which is kept as a block-diagonal matrix. With C₁
later classes among the C classes that have a label, the covariance of all classes is::

    W = Q − Σ_c S_c S_cᵀ/n_c,   N = Σ_c (n_c − 1)                                       (over later classes)
    B = (1 − b) I + b (s W/N + E),   b = C₁/C · N/(N + κ),   A = B⁻¹

s = (D − tr E)/v₀ rescales unit vectors to I, where v₀ is the trace of the pooled within-class covariance of session 0
in x. If each later class has one label, N = 0 and A = I.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

import torch

from graphfcl.methods.anchor.metric import CHUNK, Inverse, Metric, directions_of, in_blocks, logits_of
from graphfcl.methods.anchor.settings import AnchorSettings
from graphfcl.methods.blocks import NodeTables, RowBlock, Table
from graphfcl.methods.shared.untrained_features import symmetric
from graphfcl.methods.state import Labelled, Tensors

LEAST_VARIANCE = 0.01  # lower bound of the variance within classes, so that rounding errors are not amplified
HALVINGS = 30  # b is halved at most this often until B is positive definite


@dataclass(frozen=True, eq=False)
class Shrinkage:
    """The parts of the metric that session 0 determines.

    Args:
        many: Number of classes of session 0.
        added: (b, w, w) diagonal blocks of E in 64 bits; the last block is padded with zeros.
        prior: κ.
    """

    many: int
    added: torch.Tensor
    prior: float

    @classmethod
    def of(cls, many: int, frame: Tensors, settings: AnchorSettings) -> "Shrinkage":
        """Compute E from R and ρ̄ of the frame."""
        parts = in_blocks(frame["whitening"].double(), settings.covariance_columns)
        added = frame["shift"].double() * (parts.transpose(1, 2) @ parts)
        return cls(many, added, settings.covariance_prior)

    @property
    def columns(self) -> int:
        """Number of columns of a block."""
        return self.added.shape[1]


@dataclass(frozen=True, eq=False)
class Anchors:
    """The immutable sums of x over labelled nodes. ``ridge.py`` keeps one more sum.

    Args:
        sums: (C, D) Σ x in 64 bits.
        counts: (C,) number of labelled nodes.
        products: (b, w, w) diagonal blocks of Σ x xᵀ over later classes, in 64 bits.
        shrinkage: The fixed parts of the metric; None for A = I.
    """

    sums: torch.Tensor
    counts: torch.Tensor
    products: torch.Tensor
    shrinkage: Shrinkage | None = None
    _inverses: "dict[float, Inverse | None]" = field(default_factory=dict, init=False, repr=False)  # by N

    @classmethod
    def empty(cls, shrinkage: Shrinkage | None = None) -> "Anchors":
        products = _no_products() if shrinkage is None else torch.zeros_like(shrinkage.added)
        return cls(torch.zeros(0, 0, dtype=torch.float64), torch.zeros(0, dtype=torch.float64), products, shrinkage)

    @classmethod
    def of(
        cls, tables: NodeTables, x: Table, labelled: Labelled, count: int, shrinkage: Shrinkage | None = None
    ) -> "Anchors":
        """Sum x over labelled nodes, class by class."""
        read = {"x": x, "labels": tables.labels(labelled)}
        many, columns = (count, 0) if shrinkage is None else (shrinkage.many, shrinkage.columns)
        sums = tables.sums("anchors", _anchor_sums, tables=read, count=count, many=many, columns=columns)
        return cls(**sums, shrinkage=shrinkage)

    def plus(self, points: torch.Tensor, labels: torch.Tensor, count: int) -> "Anchors":
        """Add labelled nodes; there are then ``count`` classes."""
        sums, counts = class_sums(points, labels, count)
        before = len(self.counts)
        if before:
            sums[:before] += self.sums
            counts[:before] += self.counts
        return replace(self, sums=sums, counts=counts, products=self.products + self._products(points, labels))

    def minus(self, points: torch.Tensor, labels: torch.Tensor) -> "Anchors":
        """Subtract labelled nodes that were added before."""
        sums, counts = class_sums(points, labels, len(self.counts))
        products = self.products - self._products(points, labels)
        return replace(self, sums=self.sums - sums, counts=self.counts - counts, products=products)

    def _products(self, points: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        if self.shrinkage is None:
            return torch.zeros_like(self.products)
        return products_of(points[labels >= self.shrinkage.many], self.shrinkage.columns)

    # Metric

    @cached_property
    def means(self) -> torch.Tensor:
        """(C, D) S_c/n_c."""
        return self.sums / self.counts.clamp(min=1e-6)[:, None]

    @cached_property
    def first(self) -> slice:
        """Columns of the classes of session 0."""
        return slice(0, len(self.counts) if self.shrinkage is None else self.shrinkage.many)

    @cached_property
    def _base_variance(self) -> float:
        """v₀, the trace of the pooled within-class covariance of session 0, for x of unit length.

        All classes are pooled if no class of session 0 has two labels any more.
        """
        some = self.first if self.scaled_by_session_0 else slice(None)
        counts, sums = self.counts[some], self.sums[some]
        total, squares = float(counts.sum()), float(((sums**2).sum(dim=1) / counts.clamp(min=1)).sum())
        spare = total - float((counts > 0).sum())
        return max((total - squares) / spare, LEAST_VARIANCE) if spare > 0 else 1.0

    @property
    def scaled_by_session_0(self) -> bool:
        """Whether a class of session 0 has two labels."""
        return bool((self.counts[self.first] > 1).any())

    @cached_property
    def spare(self) -> float:
        """N."""
        counts = self.counts[self.first.stop :]
        return float((counts[counts > 0] - 1).sum())

    def _share_at(self, spare: float) -> float:
        """Compute b for a given N."""
        if self.shrinkage is None or not spare > 0:
            return 0.0
        known = self.counts > 0
        return float(known[self.first.stop :].sum() / known.sum()) * spare / (spare + self.shrinkage.prior)

    @property
    def later_share(self) -> float:
        """b, the weight of later classes in the covariance."""
        return self._share_at(self.spare)

    @cached_property
    def unit_variance(self) -> float:
        """1/s."""
        return self._base_variance / self._unshrunk

    def inverse_at(self, spare: float) -> "Inverse | None":
        """Compute A from the current W for a given N; None means A = I."""
        if self.shrinkage is None or not spare > 0:
            return None
        if spare not in self._inverses:
            inverse = self._inverse(self._share_at(spare), spare)
            for other in [each for each in self._inverses if each != self.spare]:
                del self._inverses[other]  # each takes megabytes
            self._inverses[spare] = inverse
        return self._inverses[spare]

    def _inverse(self, share: float, spare: float) -> "Inverse | None":
        assert self.shrinkage is not None
        later, counts = self.sums[self.first.stop :], self.counts[self.first.stop :]
        known = counts > 0
        parts = in_blocks(later[known] / counts[known].sqrt()[:, None], self.shrinkage.columns)
        within, added = self.products - parts.transpose(1, 2) @ parts, self.shrinkage.added
        one = torch.eye(added.shape[1], dtype=torch.float64, device=added.device)
        weight = 1 / (self.unit_variance * spare)
        change = weight * within + added - one
        for halvings in range(HALVINGS):
            factor, failed = torch.linalg.cholesky_ex(one + share * change)
            if not failed.any() and torch.isfinite(factor).all():
                values = torch.cholesky_inverse(factor)
                return Inverse(values, float((values * added).sum()), share * weight, halved=halvings > 0)
            share /= 2  # B can be indefinite if vectors changed between being added and subtracted
        return None

    @property
    def _unshrunk(self) -> float:
        """D − tr E."""
        assert self.shrinkage is not None
        size = self.sums.shape[1]
        return max(size - float(_trace(self.shrinkage.added)), 1e-3 * size)

    @cached_property
    def metric(self) -> "Metric":
        """A and the mean squared length under it."""
        return self.metric_by(self.inverse_at(self.spare))

    def metric_by(self, inverse: "Inverse | None") -> "Metric":
        """Return the metric for a given A; None means A = I."""
        if inverse is None:
            return Metric(None, 1.0)
        assert self.shrinkage is not None
        kept = inverse.trace_with(self.shrinkage.added)
        within = self.unit_variance * max(self.sums.shape[1] - kept, 0.0)
        plain = Metric(inverse, 1.0)
        some = self.first if bool(self.counts[self.first].any()) else slice(None)
        counts, squares = self.counts[some], plain.squares(self.means[some])
        total, known = float(counts.sum()), float((counts > 0).sum())
        length = within * (total - known) / total + float((counts * squares).sum()) / total
        return replace(plain, length=length)

    # Means, directions and logits

    def moved(
        self, sums: torch.Tensor, total: torch.Tensor, settings: AnchorSettings
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Compute the class means of labelled and unlabelled nodes.

        The unlabelled nodes of a class have at most the weight of τ labels::

            μ_c = (S_c + t Σ_v P_vc x_v / Σ_v P_vc) / (n_c + t),   t = min(τ, Σ_v P_vc)

        Args:
            sums: (C, D) Σ_v P_vc x_v.
            total: (C,) Σ_v P_vc.
            settings: Settings of ANCHOR.

        Returns:
            (C, D) means, and the (C,) effective numbers of nodes, (n_c + t)² / (n_c + t²/Σ_v P_vc).
        """
        known = self.counts > 0
        total = total.clamp(min=1e-6)
        weight = total.clamp(max=settings.unlabelled_weight)
        means = (self.sums + (weight / total)[:, None] * sums) / (self.counts + weight)[:, None]
        return means * known[:, None], (self.counts + weight) ** 2 / (self.counts + weight**2 / total) * known

    def directions(self, settings: AnchorSettings) -> torch.Tensor:
        """Compute the (C, D) directions Aμ_c/(ℓ_c √q) from the sums alone."""
        return directions_of(self.means, self.counts, self.metric, settings)

    def logits(self, points: torch.Tensor, settings: AnchorSettings) -> torch.Tensor:
        """Compute (n, C) logits from the sums alone; −∞ for a class without a label."""
        return logits_of(points, self.directions(settings), self.counts, settings.temperature)

    # State

    def tensors(self) -> Tensors:
        kept = {"anchors.sums": self.sums.cpu().clone(), "anchors.counts": self.counts.cpu().clone()}
        rows, columns = torch.triu_indices(*self.products.shape[1:])
        return {**kept, "anchors.products": self.products.cpu()[:, rows, columns]}

    @classmethod
    def load(cls, tensors: Tensors, device: torch.device, shrinkage: Shrinkage | None) -> "Anchors":
        sums, counts, products = (tensors[f"anchors.{name}"].to(device) for name in ("sums", "counts", "products"))
        products = symmetric(products)
        if sums.dtype != torch.float64 or sums.shape[:1] != counts.shape:
            raise ValueError("class sums and counts do not match")
        if shrinkage is not None and _kind(products) != _kind(shrinkage.added):
            raise ValueError("products of later classes and the frame have different shapes")
        return cls(sums, counts, products, shrinkage)


def class_sums(points: torch.Tensor, labels: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Sum points by class: (count, D) sums in 64 bits, and (count,) numbers of points."""
    sums = torch.zeros(count, points.shape[1], dtype=torch.float64, device=points.device)
    for start in range(0, len(points), CHUNK):
        part = slice(start, start + CHUNK)
        sums.index_add_(0, labels[part], points[part].double())
    return sums, torch.bincount(labels, minlength=count).double()


def products_of(points: torch.Tensor, columns: int) -> torch.Tensor:
    """Compute the (b, w, w) diagonal blocks of Σ x xᵀ in 64 bits, of ``columns`` columns each."""
    size = -(-points.shape[1] // columns)
    total = torch.zeros(size, columns, columns, dtype=torch.float64, device=points.device)
    for part in points.split(CHUNK):
        parts = in_blocks(part.double(), columns)
        total += parts.transpose(1, 2) @ parts
    return total


def _no_products() -> torch.Tensor:
    return torch.zeros(0, 0, 0, dtype=torch.float64)


def _kind(tensor: torch.Tensor) -> tuple[torch.Size, torch.dtype]:
    return tensor.shape, tensor.dtype


def _trace(blocks: torch.Tensor) -> torch.Tensor:
    return blocks.diagonal(dim1=1, dim2=2).sum()


def _anchor_sums(block: RowBlock) -> Tensors:
    points, labels = block.labelled("x")
    sums, counts = class_sums(points, labels, block.values["count"])
    later = points[labels >= block.values["many"]]
    columns = block.values["columns"]
    products = products_of(later, columns) if columns else _no_products().to(sums.device)
    return {"sums": sums, "counts": counts, "products": products}
