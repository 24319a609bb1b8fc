"""The feature columns of a graph, and checks of the features and ids of new nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from graphfcl.errors import InputError, quoted
from graphfcl.graph import Features, TextWeights
from graphfcl.graph.build import clean_features
from graphfcl.graph.ids import listed, make_ids, text_array, whole_number
from graphfcl.graph.tables.words import count_known_words, word_count


@dataclass(frozen=True, eq=False)
class FeatureColumns:
    """The feature columns of a graph.

    Attributes:
        width: Number of columns.
        dense: Whether all values are stored.
        names: Names of the columns, if they have names.
        text_weights: Weights of words, if columns are word counts. Numeric columns may follow the words.
    """

    width: int
    dense: bool
    names: np.ndarray | None
    text_weights: TextWeights | None

    def name(self, column: int) -> str:
        """Return the name of a feature that a learner sees."""
        return self.raw_name(column if self.text_weights is None else int(self.text_weights.raw_columns[column]))

    def raw_name(self, column: int) -> str:
        """Return the name of a column of the graph."""
        return f"feature_{column}" if self.names is None else str(self.names[column])

    @property
    def word_count(self) -> int:
        """Number of columns that are words."""
        if self.text_weights is None:
            return 0
        beside = self.text_weights.beside
        return self.width if beside is None else beside.first

    def places(self, first: int = 0) -> dict[str, int]:
        """Return the column of each name, from column ``first`` on."""
        if self.names is None:
            return {f"feature_{column}": column for column in range(first, self.width)}
        return {str(name): column for column, name in enumerate(self.names[first:].tolist(), start=first)}

    def features_of(self, values: Any = None, *, texts: Sequence[str] | None = None) -> Features:
        """Return (m, d) features of new nodes.

        ``values`` is a matrix with these columns, or ``{"name": value}`` for each node, in which missing names mean 0.
        ``texts`` are the texts of the nodes. A graph that has numbers beside words needs both; ``values`` are then the
        numbers.
        """
        if texts is not None:
            if self.text_weights is None or self.names is None:
                raise InputError("the features of this graph do not come from text: give its feature columns instead.")
            counts = count_known_words(texts, self.names[: self.word_count])
            return counts if self.text_weights.beside is None else self._with_numbers(counts, values)
        if values is None:
            raise InputError("the new nodes have no features: give a matrix, or texts if the graph was made from text.")
        if isinstance(values, list | tuple) and any(isinstance(each, Mapping) for each in values):
            values = self._named(values)
        rows = values.shape[0] if hasattr(values, "shape") else len(values)
        clean = clean_features(values, rows, "the new nodes")
        if self.dense:
            return clean if isinstance(clean, np.ndarray) else clean.toarray()
        return sparse.csr_array(clean)

    def _with_numbers(self, counts: sparse.csr_array, values: Any) -> sparse.csr_array:
        """Return (m, d) word counts and the numbers that follow them."""
        first, needed = self.word_count, self.width - self.word_count
        if values is None:
            names = ", ".join(list(self.places(first))[:5])
            raise InputError(f"the graph has {needed} numbers beside its words ({names}): give them as well.")
        if isinstance(values, list | tuple) and any(isinstance(each, Mapping) for each in values):
            values = self._named(values)[:, first:]
        numbers = clean_features(values, counts.shape[0], "the new nodes")
        if numbers.shape[1] != needed:
            raise InputError(
                f"the new nodes have {numbers.shape[1]} numbers beside their texts, the graph has {needed}: "
                "give all of them."
            )
        return sparse.csr_array(sparse.hstack([counts, sparse.csr_array(numbers)], format="csr"))

    def _named(self, values: Sequence[Mapping[str, float]]) -> sparse.csr_array:
        places = self.places()
        unknown = [name for each in values for name in each if name not in places]
        if unknown:
            raise InputError(f"the graph has no feature {quoted(unknown[0])}: leave it out.")
        rows = np.repeat(np.arange(len(values)), [len(each) for each in values])
        columns = np.array([places[name] for each in values for name in each], dtype=np.int64)
        numbers = np.array([number for each in values for number in each.values()], dtype=np.float32)
        return sparse.csr_array(sparse.coo_array((numbers, (rows, columns)), shape=(len(values), len(places))))

    def refuse_other_shape(self, features: Features, count: int) -> None:
        """Refuse features that do not have ``count`` rows and the columns of the graph."""
        if features.shape != (count, self.width):
            raise InputError(
                f"the new nodes have features of shape {features.shape}, but {count} nodes with {self.width} features "
                "each are needed."
            )

    def words_of(self, features: Features, texts: Sequence[str] | None = None) -> dict[str, int]:
        """Count the words of some nodes, and the words that no learner sees because they are outside the vocabulary.

        ``features``: (m, d) features of the nodes. ``texts``: the texts that they were made from, if available. Empty
        without a vocabulary.
        """
        if self.text_weights is None:
            return {}
        counts = features[:, : self.word_count]
        words = float(counts.sum()) if texts is None else word_count(texts)
        inside = float(counts[:, self.text_weights.columns].sum())
        return {"words": round(words), "unknown_words": round(words - inside)}


def clean_new_ids(ids: Any, graph: Any) -> np.ndarray:
    """Return (m,) valid, distinct ids of nodes that a user adds, in the form of the graph's ids."""
    values, numbers = listed(ids), graph.is_whole_numbers
    fresh, _ = make_ids(values, lambda row: f"new node {row + 1}", read_numbers=numbers)
    if numbers and fresh.dtype == object:
        wrong = next(node for node in fresh.tolist() if whole_number(node) is None)
        raise InputError(f"node id {quoted(wrong)} is not a whole number, but all ids of this graph are.")
    return fresh if numbers else text_array([str(node) for node in fresh.tolist()])
