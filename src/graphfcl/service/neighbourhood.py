"""The nodes around one node, and where to draw them."""

from dataclasses import dataclass

import numpy as np

from graphfcl.graph.interfaces import VisibleNodes

GOLDEN = np.pi * (3 - np.sqrt(5))  # no two of the first nodes of a ring fall on one another
STEPS = 60
HOPS = 2


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """rows, hops: (k,) nodes and how far they are, the middle one first. edges: (e, 2) places in ``rows``, each once.

    positions: (k, 2) from -1 to 1.
    """

    rows: np.ndarray
    hops: np.ndarray
    edges: np.ndarray
    positions: np.ndarray


def neighbourhood(visible: VisibleNodes, row: int, limit: int) -> Neighbourhood:
    """At most ``limit`` nodes around a row: those next to it by the weight of their edge, then those next to them."""
    rows, hops = [np.array([row])], [np.zeros(1, dtype=np.int64)]
    seen, room, frontier = np.array([row]), limit - 1, np.array([row])
    for hop in range(1, HOPS + 1):
        near = visible.neighbours_at(frontier)
        strength = np.bincount(near.indices, weights=np.abs(near.data)) if near.nnz else np.zeros(0)
        found = np.setdiff1d(np.flatnonzero(strength), seen)
        frontier = found[np.argsort(-strength[found], kind="stable")][:room]
        rows.append(frontier)
        hops.append(np.full(frontier.size, hop))
        seen, room = np.concatenate([seen, frontier]), room - frontier.size
        if room == 0 or frontier.size == 0:
            break
    chosen, far = np.concatenate(rows), np.concatenate(hops)
    block = visible.neighbours_at(chosen)[:, chosen].tocoo()
    edges = np.stack([block.row, block.col], axis=1)[block.row < block.col]
    return Neighbourhood(chosen, far, edges, layout(far, edges))


def layout(hops: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """(k, 2) positions: rings by distance, then steps of springs and repulsion (Fruchterman and Reingold 1991).

    The same for the same nodes, and the first node stays in the middle.
    """
    count = hops.size
    turn = np.arange(count) * GOLDEN
    positions = hops[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1) / HOPS
    ideal = np.sqrt(1.0 / count)
    for step in range(STEPS if count > 1 else 0):
        apart = positions[:, None] - positions[None]
        far = np.maximum(np.sqrt((apart**2).sum(axis=2)), 1e-6)
        move = (apart * (ideal / far)[:, :, None] ** 2).sum(axis=1)
        along = positions[edges[:, 0]] - positions[edges[:, 1]]
        pull = along * (np.sqrt((along**2).sum(axis=1)) / ideal)[:, None]
        np.subtract.at(move, edges[:, 0], pull)
        np.add.at(move, edges[:, 1], pull)
        size = np.maximum(np.sqrt((move**2).sum(axis=1)), 1e-9)
        positions = positions + move / size[:, None] * np.minimum(size, 0.1 * (1 - step / STEPS))[:, None]
        positions -= positions[0]
    return positions / max(float(np.abs(positions).max(initial=0.0)), 1e-9)
