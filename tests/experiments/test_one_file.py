"""A measure and a dataset are added by one file and one line: tried on a copy of the package."""

import json
import os
import shutil
from pathlib import Path

import pytest

import graphfcl
from tests.methods.test_checks import GRAPH
from tests.warm import run_warm

MEASURE = '''"""The class that is recognised worst: min_c found_c / nodes_c."""

import numpy as np

from graphfcl.measures.confusion import recalls
from graphfcl.measures.measure import SessionMeasure, StreamMeasure, StreamRecord


def worst_recall(confusion: np.ndarray, arrival: np.ndarray, session: int) -> float:
    return float(np.nanmin(recalls(confusion)))


def confused(record: StreamRecord) -> float:
    last = record.confusions[-1]
    return float(last.sum() - np.trace(last))


WORST = SessionMeasure(name="worst_recall", title="worst", what="recall of the worst class", of=worst_recall)
CONFUSED = StreamMeasure(
    name="confused", title="nodes confused", what="in the last session", of=confused, share=False
)
'''
DATASET = f'''"""A graph of our own."""

from graphfcl.datasets.dataset import Dataset
from graphfcl.datasets.synthetic import SYNTHETIC
from graphfcl.stream import Protocol

OPTIONS = dict(pair.split("=") for pair in "{GRAPH.partition(":")[2]}".split(","))
MINE = Dataset(
    "mine",
    "a graph of our own",
    lambda folder, options: SYNTHETIC.load(folder, OPTIONS),
    "made here",
    Protocol(base=4, pseudo_novel=3, way=1, shot=5),
)
'''
TOML = f"""
graphs = ["{GRAPH}"]
methods = []
seeds = 2
ways = [1]
sessions = 2
base = 4
pseudo_novel = 3
[[variants]]
name = "quick"
method = "proto-gcn"
settings = {{"pretraining.epochs" = 3}}
"""
QUICK = ("--method", "proto-gcn", "--set", "pretraining.epochs=3", "--device", "cpu")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package that has one more measure file and one more dataset file."""
    root = tmp_path_factory.mktemp("copy")
    package = root / "graphfcl"
    shutil.copytree(Path(graphfcl.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "measures" / "worst.py").write_text(MEASURE)
    add_line(package / "measures" / "__init__.py", "from graphfcl.measures.worst import WORST, CONFUSED")
    (package / "datasets" / "mine.py").write_text(DATASET)
    add_line(package / "datasets" / "registry.py", '    "mine": "mine:MINE",', before="}\n")
    return root


def add_line(path: Path, line: str, before: str = "# isort: on\n") -> None:
    """Where the others are."""
    first, end, after = path.read_text().partition(before)
    assert end
    path.write_text(f"{first}{line}\n{end}{after}")


def call(copy: Path, *words: object) -> str:
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    done = run_warm("-m", "graphfcl", *words, cwd=copy, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_measure_of_one_file_stands_in_the_result_and_in_what_is_printed(copy: Path, tmp_path: Path) -> None:
    rules = ("--base", 4, "--pseudo-novel", 3, "--way", 1)
    printed = call(copy, "run", "--graph", GRAPH, *rules, *QUICK, "--out", tmp_path)
    result = json.loads((tmp_path / "result.json").read_text())
    for session, confusion in zip(result["sessions"], result["confusion_matrices"], strict=True):
        assert session["worst_recall"] == min(row[k] / sum(row) for k, row in enumerate(confusion))
        assert list(session)[-3:] == ["macro_f1", "worst_recall", "seconds"]
    assert "harmonic   worst" in printed
    assert f"nodes confused {result['confused']:.2f}\n" in printed
    last = next(line for line in printed.splitlines() if line.split()[:1] == [str(len(result["sessions"]) - 1)])
    assert f"{100 * result['sessions'][-1]['worst_recall']:.2f}" in last.split()


@pytest.mark.long
def test_a_measure_of_one_file_stands_in_a_grid_and_its_report(copy: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    (tmp_path / "grid.toml").write_text(TOML)
    call(copy, "bench", tmp_path / "grid.toml", "--device", "cpu", "--out", tmp_path / "out")
    table = pq.read_table(tmp_path / "out" / "cells")
    assert all(0 <= value <= 1 for value in table["worst_recall"].to_pylist())
    assert all(value >= 0 for value in table["confused"].to_pylist())
    text = (tmp_path / "out" / "tables.md").read_text()
    assert "| method | worst, last session | nodes confused |" in text
    assert "worst: recall of the worst class" in text
    assert "further measures" in (tmp_path / "out" / "tables.tex").read_text()
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Further measures" in page
    data = json.loads(page.partition('<script id="data" type="application/json">')[2].partition("</script>")[0])
    (row,) = data["blocks"][0]["rows"]
    assert set(row["further"]) == {"worst_recall", "confused"}
    assert len(row["curves"]["worst_recall"]["mean"]) == 3
    assert set(row["curves"]) == {"worst_recall"}, "a count has no place among curves in %"


def test_a_report_on_cells_from_before_a_measure_does_without_it(copy: Path, tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(TOML)
    source = Path(graphfcl.__file__).parents[1]
    call(source, "bench", tmp_path / "grid.toml", "--device", "cpu", "--out", tmp_path / "out")
    call(copy, "report", tmp_path / "out")
    assert "Further measures" not in (tmp_path / "out" / "report.html").read_text()


def test_a_dataset_of_one_file_is_known(copy: Path, tmp_path: Path) -> None:
    assert "a graph of our own" in call(copy, "data", "list")
    call(copy, "run", "--graph", "mine", *QUICK, "--out", tmp_path)
    assert len(json.loads((tmp_path / "result.json").read_text())["sessions"]) == 4
