"""Hints for words that nobody knows."""

from graphfcl.errors import did_you_mean


def test_the_nearest_word_or_all_there_are() -> None:
    assert did_you_mean("hagmeta", ["cec", "hag-meta"]) == "did you mean 'hag-meta'?"
    assert did_you_mean("xyz", ["cec", "gpn"]) == "there are cec, gpn."
    assert did_you_mean("xyz", ["cec"], "see the docs.") == "see the docs."
    assert did_you_mean("abxx", ["abcd"], "no.", cutoff=0.9) == "no."
