"""Nearest neighbours by cosine, in bounded memory: looked for inside clusters where there are many nodes."""

from collections.abc import Iterator

import numpy as np

from graphfcl.asking.clusters import BLOCK, clusters

WHOLE = 30_000  # up to so many nodes every node is compared with every other; above, with those of its cluster
CLUSTER = 8_000  # nodes that a cluster has on average then


def unit_rows(values: np.ndarray) -> np.ndarray:
    """Each row of length 1; a row of zeros stays one."""
    return values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), np.float32(1e-9))


def nearest_neighbours(
    values: np.ndarray, rows: np.ndarray, count: int, *, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """(rows, count) the nearest nodes of some nodes, nearest first, and their distances √(2 − 2 cos).

    values: (n, d) rows of unit length. A node is no neighbour of its own. Where fewer than ``count`` others are at hand
    a node's last neighbour is repeated; a node without any has itself, at distance 2.
    """
    found = np.repeat(rows[:, None], count, axis=1)
    distances = np.full(found.shape, 2.0, dtype=np.float32)
    for places, others in _cells(values, rows, seed):
        for start in range(0, places.size, BLOCK):
            block = places[start : start + BLOCK]
            _fill(values, rows, block, others, found, distances)
    return found, distances


def _cells(values: np.ndarray, rows: np.ndarray, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Places in ``rows``, and the nodes among which their neighbours are looked for."""
    if values.shape[0] <= WHOLE:
        yield np.arange(rows.size), np.arange(values.shape[0])
        return
    cluster = clusters(values, -(-values.shape[0] // CLUSTER), seed=seed)
    for number in range(int(cluster.max()) + 1):
        yield np.flatnonzero(cluster[rows] == number), np.flatnonzero(cluster == number)


def _fill(
    values: np.ndarray,
    rows: np.ndarray,
    block: np.ndarray,
    others: np.ndarray,
    found: np.ndarray,
    distances: np.ndarray,
) -> None:
    likeness = values[rows[block]] @ values[others].T
    likeness[rows[block][:, None] == others[None]] = -np.inf
    count = min(found.shape[1], others.size - 1)
    if count < 1:
        return
    first = np.argpartition(-likeness, count - 1, axis=1)[:, :count]
    order = np.argsort(-np.take_along_axis(likeness, first, axis=1), axis=1, kind="stable")
    first = np.take_along_axis(first, order, axis=1)
    away = np.sqrt(np.maximum(0, 2 - 2 * np.take_along_axis(likeness, first, axis=1)))
    last = np.minimum(np.arange(found.shape[1]), count - 1)
    found[block] = others[first][:, last]
    distances[block] = away[:, last]
