"""What closed forms keep of the labelled nodes of classes: sums over vectors, never changed, only replaced."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, Self

import torch

from graphfcl.errors import DivergenceError
from graphfcl.methods.learner import Tensors
from graphfcl.methods.shared.parts import ClassMemory
from graphfcl.methods.shared.untrained_features import symmetric, unit_rows

CHUNK = 4096  # vectors that are turned into 64 bits at a time
BLOCK = 128  # vectors of one class whose products are added up at a time
TOGETHER = 64  # such blocks in memory at a time

Parts = Iterable[tuple[torch.Tensor, torch.Tensor]]  # (m, D) vectors and their (m,) columns, some at a time


class Statistics(Protocol):
    """Sums over labelled vectors, class by class. Immutable."""

    @property
    def counts(self) -> torch.Tensor:
        """(C,) labelled nodes of each class."""

    @property
    def nbytes(self) -> int:
        """As they are stored."""

    def plus(self, parts: Parts, counts: torch.Tensor) -> Self:
        """With more labelled vectors. counts: (C,) those of all vectors, the new ones included."""

    def exchanged(self, old: Self, new: Self) -> Self:
        """With ``new`` in place of ``old``, which are whole classes of these and empty in all others."""

    def tensors(self) -> Tensors:
        """Their state."""

    def loaded(self, tensors: Tensors, device: torch.device) -> Self:
        """Statistics of the same kind from a state."""


class ClassStatistics(ClassMemory):
    """The statistics of all classes, and the head that was computed from them last, which is no part of the state.

    empty: statistics of no class.
    """

    def __init__(self, empty: Any) -> None:
        self.now = empty
        self._head: Tensors | None = None

    def hold(self, statistics: Any) -> None:
        """Replace the statistics."""
        self.now, self._head = statistics, None

    def head(self, compute: Callable[[Any], Tensors]) -> Tensors:
        """What ``compute`` makes of the statistics; computed once."""
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
        self.hold(self.now.loaded(tensors, device))

    def become(self, other: Self, device: torch.device) -> None:  # noqa: ARG002
        self.now, self._head = other.now, other._head


@dataclass(frozen=True, eq=False)
class ClassSums:
    """sums: (C, D) S. counts: (C,) n. Both in 64 bits; immutable."""

    sums: torch.Tensor
    counts: torch.Tensor

    @classmethod
    def empty(cls, size: int = 0, device: torch.device | str = "cpu") -> "ClassSums":
        zeros = partial(torch.zeros, dtype=torch.float64, device=device)
        return cls(zeros(0, size), zeros(0))

    def plus(self, parts: Parts, counts: torch.Tensor) -> "ClassSums":
        """With more labelled vectors."""
        sums = grown(self.sums, len(counts))
        for vectors, labels in parts:
            sums.index_add_(0, labels, vectors.double())
        return ClassSums(sums, counts)

    def means(self) -> torch.Tensor:
        """(C, D) μ_c = S_c/n_c; zeros for a class without a node."""
        return self.sums / self.counts.clamp(min=1)[:, None]

    def exchanged(self, old: "ClassSums", new: "ClassSums") -> "ClassSums":
        """With ``new`` in place of ``old``, which are whole classes of these and empty in all others."""
        return ClassSums(self.sums - old.sums + new.sums, self.counts - old.counts + new.counts)

    def tensors(self) -> Tensors:
        return {"classes.sums": self.sums.cpu().clone(), "classes.counts": self.counts.cpu().clone()}

    def loaded(self, tensors: Tensors, device: torch.device) -> "ClassSums":
        """The reverse of :meth:`tensors`."""
        return ClassSums(tensors["classes.sums"].to(device).clone(), tensors["classes.counts"].to(device).clone())

    @property
    def nbytes(self) -> int:
        return self.sums.nbytes + self.counts.nbytes


@dataclass(frozen=True, eq=False)
class ClassMoments:
    """first: sums and counts. products: (C, D, D) Σ x xᵀ over the vectors of each class, in 64 bits. Immutable."""

    first: ClassSums
    products: torch.Tensor

    @classmethod
    def empty(cls, size: int = 0, device: torch.device | str = "cpu") -> "ClassMoments":
        return cls(ClassSums.empty(size, device), torch.zeros(0, size, size, dtype=torch.float64, device=device))

    @property
    def counts(self) -> torch.Tensor:
        return self.first.counts

    def plus(self, parts: Parts, counts: torch.Tensor) -> "ClassMoments":
        """With more labelled vectors."""
        products, first = grown(self.products, len(counts)), self.first
        for vectors, labels in parts:
            first = first.plus([(vectors, labels)], counts)
            rows, classes = _blocks_of_one_class(labels, len(counts))
            for some, of_class in zip(rows.split(TOGETHER), classes.split(TOGETHER), strict=True):
                block = vectors[some.clamp(min=0)].double() * (some >= 0)[:, :, None]
                products.index_add_(0, of_class, block.transpose(1, 2) @ block)
        return ClassMoments(first.plus([], counts), products)

    def means(self) -> torch.Tensor:
        """(C, D)."""
        return self.first.means()

    def covariances(self) -> torch.Tensor:
        """(C, D, D) Σ_c = Σ (x − μ_c)(x − μ_c)ᵀ / (n_c − 1); zeros for a class with fewer than two nodes."""
        means, counts = self.means(), self.counts[:, None, None]
        spread = self.products - counts * means[:, :, None] * means[:, None]
        return spread / (counts - 1).clamp(min=1) * (counts > 1)

    def exchanged(self, old: "ClassMoments", new: "ClassMoments") -> "ClassMoments":
        """With ``new`` in place of ``old``, which are whole classes of these and empty in all others."""
        return ClassMoments(self.first.exchanged(old.first, new.first), self.products - old.products + new.products)

    def tensors(self) -> Tensors:
        """Of the symmetric products the upper half."""
        rows, columns = torch.triu_indices(*self.products.shape[1:])
        return {**self.first.tensors(), "classes.products": self.products.cpu()[:, rows, columns]}

    def loaded(self, tensors: Tensors, device: torch.device) -> "ClassMoments":
        """The reverse of :meth:`tensors`."""
        first, upper = self.first.loaded(tensors, device), tensors["classes.products"].to(device)
        size = first.sums.shape[1]
        rows, columns = torch.triu_indices(size, size, device=device)
        products = upper.new_zeros(len(upper), size, size)
        products[:, rows, columns] = upper
        products[:, columns, rows] = upper
        return ClassMoments(first, products)

    @property
    def nbytes(self) -> int:
        count, size = self.first.sums.shape
        return self.first.nbytes + count * (size * (size + 1) // 2) * self.products.element_size()


def in_parts(vectors: torch.Tensor, labels: torch.Tensor) -> Parts:
    """Vectors and their columns, ``CHUNK`` at a time."""
    return zip(vectors.split(CHUNK), labels.split(CHUNK), strict=True)


def counts_with(counts: torch.Tensor, labels: torch.Tensor, count: int) -> torch.Tensor:
    """(count,) labelled nodes of each class, with more of them."""
    return grown(counts, count) + torch.bincount(labels, minlength=count)


def grown(values: torch.Tensor, count: int) -> torch.Tensor:
    """A copy with rows of zeros for the classes that are new."""
    found = values.new_zeros(count, *values.shape[1:])
    found[: len(values)] = values
    return found


def _blocks_of_one_class(labels: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(b, BLOCK) positions of labels, each row of one class and filled up with −1, and the (b,) classes of the rows."""
    order = torch.argsort(labels, stable=True)
    counts = torch.bincount(labels, minlength=count)
    blocks = (counts + BLOCK - 1) // BLOCK
    sorted_labels = labels[order]
    within = torch.arange(len(labels), device=labels.device) - (counts.cumsum(0) - counts)[sorted_labels]
    rows = torch.full((int(blocks.sum()), BLOCK), -1, device=labels.device)
    rows[(blocks.cumsum(0) - blocks)[sorted_labels] + within // BLOCK, within % BLOCK] = order
    return rows, torch.repeat_interleave(torch.arange(count, device=labels.device), blocks)


@dataclass(frozen=True, eq=False)
class RidgeSums:
    """All that ridge regression keeps of labelled points, in 64 bits. Immutable.

    gram: (D, D) G. sums: (C, D) S. counts: (C,) n. balanced: whether every class counts the same.
    """

    gram: torch.Tensor
    sums: torch.Tensor
    counts: torch.Tensor
    balanced: bool = True

    @classmethod
    def empty(cls, size: int = 0, device: torch.device | str = "cpu", *, balanced: bool = True) -> "RidgeSums":
        shapes = ((size, size), (0, size), (0,))
        gram, sums, counts = (torch.zeros(shape, dtype=torch.float64, device=device) for shape in shapes)
        return cls(gram, sums, counts, balanced)

    def plus(self, parts: Parts, counts: torch.Tensor) -> "RidgeSums":
        """With more labelled points. counts: (C,) n with them.

        Exact for a class that is new, and for a known one after :meth:`reweighted`. G holds no class by itself: without
        that call earlier points of a known class keep the weight 1/n of then.
        """
        gram, sums = self.gram.clone(), grown(self.sums, len(counts))
        roots = counts.clamp(min=1).rsqrt() if self.balanced else torch.ones_like(counts)
        for points, labels in parts:
            points = points.double()
            sums.index_add_(0, labels, points)
            points = points * roots[labels, None]
            gram.addmm_(points.T, points)
        return RidgeSums(gram, sums, counts, self.balanced)

    def reweighted(self, parts: Parts, counts: torch.Tensor) -> "RidgeSums":
        """With the weight of earlier points lowered from 1/n to that of larger classes: what precedes :meth:`plus`.

        parts: earlier points and their columns. counts: (C,) the numbers of points that the classes will have.
        """
        if not self.balanced:
            return self
        gram = self.gram.clone()
        roots = (1 / self.counts - 1 / counts[: len(self.counts)]).clamp(min=0).sqrt()
        for points, labels in parts:
            points = points.double() * roots[labels, None]
            gram.addmm_(points.T, points, alpha=-1)
        return RidgeSums(gram, self.sums, self.counts)

    def exchanged(self, old: "RidgeSums", new: "RidgeSums") -> "RidgeSums":
        """With ``new`` in place of ``old``, which are whole classes of these sums and empty in all others."""
        return RidgeSums(
            self.gram - old.gram + new.gram,
            self.sums - old.sums + new.sums,
            self.counts - old.counts + new.counts,
            self.balanced,
        )

    def solve(self, penalty: float, scales: torch.Tensor) -> torch.Tensor:
        """(D, C) weights of raw points: W of points times ``scales`` (D,), which are then put into W.

        A class without a point has a column of zeros. ``DivergenceError`` if the matrix is not positive definite.
        """
        size = len(self.gram)
        gram = self.gram * scales * scales[:, None]
        mean = float(gram.trace()) / max(1, size)
        gram.diagonal().add_(penalty * mean if mean > 0 else 1.0)
        means = self.sums / self.counts.clamp(min=1)[:, None] if self.balanced else self.sums
        factor, failed = torch.linalg.cholesky_ex(gram)
        if int(failed):
            raise DivergenceError(f"the ridge with penalty {penalty:g} cannot be solved: take a larger penalty.")
        return torch.cholesky_solve((means * scales).T, factor) * scales[:, None]

    def tensors(self) -> Tensors:
        """Of the symmetric G the upper half."""
        rows, columns = torch.triu_indices(*self.gram.shape)
        return {
            "ridge.gram": self.gram.cpu()[rows, columns],
            "ridge.sums": self.sums.cpu().clone(),
            "ridge.counts": self.counts.cpu().clone(),
        }

    def loaded(self, tensors: Tensors, device: torch.device) -> "RidgeSums":
        """The reverse of :meth:`tensors`, with sums of the same kind."""
        gram = symmetric(tensors["ridge.gram"].to(device))
        sums, counts = (tensors[f"ridge.{name}"].to(device).clone() for name in ("sums", "counts"))
        return RidgeSums(gram, sums, counts, self.balanced)

    @property
    def nbytes(self) -> int:
        """As it is stored."""
        size = len(self.gram)
        return size * (size + 1) // 2 * self.gram.element_size() + self.sums.nbytes + self.counts.nbytes


def similarity_weights(means: torch.Tensor, many: int, temperature: float, counts: torch.Tensor) -> torch.Tensor:
    """(C − many, many) w_cb = softmax_b(τ cos(μ_c, μ_b)) of later classes c over the first ``many`` classes b.

    means: (C, D). counts: (C,) labels of each class; one without labels lends nothing.
    """
    units = unit_rows(means)
    logits = temperature * units[many:] @ units[:many].T
    return torch.softmax(logits.masked_fill(counts[None, :many] == 0, -torch.inf), dim=1).nan_to_num()


def calibrated_prototypes(means: torch.Tensor, weights: torch.Tensor, share: float) -> torch.Tensor:
    """(C, D) unit prototypes: p̂_c, and for later classes unit((1 − α) p̂_c + α unit(Σ_b w_cb p̂_b)).

    weights: those of :func:`similarity_weights`. share: α.
    """
    units, many = unit_rows(means), weights.shape[1]
    lent = unit_rows(weights @ units[:many])
    return torch.cat([units[:many], unit_rows((1 - share) * units[many:] + share * lent)])
