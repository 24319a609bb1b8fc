"""Guides are short, and leave results to the pages that are about them."""

import re
from typing import Any

import pytest

from scripts.figures.__main__ import PART
from tests.docs.blocks import FENCE, ROOT

yaml = pytest.importorskip("yaml", reason="the extra docs is not installed")
MOST_WORDS = 900
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def pages_below(entries: list[Any], title: str, inside: bool = False) -> list[str]:
    """The pages of a chapter of the navigation, also those of the chapters below it."""
    found: list[str] = []
    for entry in entries:
        ((name, target),) = entry.items() if isinstance(entry, dict) else [("", entry)]
        here = inside or name == title
        if isinstance(target, list):
            found += pages_below(target, title, here)
        elif here:
            found.append(target)
    return found


NAVIGATION = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
# As in scripts/site, an entry without a page is dropped.
GUIDES = [page for page in pages_below(NAVIGATION, "Guides") if (ROOT / "docs" / page).exists()]


def test_there_are_guides() -> None:
    assert len(GUIDES) > 20
    assert "production.md" in GUIDES


@pytest.mark.parametrize("page", GUIDES)
def test_a_guide_is_short(page: str) -> None:
    text = COMMENT.sub("", PART.sub("", FENCE.sub("", (ROOT / "docs" / page).read_text())))
    assert len(text.split()) <= MOST_WORDS


@pytest.mark.parametrize("page", GUIDES)
def test_a_guide_has_no_table_of_results(page: str) -> None:
    assert not re.findall(r"<!-- figures: (?!measured)", (ROOT / "docs" / page).read_text())


def test_every_page_is_in_the_navigation() -> None:
    listed = pages_below(NAVIGATION, "", inside=True)
    assert len(listed) == len(set(listed))
    assert {path.name for path in (ROOT / "docs").glob("*.md")} <= set(listed)
