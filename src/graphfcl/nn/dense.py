"""Products with chosen rows of a large constant dense matrix."""

import threading
from collections.abc import Iterator
from typing import Any

import torch

CHUNK_ROWS = 512


class DenseTable:
    """A constant (n, d) matrix, and the room of each thread into which a few of its rows are gathered at a time.

    On a CPU a fresh copy of many rows costs more in page faults than the product it is made for; a small one that is
    used again and again stays in the cache.
    """

    def __init__(self, values: torch.Tensor) -> None:
        self.values = values
        self._rooms = threading.local()

    def pieces(self, rows: torch.Tensor, kind: torch.dtype) -> Iterator[tuple[slice, torch.Tensor]]:
        """The rows, a piece at a time, and where the piece stands. A piece is valid until the next one."""
        if self.values.is_cuda:
            yield slice(None), self.values.index_select(0, rows).to(kind)
            return
        room = getattr(self._rooms, "room", None)
        if room is None:
            room = self._rooms.room = self.values.new_empty(CHUNK_ROWS, self.values.shape[1])
        for start in range(0, rows.numel(), CHUNK_ROWS):
            place = slice(start, start + CHUNK_ROWS)
            chosen = rows[place]
            yield place, torch.index_select(self.values, 0, chosen, out=room[: chosen.numel()]).to(kind)


class DenseRows:
    """Rows of a table (None: all); ``rows @ weights`` is differentiable in ``weights``, any number of times."""

    def __init__(self, table: DenseTable, rows: torch.Tensor | None = None) -> None:
        self.table = table
        self.rows = rows

    def __matmul__(self, weights: torch.Tensor) -> torch.Tensor:
        if self.rows is None:
            return self.table.values.to(weights.dtype) @ weights
        return _Product.apply(self.table, self.rows, weights)

    def head(self, count: int) -> "DenseRows":
        """The first rows."""
        rows = torch.arange(count, device=self.table.values.device) if self.rows is None else self.rows[:count]
        return DenseRows(self.table, rows)


class _Product(torch.autograd.Function):
    """Y = X_R·W, dL/dW = X_Rᵀ·dL/dY."""

    @staticmethod
    def forward(ctx: Any, table: DenseTable, rows: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        ctx.table, ctx.rows = table, rows
        output = weights.new_empty(rows.numel(), weights.shape[1])
        for place, piece in table.pieces(rows, weights.dtype):
            torch.mm(piece, weights, out=output[place])
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return None, None, _TransposedProduct.apply(ctx.table, ctx.rows, gradients[0])


class _TransposedProduct(torch.autograd.Function):
    """Z = X_Rᵀ·G, dL/dG = X_R·dL/dZ."""

    @staticmethod
    def forward(ctx: Any, table: DenseTable, rows: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        ctx.table, ctx.rows = table, rows
        output = values.new_zeros(table.values.shape[1], values.shape[1])
        for place, piece in table.pieces(rows, values.dtype):
            output.addmm_(piece.T, values[place])
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return None, None, _Product.apply(ctx.table, ctx.rows, gradients[0])
