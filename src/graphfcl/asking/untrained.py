"""What nodes are compared by where no learner has vectors of them: features, their own and those around them.

Where features are few or missing, nodes are also compared by whom they link to.
"""

import numpy as np

from graphfcl.asking.nearest import unit_rows
from graphfcl.graph import VisibleGraph

WIDTH = 128  # principal directions of the features
HOPS = 2
FEW = 16  # feature columns below which links are compared too
STRUCTURE = 64  # columns of the random projection of links, of which there are two blocks


def untrained_vectors(visible: VisibleGraph, *, seed: int = 0, width: int = WIDTH) -> np.ndarray:
    """(n, at most 2 · width + 2 · ``STRUCTURE``) float32: Z and Â²Z side by side, each with rows of unit length.

    Z: the features in their ``width`` leading directions (randomised truncated SVD), rows of unit length first. Â: the
    normalised adjacency. Of d < ``FEW`` features Z has one column more, √d before the rows get unit length, so that
    (1) and (2) differ; :func:`structure_vectors` stand beside it.
    """
    few = visible.features.shape[1] < FEW
    blocks = [] if visible.features.shape[1] == 0 else _around(visible, _projected(visible, width, seed), HOPS)
    return np.concatenate([*blocks, structure_vectors(visible, seed=seed)] if few else blocks, axis=1)


def structure_vectors(visible: VisibleGraph, *, seed: int = 0) -> np.ndarray:
    """(n, 2 · ``STRUCTURE``) float32: Â²R and Â⁴R side by side, each with rows of unit length.

    R: a random projection of the (n, n) identity, so that nodes are alike if walks of two and four steps from them end
    at the same nodes (Chen et al., CIKM 2019, FastRP). A node without links is like no other.
    """
    random = np.random.default_rng([seed, 4])
    return np.concatenate(
        _around(visible, random.standard_normal((visible.node_count, STRUCTURE), dtype=np.float32), HOPS, 2 * HOPS)[1:],
        axis=1,
    )


def _around(visible: VisibleGraph, own: np.ndarray, *hops: int) -> list[np.ndarray]:
    """The values themselves and after so many steps, ascending, each with rows of unit length."""
    blocks, around = [unit_rows(own)], own
    for step in range(1, max(hops) + 1):
        around = visible.normalised @ around
        if step in hops:
            blocks.append(unit_rows(around))
    return blocks


def _projected(visible: VisibleGraph, width: int, seed: int) -> np.ndarray:
    features = visible.features
    count = features.shape[1]
    if isinstance(features, np.ndarray):
        if count < FEW:
            features = np.column_stack([features, np.full(len(features), count**0.5, dtype=np.float32)])
        values = unit_rows(features)
        if count <= width:
            return values
    else:
        lengths = np.sqrt(np.asarray(features.multiply(features).sum(axis=1)).ravel())
        values = features.copy()
        values.data = (values.data / np.repeat(np.maximum(lengths, 1e-9), np.diff(features.indptr))).astype(np.float32)
        if count <= width:
            return values.toarray()
    from sklearn.utils.extmath import randomized_svd

    left, sizes, _ = randomized_svd(values, n_components=min(width, *features.shape), random_state=seed)
    return (left * sizes).astype(np.float32)
