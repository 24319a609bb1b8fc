"""Products with constant sparse matrices, exact forwards and backwards."""

import warnings
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy import sparse

from graphfcl.nn.tensors import tensor_of

# torch warns once a process that this is new; it is said here, where nobody needs to hear it.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor(torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1), size=(1, 1))


class SparseMatrix:
    """A constant (n, m) matrix on a device; ``matrix @ dense`` is differentiable in ``dense``, any number of times.

    The backward pass multiplies with the transpose. For a matrix that is used again and again (``reused``), and on a
    GPU, the transpose is made and kept. A matrix of one episode on a CPU is not worth that: scipy reads it column-wise.
    Both ways were the fastest of those measured, see ``benchmarks/sparse_products.py``.
    """

    def __init__(self, matrix: sparse.csr_array, device: torch.device, *, reused: bool = False) -> None:
        self.host = matrix
        self.device = device
        self.reused = reused

    @property
    def shape(self) -> tuple[int, int]:
        return self.host.shape

    @cached_property
    def tensor(self) -> torch.Tensor:
        """The matrix as a torch CSR tensor."""
        parts = (self.host.indptr, self.host.indices, self.host.data.astype(np.float32, copy=False))
        pointers, columns, values = (tensor_of(part, self.device) for part in parts)
        return torch.sparse_csr_tensor(pointers, columns, values, size=self.host.shape, check_invariants=False)

    @cached_property
    def transposed(self) -> "SparseMatrix":
        other = SparseMatrix(self.host.T.tocsr(), self.device, reused=self.reused)
        other.__dict__["transposed"] = self
        return other

    def __matmul__(self, dense: torch.Tensor) -> torch.Tensor:
        return _Product.apply(self, dense)

    def transposed_product(self, dense: torch.Tensor) -> torch.Tensor:
        """Mᵀ·dense, not differentiable."""
        if self.reused or self.device.type != "cpu":
            return self.transposed.tensor.to(dense.dtype) @ dense
        return torch.from_numpy(self.host.T @ dense.detach().numpy())

    def head(self, count: int) -> "SparseMatrix":
        """The first rows."""
        return SparseMatrix(self.host[:count], self.device)


class _Product(torch.autograd.Function):
    """Y = M·H, dL/dH = Mᵀ·dL/dY."""

    @staticmethod
    def forward(ctx: Any, matrix: SparseMatrix, dense: torch.Tensor) -> torch.Tensor:
        ctx.matrix = matrix
        return matrix.tensor.to(dense.dtype) @ dense

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return None, _TransposedProduct.apply(ctx.matrix, gradients[0])


class _TransposedProduct(torch.autograd.Function):
    """Y = Mᵀ·H, dL/dH = M·dL/dY."""

    @staticmethod
    def forward(ctx: Any, matrix: SparseMatrix, dense: torch.Tensor) -> torch.Tensor:
        ctx.matrix = matrix
        return matrix.transposed_product(dense)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return None, _Product.apply(ctx.matrix, gradients[0])
