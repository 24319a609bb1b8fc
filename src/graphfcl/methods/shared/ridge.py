"""Class-balanced ridge regression from sums: what is kept of labelled points, and its closed form.

::

    G = Σ_c H_cᵀH_c / n_c,   μ_c = S_c / n_c,   W = (G + λ tr(G)/D · I)⁻¹ [μ_1 … μ_C]

H_c: the n_c points of class c as rows, S_c: their sum, D: their width. W is the least-squares map to one-hot labels in
which every class counts the same, whatever its size; the penalty is in units of the mean eigenvalue of G.

Where sums are not balanced, every point counts the same: G = Σ_c H_cᵀH_c, and S_c stands in place of μ_c.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from graphfcl.methods.learner import Tensors
from graphfcl.methods.shared.untrained_features import symmetric

CHUNK = 4096  # points that are turned into 64 bits at a time


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

    def plus(
        self,
        points: torch.Tensor,
        labels: torch.Tensor,
        count: int,
        lift: Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> "RidgeSums":
        """With more labelled points, of ``count`` classes in all.

        lift: makes wider points of some points at a time, so that never all of them are wide at once.
        Exact for a class that is new, and for a known one after :meth:`reweighted`. G holds no class by itself: without
        that call earlier points of a known class keep the weight 1/n of then.
        """
        counts = self.counts_with(labels, count)
        sums = self.sums.new_zeros(count, self.sums.shape[1])
        sums[: len(self.sums)] = self.sums
        gram = self.gram.clone()
        self.add(gram, sums, points, labels, self.roots_of(counts)[labels], lift)
        return RidgeSums(gram, sums, counts, self.balanced)

    def reweighted(
        self,
        points: torch.Tensor,
        labels: torch.Tensor,
        counts: torch.Tensor,
        lift: Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> "RidgeSums":
        """With the weight of earlier points lowered from 1/n to that of larger classes: what precedes :meth:`plus`.

        points, labels: earlier points and their columns, all at once or some at a time. counts: (C,) the numbers of
        points that the classes will have.
        """
        if not self.balanced:
            return self
        gram = self.gram.clone()
        roots = (1 / self.counts - 1 / counts[: len(self.counts)]).clamp(min=0).sqrt()
        for rows, _, factors in _parts(points, labels, roots[labels], lift):
            rows = rows * factors
            gram.addmm_(rows.T, rows, alpha=-1)
        return RidgeSums(gram, self.sums, self.counts)

    def counts_with(self, labels: torch.Tensor, count: int) -> torch.Tensor:
        """(count,) n with more labelled points."""
        counts = self.counts.new_zeros(count)
        counts[: len(self.counts)] = self.counts
        return counts + torch.bincount(labels, minlength=count)

    def roots_of(self, counts: torch.Tensor) -> torch.Tensor:
        """(C,) by what a point of each class is multiplied where it enters G."""
        return counts.clamp(min=1).rsqrt() if self.balanced else torch.ones_like(counts)

    def with_sums_of(self, other: "RidgeSums") -> "RidgeSums":
        """G and S with those of earlier points; the numbers n have them already."""
        sums = self.sums.clone()
        sums[: len(other.sums)] += other.sums
        return RidgeSums(other.gram + self.gram, sums, self.counts, self.balanced)

    @staticmethod
    def add(
        gram: torch.Tensor,
        sums: torch.Tensor,
        points: torch.Tensor,
        labels: torch.Tensor,
        roots: torch.Tensor,
        lift: Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> None:
        """Add points to G and S in place. roots: (n,) by what each is multiplied where it enters G."""
        for rows, columns, factors in _parts(points, labels, roots, lift):
            sums.index_add_(0, columns, rows)
            rows = rows * factors
            gram.addmm_(rows.T, rows)

    def exchanged(self, old: "RidgeSums", new: "RidgeSums") -> "RidgeSums":
        """With ``new`` in place of ``old``, which are whole classes of these sums and empty in all others."""
        return RidgeSums(
            self.gram - old.gram + new.gram,
            self.sums - old.sums + new.sums,
            self.counts - old.counts + new.counts,
            self.balanced,
        )

    def solve(self, penalty: float, scales: torch.Tensor) -> torch.Tensor | None:
        """(D, C) weights of raw points: W of points times ``scales`` (D,), which are then put into W.

        A class without a point has a column of zeros. None if the matrix is not positive definite.
        """
        size = len(self.gram)
        gram = self.gram * scales * scales[:, None]
        mean = float(gram.trace()) / max(1, size)
        gram.diagonal().add_(penalty * mean if mean > 0 else 1.0)
        means = self.sums / self.counts.clamp(min=1)[:, None] if self.balanced else self.sums
        factor, failed = torch.linalg.cholesky_ex(gram)
        if int(failed):
            return None
        return torch.cholesky_solve((means * scales).T, factor) * scales[:, None]

    def tensors(self) -> Tensors:
        """Of the symmetric G the upper half."""
        rows, columns = torch.triu_indices(*self.gram.shape)
        return {
            "ridge.gram": self.gram.cpu()[rows, columns],
            "ridge.sums": self.sums.cpu().clone(),
            "ridge.counts": self.counts.cpu().clone(),
        }

    @classmethod
    def load(cls, tensors: Tensors, device: torch.device, *, balanced: bool = True) -> "RidgeSums":
        """The reverse of :meth:`tensors`."""
        gram = symmetric(tensors["ridge.gram"].to(device))
        sums, counts = (tensors[f"ridge.{name}"].to(device).clone() for name in ("sums", "counts"))
        return cls(gram, sums, counts, balanced)

    @property
    def nbytes(self) -> int:
        """As it is stored."""
        size = len(self.gram)
        return size * (size + 1) // 2 * self.gram.element_size() + self.sums.nbytes + self.counts.nbytes


def _parts(
    points: torch.Tensor,
    labels: torch.Tensor,
    roots: torch.Tensor,
    lift: Callable[[torch.Tensor], torch.Tensor] | None,
) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Some points at a time: (m, D) lifted and in 64 bits, their (m,) columns and (m, 1) roots."""
    for start in range(0, len(points), CHUNK):
        part = slice(start, start + CHUNK)
        rows = points[part] if lift is None else lift(points[part])
        yield rows.double(), labels[part], roots[part, None]


def ridge_scores(points: torch.Tensor, weights: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """(n, C) points · W in 32 bits; −∞ for a class without a point."""
    weights = weights.float()
    parts = [points[start : start + CHUNK].float() @ weights for start in range(0, len(points), CHUNK)]
    scores = torch.cat(parts) if parts else points.float() @ weights
    return scores.masked_fill(~(counts > 0), -torch.inf)
