"""Build the site: ``python -m scripts.site [--out build]``; a warning is an error, and no network is needed."""

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

from scripts.site.staging import ROOT, stage

CONFIGURATION = ROOT / "mkdocs.yml"


def build(out: Path) -> Path:
    """Put all pages together in ``out/pages``, and build the site of them in ``out/site``."""
    stage(out / "pages")
    written = out / "mkdocs.yml"  # the generator takes pages only from below its configuration
    written.write_text(_configuration(out / "pages"))
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "--config-file", str(written)]
    done = subprocess.run(command, cwd=out, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"The site was not built:\n{done.stdout}\n{done.stderr}")
    return out / "site"


def _configuration(pages: Path) -> str:
    """``mkdocs.yml`` for a folder of pages, with the entries of the navigation that exist."""
    import yaml

    configuration = yaml.safe_load(CONFIGURATION.read_text().replace("$ROOT", str(ROOT)))
    configuration["nav"] = there(configuration["nav"], pages)
    return yaml.safe_dump(configuration, sort_keys=False, allow_unicode=True)


def there(nav: list[Any], pages: Path) -> list[Any]:
    """The entries of a navigation whose pages exist: some belong to parts that may be missing."""
    kept: list[Any] = []
    for entry in nav:
        ((title, target),) = entry.items() if isinstance(entry, dict) else [("", entry)]
        if isinstance(target, list):
            below = there(target, pages)
            kept += [{title: below}] if below else []
        elif (pages / target).exists():
            kept.append(entry)
    return kept


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build", help="where the pages and the site are written")
    site = build(parser.parse_args().out.resolve())
    print(f"The site is in {site}: `python -m http.server --directory {site}` shows it.")
