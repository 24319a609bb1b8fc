"""The page "Your method in 40 lines"; what it shows is run by tests/docs."""

from tests.outside.samples import page_blocks


def test_the_learner_has_at_most_40_lines() -> None:
    assert len(page_blocks("python")[0].strip().splitlines()) <= 40
