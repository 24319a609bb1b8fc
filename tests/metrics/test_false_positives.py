"""The measured false-positive rates: the stored rows, and the benchmark itself."""

import csv
import math
from pathlib import Path

import pytest
from scipy import stats

from benchmarks.false_positives import NULLS, RATIOS, SEEDS, one_graph, rates

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    with (ROOT / "results" / "false_positives.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_stored_p_values_are_those_of_the_test(rows: list[dict[str, str]]) -> None:
    for row in rows:
        for name, ratio in zip(RATIOS, (0.0, 1 / 3, float(row["ratio"])), strict=True):
            error = float(row["deviation"]) * math.sqrt(1 / SEEDS + ratio)
            expected = 2 * stats.t.sf(abs(float(row["difference"])) / error, SEEDS - 1)
            assert float(row[f"p_{name}"]) == pytest.approx(expected, abs=2e-3), "the row is rounded"


def test_the_ratio_of_the_streams_keeps_the_level_and_student_does_not(rows: list[dict[str, str]]) -> None:
    actual = rates(rows)
    assert actual["views"]["stream"] <= 0.05 < actual["views"]["none"]


def test_the_benchmark_compares_learners_on_the_same_splits() -> None:
    actual = one_graph(0)
    assert [row["null"] for row in actual] == list(NULLS)
    for row in actual:
        assert 0.5 < row["ratio"] < 1
        assert float(row["p_none"]) <= float(row["p_third"]) <= float(row["p_stream"])
