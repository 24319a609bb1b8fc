"""Why ANCHOR answered what it did: the classes in competition, and which blocks, features and neighbours decided.

T x·(μ_a/ℓ_a − μ_b/ℓ_b), the difference of the logits of the two likeliest classes a and b, is linear in f(v), and
every block of f is linear in features once its length is known. So the difference is a sum over blocks; that of the
first block a sum over the node's features, that of the second a sum over the nodes around. What the head of session 0
makes of it, in log-probabilities, is added as one number.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy import sparse

from graphfcl.graph import Features, VisibleGraph
from graphfcl.methods.anchor.frame import joined
from graphfcl.methods.anchor.head import shared_out
from graphfcl.methods.anchor.rounds import Rounds
from graphfcl.methods.anchor.settings import AnchorSettings, Neighbourhood
from graphfcl.methods.anchor.storage import AnchorKnowledge
from graphfcl.methods.blocks import NodeTables
from graphfcl.methods.learner import Explanation, Tensors

BLOCKS = ("own features", "features around", "encoder", "trained head")

Numbered = tuple[tuple[int, float], ...]


@dataclass(frozen=True, eq=False)
class Evidence:
    """All that an explanation is made of.

    graph: a graph with the features X that holds at least the neighbourhood of the node. row: that of the node in it.
    numbers: rows of it ↦ node numbers. near: the row of Â, the node and its neighbours.
    directions: (C, D) μ_c/ℓ_c. posterior: (C,) of the node, with neighbours. answer: (C,) with the head as well.
    own: (m, C) of the nodes in ``near`` by their own vectors. links: (m, C) what the link to each adds to the logits.
    blocks: the three (1, k) blocks of the node. joined: (D,) f(v). frame: what session 0 fixed. how: the neighbourhood.
    weights: a₀ and a₂. named_features: whether a column of X is a column of the graph's features.
    """

    graph: VisibleGraph
    row: int
    numbers: Callable[[np.ndarray], np.ndarray]
    near: sparse.csr_array
    directions: torch.Tensor
    posterior: torch.Tensor
    answer: torch.Tensor
    own: torch.Tensor
    links: np.ndarray
    blocks: list[torch.Tensor]
    joined: torch.Tensor
    frame: Tensors
    how: Neighbourhood
    weights: tuple[float, float]
    temperature: float
    named_features: bool


def link_evidence(
    graph: VisibleGraph, row: int, rows: np.ndarray, posteriors: torch.Tensor, ratios: torch.Tensor, mean: float
) -> np.ndarray:
    """(m, C) what the links of a row to its neighbours ``rows`` add to the logits, without the weight β.

    posteriors: (m, C) of these. ratios: (C, C) log(Θ_cc' / π_c'). mean: weight of an edge.
    """
    near = graph.adjacency[[row]]
    order = np.argsort(near.indices)
    places = np.searchsorted(near.indices, rows, sorter=order).clip(max=max(0, order.size - 1))
    linked = near.indices[order][places] == rows if order.size else np.zeros(rows.size, dtype=bool)
    weights = np.where(linked, near.data[order][places] if order.size else 0, 0)  # the node itself is no neighbour
    root = np.sqrt(np.maximum(graph.degrees[row] / np.float32(mean), 1))
    return (weights / np.float32(mean) / root)[:, None] * (posteriors @ ratios.T).cpu().numpy()


def gather_evidence(
    tables: NodeTables,
    rounds: Rounds,
    graph: VisibleGraph,
    node: int,
    row: int,
    blocks: list[torch.Tensor],
    known: AnchorKnowledge,
    settings: AnchorSettings,
) -> Evidence:
    """Collect what explains the answer for a node. graph, row: its neighbourhood, and its row there."""
    around, how, weights = graph.normalised[[row]], known.neighbourhood, known.weights(settings)
    rows = tables.visible.rows(tables.numbers(graph, around.indices))  # of the node and its neighbours in the tables
    here = tables.visible.rows(np.array([node]))
    posterior = rounds.posteriors_at(here)
    links = np.zeros((rows.size, len(rounds.counts)))
    if rounds.ratios is not None:
        of_neighbours = rounds.posteriors_at(rows)
        links = link_evidence(graph, row, around.indices, of_neighbours, rounds.ratios, tables.mean_weight)
    return Evidence(
        graph=graph,
        row=row,
        numbers=lambda some: tables.numbers(graph, some),
        near=around,
        directions=rounds.directions,
        posterior=posterior[0],
        answer=shared_out(posterior, rounds.x.rows_at(here), known.head, settings.head_share)[0],
        own=rounds.own_at(rows),
        links=links,
        blocks=blocks,
        joined=joined(blocks, known.frame, weights)[0],
        frame=known.frame,
        how=how,
        weights=weights[:2],
        temperature=settings.temperature,
        named_features=tables.has_feature_columns,
    )


@torch.no_grad()
def explained(evidence: Evidence, top: int) -> Explanation:
    """Explain the answer for one node."""
    blocks, frame, answer = evidence.blocks, evidence.frame, evidence.answer
    order = answer.argsort(descending=True)[: max(2, min(top, len(answer)))].tolist()
    first, second = order[0], order[1] if len(order) > 1 else order[0]

    centred = evidence.joined - frame["middle"]
    length = (centred @ frame["whitening"]).norm().clamp(min=1e-8)
    towards = frame["whitening"] @ (evidence.directions[first] - evidence.directions[second])
    towards = towards * evidence.temperature / length
    sizes = [block.shape[1] for block in blocks]
    by_head = torch.log(answer.clamp(min=1e-12)) - torch.log(evidence.posterior.clamp(min=1e-12))
    parts = [*(part.sum() for part in (centred * towards).split(sizes)), by_head[first] - by_head[second]]
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
        features=_features(evidence, of_features, top),
        around=_around(evidence, of_around, top),
        neighbours=_neighbours(evidence, first, second, top),
    )


def _strongest(numbers: np.ndarray, values: np.ndarray, top: int) -> Numbered:
    order = np.argsort(-np.abs(values), kind="stable")[:top]
    return tuple((int(numbers[place]), float(values[place])) for place in order)


def _features(evidence: Evidence, weights: np.ndarray, top: int) -> Numbered:
    if not evidence.named_features:
        return ()
    columns, values = _row(evidence.graph.features, evidence.row)
    return _strongest(columns, values * weights[columns], top)


def _around(evidence: Evidence, weights: np.ndarray, top: int) -> Numbered:
    graph, far = evidence.graph, evidence.near
    for _ in range(evidence.how.hops - 1):
        far = far @ graph.normalised
    adds = np.asarray(graph.features[far.indices] @ weights).ravel()
    return _strongest(evidence.numbers(far.indices), far.data * adds, top)


def _neighbours(evidence: Evidence, first: int, second: int, top: int) -> tuple[tuple[int, float, float, float], ...]:
    others = evidence.near.indices != evidence.row
    nodes, shares = evidence.numbers(evidence.near.indices[others]), evidence.near.data[others]
    own = evidence.own[:, first].cpu().numpy()[others]
    adds = evidence.how.links * (evidence.links[others, first] - evidence.links[others, second])
    order = np.lexsort((-shares * own, -np.abs(adds)))[:top]
    return tuple((int(nodes[k]), float(shares[k]), float(own[k]), float(adds[k])) for k in order)


def _row(features: Features, row: int) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(features, np.ndarray):
        return np.flatnonzero(features[row]), features[row][features[row] != 0]
    one = features[[row]]
    return one.indices, one.data
