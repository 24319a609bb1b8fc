"""Links of README and the docs lead to files and headings that exist."""

import re
from pathlib import Path

import pytest

from scripts.site.commands import GUIDES
from scripts.site.reference import GROUPS
from tests.docs.blocks import FENCE, ROOT, page_paths, read_page

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PAGES = [
    path
    for pattern in ("*.md", "docs/**/*.md", "results/*.md", "results/*/NOTES.md")
    for path in sorted(ROOT.glob(pattern))
]
MADE = {  # by scripts/site
    *(f"commands/{name}.md" for name in ("index", *GUIDES)),
    *(f"python/{name}.md" for name in ("index", *GROUPS)),
    "http.md",
}


def headings(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    text = FENCE.sub("", path.read_text())
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title.lower()).strip()) for title in titles}


def broken(path: Path) -> list[str]:
    found = []
    for link in LINK.findall(FENCE.sub("", path.read_text())):
        target, _, anchor = link.partition("#")
        if ":" in target:
            continue
        place = (path.parent / target).resolve() if target else path
        if place.is_relative_to(ROOT / "docs" / "reference"):
            if place.relative_to(ROOT / "docs" / "reference").as_posix() not in MADE:
                found.append(link)
        elif not place.exists() or (anchor and place.suffix == ".md" and anchor not in headings(place)):
            found.append(link)
    return found


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path: Path) -> None:
    assert broken(path) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One two\n\n[a](nowhere.md) [b](#one-two) [c](#three) `[d](code.md`\n")
    assert broken(page) == ["nowhere.md", "#three"]


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_modules_named_for_developers_exist(page: str) -> None:
    """Each path is one of the repository, or ends a path of the package, the tests or the scripts."""
    files = [f"/{path.as_posix()}" for folder in ("src", "tests", "scripts") for path in (ROOT / folder).rglob("*")]
    named = re.findall(r"`([\w/]+\.py|[\w/]+/)`", (ROOT / page).read_text())
    assert len(named) > 10
    inside = [name for name in named if not (ROOT / name).exists()]
    assert [name for name in inside if not any(file.endswith(f"/{name.rstrip('/')}") for file in files)] == []


HOME_AND_READER = {"install.md", "tutorial.md", "data.md", "experiments.md", "production.md"}


def test_what_readers_look_for_is_one_click_from_the_home_page() -> None:
    links = {link.partition("#")[0] for link in LINK.findall((ROOT / "docs" / "index.md").read_text())}
    assert links >= HOME_AND_READER


def test_commands_say_graph_for_a_graph() -> None:
    for path in page_paths():
        for block in read_page(path).blocks:
            assert not re.search(r"--datasets?\b", block.text), (path.name, block.line)
