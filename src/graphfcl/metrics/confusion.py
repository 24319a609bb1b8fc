"""Accuracies of one confusion matrix, with true classes in rows and predicted classes in columns.

:mod:`graphfcl.metrics.built_in` has their formulas.
"""

import numpy as np


def confusion_matrix(labels: np.ndarray, predictions: np.ndarray, classes: int) -> np.ndarray:
    """(classes, classes) int64 counts; entry (j, k): nodes of class j predicted as k."""
    pairs = np.asarray(labels, dtype=np.int64) * classes + np.asarray(predictions, dtype=np.int64)
    return np.bincount(pairs, minlength=classes * classes).reshape(classes, classes)


def recalls(confusion: np.ndarray) -> np.ndarray:
    """Recall of each class, shape (classes,); NaN for a class without nodes."""
    total = confusion.sum(axis=1)
    correct = np.diagonal(confusion)
    return np.divide(correct, total, out=np.full(total.shape, np.nan), where=total > 0)


def balanced_accuracy(confusion: np.ndarray, among: np.ndarray | None = None) -> float:
    """Mean recall over the classes with nodes; with a mask ``among``, only over its classes."""
    values = recalls(confusion)
    if among is not None:
        values = values[among]
    values = values[~np.isnan(values)]
    return float(values.mean()) if values.size else float("nan")


def accuracy(confusion: np.ndarray, among: np.ndarray | None = None) -> float:
    """Share of nodes that are classified correctly; with a mask ``among``, only nodes of its classes."""
    correct, total = np.diagonal(confusion), confusion.sum(axis=1)
    if among is not None:
        correct, total = correct[among], total[among]
    return float(correct.sum() / total.sum()) if total.sum() else float("nan")


def macro_f1(confusion: np.ndarray) -> float:
    """Mean of 2·correct / (true + predicted) over the classes with nodes."""
    true, predicted = confusion.sum(axis=1), confusion.sum(axis=0)
    present = true > 0
    if not present.any():
        return float("nan")
    return float((2 * np.diagonal(confusion)[present] / (true + predicted)[present]).mean())


def harmonic_mean(first: float, second: float) -> float:
    """Harmonic mean 2ab / (a + b); 0 if both are 0."""
    return 2 * first * second / (first + second) if first + second > 0 else first * second
