"""Selection of exemplars, the nodes of a class that are kept, from embeddings (n, h) and labels (n,).

Each function returns the positions of the chosen nodes, at most ``count`` per class, the most important first. All are
vectorised over nodes and classes.
"""

import numpy as np
import torch

from graphfcl.nn import tensor_of
from graphfcl.runtime.arrays import rank_in_run

CHUNK = 4096


def first_of_each_class(importance: np.ndarray, labels: np.ndarray, count: int) -> np.ndarray:
    """Select the ``count`` most important positions of each class; ties keep their order."""
    order = np.lexsort((-importance, labels))
    ordered = labels[order]
    return order[rank_in_run(ordered) < count]


def class_means(embeddings: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Compute the (classes, h) means of embeddings."""
    sums = np.zeros((int(labels.max()) + 1, embeddings.shape[1]), dtype=embeddings.dtype)
    np.add.at(sums, labels, embeddings)
    return sums / np.maximum(1, np.bincount(labels))[:, None]


def mean_of_features(embeddings: np.ndarray, labels: np.ndarray, count: int) -> np.ndarray:
    """Select the nodes nearest to their class mean (MF of ER-GNN)."""
    distances = ((embeddings - class_means(embeddings, labels)[labels]) ** 2).sum(axis=1)
    return first_of_each_class(-distances, labels, count)


def coverage(embeddings: np.ndarray, labels: np.ndarray, count: int, distance: float) -> np.ndarray:
    """Select the nodes with the fewest nodes of other classes within ``distance`` (CM of ER-GNN)."""
    points = torch.from_numpy(np.ascontiguousarray(embeddings))
    columns = tensor_of(labels)
    squares = (points**2).sum(dim=1)
    crowd = np.zeros(labels.size, dtype=np.int64)
    for start in range(0, labels.size, CHUNK):
        here = slice(start, start + CHUNK)
        apart = squares[here, None] - 2 * points[here] @ points.T + squares[None]
        near = (apart <= distance**2) & (columns[here, None] != columns[None])
        crowd[here] = near.sum(dim=1).numpy()
    return first_of_each_class(-crowd, labels, count)


def influence(
    embeddings: np.ndarray, labels: np.ndarray, count: int, probabilities: np.ndarray, damping: float = 0.01
) -> np.ndarray:
    """Select the nodes whose removal would change the head most (IM of ER-GNN).

    Leaving out node v moves the parameters of a softmax head by H⁻¹ ∇ℓ(v)/n (its influence function), with
    ∇ℓ(v) = (p − y) ⊗ z and H = mean(diag(p) − p pᵀ) ⊗ z zᵀ, z with a 1 appended for the bias. The importance of v
    is the length of that move. H is singular because adding a vector to all columns changes nothing; ``damping`` times
    its mean diagonal is added. ``probabilities`` are the (n, classes) predictions of the head.
    """
    points = np.pad(embeddings.astype(np.float64), ((0, 0), (0, 1)), constant_values=1.0)
    number, width = points.shape
    classes = probabilities.shape[1]
    hessian = np.zeros((classes, width, classes, width))
    every = np.arange(classes)
    for start in range(0, number, CHUNK):
        p, z = probabilities[start : start + CHUNK].astype(np.float64), points[start : start + CHUNK]
        both = (p[:, :, None] * z[:, None, :]).reshape(len(z), -1)
        hessian -= (both.T @ both).reshape(hessian.shape)
        hessian[every, :, every, :] += (both.T @ z).reshape(classes, width, width)
    matrix = hessian.reshape(classes * width, classes * width) / number
    matrix[np.diag_indices_from(matrix)] += damping * np.trace(matrix) / len(matrix) + 1e-12
    inverse = np.linalg.inv(matrix)
    move = np.empty(number)
    for start in range(0, number, CHUNK):
        here = slice(start, start + CHUNK)
        wrong = probabilities[here].astype(np.float64).copy()
        wrong[np.arange(len(wrong)), labels[here]] -= 1
        gradients = (wrong[:, :, None] * points[here, None, :]).reshape(len(wrong), -1)
        move[here] = np.linalg.norm(gradients @ inverse, axis=1)
    return first_of_each_class(move, labels, count)


def herding(embeddings: np.ndarray, labels: np.ndarray, count: int) -> np.ndarray:
    """Select the exemplars of iCaRL, whose running mean approximates the class mean.

    p_k = argmin_x ‖μ − (φ(x) + Σ_{j<k} φ(p_j))/k‖. The k-th exemplars of all classes are chosen at once.
    """
    order = np.argsort(labels, kind="stable")
    points, columns = embeddings[order].astype(np.float64), labels[order]
    means = class_means(points, columns)
    starts = np.flatnonzero(np.r_[True, columns[1:] != columns[:-1]])
    sizes = np.diff(np.r_[starts, columns.size])
    sums = np.zeros_like(means)
    free = np.ones(columns.size, dtype=bool)
    chosen = []
    for turn in range(1, min(count, int(sizes.max(initial=0))) + 1):
        apart = ((means[columns] - (points + sums[columns]) / turn) ** 2).sum(axis=1)
        apart[~free] = np.inf
        least = np.minimum.reduceat(apart, starts)
        # The first position of each class with the smallest distance; classes without free nodes are skipped.
        hits = np.flatnonzero(apart == np.repeat(least, sizes))
        hits = hits[free[hits]]
        picks = hits[np.r_[True, columns[hits[1:]] != columns[hits[:-1]]]] if hits.size else hits
        free[picks] = False
        sums[columns[picks]] += points[picks]
        chosen.append(picks)
    flat = np.concatenate(chosen) if chosen else np.zeros(0, dtype=np.int64)
    return order[flat]
