"""Build the site: ``python -m scripts.site [--out build/site]``; a warning is an error, and no network is needed."""

import argparse
import importlib
import logging
from pathlib import Path
from typing import Any

from scripts.site.staging import ROOT, stage


def build(out: Path, pages: Path) -> None:
    """Make all pages in one folder and the site of them in another."""
    stage(pages)
    config = importlib.import_module("mkdocs.config").load_config(
        str(ROOT / "mkdocs.yml"), docs_dir=str(pages.resolve()), site_dir=str(out.resolve()), strict=True
    )
    config["nav"] = there(config["nav"], pages)
    importlib.import_module("mkdocs.commands.build").build(config)


def there(nav: list[Any], pages: Path) -> list[Any]:
    """The entries of a navigation whose pages exist: some belong to parts that may be missing."""
    kept: list[Any] = []
    for entry in nav:
        ((title, target),) = entry.items() if isinstance(entry, dict) else [("", entry)]
        if isinstance(target, list):
            kept.append({title: there(target, pages)})
        elif (pages / target).exists():
            kept.append(entry)
    return kept


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site", help="where the site is written")
    parser.add_argument("--pages", type=Path, default=ROOT / "build" / "pages", help="where its pages are put together")
    given = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    build(given.out, given.pages)
    print(f"The site is in {given.out}: `python -m http.server --directory {given.out}` shows it.")
