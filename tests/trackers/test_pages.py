"""The pages on Python and on trackers run from top to bottom, where the libraries that they name are installed."""

import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
BLOCKS = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
OPTIONAL = {
    "import pandas": ("pandas",),
    "TensorBoardTracker": ("tensorboard",),
    "MLflowTracker": ("mlflow", "sqlalchemy"),  # a database in a file, as MLflow chooses by itself
}


@pytest.mark.long
@pytest.mark.parametrize("page", ["python.md", "trackers.md"])
def test_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    left_out = []
    for block in BLOCKS.findall((DOCS / page).read_text()):
        needed = [library for word, libraries in OPTIONAL.items() if word in block for library in libraries]
        missing = [library for library in needed if not _installed(library)]
        if missing:
            left_out += missing
            continue
        exec(compile(block, page, "exec"), names)
    if left_out:
        pytest.skip(f"all other blocks ran; not installed: {', '.join(left_out)}")


def _installed(library: str) -> bool:
    try:
        __import__(library)
    except ImportError:
        return False
    return True
