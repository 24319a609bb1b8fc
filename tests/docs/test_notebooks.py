"""The notebooks of the docs run, and what they show is what comes out."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from scripts.site.notebooks import code_cells, markdown_of, record, run_cells
from tests.docs.blocks import ROOT

NOTEBOOKS = sorted((ROOT / "docs").glob("**/*.ipynb"))


def words(outputs: list[dict[str, Any]]) -> list[str]:
    """What outputs say, figures and pictures aside."""
    texts = ["".join(each.get("text", "")) or str(sorted(each.get("data", {}).items())) for each in outputs]
    return [re.sub(r"\d[\d.,]*|'image/png', '[^']*'", "#", text) for text in texts]


@pytest.mark.long
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs_and_shows_what_comes_out(path: Path) -> None:
    cells = code_cells(json.loads(path.read_text()))
    for cell, outputs in zip(cells, run_cells(["".join(cell["source"]) for cell in cells]), strict=True):
        assert words(outputs) == words(cell["outputs"]), "".join(cell["source"])


def test_there_is_one() -> None:
    assert [path.name for path in NOTEBOOKS] == ["notebook.ipynb"]


def notebook(folder: Path, *sources: str) -> Path:
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": [source]} for source in sources]
    path = folder / "one.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}))
    return path


def test_outputs_are_recorded_and_shown(tmp_path: Path) -> None:
    path = notebook(tmp_path, "value = 3\nprint('printed')", "value + 1")
    record(path)
    assert markdown_of(path) == (
        "```python\nvalue = 3\nprint('printed')\n```\n\n```text\nprinted\n```\n\n"
        "```python\nvalue + 1\n```\n\n```text\n4\n```\n"
    )


def test_a_cell_that_fails_is_said(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="nobody"):
        record(notebook(tmp_path, "nobody"))
