"""``graphfcl run`` on a graph folder: on the disk, in memory, and what cannot be."""

import json
from pathlib import Path

import pytest

from tests.methods.blocks.samples import folder_of, random_graph
from tests.warm import Done, run_warm

QUICK = ["--track", "open", "--base", "3", "--pseudo-novel", "3", "--way", "3", "--seed", "1"]


def command(graph: Path, method: str, *words: str) -> Done:
    return run_warm("-m", "graphfcl", "run", "--graph", graph, "--method", method, *QUICK, *words)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("graphs") / "small"
    folder_of(random_graph(600), path)
    return path


def test_on_the_disk_and_in_memory_it_finds_the_same(graph: Path, tmp_path: Path) -> None:
    results = []
    for name, words in (("disk", ["--work", str(tmp_path / "work"), "--workers", "1"]), ("memory", [])):
        done = command(graph, "sgc-ridge", "--out", str(tmp_path / name), *words)
        assert done.returncode == 0, done.stderr
        results.append(json.loads((tmp_path / name / "result.json").read_text()))
    assert results[0]["confusion_matrices"] == results[1]["confusion_matrices"]
    assert results[0]["chosen"] == results[1]["chosen"]
    assert any((tmp_path / "work").iterdir())


@pytest.mark.long
def test_what_cannot_be_is_said_in_one_sentence(graph: Path, tmp_path: Path) -> None:
    cases = (
        (["proto-gcn", "--memory", "100MB"], "proto-gcn needs all of"),
        (["proto-gcn", "--work", "slices"], "proto-gcn cannot work on disk: leave --work out"),
        (["proto-gcn", "--memory", "lots"], "--memory is 'lots'; write it as 4GB"),
        (
            ["sgc-ridge", "--memory", "100MB", "--workers", "1"],
            "is too small: a slice of 8 columns of 600 nodes needs",
        ),
    )
    for (method, *words), message in cases:
        done = command(graph, method, "--out", str(tmp_path / "out"), *words)
        assert done.returncode == 2
        assert message in " ".join(done.stderr.split())
        assert "Traceback" not in done.stderr
        if method == "proto-gcn" and "needs" in message:
            assert "use anchor or sgc-ridge" in " ".join(done.stderr.split())


def test_options_of_folders_are_refused_elsewhere(tmp_path: Path) -> None:
    done = command(Path("synthetic"), "sgc-ridge", "--work", str(tmp_path))
    assert done.returncode == 2
    assert "--work applies only to graph folders" in done.stderr
