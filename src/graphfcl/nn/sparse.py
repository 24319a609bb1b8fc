"""Products with constant sparse matrices, exact forwards and backwards."""

import warnings
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy import sparse

for beta in ("Sparse CSR tensor support is in beta state", r"index_reduce\(\) is in beta", "Sparse invariant checks"):
    warnings.filterwarnings("ignore", message=beta)


class SparseMatrix:
    """A constant (n, m) matrix on a device; ``matrix @ dense`` is differentiable in ``dense``, any number of times.

    The transpose for the backward pass is made on the host when it is first needed: a CSR product with an explicit
    transpose was the fastest of the ways measured (``benchmarks/sparse_products.py``).
    """

    def __init__(self, matrix: sparse.csr_array, device: torch.device) -> None:
        self.host = matrix
        self.device = device

    @property
    def shape(self) -> tuple[int, int]:
        return self.host.shape

    @cached_property
    def tensor(self) -> torch.Tensor:
        """The matrix as a torch CSR tensor."""
        parts = (self.host.indptr, self.host.indices, self.host.data.astype(np.float32, copy=False))
        pointers, columns, values = (torch.from_numpy(part).to(self.device) for part in parts)
        return torch.sparse_csr_tensor(pointers, columns, values, size=self.host.shape, check_invariants=False)

    @cached_property
    def transposed(self) -> "SparseMatrix":
        other = SparseMatrix(self.host.T.tocsr(), self.device)
        other.__dict__["transposed"] = self
        return other

    def __matmul__(self, dense: torch.Tensor) -> torch.Tensor:
        return _Product.apply(self, dense)


class _Product(torch.autograd.Function):
    """Y = M·H, dL/dH = Mᵀ·dL/dY."""

    @staticmethod
    def forward(ctx: Any, matrix: SparseMatrix, dense: torch.Tensor) -> torch.Tensor:
        ctx.matrix = matrix
        return matrix.tensor.to(dense.dtype) @ dense

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return None, _Product.apply(ctx.matrix.transposed, gradients[0])
