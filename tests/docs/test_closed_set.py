"""The figures of the control of ``isolated`` on the page are those that are stored."""

import csv
from pathlib import Path

import numpy as np

from benchmarks.closed_set import table

ROOT = Path(__file__).parents[2]


def test_the_page_shows_the_stored_figures_of_the_control() -> None:
    with (ROOT / "results" / "closed_set.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["dataset"] for row in rows} == {"debian", "wordnet"}
    page = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    assert "\n".join(table(rows)) in page

    def mean(dataset: str, track: str, form: str) -> float:
        kind = (dataset, track, form)
        return float(
            np.mean([float(row["novel"]) for row in rows if (row["dataset"], row["track"], row["form"]) == kind])
        )

    gains, losses = [], []
    for dataset in ("debian", "wordnet"):
        gains.append(mean(dataset, "isolated", "among the new classes") - mean(dataset, "isolated", "no self-training"))
        both = [mean(dataset, "transductive", form) for form in ("no self-training", "among all classes")]
        losses.append(both[0] - both[1])
    said = " ".join(page.split())
    assert f"gains {gains[0]:.1f} points of new classes on `debian` and {gains[1]:.1f} on `wordnet`;" in said
    assert f"self-training loses {losses[0]:.1f} and {losses[1]:.1f}." in said
