"""Why ANCHOR answered what it did: the classes in competition, and which blocks, features and neighbours decided.

T x·(μ_a/ℓ_a − μ_b/ℓ_b), the difference of the logits of the two likeliest classes a and b, is linear in f(v), and
every block of f is linear in features once its length is known. So the difference is a sum over blocks; that of the
first block a sum over the node's features, that of the second a sum over the nodes around. What the head of session 0
makes of it, in log-probabilities, is added as one number.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from graphfcl.graph import VisibleGraph
from graphfcl.methods.anchor.neighbours import Surroundings
from graphfcl.methods.learner import Explanation, Tensors
from graphfcl.methods.shared.untrained_features import WIDEST

BLOCKS = ("own features", "features around", "encoder", "trained head")


@dataclass(frozen=True, eq=False)
class Evidence:
    """All that an explanation is made of.

    visible: the graph as it is. prepared: the same with the features that ANCHOR reads.
    posterior, own: (n, C) with and without what neighbours say. answer: (n, C) with the head's say too.
    directions: (C, D) μ_c/ℓ_c.
    blocks: the three (1, k) blocks of the node. joined: (D,) f(v). frame: what session 0 fixed.
    weights: a₀ and a₂. hops: how far the second block reaches.
    """

    visible: VisibleGraph
    prepared: VisibleGraph
    surroundings: Surroundings
    posterior: torch.Tensor
    answer: torch.Tensor
    own: torch.Tensor
    directions: torch.Tensor
    blocks: list[torch.Tensor]
    joined: torch.Tensor
    frame: Tensors
    temperature: float
    weights: tuple[float, float]
    hops: int


@torch.no_grad()
def explained(evidence: Evidence, row: int, top: int) -> Explanation:
    """Explain the answer for one row of the graph."""
    posterior, blocks, frame = evidence.posterior, evidence.blocks, evidence.frame
    answer = evidence.answer[row]
    order = answer.argsort(descending=True)[: max(2, min(top, len(answer)))].tolist()
    first, second = order[0], order[1] if len(order) > 1 else order[0]

    centred = evidence.joined - frame["middle"]
    length = (centred @ frame["whitening"]).norm().clamp(min=1e-8)
    towards = frame["whitening"] @ (evidence.directions[first] - evidence.directions[second])
    towards = towards * evidence.temperature / length
    sizes = [block.shape[1] for block in blocks]
    said = torch.log(answer.clamp(min=1e-12)) - torch.log(posterior[row].clamp(min=1e-12))  # by the head
    parts = [*(part.sum() for part in (centred * towards).split(sizes)), said[first] - said[second]]
    scaled = [
        towards.split(sizes)[place] * evidence.weights[place] / (blocks[place][0] - frame[f"centre.{place}"]).norm()
        for place in range(2)
    ]
    of_features, of_around = ((frame["basis"] @ part).cpu().numpy() for part in scaled)
    links = _links(evidence.surroundings, posterior, first, second)
    own = evidence.own
    return Explanation(
        classes=tuple((column, float(answer[column])) for column in order),
        before_smoothing=tuple(float(own[row, column]) for column in order),
        blocks={name: float(value) for name, value in zip(BLOCKS, parts, strict=True)},
        features=_features(evidence.prepared, row, of_features, evidence.visible, top),
        around=_around(evidence.prepared, row, of_around, evidence.hops, top),
        neighbours=_neighbours(evidence.surroundings, evidence.visible, row, own[:, first].cpu().numpy(), links, top),
    )


def _strongest(numbers: np.ndarray, values: np.ndarray, top: int) -> list[tuple[int, float]]:
    order = np.argsort(-np.abs(values), kind="stable")[:top]
    return [(int(numbers[place]), float(values[place])) for place in order]


def _features(prepared: VisibleGraph, row: int, weights: np.ndarray, visible: VisibleGraph, top: int) -> Any:
    if not 0 < visible.features.shape[1] <= WIDEST:
        return ()
    columns, values = _row(prepared.features, row)
    return tuple(_strongest(columns, values * weights[columns], top))


def _around(prepared: VisibleGraph, row: int, weights: np.ndarray, hops: int, top: int) -> Any:
    far = prepared.normalised[[row]]
    for _ in range(hops - 1):
        far = far @ prepared.normalised
    says = np.asarray(prepared.features[far.indices] @ weights).ravel()
    return tuple(_strongest(prepared.nodes[far.indices], far.data * says, top))


def _links(surroundings: Surroundings, posterior: torch.Tensor, first: int, second: int) -> np.ndarray:
    """(n,) what a link to each node adds to the difference of logits; the row's own β d^(−1/2) is not in it."""
    if not surroundings.weight > 0:
        return np.zeros(len(posterior))
    ratios = surroundings.ratios(posterior)
    return (posterior @ (ratios[first] - ratios[second])).cpu().numpy()


def _neighbours(
    surroundings: Surroundings, visible: VisibleGraph, row: int, own: np.ndarray, links: np.ndarray, top: int
) -> Any:
    near = visible.normalised[[row]]
    others = near.indices != row
    rows, shares = near.indices[others], near.data[others]
    adds = np.zeros(rows.size)
    if surroundings.weight > 0:
        adds = surroundings.weight * surroundings.near.host[[row]].toarray()[0, rows] * links[rows]
    order = np.lexsort((-shares * own[rows], -np.abs(adds)))[:top]
    return tuple((int(visible.nodes[rows[k]]), float(shares[k]), float(own[rows[k]]), float(adds[k])) for k in order)


def _row(features: Any, row: int) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(features, np.ndarray):
        return np.flatnonzero(features[row]), features[row][features[row] != 0]
    one = features[[row]]
    return one.indices, one.data
