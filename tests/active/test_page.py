"""The page docs/your-strategy.md; what it shows is run by tests/docs."""

from tests.docs.blocks import ROOT, read_page


def test_the_strategy_has_at_most_20_lines() -> None:
    strategy = next(block for block in read_page(ROOT / "docs" / "your-strategy.md").blocks if block.values("file"))
    assert len(strategy.text.strip().splitlines()) <= 20
