"""The nearest rows of each row by cosine, block by block: no matrix of all pairs is ever held."""

import numpy as np

BLOCK = 1_024  # rows whose likeness to all others is computed at once


def unit_rows(values: np.ndarray) -> np.ndarray:
    """(n, d) float32, each row of length 1; a row of zeros stays one."""
    values = np.asarray(values, dtype=np.float32)
    return values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-8)


def nearest_rows(values: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """(n, k) the k rows most like each row, the likest first, itself left out; and (n, k) their cosines.

    values: (n, d) of unit length. k: ``count``, or n − 1 if there are fewer others.
    """
    size = len(values)
    count = max(0, min(count, size - 1))
    rows, likeness = np.zeros((size, count), dtype=np.int64), np.zeros((size, count), dtype=np.float32)
    if count == 0:
        return rows, likeness
    for start in range(0, size, BLOCK):
        here = slice(start, min(start + BLOCK, size))
        cosines = values[here] @ values.T
        cosines[np.arange(len(cosines)), np.arange(here.start, here.stop)] = -np.inf
        found = np.argpartition(-cosines, count - 1, axis=1)[:, :count]
        order = np.argsort(-np.take_along_axis(cosines, found, axis=1), axis=1, kind="stable")
        rows[here] = np.take_along_axis(found, order, axis=1)
        likeness[here] = np.take_along_axis(cosines, rows[here], axis=1)
    return rows, likeness


def likeliest_of(values: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n,) the row of ``others`` that each row is most like, and (n,) its cosine. Both of unit length."""
    rows, likeness = np.zeros(len(values), dtype=np.int64), np.zeros(len(values), dtype=np.float32)
    for start in range(0, len(values), BLOCK):
        cosines = values[start : start + BLOCK] @ others.T
        rows[start : start + BLOCK] = cosines.argmax(axis=1)
        likeness[start : start + BLOCK] = cosines.max(axis=1)
    return rows, likeness
