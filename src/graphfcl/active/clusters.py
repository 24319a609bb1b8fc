"""Cluster nodes, measure how typical they are, and find nearest neighbours by cosine.

Memory stays bounded for 10⁶ nodes: principal components are computed from a sample, k-means uses mini-batches, and
neighbours are searched only inside a cluster, block by block. Clusters with more than ``WHOLE`` nodes are halved until
their parts are small enough, even if all their nodes are identical.
"""

import warnings
from collections.abc import Iterator

import numpy as np

COMPONENTS = 64  # principal components by which nodes are compared
NEIGHBOURS = 20  # nearest neighbours that define how typical a node is
MANY = 20_000  # with more rows, k-means uses mini-batches
SAMPLED = 150_000  # from this number of rows on, principal components are computed from a sample
SAMPLE = 20_000  # rows in this sample
BLOCK = 1_024  # rows whose distances are computed at once
LARGEST = 8_192  # rows of a cluster with which they are compared, at most
WHOLE = 30_000  # with more nodes, neighbours are searched only inside clusters
CLUSTER = 8_000  # average size of these clusters


def principal_components(vectors: np.ndarray, count: int = COMPONENTS, *, seed: int = 0) -> np.ndarray:
    """Project centred vectors to their first principal components, float32, shape (n, at most count).

    With ``SAMPLED`` rows or more, the components are computed from a sample, and the vectors are not copied as a whole.
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
    """Cluster rows by k-means; return clusters 0..k−1, shape (n,). No cluster is empty.

    k is less than ``count`` if there are fewer distinct rows.
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
    """How typical each row is of its cluster: 1 / its mean distance to the 20 nearest rows of the cluster, shape (n,).

    In a cluster of more than ``LARGEST`` rows, neighbours are searched in a random sample of that size. A row alone in
    its cluster has typicality 0.
    """
    typical = np.zeros(values.shape[0], dtype=np.float64)
    for members in _by_cluster(cluster).values():
        others = members if members.size <= LARGEST else random.choice(members, LARGEST, replace=False)
        for start in range(0, members.size, BLOCK):
            rows = members[start : start + BLOCK]
            typical[rows] = _inverse_mean_distance(values, rows, others)
    return typical


def _inverse_mean_distance(values: np.ndarray, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """1 / the mean distance of each row to its nearest rows among ``others``."""
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
    """Scale rows to length 1, float32. A row of zeros stays zero."""
    values = np.asarray(values, dtype=np.float32)
    return values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), np.float32(1e-9))


def nearest_rows(values: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Find the ``count`` most similar other rows of each row, and their cosines. Both results have shape (n, k).

    ``values`` has rows of unit length. k is ``count``, or n − 1 if there are fewer other rows.
    """
    count = max(0, min(count, len(values) - 1))
    if count == 0:
        return np.zeros((len(values), 0), dtype=np.int64), np.zeros((len(values), 0), dtype=np.float32)
    rows, distances = nearest_neighbours(values, np.arange(len(values)), count)
    return rows, 1 - distances**2 / 2


def likeliest_of(values: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the most similar row of ``others`` for each row, and the cosine. All rows have unit length."""
    rows, similarity = np.zeros(len(values), dtype=np.int64), np.zeros(len(values), dtype=np.float32)
    for start in range(0, len(values), BLOCK):
        cosines = values[start : start + BLOCK] @ others.T
        rows[start : start + BLOCK] = cosines.argmax(axis=1)
        similarity[start : start + BLOCK] = cosines.max(axis=1)
    return rows, similarity


def nearest_neighbours(
    values: np.ndarray, rows: np.ndarray, count: int, *, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Find the ``count`` nearest other nodes of some nodes, nearest first, and their distances √(2 − 2 cos).

    ``values`` has rows of unit length. Both results have shape (rows, count). If fewer than ``count`` other nodes are
    available, the last neighbour is repeated. A node without any other node gets itself, at distance 2.
    """
    neighbours = np.repeat(rows[:, None], count, axis=1)
    distances = np.full(neighbours.shape, 2.0, dtype=np.float32)
    for places, others in _cells(values, rows, seed):
        available = min(count, others.size - 1)
        if available < 1:
            continue
        last = np.minimum(np.arange(count), available - 1)
        for start in range(0, places.size, BLOCK):
            block = places[start : start + BLOCK]
            cosines = values[rows[block]] @ values[others].T
            cosines[rows[block][:, None] == others[None]] = -np.inf
            first = np.argpartition(-cosines, available - 1, axis=1)[:, :available]
            order = np.argsort(-np.take_along_axis(cosines, first, axis=1), axis=1, kind="stable")
            first = np.take_along_axis(first, order, axis=1)
            distance = np.sqrt(np.maximum(0, 2 - 2 * np.take_along_axis(cosines, first, axis=1)))
            neighbours[block] = others[first][:, last]
            distances[block] = distance[:, last]
    return neighbours, distances


def _cells(values: np.ndarray, rows: np.ndarray, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield positions in ``rows``, with the nodes among which their neighbours are searched."""
    if values.shape[0] <= WHOLE:
        yield np.arange(rows.size), np.arange(values.shape[0])
        return
    cluster = small_clusters(values, clusters(values, -(-values.shape[0] // CLUSTER), seed=seed), WHOLE)
    places, others = _by_cluster(cluster[rows]), _by_cluster(cluster)
    for number, here in places.items():
        yield here, others[number]


def _by_cluster(cluster: np.ndarray) -> dict[int, np.ndarray]:
    """The positions of each cluster's members, ascending."""
    order = np.argsort(cluster, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(cluster[order])) + 1)
    return {int(cluster[part[0]]): part for part in parts if part.size}


def small_clusters(values: np.ndarray, cluster: np.ndarray, most: int) -> np.ndarray:
    """Split clusters until none has more than ``most`` rows; return the new clusters, shape (n,).

    A large cluster is halved at the median of the column with the largest variance in it.
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
