"""The page docs/asking.md: its strategy and its commands, run as they stand there."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.command import graphfcl_inside

PAGE = Path(__file__).parents[2] / "docs" / "asking.md"
GRAPH = "synthetic:nodes=300,edges=1200,classes=9,features=60,signal=0.8,skew=0.4"
RULES = ["--way", "2", "--shot", "3", "--sessions", "1", "--device", "cpu"]


def blocks(kind: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    return [text for language, text in found if language == kind]


def test_the_strategy_has_at_most_20_lines() -> None:
    assert len(blocks("python")[0].strip().splitlines()) <= 20


def run_line(kind: str, place: int) -> None:
    """A command of the page on a small graph with few rows."""
    lines = [line for block in blocks("") for line in block.splitlines() if line.split()[1:2] == [kind]]
    words = re.sub(r"--seeds \d", "--seeds 1", lines[place].replace("anchor", "sgc-ridge").replace("debian", GRAPH))
    done = graphfcl_inside(*words.split()[1:], *RULES)
    assert done.code == 0, done.err


def test_its_strategy_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "most_links.py").write_text(blocks("python")[0])
    monkeypatch.chdir(tmp_path)
    run_line("run", 1)
    result = json.loads(next((tmp_path / "runs").glob("*most-links*/result.json")).read_text())
    assert result["strategy"] == "most-links"


@pytest.mark.long
def test_its_other_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "most_links.py").write_text(blocks("python")[0])
    monkeypatch.chdir(tmp_path)
    run_line("run", 0)
    run_line("bench", 0)
    run_line("bench", 1)
    assert "of-each-class¶" in (tmp_path / "runs" / "asked" / "tables.md").read_text()
