"""Constant matrices on a device, dense or sparse, and tensors that share the memory of arrays."""

import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy import sparse

from graphfcl.nn.kernels import scattered_product, scatters, sparse_product


def tensor_of(array: np.ndarray, device: torch.device | str = "cpu") -> torch.Tensor:
    """Return an array as a tensor. On a CPU it shares the memory of the array, so do not write to it."""
    if array.flags.writeable:
        return torch.from_numpy(array).to(device)
    with warnings.catch_warnings():
        # torch warns that the tensor of a read-only array is writable.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array).to(device)


CHUNK_ROWS = 512  # rows that DenseTable gathers at a time


class ConstantMatrix(ABC):
    """A constant (n, m) matrix. ``matrix @ dense`` can be differentiated by ``dense`` any number of times."""

    def __matmul__(self, dense: torch.Tensor) -> torch.Tensor:
        return _Product.apply(self, dense)

    @abstractmethod
    def product(self, dense: torch.Tensor) -> torch.Tensor:
        """Compute M·dense without gradients."""

    @abstractmethod
    def transposed_product(self, dense: torch.Tensor) -> torch.Tensor:
        """Compute Mᵀ·dense without gradients."""


class _Product(torch.autograd.Function):
    """Y = M·H, dL/dH = Mᵀ·dL/dY."""

    @staticmethod
    def forward(ctx: Any, matrix: ConstantMatrix, dense: torch.Tensor) -> torch.Tensor:
        ctx.matrix = matrix
        return matrix.product(dense)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return None, _TransposedProduct.apply(ctx.matrix, gradients[0])


class _TransposedProduct(torch.autograd.Function):
    """Y = Mᵀ·H, dL/dH = M·dL/dY."""

    @staticmethod
    def forward(ctx: Any, matrix: ConstantMatrix, dense: torch.Tensor) -> torch.Tensor:
        ctx.matrix = matrix
        return matrix.transposed_product(dense)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return None, _Product.apply(ctx.matrix, gradients[0])


class DenseTable:
    """A constant (n, d) matrix whose rows are gathered in small pieces, into one buffer per thread.

    On a CPU, copying many rows at once would cost more in page faults than the product itself. A small buffer that is
    reused stays in the cache.
    """

    def __init__(self, values: torch.Tensor) -> None:
        self.values = values
        self._buffers = threading.local()

    def pieces(self, rows: torch.Tensor, kind: torch.dtype) -> Iterator[tuple[slice, torch.Tensor]]:
        """Yield the rows in pieces, each with its positions. A piece is valid until the next one is requested."""
        if self.values.is_cuda:
            yield slice(None), self.values.index_select(0, rows).to(kind)
            return
        buffer = getattr(self._buffers, "buffer", None)
        if buffer is None:
            buffer = self._buffers.buffer = self.values.new_empty(CHUNK_ROWS, self.values.shape[1])
        for start in range(0, rows.numel(), CHUNK_ROWS):
            place = slice(start, start + CHUNK_ROWS)
            chosen = rows[place]
            yield place, torch.index_select(self.values, 0, chosen, out=buffer[: chosen.numel()]).to(kind)


class DenseRows(ConstantMatrix):
    """Some rows of a table, or all if ``rows`` is None."""

    def __init__(self, table: DenseTable, rows: torch.Tensor | None = None) -> None:
        self.table = table
        self.rows = rows

    def __matmul__(self, dense: torch.Tensor) -> torch.Tensor:
        return self.table.values.to(dense.dtype) @ dense if self.rows is None else super().__matmul__(dense)

    def product(self, dense: torch.Tensor) -> torch.Tensor:
        assert self.rows is not None
        output = dense.new_empty(self.rows.numel(), dense.shape[1])
        for place, piece in self.table.pieces(self.rows, dense.dtype):
            torch.mm(piece, dense, out=output[place])
        return output

    def transposed_product(self, dense: torch.Tensor) -> torch.Tensor:
        assert self.rows is not None
        output = dense.new_zeros(self.table.values.shape[1], dense.shape[1])
        for place, piece in self.table.pieces(self.rows, dense.dtype):
            output.addmm_(piece.T, dense[place])
        return output

    def head(self, count: int) -> "DenseRows":
        """The first rows."""
        rows = torch.arange(count, device=self.table.values.device) if self.rows is None else self.rows[:count]
        return DenseRows(self.table, rows)


# torch warns once per process that CSR tensors are in beta state. Trigger the warning here, where it is silenced.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor(torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1), size=(1, 1))


class SparseMatrix(ConstantMatrix):
    """A sparse matrix on a device.

    The backward pass multiplies with the transpose. The transpose is computed once and cached on a GPU, and on a CPU
    for matrices that are used repeatedly (``reused``). For a matrix of one episode, and for a large one with few
    columns, a scattered product is faster. ``benchmarks/sparse_products.py`` compares both ways.
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

    def product(self, dense: torch.Tensor) -> torch.Tensor:
        return sparse_product(self.tensor.to(dense.dtype), dense)

    def transposed_product(self, dense: torch.Tensor) -> torch.Tensor:
        if self.device.type != "cpu" or (self.reused and not scatters(self.host, dense.shape[1])):
            return self.transposed.product(dense)
        return scattered_product(self.host, dense)

    def head(self, count: int) -> "SparseMatrix":
        """The first rows."""
        return SparseMatrix(self.host[:count], self.device)
