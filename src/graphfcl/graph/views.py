"""What a learner sees of raw features: a view that is fitted on nodes of session 0 and holds for all later ones."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
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


@dataclass(frozen=True, eq=False)
class KnownColumns:
    """Of sparse features, the columns that enough nodes of session 0 have; the others do not exist for a learner.

    The columns were selected by counting their nodes in the whole graph. A column that passes the minimum only with
    nodes of later classes was chosen by looking at those classes.

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


@dataclass(frozen=True, eq=False)
class NumbersBesideWords:
    """Numbers beside words, so that neither drowns the other: z/√k, z standardised, k the columns of a group.

    The words of a node have length 1; over the nodes of the fit each group has a mean squared length of 1 (less, if
    some of its columns are constant).

    first: the column of the raw features where numbers begin. groups: how many columns each group has.
    standardisation: of all these columns.
    """

    first: int
    groups: tuple[int, ...]
    standardisation: Standardisation

    def apply(self, features: sparse.csr_array) -> sparse.csr_array:
        """(n, k) float32 of (n, words + k) raw features."""
        scale = np.repeat(1 / np.sqrt(np.array(self.groups, dtype=np.float64)), self.groups)
        numbers = self.standardisation.apply(features[:, self.first :].toarray())
        return sparse.csr_array((numbers * scale).astype(np.float32))


@dataclass(frozen=True, eq=False)
class TextWeights:
    """A fitted TF-IDF.

    columns: (v,) the columns of the word counts that make the vocabulary, ascending.
    inverse_document_frequency: (v,) float64, ln((1 + n) / (1 + n_w)) + 1 over the n nodes it was fitted on.
    min_nodes: of how many nodes a word must be to be in the vocabulary.
    beside: what becomes of numbers in the columns behind the words; None if there are none.
    """

    columns: np.ndarray
    inverse_document_frequency: np.ndarray
    min_nodes: int = 2
    beside: NumbersBesideWords | None = None

    @classmethod
    def fit(cls, features: sparse.csr_array, min_nodes: int, beside: tuple[int, ...] = ()) -> "TextWeights":
        """Fit on the word counts of the nodes known now, and on the numbers behind them, in groups of so many."""
        return cls.fit_blocks(lambda: iter([features]), min_nodes, beside)

    @classmethod
    def fit_blocks(cls, blocks: Blocks, min_nodes: int, beside: tuple[int, ...] = ()) -> "TextWeights":
        """The same of rows that are read some at a time."""
        nodes, total = 0, np.zeros(0, dtype=np.int64)  # total: in how many nodes each column is not 0
        for part in blocks():
            counts = np.bincount(part.indices, minlength=part.shape[1])
            nodes, total = nodes + part.shape[0], counts + total if total.size else counts
        words = total.size - sum(beside)
        columns = np.flatnonzero(total[:words] >= max(1, min_nodes))
        weights = cls(columns, np.log((1 + nodes) / (1 + total[columns])) + 1, min_nodes)
        if not beside:
            return weights
        fitted = Standardisation.fit_blocks(lambda: (part[:, words:].toarray() for part in blocks()))
        return replace(weights, beside=NumbersBesideWords(words, beside, fitted))

    @property
    def raw_columns(self) -> np.ndarray:
        """(v + k,) the column of the raw features that each column that a learner sees comes from."""
        if self.beside is None:
            return self.columns
        return np.concatenate([self.columns, self.beside.first + np.arange(sum(self.beside.groups))])

    def apply(self, features: sparse.csr_array) -> sparse.csr_array:
        """(n, v + k) float32: TF-IDF of the words, and the numbers beside them."""
        words = self._words(features)
        if self.beside is None:
            return words
        return sparse.csr_array(sparse.hstack([words, self.beside.apply(features)], format="csr"))

    def _words(self, counts: sparse.csr_array) -> sparse.csr_array:
        """(n, v) float32: count × inverse document frequency, each row of length 1 (or 0 if no word is known)."""
        counted = counts[:, self.columns]
        values = counted.data.astype(np.float64) * self.inverse_document_frequency[counted.indices]
        rows = np.repeat(np.arange(counted.shape[0]), np.diff(counted.indptr))
        # bincount adds in order, so the result is the same on every machine.
        length = np.sqrt(np.bincount(rows, weights=values**2, minlength=counted.shape[0]))
        weighted = (values / length[rows]).astype(np.float32)
        return sparse.csr_array((weighted, counted.indices, counted.indptr), shape=counted.shape)


def stacked(parts: list[Features]) -> Features:
    """Some rows below the others."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return sparse.csr_array(sparse.vstack(parts, format="csr", dtype=np.float32))
