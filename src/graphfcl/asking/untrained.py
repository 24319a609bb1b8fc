"""What nodes are compared by where no learner has vectors of them: features, their own and those around them."""

import numpy as np

from graphfcl.graph import VisibleGraph

WIDTH = 128  # principal directions of the features
HOPS = 2


def untrained_vectors(visible: VisibleGraph, *, seed: int = 0, width: int = WIDTH) -> np.ndarray:
    """(n, at most 2 · width) float32: Z and Â²Z side by side, each with rows of unit length.

    Z: the features in their ``width`` leading directions (randomised truncated SVD), rows of unit length first. Â: the
    normalised adjacency.
    """
    own = _projected(visible, width, seed)
    around = own
    for _ in range(HOPS):
        around = visible.normalised @ around
    return np.concatenate([_unit(own), _unit(around)], axis=1).astype(np.float32)


def _projected(visible: VisibleGraph, width: int, seed: int) -> np.ndarray:
    features = visible.features
    count = min(width, *features.shape)
    if isinstance(features, np.ndarray):
        values = _unit(features)
        if features.shape[1] <= width:
            return values
    else:
        lengths = np.sqrt(np.asarray(features.multiply(features).sum(axis=1)).ravel())
        values = features.copy()
        values.data = values.data / np.repeat(np.maximum(lengths, 1e-8), np.diff(features.indptr))
        if count == 0 or features.shape[1] <= width:
            return values.toarray()
    from sklearn.utils.extmath import randomized_svd

    left, sizes, _ = randomized_svd(values, n_components=count, random_state=seed)
    return left * sizes


def _unit(values: np.ndarray) -> np.ndarray:
    return values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-8)
