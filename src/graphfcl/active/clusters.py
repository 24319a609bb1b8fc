"""Clusters of nodes and the typical nodes in them: what strategies and groups share.

Memory stays bounded for 10⁶ nodes: principal components are those of a sample, k-means goes over mini-batches, and
neighbours are looked for inside a cluster only, block by block.
"""

import numpy as np

COMPONENTS = 64  # principal components that nodes are compared by
NEIGHBOURS = 20  # a node is typical if it is like its 20 nearest
MANY = 20_000  # rows from which on k-means goes over mini-batches
SAMPLED = 150_000  # rows from which on principal components are those of a sample
SAMPLE = 20_000  # of so many rows
BLOCK = 1_024  # rows whose distances are computed at once,
LARGEST = 8_192  # and the most others that they are compared with


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
    found = np.empty((len(values), directions.shape[1]), dtype=np.float32)
    for start in range(0, len(values), BLOCK):
        found[start : start + BLOCK] = (values[start : start + BLOCK] - mean) @ directions
    return found


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
    import warnings

    from sklearn.cluster import KMeans, MiniBatchKMeans
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters
        if rows > MANY:
            batch = max(BLOCK, 4 * count)
            model = MiniBatchKMeans(count, n_init=1, batch_size=batch, max_no_improvement=20, random_state=seed)
        else:
            model = KMeans(count, n_init=1, random_state=seed)
        found = model.fit_predict(values)
    return np.unique(found, return_inverse=True)[1].astype(np.int64)


def typicality(values: np.ndarray, cluster: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """(n,) 1 / the mean distance to the 20 nearest rows of the same cluster (fewer in a smaller one).

    In a cluster of more than ``LARGEST`` rows the nearest are looked for among so many, drawn once. A row alone in its
    cluster has 0.
    """
    found = np.zeros(values.shape[0], dtype=np.float64)
    order = np.argsort(cluster, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(cluster[order])) + 1):
        others = members if members.size <= LARGEST else random.choice(members, LARGEST, replace=False)
        for start in range(0, members.size, BLOCK):
            rows = members[start : start + BLOCK]
            found[rows] = _mean_likeness(values, rows, others)
    return found


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
