"""Clusters of nodes, the typical nodes in them, and nearest neighbours by cosine.

Memory stays bounded for 10⁶ nodes: principal components are those of a sample, k-means goes over mini-batches, and
neighbours are searched inside a cluster only, block by block. No such cluster has more than ``WHOLE`` nodes: a larger
one is halved until its parts are small enough, even if all its nodes are the same.
"""

import warnings
from collections.abc import Iterator

import numpy as np

COMPONENTS = 64  # principal components that nodes are compared by
NEIGHBOURS = 20  # a node is typical if it is like its 20 nearest
MANY = 20_000  # rows from which on k-means goes over mini-batches
SAMPLED = 150_000  # rows from which on principal components are those of a sample
SAMPLE = 20_000  # of so many rows
BLOCK = 1_024  # rows whose distances are computed at once,
LARGEST = 8_192  # and the most others that they are compared with
WHOLE = 30_000  # nodes up to which every node is compared with every other; above, with those of its cluster
CLUSTER = 8_000  # nodes that a cluster has on average then


def principal_components(vectors: np.ndarray, count: int = COMPONENTS, *, seed: int = 0) -> np.ndarray:
    """(n, at most count) float32: the centred vectors in the directions in which they vary most.

    Of ``SAMPLED`` rows or more the directions are those of a sample, and no second table of all vectors is made.
    """
    values = np.asarray(vectors, dtype=np.float32)
    mean = values.mean(axis=0, dtype=np.float64).astype(np.float32)
    if values.shape[1] <= count or values.shape[0] <= 1:
        return values - mean
    if values.shape[0] >= SAMPLED:
        return _components_of_a_sample(values, mean, count, np.random.default_rng(seed))
    values = values - mean
    from sklearn.utils.extmath import randomized_svd

    count = min(count, *values.shape)
    left, sizes, _ = randomized_svd(values, n_components=count, random_state=seed)
    return np.ascontiguousarray(left * sizes, dtype=np.float32)


def _components_of_a_sample(
    values: np.ndarray, mean: np.ndarray, count: int, random: np.random.Generator
) -> np.ndarray:
    sample = values[np.sort(random.choice(len(values), min(SAMPLE, len(values)), replace=False))] - mean
    directions = np.linalg.eigh(sample.T @ sample)[1][:, ::-1][:, :count]
    components = np.empty((len(values), directions.shape[1]), dtype=np.float32)
    for start in range(0, len(values), BLOCK):
        components[start : start + BLOCK] = (values[start : start + BLOCK] - mean) @ directions
    return components


def clusters(values: np.ndarray, count: int, *, seed: int = 0) -> np.ndarray:
    """(n,) the k-means cluster of each row, 0..k−1 with k at most ``count``; every cluster has a row.

    There are fewer clusters than ``count`` where fewer rows differ from each other.
    """
    rows = values.shape[0]
    if rows == 0:
        return np.zeros(0, dtype=np.int64)
    count = max(1, min(count, rows))
    if count == 1:
        return np.zeros(rows, dtype=np.int64)
    from sklearn.cluster import KMeans, MiniBatchKMeans
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters
        if rows > MANY:
            batch = max(BLOCK, 4 * count)
            model = MiniBatchKMeans(count, n_init=1, batch_size=batch, max_no_improvement=20, random_state=seed)
        else:
            model = KMeans(count, n_init=1, random_state=seed)
        cluster = model.fit_predict(values)
    return np.unique(cluster, return_inverse=True)[1].astype(np.int64)


def typicality(values: np.ndarray, cluster: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """(n,) 1 / the mean distance to the 20 nearest rows of the same cluster (fewer in a smaller one).

    In a cluster of more than ``LARGEST`` rows the nearest are looked for among so many, drawn once. A row alone in its
    cluster has 0.
    """
    typical = np.zeros(values.shape[0], dtype=np.float64)
    for members in _by_cluster(cluster).values():
        others = members if members.size <= LARGEST else random.choice(members, LARGEST, replace=False)
        for start in range(0, members.size, BLOCK):
            rows = members[start : start + BLOCK]
            typical[rows] = _mean_likeness(values, rows, others)
    return typical


def _mean_likeness(values: np.ndarray, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    first, second = values[rows].astype(np.float64), values[others].astype(np.float64)
    squares = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1)[None] - 2 * first @ second.T
    squares[rows[:, None] == others[None]] = np.inf
    count = min(NEIGHBOURS, others.size - 1)
    if count < 1:
        return np.zeros(rows.size)
    nearest = np.sqrt(np.maximum(np.partition(squares, count - 1, axis=1)[:, :count], 0))
    nearest[np.isinf(nearest)] = np.nan
    return 1 / (np.nanmean(nearest, axis=1) + 1e-12)


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
    neighbours = np.repeat(rows[:, None], count, axis=1)
    distances = np.full(neighbours.shape, 2.0, dtype=np.float32)
    for places, others in _cells(values, rows, seed):
        at_hand = min(count, others.size - 1)
        if at_hand < 1:
            continue
        last = np.minimum(np.arange(count), at_hand - 1)
        for start in range(0, places.size, BLOCK):
            block = places[start : start + BLOCK]
            likeness = values[rows[block]] @ values[others].T
            likeness[rows[block][:, None] == others[None]] = -np.inf
            first = np.argpartition(-likeness, at_hand - 1, axis=1)[:, :at_hand]
            order = np.argsort(-np.take_along_axis(likeness, first, axis=1), axis=1, kind="stable")
            first = np.take_along_axis(first, order, axis=1)
            away = np.sqrt(np.maximum(0, 2 - 2 * np.take_along_axis(likeness, first, axis=1)))
            neighbours[block] = others[first][:, last]
            distances[block] = away[:, last]
    return neighbours, distances


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
    small, count = cluster.copy(), int(cluster.max()) + 1
    large = [part for part in _by_cluster(cluster).values() if part.size > most]
    while large:
        members = large.pop()
        column = values[members, int(values[members].var(axis=0).argmax())]
        upper = members[np.argsort(column, kind="stable")[members.size // 2 :]]
        small[upper] = count
        count += 1
        large += [part for part in (np.setdiff1d(members, upper), upper) if part.size > most]
    return small
