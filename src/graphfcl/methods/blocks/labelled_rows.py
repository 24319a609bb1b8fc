"""Some of the labelled nodes of each class."""

import numpy as np

from graphfcl.methods.learner import Labelled


def some_of_each_class(labelled: Labelled, most: int, seed: int) -> Labelled:
    """At most so many nodes of each class, drawn by the seed, in their order."""
    nodes, columns = labelled
    counts = np.bincount(columns)
    if not counts.size or counts.max() <= most:
        return labelled
    order = np.random.default_rng([seed, 9]).permutation(columns.size)
    order = order[np.argsort(columns[order], kind="stable")]
    firsts = (counts.cumsum() - counts)[columns[order]]
    kept = np.sort(order[np.arange(columns.size) - firsts < most])
    return nodes[kept], columns[kept]


def count_of_each_class(columns: np.ndarray, most: int | None) -> int:
    """How many nodes of these columns are taken, if of each class at most so many are."""
    return columns.size if most is None else int(np.minimum(np.bincount(columns), most).sum())
