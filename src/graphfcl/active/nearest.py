"""Nearest neighbours by cosine, in bounded memory: looked for inside clusters where there are many nodes.

No cluster has more than ``WHOLE`` nodes: a larger one is halved until its parts are small enough, also if all its nodes
are the same.
"""

from collections.abc import Iterator

import numpy as np

from graphfcl.active.clusters import BLOCK, clusters

WHOLE = 30_000  # up to so many nodes every node is compared with every other; above, with those of its cluster
CLUSTER = 8_000  # nodes that a cluster has on average then


def unit_rows(values: np.ndarray) -> np.ndarray:
    """(n, d) float32, each row of length 1; a row of zeros stays one."""
    values = np.asarray(values, dtype=np.float32)
    return values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), np.float32(1e-9))


def nearest_rows(values: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """(n, k) the k rows most like each row, the likest first, itself left out; and (n, k) their cosines.

    values: (n, d) of unit length. k: ``count``, or n − 1 if there are fewer others.
    """
    count = max(0, min(count, len(values) - 1))
    if count == 0:
        return np.zeros((len(values), 0), dtype=np.int64), np.zeros((len(values), 0), dtype=np.float32)
    rows, distances = nearest_neighbours(values, np.arange(len(values)), count)
    return rows, 1 - distances**2 / 2


def likeliest_of(values: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n,) the row of ``others`` that each row is most like, and (n,) its cosine. Both of unit length."""
    rows, likeness = np.zeros(len(values), dtype=np.int64), np.zeros(len(values), dtype=np.float32)
    for start in range(0, len(values), BLOCK):
        cosines = values[start : start + BLOCK] @ others.T
        rows[start : start + BLOCK] = cosines.argmax(axis=1)
        likeness[start : start + BLOCK] = cosines.max(axis=1)
    return rows, likeness


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
    cluster = small_clusters(values, clusters(values, -(-values.shape[0] // CLUSTER), seed=seed), WHOLE)
    places, others = _by_cluster(cluster[rows]), _by_cluster(cluster)
    for number, here in places.items():
        yield here, others[number]


def _by_cluster(cluster: np.ndarray) -> dict[int, np.ndarray]:
    """The places of each cluster, ascending."""
    order = np.argsort(cluster, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(cluster[order])) + 1)
    return {int(cluster[part[0]]): part for part in parts if part.size}


def small_clusters(values: np.ndarray, cluster: np.ndarray, most: int) -> np.ndarray:
    """(n,) the clusters, of which none has more than ``most`` rows.

    A larger one is halved at the middle of the column that varies most in it, again and again.
    """
    found, count = cluster.copy(), int(cluster.max()) + 1
    large = [part for part in _by_cluster(cluster).values() if part.size > most]
    while large:
        members = large.pop()
        column = values[members, int(values[members].var(axis=0).argmax())]
        upper = members[np.argsort(column, kind="stable")[members.size // 2 :]]
        found[upper] = count
        count += 1
        large += [part for part in (np.setdiff1d(members, upper), upper) if part.size > most]
    return found


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
