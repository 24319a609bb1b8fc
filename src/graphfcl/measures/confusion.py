"""Measures of one session: pure functions of its confusion matrix (rows: true columns, columns: predicted)."""

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


def balanced_accuracy(confusion: np.ndarray, among: np.ndarray | None = None) -> float:
    """Mean recall over the classes (or over those where ``among`` is true) that have nodes."""
    values = recalls(confusion)
    if among is not None:
        values = values[among]
    values = values[~np.isnan(values)]
    return float(values.mean()) if values.size else float("nan")


def accuracy(confusion: np.ndarray, among: np.ndarray | None = None) -> float:
    """Share of nodes (of the classes where ``among`` is true) whose class is found."""
    found, total = np.diagonal(confusion), confusion.sum(axis=1)
    if among is not None:
        found, total = found[among], total[among]
    return float(found.sum() / total.sum()) if total.sum() else float("nan")


def macro_f1(confusion: np.ndarray) -> float:
    """Mean over the classes with nodes of 2·found / (true + predicted)."""
    true, predicted = confusion.sum(axis=1), confusion.sum(axis=0)
    present = true > 0
    if not present.any():
        return float("nan")
    return float((2 * np.diagonal(confusion)[present] / (true + predicted)[present]).mean())


def harmonic_mean(first: float, second: float) -> float:
    """2ab/(a + b); 0 if both are 0."""
    return 2 * first * second / (first + second) if first + second > 0 else first * second
