"""What commands import: one that asks no learner does not wait for torch."""

import csv
import json
from pathlib import Path

import pytest

from tests.cli.command import run_python
from tests.production.models import fitted

LARGE = ("torch", "scipy", "sklearn", "pyarrow", "matplotlib")  # pyarrow itself imports pandas where it is installed
DRIVER = """
import json, runpy, sys
out, sys.argv = sys.argv[1], ["graphfcl", *sys.argv[2:]]
try:
    runpy.run_module("graphfcl", run_name="__main__", alter_sys=True)
finally:
    with open(out, "w") as file:
        json.dump(sorted(sys.modules), file)
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a cache."""
    folder = tmp_path_factory.mktemp("start_up") / "model"
    classifier = fitted()
    classifier.save(folder)
    classifier.wait()
    return folder


def large_modules(tmp_path: Path, *arguments: object) -> set[str]:
    """Which of the large packages a command leaves in ``sys.modules``."""
    listed = tmp_path / "modules.json"
    result = run_python("-c", DRIVER, listed, *arguments)
    assert result.code == 0, result.err
    modules = json.loads(listed.read_text())
    assert "graphfcl.cli" in modules
    return {name for name in LARGE if name in modules}


def test_help_and_the_package_need_nothing(tmp_path: Path) -> None:
    assert large_modules(tmp_path, "--help") == set()
    assert large_modules(tmp_path, "predict", "--help") == set()
    code = "import sys, graphfcl; from graphfcl import GraphClassifier, Learner, find_method; find_method('anchor')\n"
    result = run_python("-c", f"{code}print([name for name in {LARGE} if name in sys.modules])")
    assert result.out.strip() == "[]", result


def test_history_reads_json_alone(model: Path, tmp_path: Path) -> None:
    assert large_modules(tmp_path, "history", "--model", model) == set()
    assert large_modules(tmp_path, "history", "--model", model, "--json") == set()


def test_labels_are_read_and_written_without_arrow_and_scipy(model: Path, tmp_path: Path) -> None:
    assert large_modules(tmp_path, "labels", "--model", model, "--out", tmp_path / "labels.csv") == set()
    assert (tmp_path / "labels.csv").read_text().startswith('"node","class","part","by","when"\n')
    written = large_modules(tmp_path, "labels", "--model", model, "--out", tmp_path / "labels.parquet")
    assert written == {"pyarrow"}


def test_answers_out_of_the_cache_need_no_learner(model: Path, tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("node\n5\n")
    one, everything = tmp_path / "answer.csv", tmp_path / "answers.csv"
    assert large_modules(tmp_path, "predict", "--model", model, "--nodes", tmp_path / "one.csv", "--out", one) == {
        "pyarrow"
    }
    assert large_modules(tmp_path, "predict", "--model", model, "--out", everything) == {"pyarrow"}
    first, second = (
        next(row for row in csv.DictReader(path.open()) if row["node"] == "5") for path in (one, everything)
    )
    assert first["class"] == second["class"]
    assert float(first["probability"]) == pytest.approx(float(second["probability"]))


@pytest.mark.long
def test_without_the_cache_the_learner_is_asked(model: Path, tmp_path: Path) -> None:
    (model / "cache.sqlite").unlink()
    modules = large_modules(tmp_path, "predict", "--model", model, "--out", tmp_path / "answers.csv", "--device", "cpu")
    assert {"torch", "scipy"} <= modules


@pytest.mark.long
def test_a_learner_is_loaded_without_an_optimiser(model: Path, tmp_path: Path) -> None:
    listed = tmp_path / "modules.json"
    (tmp_path / "supports.csv").write_text("node,class,by\n" + "".join(f"{node},class-08,me\n" for node in free(model)))
    command = ("learn", tmp_path / "supports.csv", "--model", model, "--device", "cpu")
    result = run_python("-c", DRIVER, listed, *command)
    assert result.code == 0, result.err
    modules = json.loads(listed.read_text())
    assert "torch" in modules
    assert "torch._dynamo" not in modules, "Adam imports it, which takes as long as torch itself"
    assert "sklearn" not in modules
    assert "pandas" not in modules, "Arrow imports it for a table with gaps"


def free(model: Path) -> list[int]:
    """Some nodes without a label."""
    from graphfcl import GraphClassifier

    classifier = GraphClassifier.load(model)
    labelled = set(classifier.label_columns()["node"].tolist())
    return [node for node in classifier.node_ids_.tolist() if node not in labelled][:5]
