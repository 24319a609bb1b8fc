"""The page "Your method in 40 lines": its learner, its commands and its Python, run as they stand there."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.outside.samples import GRAPH, nearest_mean, page_blocks


def in_folder(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    nearest_mean(folder)
    return folder


def test_the_learner_has_at_most_40_lines() -> None:
    assert len(page_blocks("python")[0].strip().splitlines()) <= 40


def commands() -> list[str]:
    """The shell commands, on a small graph and with few methods beside."""
    found = []
    for line in page_blocks("")[0].splitlines():
        command = line.partition("#")[0].strip().replace("debian", GRAPH)
        if " run " in command and "--dataset" not in command:
            command += f" --dataset {GRAPH}"
        if " bench " in command:
            command = command.replace("--seeds 3", "--seeds 1")
            command += f" --datasets {GRAPH} --methods proto-gcn --protocol strict --way 1 --out bench"
        found.append(command)
    return found


def test_its_commands_run(folder: Path) -> None:
    lines = commands()
    assert [line.split()[1] for line in lines] == ["check", "run", "run", "bench", "fit", "predict"]
    for line in lines:
        done = in_folder(folder, "-m", "graphfcl", *line.split()[1:])
        assert done.returncode == 0, f"{line}: {done.stderr[-2000:]}"
    assert len(list((folder / "runs").glob("*nearest-mean*/result.json"))) == 2
    table = (folder / "bench" / "tables.md").read_text()
    assert "nearest-mean" in table
    assert "proto-gcn" in table
    assert (folder / "answers.csv").read_text().startswith('"node","class","probability"')


def test_its_python_runs(folder: Path) -> None:
    code = page_blocks("python")[1].replace('"debian"', repr(GRAPH))
    done = in_folder(folder, "-c", f"{code}\nprint(model, GraphClassifier('nearest-mean'))")
    assert done.returncode == 0, done.stderr[-2000:]
    assert "GraphClassifier('nearest-mean', 9 classes" in done.stdout
    assert 0.5 < float(done.stdout.split()[0]) <= 1
