"""Vectors of nodes that need no trained model, from their features and those of their neighbourhood.

If a graph has few or no features, the vectors also describe the links of nodes.
"""

import numpy as np
from scipy import sparse

from graphfcl.active.clusters import SAMPLE, SAMPLED, unit_rows
from graphfcl.graph import Features
from graphfcl.graph.interfaces import VisibleNodes

WIDTH = 128  # principal directions of the features
HOPS = 2
FEW = 16  # with fewer feature columns, links are used too
STRUCTURE = 64  # columns in each of the two blocks that describe links


def untrained_vectors(visible: VisibleNodes, *, seed: int = 0, width: int = WIDTH) -> np.ndarray:
    """Concatenate Z and Â²Z, each with rows of unit length, float32, shape (n, at most 2 · width + 2 · ``STRUCTURE``).

    Â is the normalised adjacency. Z holds the first ``width`` directions of the features (randomised truncated SVD),
    whose rows are scaled to unit length before. With ``SAMPLED`` nodes or more, the directions are computed from a
    sample. With d < ``FEW`` features, a column √d is added before scaling, so that the single features 1 and 2 still
    differ, and :func:`structure_vectors` are appended.
    """
    few = visible.feature_count < FEW
    blocks = [] if visible.feature_count == 0 else _around(visible, _projected(visible, width, seed), HOPS)
    return np.concatenate([*blocks, structure_vectors(visible, seed=seed)] if few else blocks, axis=1)


def structure_vectors(visible: VisibleNodes, *, seed: int = 0) -> np.ndarray:
    """Concatenate Â²R and Â⁴R, each with rows of unit length, float32, shape (n, 2 · ``STRUCTURE``).

    R is a random projection of the (n, n) identity. Nodes are therefore similar if walks of two and four steps from
    them end at the same nodes (FastRP, Chen et al., CIKM 2019). A node without links is similar to no other.
    """
    random = np.random.default_rng([seed, 4])
    return np.concatenate(
        _around(visible, random.standard_normal((visible.row_count, STRUCTURE), dtype=np.float32), HOPS, 2 * HOPS)[1:],
        axis=1,
    )


def _around(visible: VisibleNodes, own: np.ndarray, *hops: int) -> list[np.ndarray]:
    """The values, and the values after some numbers of steps of Â in ascending order, with rows of unit length."""
    scale = 1 / np.sqrt(visible.degrees + 1)[:, None]
    blocks, around = [unit_rows(own)], own
    for step in range(1, max(hops) + 1):
        scaled = scale * around
        around = scale * (visible.product(scaled) + scaled)
        if step in hops:
            blocks.append(unit_rows(around))
    return blocks


def _projected(visible: VisibleNodes, width: int, seed: int) -> np.ndarray:
    """Compute Z, shape (n, at most width + 1), reading features in blocks."""
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
    """Features of some rows, scaled to unit length; d < ``FEW`` dense features get the further column √d."""
    features, count = visible.features_at(rows), visible.feature_count
    if isinstance(features, np.ndarray):
        more = [np.full(len(features), count**0.5, dtype=np.float32)] if count < FEW else []
        return unit_rows(np.column_stack([features, *more]) if more else features)
    lengths = np.sqrt(np.asarray(features.multiply(features).sum(axis=1)).ravel())
    data = (features.data / np.repeat(np.maximum(lengths, 1e-9), np.diff(features.indptr))).astype(np.float32)
    return sparse.csr_array((data, features.indices, features.indptr), shape=features.shape)


def _dense(features: Features) -> np.ndarray:
    return features if isinstance(features, np.ndarray) else features.toarray()
