"""What a learner sees of raw features: a view that is fitted on nodes of session 0 and holds for all later ones."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from scipy import sparse

Features: TypeAlias = Any  # scipy.sparse.csr_array | numpy.ndarray, (n, d) float32
Blocks: TypeAlias = Callable[[], Iterator[Features]]  # the features of some nodes, some rows at a time
FARTHEST = 1e6  # deviations


class FeatureView(Protocol):
    """Turns the raw features of some nodes into those that a learner is shown."""

    def apply(self, features: Features) -> Features:
        """(n, d) raw features → (n, v) float32."""
        ...


@dataclass(frozen=True, eq=False)
class KnownColumns:
    """Of sparse features, the columns that enough nodes of session 0 have; the others do not exist for a learner.

    Whoever made the columns counted their nodes in the whole graph. A column that passes the dataset's minimum only
    with nodes of later classes was chosen by looking at those classes.

    columns: (v,) ascending.
    """

    columns: np.ndarray

    @classmethod
    def fit_blocks(cls, blocks: Blocks, min_nodes: int = 1) -> "KnownColumns":
        """blocks: features of the nodes of session 0. min_nodes: how many of them must have a column."""
        counts = sum(np.bincount(part.indices[part.data != 0], minlength=part.shape[1]) for part in blocks())
        return cls(np.flatnonzero(np.asarray(counts) >= min_nodes))

    def apply(self, features: sparse.csr_array) -> sparse.csr_array:
        return features if self.columns.size == features.shape[1] else features[:, self.columns]


@dataclass(frozen=True, eq=False)
class Standardisation:
    """Dense columns with mean 0 and standard deviation 1 over the train nodes of session 0: (x − mean)/deviation.

    A column that is the same for all of them says nothing about classes; it becomes 0 for every node. A value more than
    a million deviations away counts as a million, so that all stay finite.

    mean, deviation: (d,) float64; the deviation of such a column is 0.
    """

    mean: np.ndarray
    deviation: np.ndarray

    @classmethod
    def fit(cls, features: np.ndarray) -> "Standardisation":
        """features: (n, d) of the train nodes of session 0, at least one."""
        return cls.fit_blocks(lambda: iter([features]))

    @classmethod
    def fit_blocks(cls, blocks: Blocks) -> "Standardisation":
        """The same of rows that are read some at a time, twice. blocks: at least one, none of them empty."""
        first: np.ndarray | None = None
        same, total, count = np.ones((), dtype=bool), np.zeros(()), 0
        for part in blocks():
            first = part[:1].copy() if first is None else first
            same = same & (part == first).all(axis=0)
            total, count = total + part.sum(axis=0, dtype=np.float64), count + len(part)
        mean = total / count
        squares = sum(((part - mean) ** 2).sum(axis=0) for part in blocks())
        # Rounding gives the deviation of a constant column a value that is tiny beside the column's own size.
        return cls(mean, np.where(same, 0.0, np.sqrt(squares / count)))

    def apply(self, features: np.ndarray) -> np.ndarray:
        scale = np.divide(1.0, self.deviation, out=np.zeros_like(self.deviation), where=self.deviation > 0)
        return ((features - self.mean) * scale).clip(-FARTHEST, FARTHEST).astype(np.float32)
