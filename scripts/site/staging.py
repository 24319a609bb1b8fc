"""Puts the pages of the site together: those of ``docs/``, those at the root, and those that are made here."""

import re
import shutil
from pathlib import Path, PurePosixPath

from scripts.site.commands import command_pages
from scripts.site.formulas import FORMULA, with_mathml
from scripts.site.http_api import http_page
from scripts.site.notebooks import markdown_of
from scripts.site.reference import python_pages

ROOT = Path(__file__).parents[2]
FROM_ROOT = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "results/README.md": "results/overview.md",
    "results/bench/tables.md": "results/tables.md",
}
# Blocks of code, formulas, links, and code in a line, whichever comes first: what is code stays as it is.
TOKEN = re.compile(
    rf"^ *```.*?^ *```$|{FORMULA}|(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)|`[^`\n]*`",
    re.DOTALL | re.MULTILINE,
)
INTERVAL = re.compile(r"(\d) ± (?=\d)")  # stays on one line
TEST_MARK = re.compile(r"^ *<!-- test: [^\n]* -->\n", re.MULTILINE)


def stage(pages: Path) -> None:
    """Write all pages into an empty folder."""
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(ROOT / "docs", pages, ignore=shutil.ignore_patterns("*.ipynb"))
    places = page_places()
    made = {**command_pages(), **python_pages(), "reference/http.md": http_page()}
    known = {**places, **{f"docs/{name}": name for name in made}}
    for source, page in places.items():
        path = ROOT / source
        text = markdown_of(path) if path.suffix == ".ipynb" else path.read_text()
        _write(pages / page, site_text(text, source, known))
    for name, text in made.items():
        _write(pages / name, text)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def page_places() -> dict[str, str]:
    """Files of the repository, and the pages of the site that they become."""
    folder = ROOT / "docs"
    written = [*sorted(folder.rglob("*.md")), *sorted(folder.glob("*.ipynb"))]
    docs = {
        path.relative_to(ROOT).as_posix(): path.relative_to(folder).with_suffix(".md").as_posix() for path in written
    }
    notes = {
        path.relative_to(ROOT).as_posix(): f"results/{path.parent.name}-notes.md"
        for path in sorted((ROOT / "results").glob("*/NOTES.md"))
    }
    return {**docs, **notes, **{name: page for name, page in FROM_ROOT.items() if (ROOT / name).exists()}}


def site_text(text: str, source: str, places: dict[str, str]) -> str:
    """A page as the site has it: links lead to pages of the site, and become plain text where there is none."""
    here = PurePosixPath(places[source]).parent

    def replaced(found: re.Match[str]) -> str:
        if found["block"] or found["inline"]:
            return with_mathml(found)
        target, _, anchor = (found["target"] or "").partition("#")
        wanted = _joined(PurePosixPath(source).parent, target)
        if not target or ":" in target or found["image"]:
            return found.group()
        if wanted not in places:
            return found["text"]
        return f"[{found['text']}]({'../' * len(here.parts)}{places[wanted]}{'#' + anchor if anchor else ''})"

    return INTERVAL.sub("\\1\u00a0±\u00a0", TOKEN.sub(replaced, TEST_MARK.sub("", text)))


def _joined(folder: PurePosixPath, target: str) -> str:
    parts: list[str] = list(folder.parts)
    for part in PurePosixPath(target).parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)
