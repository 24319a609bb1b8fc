"""Transformations from raw features to the features that learners see, fitted once on nodes of session 0."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy as np
from scipy import sparse

Features: TypeAlias = Any  # scipy.sparse.csr_array | numpy.ndarray, (n, d) float32
Blocks: TypeAlias = Callable[[], Iterator[Features]]  # yields the features of some nodes in blocks of rows
FARTHEST = 1e6  # standardised values are clipped to this many standard deviations


class FeatureView(Protocol):
    """Turns raw features into the features that learners see."""

    def apply(self, features: Features) -> Features:
        """(n, d) raw features → (n, v) float32."""


@dataclass(frozen=True, eq=False)
class KnownColumns:
    """Keeps the columns of sparse features that enough nodes of session 0 have.

    The data set selected its columns by counting nodes in the whole graph. A column that reaches the minimum only with
    nodes of later classes would leak information about these classes, so it is dropped.

    Args:
        columns: (v,) Numbers of the columns to keep, ascending.
    """

    columns: np.ndarray

    @classmethod
    def fit_blocks(cls, blocks: Blocks, min_nodes: int = 1) -> "KnownColumns":
        """Keep columns that at least ``min_nodes`` nodes of session 0 have; ``blocks`` are features of these nodes."""
        counts = sum(np.bincount(part.indices[part.data != 0], minlength=part.shape[1]) for part in blocks())
        return cls(np.flatnonzero(np.asarray(counts) >= min_nodes))

    def apply(self, features: sparse.csr_array) -> sparse.csr_array:
        return features if self.columns.size == features.shape[1] else features[:, self.columns]


@dataclass(frozen=True, eq=False)
class Standardisation:
    """Standardises dense columns by the training nodes of session 0: (x − mean)/deviation.

    A column that is constant on the training nodes becomes 0 for all nodes. Values are clipped to a million deviations,
    so that all results are finite.

    Args:
        mean: (d,) float64 Means.
        deviation: (d,) float64 Standard deviations; 0 for constant columns.
    """

    mean: np.ndarray
    deviation: np.ndarray

    @classmethod
    def fit(cls, features: np.ndarray) -> "Standardisation":
        """Fit on the (n, d) features of the training nodes of session 0, n ≥ 1."""
        return cls.fit_blocks(lambda: iter([features]))

    @classmethod
    def fit_blocks(cls, blocks: Blocks) -> "Standardisation":
        """Fit on features in blocks, which are read twice; there must be at least one block and no empty one."""
        first: np.ndarray | None = None
        same, total, count = np.ones((), dtype=bool), np.zeros(()), 0
        for part in blocks():
            first = part[:1].copy() if first is None else first
            same = same & (part == first).all(axis=0)
            total, count = total + part.sum(axis=0, dtype=np.float64), count + len(part)
        mean = total / count
        squares = sum(((part - mean) ** 2).sum(axis=0) for part in blocks())
        # Rounding would give a constant column a tiny positive deviation, so it is set to 0.
        return cls(mean, np.where(same, 0.0, np.sqrt(squares / count)))

    def apply(self, features: np.ndarray) -> np.ndarray:
        scale = np.divide(1.0, self.deviation, out=np.zeros_like(self.deviation), where=self.deviation > 0)
        return ((features - self.mean) * scale).clip(-FARTHEST, FARTHEST).astype(np.float32)


@dataclass(frozen=True, eq=False)
class NumbersBesideWords:
    """Scales numeric columns so that they and TF-IDF columns have the same weight.

    A column of a group of k columns becomes z/√k, where z is its standardised value. The TF-IDF row of a node has
    length 1, and over the nodes of the fit each group has a mean squared length of 1 (less if columns are constant).

    Args:
        first: Number of the first numeric column in the raw features.
        groups: Number of columns in each group.
        standardisation: Standardisation of all numeric columns.
    """

    first: int
    groups: tuple[int, ...]
    standardisation: Standardisation

    def apply(self, features: sparse.csr_array) -> sparse.csr_array:
        """Turn (n, words + k) raw features into (n, k) float32 numbers."""
        scale = np.repeat(1 / np.sqrt(np.array(self.groups, dtype=np.float64)), self.groups)
        numbers = self.standardisation.apply(features[:, self.first :].toarray())
        return sparse.csr_array((numbers * scale).astype(np.float32))


@dataclass(frozen=True, eq=False)
class TextWeights:
    """Fitted TF-IDF weights.

    Args:
        columns: (v,) Columns of the words in the vocabulary, ascending.
        inverse_document_frequency: (v,) float64 values ln((1 + n) / (1 + n_w)) + 1, where n_w of the n fitted nodes
            have the word.
        min_nodes: Minimum number of fitted nodes that must have a word of the vocabulary.
        beside: Transformation of the numeric columns behind the word columns; None if there are none.
    """

    columns: np.ndarray
    inverse_document_frequency: np.ndarray
    min_nodes: int = 2
    beside: NumbersBesideWords | None = None

    @classmethod
    def fit(cls, features: sparse.csr_array, min_nodes: int, beside: tuple[int, ...] = ()) -> "TextWeights":
        """Fit on word counts, and on the numeric columns behind them, whose groups have the widths ``beside``."""
        return cls.fit_blocks(lambda: iter([features]), min_nodes, beside)

    @classmethod
    def fit_blocks(cls, blocks: Blocks, min_nodes: int, beside: tuple[int, ...] = ()) -> "TextWeights":
        """Fit on features in blocks of rows."""
        nodes, total = 0, np.zeros(0, dtype=np.int64)  # total: number of nodes with a non-zero value, by column
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
        """(v + k,) Column of the raw features for each column that learners see."""
        if self.beside is None:
            return self.columns
        return np.concatenate([self.columns, self.beside.first + np.arange(sum(self.beside.groups))])

    def apply(self, features: sparse.csr_array) -> sparse.csr_array:
        """Turn raw features into (n, v + k) float32: TF-IDF values, then scaled numbers."""
        words = self._words(features)
        if self.beside is None:
            return words
        return sparse.csr_array(sparse.hstack([words, self.beside.apply(features)], format="csr"))

    def _words(self, counts: sparse.csr_array) -> sparse.csr_array:
        """Return (n, v) float32 TF-IDF values; rows have length 1, or 0 without a word of the vocabulary."""
        counted = counts[:, self.columns]
        values = counted.data.astype(np.float64) * self.inverse_document_frequency[counted.indices]
        rows = np.repeat(np.arange(counted.shape[0]), np.diff(counted.indptr))
        # bincount adds in order, so the result is the same on every machine.
        length = np.sqrt(np.bincount(rows, weights=values**2, minlength=counted.shape[0]))
        weighted = (values / length[rows]).astype(np.float32)
        return sparse.csr_array((weighted, counted.indices, counted.indptr), shape=counted.shape)


def stacked(parts: list[Features]) -> Features:
    """Stack blocks of rows."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return sparse.csr_array(sparse.vstack(parts, format="csr", dtype=np.float32))
