"""The confusion matrix that every measure starts from (rows: true columns, columns: predicted)."""

import numpy as np


def confusion_matrix(labels: np.ndarray, predictions: np.ndarray, classes: int) -> np.ndarray:
    """(classes, classes) int64 counts; entry (j, k): nodes of class j predicted as k."""
    pairs = np.asarray(labels, dtype=np.int64) * classes + np.asarray(predictions, dtype=np.int64)
    return np.bincount(pairs, minlength=classes * classes).reshape(classes, classes)


def recalls(confusion: np.ndarray) -> np.ndarray:
    """(classes,) share of each class's nodes that are found; NaN for a class without nodes."""
    total = confusion.sum(axis=1)
    found = np.diagonal(confusion)
    return np.divide(found, total, out=np.full(total.shape, np.nan), where=total > 0)
