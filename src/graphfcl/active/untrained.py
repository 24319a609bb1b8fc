"""Vectors of nodes that need no learner: their features and those around them.

Where features are few or missing, nodes are also compared by whom they link to.
"""

import numpy as np
from scipy import sparse

from graphfcl.active.clusters import SAMPLE, SAMPLED, unit_rows
from graphfcl.graph import Features
from graphfcl.graph.interfaces import VisibleNodes

WIDTH = 128  # principal directions of the features
HOPS = 2
FEW = 16  # feature columns below which links are compared too
STRUCTURE = 64  # columns of the random projection of links, of which there are two blocks


def untrained_vectors(visible: VisibleNodes, *, seed: int = 0, width: int = WIDTH) -> np.ndarray:
    """(n, at most 2 · width + 2 · ``STRUCTURE``) float32: Z and Â²Z side by side, each with rows of unit length.

    Z: the features in their ``width`` leading directions (randomised truncated SVD), rows of unit length first; of
    ``SAMPLED`` nodes or more the directions are those of a sample. Â: the normalised adjacency. Of d < ``FEW`` features
    Z has one column more, √d before the rows get unit length, so that (1) and (2) differ; :func:`structure_vectors`
    stand beside it.
    """
    few = visible.feature_count < FEW
    blocks = [] if visible.feature_count == 0 else _around(visible, _projected(visible, width, seed), HOPS)
    return np.concatenate([*blocks, structure_vectors(visible, seed=seed)] if few else blocks, axis=1)


def structure_vectors(visible: VisibleNodes, *, seed: int = 0) -> np.ndarray:
    """(n, 2 · ``STRUCTURE``) float32: Â²R and Â⁴R side by side, each with rows of unit length.

    R: a random projection of the (n, n) identity, so that nodes are alike if walks of two and four steps from them end
    at the same nodes (Chen et al., CIKM 2019, FastRP). A node without links is like no other.
    """
    random = np.random.default_rng([seed, 4])
    return np.concatenate(
        _around(visible, random.standard_normal((visible.row_count, STRUCTURE), dtype=np.float32), HOPS, 2 * HOPS)[1:],
        axis=1,
    )


def _around(visible: VisibleNodes, own: np.ndarray, *hops: int) -> list[np.ndarray]:
    """The values themselves and after so many steps of Â, ascending, each with rows of unit length."""
    scale = 1 / np.sqrt(visible.degrees + 1)[:, None]
    blocks, around = [unit_rows(own)], own
    for step in range(1, max(hops) + 1):
        scaled = scale * around
        around = scale * (visible.product(scaled) + scaled)
        if step in hops:
            blocks.append(unit_rows(around))
    return blocks


def _projected(visible: VisibleNodes, width: int, seed: int) -> np.ndarray:
    """(n, at most width, or one more of few features) Z, read in blocks."""
    count = visible.row_count
    blocks = [np.arange(start, stop) for start, stop in visible.row_blocks()]
    if visible.feature_count <= width:
        return np.concatenate([_dense(_unit_features(visible, rows)) for rows in blocks])
    from sklearn.utils.extmath import randomized_svd

    if count < SAMPLED:
        values = _unit_features(visible, np.arange(count))
        left, sizes, _ = randomized_svd(values, n_components=min(width, *values.shape), random_state=seed)
        return (left * sizes).astype(np.float32)
    sample = np.sort(np.random.default_rng([seed, 22]).choice(count, SAMPLE, replace=False))
    directions = randomized_svd(_unit_features(visible, sample), n_components=width, random_state=seed)[2].T
    return np.concatenate([_unit_features(visible, rows) @ directions for rows in blocks]).astype(np.float32)


def _unit_features(visible: VisibleNodes, rows: np.ndarray) -> Features:
    """(r, d) the features of some rows, each of unit length; of d < ``FEW`` dense ones with √d as one column more."""
    features, count = visible.features_at(rows), visible.feature_count
    if isinstance(features, np.ndarray):
        more = [np.full(len(features), count**0.5, dtype=np.float32)] if count < FEW else []
        return unit_rows(np.column_stack([features, *more]) if more else features)
    lengths = np.sqrt(np.asarray(features.multiply(features).sum(axis=1)).ravel())
    data = (features.data / np.repeat(np.maximum(lengths, 1e-9), np.diff(features.indptr))).astype(np.float32)
    return sparse.csr_array((data, features.indices, features.indptr), shape=features.shape)


def _dense(features: Features) -> np.ndarray:
    return features if isinstance(features, np.ndarray) else features.toarray()
