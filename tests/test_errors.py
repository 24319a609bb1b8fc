"""Hints for words that nobody knows."""

import pytest

from graphfcl.errors import did_you_mean

KNOWN = ("debian", "wordnet", "dblp", "reddit", "amazon-clothing", "synthetic", "synthetic-reddit")


def test_the_nearest_word_or_all_there_are() -> None:
    assert did_you_mean("hagmeta", ["cec", "hag-meta"]) == "did you mean 'hag-meta'?"
    assert did_you_mean("xyz", ["cec", "gpn"]) == "there are cec, gpn."
    assert did_you_mean("xyz", ["cec"], "see the docs.") == "see the docs."
    assert did_you_mean("abxx", ["abcd"], "no.", cutoff=0.9) == "no."


@pytest.mark.parametrize(
    ("word", "near"),
    [("debain", "debian"), ("wrodnet", "wordnet"), ("dbpl", "dblp"), ("Reddit", "reddit"), ("sythetc", "synthetic")],
)
def test_typos_of_one_or_two_letters_are_found(word: str, near: str) -> None:
    assert did_you_mean(word, KNOWN, "none") == f"did you mean '{near}'?"


@pytest.mark.parametrize("word", ["nothere", "shop", "my-graph"])
def test_another_word_is_no_typo(word: str) -> None:
    assert did_you_mean(word, KNOWN, "none") == "none"


def test_of_words_that_differ_by_case_the_first_is_named() -> None:
    assert did_you_mean("SKU", ["Sku", "sku"]) == "did you mean 'Sku'?"
