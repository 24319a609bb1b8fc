"""The script that computes the stored results: its grids exist, and it installs only seeds that are complete."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphfcl.experiments import Cell, CellStore, Grid, GridStatus
from graphfcl.report import collect
from scripts import results
from tests.cli.command import graphfcl_inside
from tests.methods.test_checks import GRAPH
from tests.report.folders import RULES, store, stored_result


@pytest.mark.parametrize("name", results.GRIDS)
def test_every_grid_is_one_that_bench_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands are read as `bench` reads them, without running a cell."""
    seen: list[Grid] = []

    def note(grid: Grid, folder: Path, **_: Any) -> GridStatus:
        seen.append(grid)
        grid.save(folder)
        return GridStatus(len(grid.cells), done=len(grid.cells))

    monkeypatch.setattr("graphfcl.experiments.run_grid", note)
    monkeypatch.setattr(sys.modules["graphfcl.cli.bench"], "_check", lambda *_: {})
    monkeypatch.chdir(results.ROOT)
    done = graphfcl_inside("bench", *results.GRIDS[name].split(), "--device", "cpu", "--out", tmp_path)
    assert done.code == 0, done.err
    (grid,) = seen
    assert len(grid.cells) == len({cell.key for cell in grid.cells})
    assert len({cell.seed for cell in grid.cells}) in (1, 3, 5, 10)


def test_the_command_of_the_readme_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (results.ROOT / "results" / "README.md").read_text()
    found = re.search(r"python -m scripts\.results ([^#\n]*)", text)
    assert found is not None
    commands: list[list[str]] = []

    def note(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 1 if "table3" in command else 0)

    monkeypatch.setattr(results.subprocess, "run", note)
    monkeypatch.setattr(results, "install", lambda *_: 0)
    assert results.main(found[1].split()) == 1, "one grid has failed, and the others have run"
    assert len(commands) == len(results.GRIDS)
    assert commands[0][-6:] == ["--device", "cuda", "--jobs", "15", "--out", "runs/results"]
    with pytest.raises(SystemExit):
        results.main(["table22"])
    assert results.main(["sweep", "--jobs", "2"]) == 0
    assert commands[-1][4] == "sweep"


def test_only_complete_seeds_of_a_graph_are_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "dataset_rows", lambda names, _: [(name, *range(10)) for name in names])
    template = stored_result(tmp_path / "template")
    cells: list[tuple[Cell, dict[str, Any] | None]] = []
    for dataset in ("a", "b"):
        for seed in range(3):
            for method in ("cec", "gpn"):
                left = (dataset, seed, method) in {("a", 2, "gpn"), ("b", 1, "cec"), ("b", 2, "cec")}
                result = None if left else {**template, "dataset": dataset}
                cells.append((Cell(f"{GRAPH},{dataset}", method, seed, rules=RULES), result))
    runs, target = tmp_path / "runs", tmp_path / "bench"
    store(runs, "table2", "table2", cells)
    target.mkdir()
    (target / "old.txt").write_text("of an earlier run")
    assert results.install(runs, target) == 6
    blocks = {block.dataset: block for block in collect(target).blocks}
    assert [sorted(row.results) for row in blocks["a"].rows] == [[0, 1], [0, 1]]
    assert [sorted(row.results) for row in blocks["b"].rows] == [[0], [0]]
    assert not (target / "old.txt").exists()
    assert {path.name for path in target.iterdir()} >= {"report.html", "tables.md", "table1.json", "grids"}
    assert "command" in json.loads((target / "grids" / "table2.json").read_text())
    assert CellStore(runs).done(cells[0][0]), "the runs stay as they are"
    other = tmp_path / "other"
    store(other, "sweep", "sweep", [(Cell(GRAPH, "cec", 0, rules=RULES), template)])
    assert results.install(other, target) == 7, "grids that were not run stay"
    store(other, "table2", "table2", cells[:2])
    with pytest.raises(SystemExit, match="has 6 cells of table2"):
        results.install(other, target)
    assert len(collect(target).blocks) == 3


def test_continued_runs_start_with_the_stored_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs, stored, computed = tmp_path / "runs", tmp_path / "bench", tmp_path / "computed"
    template = stored_result(tmp_path / "template")
    cells = [Cell(GRAPH, "cec", seed, rules=RULES) for seed in range(3)]
    store(computed, "table2", "table2", [(cell, template) for cell in cells])
    monkeypatch.setattr(results, "dataset_rows", lambda names, _: [(name, *range(10)) for name in names])
    results.install(computed, stored)
    monkeypatch.setattr(results, "RUNS", runs)
    monkeypatch.setattr(results, "RESULTS", stored)
    monkeypatch.setattr(results, "ROOT", tmp_path)
    started: list[list[bool]] = []

    def note(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        started.append([CellStore(runs).done(cell) for cell in cells])
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(results.subprocess, "run", note)
    assert results.main(["table2", "--continue"]) == 0
    monkeypatch.setattr(results, "install", lambda *_: 0)
    CellStore(runs).path(cells[0]).unlink()
    assert results.main(["table2", "--continue"]) == 0
    assert started == [[True, True, True], [False, True, True]], "a folder of runs that exists stays as it is"
