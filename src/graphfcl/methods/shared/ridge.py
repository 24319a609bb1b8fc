"""Class-balanced ridge regression from sums: what is kept of labelled points, and its closed form.

::

    G = Σ_c H_cᵀH_c / n_c,   μ_c = S_c / n_c,   W = (G + λ tr(G)/D · I)⁻¹ [μ_1 … μ_C]

H_c: the n_c points of class c as rows, S_c: their sum, D: their width. W is the least-squares map to one-hot labels in
which every class counts the same, whatever its size; the penalty is in units of the mean eigenvalue of G.

Where sums are not balanced, every point counts the same: G = Σ_c H_cᵀH_c, and S_c stands in place of μ_c.
"""

from dataclasses import dataclass

import torch

from graphfcl.errors import DivergenceError
from graphfcl.methods.learner import Tensors
from graphfcl.methods.shared.class_statistics import Parts, grown
from graphfcl.methods.shared.untrained_features import symmetric


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
