"""TF-IDF whose vocabulary and weights come from the nodes known at one moment and hold for all later ones."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from graphfcl.graph.views import Blocks, Standardisation

TOKEN_PATTERN = r"(?u)\b\w\w+\b"


def count_words(texts: Sequence[str]) -> tuple[sparse.csr_array, np.ndarray]:
    """Word counts (n, words) float32 of every word that occurs, and the words in alphabetical order."""
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(token_pattern=TOKEN_PATTERN, dtype=np.float32)
    if not any(texts):
        return sparse.csr_array((len(texts), 0), dtype=np.float32), np.zeros(0, dtype=object)
    try:
        counts = sparse.csr_array(vectorizer.fit_transform(texts))
    except ValueError:  # no text has a word of two letters
        return sparse.csr_array((len(texts), 0), dtype=np.float32), np.zeros(0, dtype=object)
    return counts, vectorizer.get_feature_names_out()


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
        nodes, total = 0, np.zeros(0, dtype=np.int64)
        for part in blocks():
            counts = np.bincount(part.indices, minlength=part.shape[1])
            nodes, total = nodes + part.shape[0], counts + total if total.size else counts
        words = total.size - sum(beside)
        weights = cls.from_counts(total[:words], nodes, min_nodes)
        if not beside:
            return weights
        fitted = Standardisation.fit_blocks(lambda: (part[:, words:].toarray() for part in blocks()))
        return replace(weights, beside=NumbersBesideWords(words, beside, fitted))

    @classmethod
    def from_counts(cls, nodes_with_word: np.ndarray, nodes: int, min_nodes: int) -> "TextWeights":
        """nodes_with_word: (words,) in how many of the nodes each word occurs."""
        columns = np.flatnonzero(nodes_with_word >= max(1, min_nodes))
        frequency = np.log((1 + nodes) / (1 + nodes_with_word[columns])) + 1
        return cls(columns=columns, inverse_document_frequency=frequency, min_nodes=min_nodes)

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
        known = counts[:, self.columns]
        values = known.data.astype(np.float64) * self.inverse_document_frequency[known.indices]
        rows = np.repeat(np.arange(known.shape[0]), np.diff(known.indptr))
        # bincount adds in order, so the result is the same on every machine.
        length = np.sqrt(np.bincount(rows, weights=values**2, minlength=known.shape[0]))
        weighted = (values / length[rows]).astype(np.float32)
        return sparse.csr_array((weighted, known.indices, known.indptr), shape=known.shape)


def count_known_words(texts: Sequence[str], words: np.ndarray) -> sparse.csr_array:
    """Word counts (n, words) float32 of words that are known already; all others are passed over."""
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(token_pattern=TOKEN_PATTERN, dtype=np.float32, vocabulary=words.tolist())
    return sparse.csr_array(vectorizer.transform(texts))


def word_count(texts: Sequence[str]) -> int:
    """How many words there are in some texts; one that occurs twice counts twice."""
    from sklearn.feature_extraction.text import CountVectorizer

    words = CountVectorizer(token_pattern=TOKEN_PATTERN).build_analyzer()
    return sum(len(words(text)) for text in texts)
