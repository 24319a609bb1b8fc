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
from scipy import sparse

from graphfcl.graph import VisibleGraph
from graphfcl.methods.anchor.rounds import Rounds
from graphfcl.methods.anchor.settings import Neighbourhood
from graphfcl.methods.learner import Explanation, Tensors
from graphfcl.methods.shared.untrained_features import WIDEST

BLOCKS = ("own features", "features around", "encoder", "trained head")


@dataclass(frozen=True, eq=False)
class Evidence:
    """All that an explanation is made of.

    visible: the graph as it is. prepared: the same with the features that ANCHOR reads. row: that of the node.
    rounds: what neighbours say. answer: (C,) of the node, with the head's say too.
    near: the row of Â, the node and its neighbours. own: (m, C) of these, without what neighbours say.
    blocks: the three (1, k) blocks of the node. joined: (D,) f(v). frame: what session 0 fixed.
    weights: a₀ and a₂. how: a₂ again, how far the second block reaches, and how neighbours are heard.
    """

    visible: VisibleGraph
    prepared: VisibleGraph
    row: int
    rounds: Rounds
    answer: torch.Tensor
    near: sparse.csr_array
    own: torch.Tensor
    blocks: list[torch.Tensor]
    joined: torch.Tensor
    frame: Tensors
    temperature: float
    weights: tuple[float, float]
    how: Neighbourhood


@torch.no_grad()
def explained(evidence: Evidence, top: int) -> Explanation:
    """Explain the answer for one node. Only its neighbourhood is read."""
    rounds, blocks, frame, answer = evidence.rounds, evidence.blocks, evidence.frame, evidence.answer
    order = answer.argsort(descending=True)[: max(2, min(top, len(answer)))].tolist()
    first, second = order[0], order[1] if len(order) > 1 else order[0]

    centred = evidence.joined - frame["middle"]
    length = (centred @ frame["whitening"]).norm().clamp(min=1e-8)
    towards = frame["whitening"] @ (rounds.directions[first] - rounds.directions[second])
    towards = towards * evidence.temperature / length
    sizes = [block.shape[1] for block in blocks]
    heard = rounds.posterior[evidence.row]
    said = torch.log(answer.clamp(min=1e-12)) - torch.log(heard.clamp(min=1e-12))  # by the head
    parts = [*(part.sum() for part in (centred * towards).split(sizes)), said[first] - said[second]]
    scaled = [
        towards.split(sizes)[place] * evidence.weights[place] / (blocks[place][0] - frame[f"centre.{place}"]).norm()
        for place in range(2)
    ]
    of_features, of_around = ((frame["basis"] @ part).cpu().numpy() for part in scaled)
    own = evidence.own[int(np.flatnonzero(evidence.near.indices == evidence.row)[0])]
    return Explanation(
        classes=tuple((column, float(answer[column])) for column in order),
        before_smoothing=tuple(own.tolist()),
        blocks={name: float(value) for name, value in zip(BLOCKS, parts, strict=True)},
        features=_features(evidence.prepared, evidence.row, of_features, evidence.visible, top),
        around=_around(evidence.prepared, evidence.row, of_around, evidence.how.hops, top),
        neighbours=_neighbours(evidence, first, second, top),
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


def _neighbours(evidence: Evidence, first: int, second: int, top: int) -> Any:
    near, nodes = evidence.near, evidence.visible.nodes
    others = near.indices != evidence.row
    rows, shares = near.indices[others], near.data[others]
    own = evidence.own[:, first].cpu().numpy()[others]
    adds = evidence.how.links * evidence.rounds.link_weights(evidence.visible, evidence.row, rows, first, second)
    order = np.lexsort((-shares * own, -np.abs(adds)))[:top]
    return tuple((int(nodes[rows[k]]), float(shares[k]), float(own[k]), float(adds[k])) for k in order)


def _row(features: Any, row: int) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(features, np.ndarray):
        return np.flatnonzero(features[row]), features[row][features[row] != 0]
    one = features[[row]]
    return one.indices, one.data
