"""The figures of the control of ``isolated`` on the page are those that are stored."""

import csv
from pathlib import Path

from benchmarks.closed_set import table

ROOT = Path(__file__).parents[2]


def test_the_page_shows_the_stored_figures_of_the_control() -> None:
    with (ROOT / "results" / "closed_set.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["dataset"] for row in rows} == {"debian", "wordnet"}
    assert "\n".join(table(rows)) in (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
