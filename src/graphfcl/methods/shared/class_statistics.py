"""Sufficient statistics of labelled nodes by class, and the closed-form classifiers computed from them.

Statistics are immutable. :class:`RidgeSums` implements class-balanced ridge regression::

    G = Σ_c H_cᵀH_c / n_c,   μ_c = S_c / n_c,   W = (G + λ tr(G)/D · I)⁻¹ [μ_1 … μ_C]

H_c holds the n_c points of class c as rows, S_c is their sum, and D their width. W is the least-squares map to one-hot
labels in which every class has the same weight, whatever its size. The penalty is relative to the mean eigenvalue of G.
Unbalanced sums give every point the same weight: G = Σ_c H_cᵀH_c, and S_c replaces μ_c.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import torch

from graphfcl.errors import DivergenceError
from graphfcl.methods.shared.parts import ClassMemory
from graphfcl.methods.shared.untrained_features import symmetric, unit_rows
from graphfcl.methods.state import Tensors

CHUNK = 4096  # vectors that are converted to 64 bits at a time
BLOCK = 128  # vectors of one class whose products are summed at a time
TOGETHER = 64  # number of such blocks in memory at a time

Parts = Iterable[tuple[torch.Tensor, torch.Tensor]]  # chunks of (m, D) vectors and their (m,) class columns


class ClassStatistics(ClassMemory):
    """The statistics of all classes, with a cache of the head that was computed from them.

    The cache is not part of the saved state. ``empty`` are statistics without a class.
    """

    def __init__(self, empty: Any) -> None:
        self.now = empty
        self._head: Tensors | None = None

    def set(self, statistics: Any) -> None:
        """Replace the statistics."""
        self.now, self._head = statistics, None

    def head(self, compute: Callable[[Any], Tensors]) -> Tensors:
        """Compute the head from the statistics, or return the cached one."""
        if self._head is None:
            self._head = compute(self.now)
        return self._head

    @property
    def forgets_exactly(self) -> bool:
        return True

    def stored(self) -> dict[str, int]:
        return {"embeddings": self.now.nbytes}

    def tensors(self) -> Tensors:
        return self.now.tensors()

    def load(self, values: dict[str, Any], tensors: Tensors, device: torch.device) -> None:  # noqa: ARG002
        self.set(self.now.loaded(tensors, device))

    def copy_from(self, other: Self, device: torch.device) -> None:  # noqa: ARG002
        self.now, self._head = other.now, other._head


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassSums:
    """Sums over labelled vectors, class by class, in 64 bits. Immutable.

    Attributes:
        sums: (C, D) S.
        counts: (C,) number of labelled nodes n of each class.
        shapes: Axes of each field, C for classes and D for columns.
        symmetric: Names of the fields that are symmetric matrices; only their upper half is stored.
    """

    sums: torch.Tensor
    counts: torch.Tensor
    shapes: ClassVar[dict[str, str]] = {"sums": "CD", "counts": "C"}
    symmetric: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def empty(cls, size: int = 0, device: torch.device | str = "cpu", **options: Any) -> Self:
        """Create statistics without a class for vectors with ``size`` columns."""
        sizes = {name: [size if axis == "D" else 0 for axis in shape] for name, shape in cls.shapes.items()}
        zeros = {name: torch.zeros(shape, dtype=torch.float64, device=device) for name, shape in sizes.items()}
        return cls(**zeros, **options)

    def plus(self, parts: Parts, counts: torch.Tensor) -> Self:
        """Add labelled vectors. ``counts`` are the (C,) label counts including the new vectors."""
        sums = grown(self.sums, len(counts))
        for vectors, labels in parts:
            sums.index_add_(0, labels, vectors.double())
        return replace(self, sums=sums, counts=counts)

    def means(self) -> torch.Tensor:
        """Compute (C, D) μ_c = S_c/n_c; zeros for a class without a node."""
        return self.sums / self.counts.clamp(min=1)[:, None]

    def exchanged(self, old: Self, new: Self) -> Self:
        """Replace the statistics ``old`` of whole classes by ``new``. Both must be empty for all other classes."""
        fields = {name: value - getattr(old, name) + getattr(new, name) for name, value in self._fields().items()}
        return replace(self, **fields)

    def _fields(self) -> Tensors:
        return {name: getattr(self, name) for name in self.shapes}

    def tensors(self) -> Tensors:
        """Return the saved state; of symmetric matrices only the upper half."""
        tensors = {name: value.cpu().clone() for name, value in self._fields().items()}
        for name in self.symmetric:
            rows, columns = torch.triu_indices(*tensors[name].shape[-2:])
            tensors[name] = tensors[name][..., rows, columns]
        return {f"classes.{name}": value for name, value in tensors.items()}

    def loaded(self, tensors: Tensors, device: torch.device) -> Self:
        """Restore statistics of the same kind from a saved state."""
        fields = {name: tensors[f"classes.{name}"].to(device).clone() for name in self._fields()}
        return replace(self, **fields | {name: symmetric(fields[name]) for name in self.symmetric})

    @property
    def nbytes(self) -> int:
        """Bytes of the saved state."""
        fields = self._fields()
        halves = (value for name, value in fields.items() if name in self.symmetric)
        spared = sum((value.numel() - value[..., 0].numel()) // 2 * value.element_size() for value in halves)
        return sum(value.nbytes for value in fields.values()) - spared


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassMoments(ClassSums):
    """Class sums with second moments: ``products`` is (C, D, D) Σ x xᵀ over the vectors of each class, in 64 bits."""

    products: torch.Tensor
    shapes: ClassVar[dict[str, str]] = {**ClassSums.shapes, "products": "CDD"}
    symmetric = ("products",)

    def plus(self, parts: Parts, counts: torch.Tensor) -> Self:
        sums, products = grown(self.sums, len(counts)), grown(self.products, len(counts))
        for vectors, labels in parts:
            sums.index_add_(0, labels, vectors.double())
            rows, classes = _blocks_of_one_class(labels, len(counts))
            for some, of_class in zip(rows.split(TOGETHER), classes.split(TOGETHER), strict=True):
                block = vectors[some.clamp(min=0)].double() * (some >= 0)[:, :, None]
                products.index_add_(0, of_class, block.transpose(1, 2) @ block)
        return replace(self, sums=sums, counts=counts, products=products)

    def covariances(self) -> torch.Tensor:
        """Compute (C, D, D) covariances Σ (x − μ_c)(x − μ_c)ᵀ / (n_c − 1); zeros for a class with one node or none."""
        means, counts = self.means(), self.counts[:, None, None]
        spread = self.products - counts * means[:, :, None] * means[:, None]
        return spread / (counts - 1).clamp(min=1) * (counts > 1)


@dataclass(frozen=True, eq=False, kw_only=True)
class RidgeSums(ClassSums):
    """Statistics of ridge regression: ``gram`` is (D, D) G. If ``balanced``, all classes have the same weight."""

    gram: torch.Tensor
    balanced: bool = True
    shapes: ClassVar[dict[str, str]] = {**ClassSums.shapes, "gram": "DD"}
    symmetric = ("gram",)

    def plus(self, parts: Parts, counts: torch.Tensor) -> Self:
        """Add labelled points.

        The result is exact for new classes, and for known classes after :meth:`reweighted`. Without that call, earlier
        points of a known class keep their old weight 1/n, because G does not separate classes.
        """
        gram, sums = self.gram.clone(), grown(self.sums, len(counts))
        roots = counts.clamp(min=1).rsqrt() if self.balanced else torch.ones_like(counts)
        for points, labels in parts:
            points = points.double()
            sums.index_add_(0, labels, points)
            points = points * roots[labels, None]
            gram.addmm_(points.T, points)
        return replace(self, gram=gram, sums=sums, counts=counts)

    def reweighted(self, parts: Parts, counts: torch.Tensor) -> Self:
        """Lower the weight 1/n of earlier points before :meth:`plus` adds points to their classes.

        ``parts`` are the earlier points with their columns, and ``counts`` the (C,) label counts after the addition.
        """
        if not self.balanced:
            return self
        gram = self.gram.clone()
        roots = (1 / self.counts - 1 / counts[: len(self.counts)]).clamp(min=0).sqrt()
        for points, labels in parts:
            points = points.double() * roots[labels, None]
            gram.addmm_(points.T, points, alpha=-1)
        return replace(self, gram=gram)

    def solve(self, penalty: float, scales: torch.Tensor) -> torch.Tensor:
        """Solve for the (D, C) weights of raw points, with the (D,) column ``scales`` absorbed into the weights.

        A class without a point gets a column of zeros.

        Raises:
            DivergenceError: If the matrix is not positive definite.
        """
        size = len(self.gram)
        gram = self.gram * scales * scales[:, None]
        mean = float(gram.trace()) / max(1, size)
        gram.diagonal().add_(penalty * mean if mean > 0 else 1.0)
        means = self.means() if self.balanced else self.sums
        factor, failed = torch.linalg.cholesky_ex(gram)
        if int(failed):
            raise DivergenceError(f"ridge regression with penalty {penalty:g} has no solution: use a larger penalty.")
        return torch.cholesky_solve((means * scales).T, factor) * scales[:, None]


def in_parts(vectors: torch.Tensor, labels: torch.Tensor) -> Parts:
    """Split vectors and their columns into chunks of ``CHUNK`` rows."""
    return zip(vectors.split(CHUNK), labels.split(CHUNK), strict=True)


def counts_with(counts: torch.Tensor, labels: torch.Tensor, count: int) -> torch.Tensor:
    """Add labels to the (count,) label counts of classes."""
    return grown(counts, count) + torch.bincount(labels, minlength=count)


def grown(values: torch.Tensor, count: int) -> torch.Tensor:
    """Copy a tensor and append rows of zeros for new classes."""
    wider = values.new_zeros(count, *values.shape[1:])
    wider[: len(values)] = values
    return wider


def _blocks_of_one_class(labels: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Group label positions into (b, BLOCK) rows of one class each, padded with −1; also return the (b,) classes."""
    order = torch.argsort(labels, stable=True)
    counts = torch.bincount(labels, minlength=count)
    blocks = (counts + BLOCK - 1) // BLOCK
    sorted_labels = labels[order]
    within = torch.arange(len(labels), device=labels.device) - (counts.cumsum(0) - counts)[sorted_labels]
    rows = torch.full((int(blocks.sum()), BLOCK), -1, device=labels.device)
    rows[(blocks.cumsum(0) - blocks)[sorted_labels] + within // BLOCK, within % BLOCK] = order
    return rows, torch.repeat_interleave(torch.arange(count, device=labels.device), blocks)


# Calibration of few-shot prototypes by similar classes of session 0 (TEEN, Wang et al. 2023)


def similarity_weights(means: torch.Tensor, many: int, temperature: float, counts: torch.Tensor) -> torch.Tensor:
    """Compute (C − many, many) weights w_cb = softmax_b(τ cos(μ_c, μ_b)) of later classes c over the first classes b.

    ``means`` are (C, D). ``counts`` are (C,) label counts; a class b without labels has the weight 0.
    """
    units = unit_rows(means)
    logits = temperature * units[many:] @ units[:many].T
    return torch.softmax(logits.masked_fill(counts[None, :many] == 0, -torch.inf), dim=1).nan_to_num()


def calibrated_prototypes(means: torch.Tensor, weights: torch.Tensor, share: float) -> torch.Tensor:
    """Compute (C, D) unit prototypes: p̂_c, and for later classes unit((1 − α) p̂_c + α unit(Σ_b w_cb p̂_b)).

    ``weights`` are the result of :func:`similarity_weights`, and ``share`` is α.
    """
    units, many = unit_rows(means), weights.shape[1]
    lent = unit_rows(weights @ units[:many])
    return torch.cat([units[:many], unit_rows((1 - share) * units[many:] + share * lent)])
