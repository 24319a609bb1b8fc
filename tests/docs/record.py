"""Write the figures of today into the sessions of pages: ``python -m tests.docs.record docs/tutorial.md``."""

import sys
import tempfile
from pathlib import Path

import tests.docs.preloaded  # noqa: F401 (threads are limited before torch is imported)
from tests.docs.blocks import read_page
from tests.docs.running import run_page


def record(path: Path) -> None:
    """Run a page and replace what its sessions with the mark ``output`` show by what came out."""
    page = read_page(path)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        printed = run_page(page, Path(folder))
    text = path.read_text()
    for block in page.blocks:
        if block.line in printed:
            text = text.replace(block.text, printed[block.line], 1)
    path.write_text(text)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        record(Path(name).resolve())
