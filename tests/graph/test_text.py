"""TF-IDF against scikit-learn's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from graphfcl.graph import TextWeights
from graphfcl.graph.tables.words import count_words

WORDS = ["red", "Red", "fox", "a", "x1", "naïve", "fox-hen", "the", "1984", "snake_case"]
LATER = [*WORDS, "unseen", "new words", "z"]


def texts_of(words: list[str], least: int) -> st.SearchStrategy[list[str]]:
    return st.lists(st.lists(st.sampled_from(words), max_size=6).map(" ".join), min_size=least, max_size=8)


@given(texts_of(WORDS, 1), texts_of(LATER, 0), st.integers(1, 3))
def test_weights_are_those_of_scikit_learn(known: list[str], later: list[str], min_nodes: int) -> None:
    counts, words = count_words([*known, *later])
    weights = TextWeights.fit(counts[: len(known)], min_nodes)
    reference = TfidfVectorizer(smooth_idf=True, norm="l2", min_df=min_nodes)
    try:
        fitted = reference.fit_transform(known).toarray()
    except ValueError:  # no word is left
        assert weights.columns.size == 0
        assert weights.apply(counts).shape == (len(known) + len(later), 0)
        return
    assert words[weights.columns].tolist() == reference.get_feature_names_out().tolist()
    np.testing.assert_allclose(weights.inverse_document_frequency, reference.idf_, rtol=1e-12)
    ours = weights.apply(counts)
    expected = np.concatenate([fitted, *([reference.transform(later).toarray()] if later else [])])
    np.testing.assert_allclose(ours.toarray(), expected, rtol=1e-6, atol=1e-7)
    assert ours.dtype == np.float32


def test_a_text_of_unknown_words_has_no_weights() -> None:
    counts, _ = count_words(["red fox", "red hen", "blue cat"])
    weights = TextWeights.fit(counts[:2], 1)
    assert weights.apply(counts[2:]).toarray().tolist() == [[0, 0, 0]]


def test_a_word_must_occur_in_enough_nodes() -> None:
    counts, words = count_words(["red red fox", "red hen", "fox"])
    assert words[TextWeights.fit(counts, 2).columns].tolist() == ["fox", "red"]
    assert TextWeights.fit(counts, 3).columns.size == 0


@pytest.mark.parametrize("texts", [[], [""], ["", "a b", "!"]])
def test_texts_without_words_have_no_columns(texts: list[str]) -> None:
    counts, words = count_words(texts)
    assert counts.shape == (len(texts), 0)
    assert words.size == 0
