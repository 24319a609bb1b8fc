"""Submissions to the benchmark: made from a grid, checked against the streams."""

import csv
from pathlib import Path

import numpy as np
import pytest

from graphfcl.experiments.benchmark import benchmark_hashes, benchmark_streams
from scripts.submission import COLUMNS, main
from tests.docs.blocks import ROOT

RESULTS = ROOT / "results" / "bench"


@pytest.fixture(scope="module")
def rows() -> list[list[object]]:
    """A submission for one stream, in which half of the nodes of the first class are wrong and all others right."""
    stream = next(benchmark_streams("debian", None))
    listed: list[list[object]] = []
    for session in range(len(stream) + 1):
        tested = np.bincount(stream.queries(session).labels, minlength=stream.classes_seen(session)).tolist()
        for column, number in enumerate(tested):
            right = number // 2 if column == 0 else number
            row = ["debian", 0, benchmark_hashes()["streams"]["debian"][0], session, stream.classes[column]]
            listed.append([*row, number, right])
    return listed


def write(path: Path, rows: list[list[object]]) -> Path:
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *rows])
    return path


def test_the_figures_are_mean_recalls(
    rows: list[list[object]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(write(tmp_path / "all.csv", rows[::-1]))]) == 0
    by_session: dict[object, list[float]] = {}
    for *_, session, _, tested, correct in rows:
        by_session.setdefault(session, []).append(int(str(correct)) / int(str(tested)))
    recalls = [100 * sum(values) / len(values) for values in by_session.values()]
    out = capsys.readouterr().out
    assert f"debian: last session {recalls[-1]:.1f} %, average {sum(recalls) / len(recalls):.1f} %" in out
    assert "seeds 1, 2, 3, 4, 5, 6, 7, 8, 9 are missing; checked against the streams." in out


@pytest.mark.parametrize(
    ("column", "value", "complaint"),
    [
        ("graph", "cora", "'cora' with seed 0 is not part of the benchmark"),
        ("seed", 10, "'debian' with seed 10 is not part of the benchmark"),
        ("stream", "abc", "not the hash of the stream of debian with seed 0"),
        ("session", "one", "must be whole numbers"),
        ("class", "nothing", "class 'nothing' has not arrived yet or is unknown"),
        ("tested", 100_000, "test nodes are of class"),
        ("correct", 100_001, "nodes cannot be correct"),
    ],
)
def test_what_is_wrong_is_said(
    rows: list[list[object]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    column: str,
    value: object,
    complaint: str,
) -> None:
    changed = [list(row) for row in rows]
    changed[40][COLUMNS.index(column)] = value
    assert main(["check", str(write(tmp_path / "wrong.csv", changed))]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert complaint in error


def test_no_class_may_be_missing_or_stand_twice(
    rows: list[list[object]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(write(tmp_path / "less.csv", rows[:-1]))]) == 2
    assert "is missing" in capsys.readouterr().err
    assert main(["check", str(write(tmp_path / "more.csv", [*rows, rows[0]]))]) == 2
    assert "stands twice in session 0" in capsys.readouterr().err


@pytest.mark.skipif(not (RESULTS / "grids" / "table2.parquet").exists(), reason="a source distribution has no cells")
def test_a_submission_is_made_from_a_grid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "mine.csv"
    assert main(["make", str(RESULTS), "--method", "sgc-ridge", "--out", str(out)]) == 0
    assert main(["check", str(out)]) == 0
    assert "wordnet: last session " in capsys.readouterr().out
    assert main(["make", str(RESULTS), "--method", "nobody", "--out", str(out)]) == 2
    assert "no finished cell of nobody" in capsys.readouterr().err
