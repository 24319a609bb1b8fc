"""Word counts of texts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from graphfcl.graph.ids import text_array

TOKEN_PATTERN = r"(?u)\b\w\w+\b"


def _vectorizer(words: Sequence[str] | None = None) -> Any:
    from sklearn.feature_extraction.text import CountVectorizer  # slow to import

    return CountVectorizer(token_pattern=TOKEN_PATTERN, dtype=np.float32, vocabulary=words)


def count_words(texts: Sequence[str]) -> tuple[sparse.csr_array, np.ndarray]:
    """Return (n, words) float32 counts of all words that occur, and the words in alphabetical order."""
    vectorizer = _vectorizer()
    try:
        counts = sparse.csr_array(vectorizer.fit_transform(texts))
    except ValueError:  # no text has a word of two letters
        return sparse.csr_array((len(texts), 0), dtype=np.float32), text_array([])
    return counts, vectorizer.get_feature_names_out()


def count_known_words(texts: Sequence[str], words: np.ndarray) -> sparse.csr_array:
    """Return (n, words) float32 counts of these words; other words are ignored."""
    if not words.size:
        return sparse.csr_array((len(texts), 0), dtype=np.float32)
    return sparse.csr_array(_vectorizer(words.tolist()).transform(texts))


def word_count(texts: Sequence[str]) -> int:
    """Return the number of words in all texts, counting repetitions."""
    words = _vectorizer().build_analyzer()
    return sum(len(words(text)) for text in texts)
