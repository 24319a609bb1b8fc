"""The side of the memory that nothing trains: from an embedding to one key of each codebook."""

from collections.abc import Iterator

import torch
from torch import nn

from graphfcl.methods.mecoin.settings import HEADS, MecoinSettings
from graphfcl.nn import Linear
from graphfcl.nn.encoders import dropout

WIDER = 4  # times its input is the hidden layer of a block
CHUNK = 2**22  # numbers of the largest tensor of a lookup


class FixedBlock(nn.Module):
    """A pre-norm transformer block with the weights it was drawn with.

    ::

        u = x + drop(att(ln(x)) W_o),   block(x) = u + drop(gelu(ln(u) W_1) W_2)

    across: attention over the last axis but one, with two heads; otherwise a vector attends to itself alone, which is
    its value ln(x) W_v.
    """

    def __init__(self, width: int, share: float, generator: torch.Generator, *, across: bool) -> None:
        super().__init__()
        self.share, self.across = share, across
        self.query, self.key = (Linear(width, width, generator) if across else None for _ in range(2))
        self.value, self.output = (Linear(width, width, generator) for _ in range(2))
        self.inner, self.outer = Linear(width, WIDER * width, generator), Linear(WIDER * width, width, generator)

    def forward(self, points: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
        """(…, width) → (…, width); dropout is drawn from ``generator`` and off without one."""
        points = points + dropout(self.output(self._attended(_normed(points))), self.share, generator)
        hidden = nn.functional.gelu(self.inner(_normed(points)))
        return points + dropout(self.outer(hidden), self.share, generator)

    def _attended(self, points: torch.Tensor) -> torch.Tensor:
        values = self.value(points)
        if self.query is None or self.key is None:
            return values
        query, key, value = (
            each.unflatten(-1, (HEADS, -1)).transpose(-2, -3) for each in (self.query(points), self.key(points), values)
        )
        found = nn.functional.scaled_dot_product_attention(query, key, value)
        return found.transpose(-2, -3).flatten(-2)


class Books(nn.Module):
    """B codebooks: fixed maps x'_b of an embedding, and the J keys that each book compares it with.

    ::

        s = block(z) W_s,   x_b = [ s_b , R_bᵀ z ],   x' = block'(x_1 … x_B),   j_b = argmin_j ‖x'_b − key_{b,j}‖²

    R_b: Gaussian with columns of unit length. block' attends across the books of one node.
    """

    keys: torch.Tensor

    def __init__(self, size: int, settings: MecoinSettings, generator: torch.Generator) -> None:
        super().__init__()
        books, width, share = settings.books, settings.key_size, settings.map_dropout
        self.books = books
        self.own = FixedBlock(size, share, generator, across=False)
        self.summary = Linear(size, books, generator)
        directions = torch.randn(size, books, width - 1, generator=generator)
        self.directions = nn.Parameter(directions / directions.norm(dim=0, keepdim=True))
        self.across = FixedBlock(width, share, generator, across=True)
        self.register_buffer("keys", torch.zeros(books, settings.keys, width))
        self.requires_grad_(False)

    def codes(self, points: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
        """(n, B, width) x' of (n, h) embeddings; with a generator as noisy as in training."""
        summary = self.summary(self.own(points, generator))[:, :, None]
        projected = torch.einsum("nh,hbk->nbk", points, self.directions)
        return self.across(torch.cat([summary, projected], dim=2), generator)

    @torch.no_grad()
    def draw_keys(self, points: torch.Tensor, generator: torch.Generator) -> None:
        """Each book takes the codes of J of these (n, h) embeddings at random; some twice if there are fewer."""
        count, keys = self.keys.shape[:2]
        chosen = torch.rand(count, max(keys, len(points)), generator=generator, device=points.device).argsort(dim=1)
        chosen = chosen[:, :keys] % len(points)
        needed, places = torch.unique(chosen, return_inverse=True)
        found = self.keys.new_empty(len(needed), *self.keys.shape[::2])
        for part in self._parts(len(needed), self.books * max(self.books, self.keys.shape[2]) * HEADS):
            found[part] = self.codes(points[needed[part]])
        every = torch.arange(count, device=points.device)[:, None]
        self.keys = found[places, every.expand_as(places)]

    @torch.no_grad()
    def look_up(self, points: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
        """(n, B) numbers b·J + j_b of the nearest keys, a few nodes at a time."""
        books, keys = self.keys.shape[:2]
        squares, turned = (self.keys**2).sum(dim=2)[:, None], self.keys.transpose(1, 2)
        first = torch.arange(books, device=points.device) * keys
        found = torch.empty(len(points), books, dtype=torch.int32, device=points.device)
        for part in self._parts(len(points), books * max(keys, HEADS * books)):
            codes = self.codes(points[part], generator).transpose(0, 1)  # (B, n, width)
            nearest = torch.baddbmm(squares, codes, turned, alpha=-2).argmin(dim=2)
            found[part] = (nearest.T + first).to(torch.int32)
        return found

    @staticmethod
    def _parts(count: int, each: int) -> Iterator[slice]:
        """Slices of so many nodes that ``each`` numbers a node make a tensor of bounded size."""
        rows = max(1, CHUNK // each)
        return (slice(start, start + rows) for start in range(0, count, rows))


def _normed(points: torch.Tensor) -> torch.Tensor:
    return nn.functional.layer_norm(points, points.shape[-1:])
