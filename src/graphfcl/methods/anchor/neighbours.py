"""What the neighbours of a node say about its class: that it is theirs, or that their classes go together.

**Smoothing** assumes that neighbours are alike: P ← s ÂP + (1 − s) P₀.

**Links** assume less, that a class links to classes in proportions of its own, as in a block model; where links are few
these are drawn to the usual ones and a little to the class itself. With the posteriors P and the adjacency A, class c
has links to c'::

    F = Pᵀ A P,   π_c' = Σ_c F_cc' / ΣF,   Θ_cc' = (F_cc' + κ((1 − h) π_c' + h [c = c'])) / (Σ F_c + κ)

and the neighbours of v speak for c by  β max(d_v, 1)^(−1/2) Σ_u A_vu Σ_c' P_uc' log(Θ_cc' / π_c').  The neighbours of
a node are not independent of each other: their evidence grows with the root of their number. Libraries that link to
documentation are as good a sign as libraries that link to libraries.
"""

import numpy as np
import torch
from scipy import sparse

from graphfcl.graph import VisibleGraph
from graphfcl.methods.anchor.settings import Neighbourhood
from graphfcl.nn import GraphInputs
from graphfcl.nn.sparse import SparseMatrix

PRIOR_LINKS = 50.0  # κ: links that the usual proportions count for
EXPECTED_HOMOPHILY = 0.3  # h: the share of a class's links that is expected to stay inside
LINK_ITERATIONS = 2  # how often links are counted and listened to


class Surroundings:
    """The neighbours in one visible graph, and how they are listened to."""

    def __init__(self, inputs: GraphInputs, how: Neighbourhood) -> None:
        self.share, self.steps, self.weight = how.smoothing, how.smoothing_steps, how.links
        self.adjacency = inputs.adjacency
        if self.weight > 0:
            self.near, self.roots = _near(inputs)

    def posterior(self, logits: torch.Tensor, before: torch.Tensor | None) -> torch.Tensor:
        """(n, C) posteriors from the (n, C) logits of the nodes' own vectors and the posteriors before, if any."""
        if not self.weight > 0:
            return self._smoothed(torch.softmax(logits, dim=1))
        found = torch.softmax(logits, dim=1) if before is None else before
        for _ in range(LINK_ITERATIONS):
            near = self.near @ found
            evidence = near @ self._ratios(found, near).T
            found = self._smoothed(torch.softmax(logits + self.weight * evidence, dim=1))
        return found

    def ratios(self, posterior: torch.Tensor) -> torch.Tensor:
        """(C, C) log(Θ_cc' / π_c'); 0 towards a class that nothing links to."""
        return self._ratios(posterior, self.near @ posterior)

    def _ratios(self, posterior: torch.Tensor, near: torch.Tensor) -> torch.Tensor:
        return link_ratios((posterior * self.roots).T @ near)

    def _smoothed(self, first: torch.Tensor) -> torch.Tensor:
        if not self.share > 0:
            return first
        found = first
        for _ in range(self.steps):
            found = self.share * (self.adjacency @ found) + (1 - self.share) * first
        return adding_to_one(found)


class Nobody:
    """No neighbours: a node's own vector says it all."""

    def posterior(self, logits: torch.Tensor, before: torch.Tensor | None) -> torch.Tensor:  # noqa: ARG002
        """(n, C)."""
        return torch.softmax(logits, dim=1)


def adding_to_one(posterior: torch.Tensor) -> torch.Tensor:
    """Rows that add up to 1."""
    return posterior / posterior.sum(dim=1, keepdim=True).clamp(min=1e-12)


def link_ratios(links: torch.Tensor) -> torch.Tensor:
    """(C, C) log(Θ_cc' / π_c') from (C, C) F; 0 towards a class that nothing links to."""
    usual = links.sum(dim=0) / links.sum().clamp(min=1e-12)
    expected = (1 - EXPECTED_HOMOPHILY) * usual + EXPECTED_HOMOPHILY * torch.eye(len(usual), device=usual.device)
    profile = (links + PRIOR_LINKS * expected) / (links.sum(dim=1, keepdim=True) + PRIOR_LINKS)
    ratio = torch.log(profile.clamp(min=1e-12) / usual.clamp(min=1e-9))
    return torch.where(usual > 0, ratio, torch.zeros_like(ratio))


def mean_weight(visible: VisibleGraph) -> float:
    """Of an edge; 1 if there is none."""
    return float(visible.adjacency.data.mean()) if visible.adjacency.nnz else 1.0


def _near(inputs: GraphInputs) -> tuple[SparseMatrix, torch.Tensor]:
    """d^(−1/2) A with edge weights of mean 1, and the (n, 1) roots of d; d of a lone node is 1."""
    plain, mean = inputs.visible.adjacency, mean_weight(inputs.visible)
    roots = np.sqrt(np.maximum(inputs.visible.degrees / np.float32(mean), 1))
    data = plain.data / np.float32(mean) / np.repeat(roots, np.diff(plain.indptr))
    near = sparse.csr_array((data, plain.indices, plain.indptr), shape=plain.shape)
    return SparseMatrix(near, inputs.device, reused=True), torch.from_numpy(roots[:, None]).to(inputs.device)
