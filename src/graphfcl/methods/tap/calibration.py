"""What a session of TAP makes of prototypes: old ones follow the drift, new ones take unlabelled neighbours in."""

from dataclasses import dataclass

import numpy as np
import torch
from scipy import sparse

from graphfcl.methods.shared.heads import unit
from graphfcl.methods.shared.prototype_memory import PrototypeMemory
from graphfcl.methods.shared.prototype_network import squared_distances

SMALLEST = 1e-12  # of a sum of weights


def neighbourhood(adjacency: sparse.csr_array, rows: np.ndarray, hops: int) -> np.ndarray:
    """Rows within so many hops of some rows, those themselves left out: one boolean product a hop for all of them."""
    reached = np.zeros(adjacency.shape[0], dtype=bool)
    reached[rows] = True
    for _ in range(hops):
        reached |= (adjacency @ reached.astype(np.float32)) > 0
    reached[rows] = False
    return np.flatnonzero(reached)


def drift(prototypes: torch.Tensor, before: torch.Tensor, after: torch.Tensor, width: float) -> torch.Tensor:
    """(C, h): Σ_i w_ci (z_i' − z_i) / Σ_i w_ci with w_ci = exp(−‖z_i − p_c‖²/2σ²), i over the supports.

    before, after: (s, h) embeddings z of the supports by the weights of before the session, and z' by those of now.
    """
    near = torch.exp(-squared_distances(prototypes, before).clamp(min=0) / (2 * width**2))
    return near @ (after - before) / near.sum(dim=1, keepdim=True).clamp(min=SMALLEST)


@dataclass(frozen=True, eq=False)
class Members:
    """What unlabelled nodes add to each class: (C, h) Σ q_u z_u and (C,) Σ q_u over the nodes assigned to it."""

    sums: torch.Tensor
    masses: torch.Tensor


def assigned(prototypes: torch.Tensor, values: torch.Tensor, temperature: float) -> Members:
    """Each node u goes to the nearest class, with weight q_u = max_c softmax_c(cos(z_u, p_c)/temperature).

    values: (u, h) embeddings of unlabelled nodes.
    """
    shares = torch.softmax(unit(values) @ unit(prototypes).T / temperature, dim=1)
    weights, classes = shares.max(dim=1)
    sums = torch.zeros_like(prototypes).index_add(0, classes, weights[:, None] * values)
    return Members(sums, prototypes.new_zeros(len(prototypes)).index_add(0, classes, weights))


def refined(
    prototypes: torch.Tensor, members: Members, supports: torch.Tensor, labels: torch.Tensor, share: float
) -> torch.Tensor:
    """(C, h): share·p̃_c + (1 − share)·p_c, p̃_c = (Σ_u q_u z_u + Σ_supports z)/(Σ_u q_u + K_c).

    supports: (s, h) embeddings; K_c is how many of them class c has. A class without any stays as it is.
    """
    sums = members.sums.index_add(0, labels, supports)
    counts = torch.bincount(labels, minlength=len(prototypes))
    masses = (members.masses + counts).clamp(min=SMALLEST)[:, None]
    return torch.where((counts > 0)[:, None], share * sums / masses + (1 - share) * prototypes, prototypes)


class CalibratedPrototypes(PrototypeMemory):
    """Prototypes that follow the drift of the encoder. After session 0 they are all that is known of the classes."""

    def move(self, shift: torch.Tensor) -> None:
        """The encoder drifted: by (classes, h) at each prototype."""
        assert self.kept is not None
        self.kept = self.kept + shift

    def add(self, fresh: torch.Tensor, columns: np.ndarray) -> None:
        """fresh: (classes, h), of which those in ``columns`` count; a known class's mean moves on by its supports."""
        assert self.kept is not None
        self._add_prototypes(self.kept, fresh, columns)
