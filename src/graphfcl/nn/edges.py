"""Operators on edges for graph attention.

The gradients of the operators are again such operators, so they can be differentiated any number of times. For H
attention heads, E edges, n nodes and D columns, edge weights have shape (H, E) and node values (H, n, D).
"""

from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy import sparse

from graphfcl.nn.kernels import sparse_product


class EdgePattern:
    """E edges from n source nodes to t target nodes, in the order of a (t, n) CSR matrix."""

    def __init__(self, pattern: sparse.csr_array, device: torch.device) -> None:
        self.host, self.device = pattern, device
        self.shape: tuple[int, int] = pattern.shape
        self.starts = torch.from_numpy(pattern.indptr).to(device)
        self.sources = torch.from_numpy(pattern.indices).to(device)

    @cached_property
    def targets(self) -> torch.Tensor:
        """(E,) Target of each edge."""
        numbers = np.arange(self.shape[0], dtype=self.host.indices.dtype)
        return torch.from_numpy(np.repeat(numbers, np.diff(self.host.indptr))).to(self.device)

    @cached_property
    def reverse(self) -> tuple["EdgePattern", torch.Tensor]:
        """The reversed edges, and (E,) the number of the original edge for each of them."""
        numbers = sparse.csr_array(
            (np.arange(self.host.nnz), self.host.indices, self.host.indptr), shape=self.host.shape
        )
        turned = numbers.T.tocsr()
        other = EdgePattern(turned, self.device)
        return other, torch.from_numpy(turned.data).to(self.device)

    def matrix(self, weights: torch.Tensor) -> torch.Tensor:
        """Return the (E,) weights of one head as a (t, n) CSR tensor."""
        return torch.sparse_csr_tensor(self.starts, self.sources, weights, size=self.shape, check_invariants=False)

    def gather(self, weights: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """Return (H, t, D): for each target, the sum of weight · source value over its incoming edges."""
        return _Gather.apply(self, weights, values)

    def sums(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        """Return (H, E): for each edge, ``left`` (H, t) at its target plus ``right`` (H, n) at its source."""
        return _Sums.apply(self, left, right)

    def maxima(self, weights: torch.Tensor) -> torch.Tensor:
        """Return (H, t): for each target, the largest weight of its incoming edges, without a gradient."""
        return torch.segment_reduce(weights.detach().T.contiguous(), "max", offsets=self.starts.to(torch.int64)).T


def chosen(values: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Return values[:, index], row by row, which is several times faster than ``index_select(1, index)``."""
    return torch.stack([row.index_select(0, index) for row in values])


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: EdgePattern, weights: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(weights, values)
        parts = [
            sparse_product(pattern.matrix(weight), value)
            for weight, value in zip(weights.contiguous(), values.contiguous(), strict=True)
        ]
        return torch.stack(parts)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        weights, values = ctx.saved_tensors
        reverse, order = ctx.pattern.reverse
        to_weights = _Products.apply(ctx.pattern, gradients[0], values) if ctx.needs_input_grad[1] else None
        to_values = _Gather.apply(reverse, chosen(weights, order), gradients[0])
        return None, to_weights, to_values if ctx.needs_input_grad[2] else None


class _Sums(torch.autograd.Function):
    """Sum at both ends of edges. The gradient is gathered with weights 1, which adds in a fixed order.

    The gradient of ``index_select`` has no fixed order and would not be reproducible.
    """

    @staticmethod
    def forward(ctx: Any, pattern: EdgePattern, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        ctx.pattern = pattern
        return chosen(left, pattern.targets).add_(chosen(right, pattern.sources))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        (pattern, slope), (reverse, order) = (ctx.pattern, gradients[0]), ctx.pattern.reverse
        to_left = pattern.gather(slope, slope.new_ones(len(slope), pattern.shape[1], 1)).squeeze(2)
        to_right = reverse.gather(chosen(slope, order), slope.new_ones(len(slope), pattern.shape[0], 1)).squeeze(2)
        return None, to_left, to_right


class _Products(torch.autograd.Function):
    """For each edge, the dot product of ``left`` (H, t, D) at its target and ``right`` (H, n, D) at its source."""

    @staticmethod
    def forward(ctx: Any, pattern: EdgePattern, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(left, right)
        pairs = zip(left.contiguous(), right.contiguous(), strict=True)
        return torch.stack([_edge_products(pattern, a, b) for a, b in pairs])

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        left, right = ctx.saved_tensors
        reverse, order = ctx.pattern.reverse
        to_left = _Gather.apply(ctx.pattern, gradients[0], right)
        to_right = _Gather.apply(reverse, chosen(gradients[0], order), left)
        return None, to_left, to_right


def _edge_products(pattern: EdgePattern, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return (E,) dot products of one head, with MKL's sampled product if possible, which reads each row once."""
    if left.device.type == "cpu" and torch.backends.mkl.is_available():
        wanted = pattern.matrix(torch.zeros(pattern.sources.numel(), dtype=left.dtype))
        return torch.sparse.sampled_addmm(wanted, left, right.T, beta=0.0).values()
    return torch.einsum("ed,ed->e", left.index_select(0, pattern.targets), right.index_select(0, pattern.sources))
