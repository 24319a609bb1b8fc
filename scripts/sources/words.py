"""Word features of many short texts."""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from scipy import sparse

WORD = re.compile(r"[a-z0-9]{2,}")


def word_features(texts: Sequence[str], min_nodes: int) -> tuple[sparse.csr_array, list[str]]:
    """(texts, words) 0/1 of the words that occur in ``min_nodes`` texts or more, and the words in order."""
    words = [sorted(set(WORD.findall(text.lower()))) for text in texts]
    counts = Counter(word for found in words for word in found)
    vocabulary = sorted(word for word, count in counts.items() if count >= min_nodes)
    column = {word: number for number, word in enumerate(vocabulary)}
    rows = [[column[word] for word in found if word in column] for found in words]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    indices = np.array([number for row in rows for number in row], dtype=np.int32)
    data = np.ones(indices.size, dtype=np.float32)
    return sparse.csr_array((data, indices, indptr), shape=(len(texts), len(vocabulary))), vocabulary
