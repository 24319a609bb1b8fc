"""Methods from outside in grids and runs: worker processes, edited code, names in files."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from graphfcl import InputError, load_grids, run_grid
from graphfcl.stream import PROTOCOL_VERSION
from tests.cli.command import graphfcl_inside
from tests.outside.samples import GRAPH, RULES, nearest_mean
from tests.warm import Done, run_warm

SCRIPT = """
import sys
from graphfcl import register_method
from graphfcl.experiments import Cell, CellStore, Grid, run_grid
{bring}
rules = {{"base": 4, "pseudo_novel": 3, "way": 1, "shot": 4}}
if __name__ == "__main__":
    cells = [Cell({graph!r}, "nearest-mean", seed, rules=rules) for seed in (0, 1)]
    cells.append(Cell({graph!r}, "proto-gcn", 0, rules=rules, settings={{"pretraining.epochs": 2}}))
    grid = Grid("mine", "grid", tuple(cells))
    status = run_grid(grid, "out", jobs=2, start_method=sys.argv[1])
    errors = [CellStore("out").error(cell) for cell in grid.cells]
    assert (status.done, status.failed) == (3, 0), errors
    assert grid.cells[0].source.startswith({module!r} + ":NearestMean@"), grid.cells[0].source
    assert grid.cells[2].source == ""
"""


def run_script(folder: Path, *words: str) -> Done:
    return run_warm(*words, cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1"})


def graphfcl(folder: Path, *words: str) -> Done:
    return run_script(folder, "-m", "graphfcl", *words)


@pytest.mark.parametrize(
    ("where", "start_method"),
    [
        pytest.param("module", "spawn", marks=pytest.mark.long),
        ("module", "forkserver"),
        ("module", "fork"),
        pytest.param("script", "spawn", marks=pytest.mark.long),
    ],
)
def test_it_works_in_worker_processes_under_every_start_method(tmp_path: Path, where: str, start_method: str) -> None:
    path = nearest_mean(tmp_path)
    bring = "from nearest_mean import NearestMean\nregister_method(NearestMean)"
    if where == "script":
        bring = path.read_text() + "\nregister_method(NearestMean)"
    module = "nearest_mean" if where == "module" else "__main__"
    (tmp_path / "go.py").write_text(SCRIPT.format(bring=bring, graph=GRAPH, module=module))
    done = run_script(tmp_path, "go.py", start_method)
    assert done.returncode == 0, done.stderr[-3000:]


TOML = f"""
name = "mine"
graphs = ["{GRAPH}"]
methods = ["nearest_mean:NearestMean"]
seeds = 1
ways = [1]
sessions = 2
"""


def bench(folder: Path, *more: str) -> Done:
    return graphfcl(folder, "bench", "mine.toml", "--out", "out", "--device", "cpu", *more)


def cells(folder: Path) -> list[dict[str, Any]]:
    return json.loads((folder / "out" / "grids" / "mine.json").read_text())["cells"]


@pytest.mark.long
def test_edited_code_is_never_taken_for_what_was_computed(tmp_path: Path) -> None:
    """Two seeds and another grid, then an edit and one seed: no row mixes the old code with the new."""
    path = nearest_mean(tmp_path)
    (tmp_path / "mine.toml").write_text(TOML.replace("seeds = 1", "seeds = 2"))
    (tmp_path / "other.toml").write_text(TOML.replace('"mine"', '"other"'))
    refused = bench(tmp_path)
    assert refused.returncode == 2
    assert "add --method nearest_mean:NearestMean" in refused.stderr
    assert not (tmp_path / "out").exists()
    own = ("--method", "nearest_mean:NearestMean")
    assert "2 cells done, 0 failed" in bench(tmp_path, *own).stdout
    first, _ = cells(tmp_path)
    assert first["method"] == "nearest-mean"
    assert first["source"].startswith("nearest_mean:NearestMean@")
    other = graphfcl(tmp_path, "bench", "other.toml", "--out", "out", "--device", "cpu", *own)
    assert "of 1 done" not in other.stderr, "nothing was left to run"

    path.write_text(path.read_text().replace("return 2 * products", "return -2 * products"))
    (tmp_path / "mine.toml").write_text(TOML)
    assert "1 cells done" in bench(tmp_path, *own).stdout
    (second,) = cells(tmp_path)
    assert second["source"] != first["source"]
    assert len(list((tmp_path / "out" / "cells").glob("*.parquet"))) == 3, "what was computed is kept"
    assert json.loads((tmp_path / "out" / "grids" / "other.json").read_text())["cells"] == []
    page = (tmp_path / "out" / "tables.md").read_text()
    rows = [line.split("|") for line in page.splitlines() if line.startswith("| nearest-mean")]
    assert len(rows) == 3, "a table of results, one of costs and one of choices"
    assert rows[0][2].strip() == "1"
    assert float(rows[0][3]) < 20, "the sign was turned"


@pytest.mark.long
def test_a_run_of_edited_code_is_another_run(tmp_path: Path) -> None:
    path = nearest_mean(tmp_path)
    words = ("run", "--method", "nearest_mean:NearestMean", "--graph", GRAPH, *RULES, "--out", "out")
    assert graphfcl(tmp_path, *words).returncode == 0
    assert graphfcl(tmp_path, *words, "--resume").returncode == 0
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["method"] == "nearest-mean"
    assert result["source"].startswith("nearest_mean:NearestMean@")
    path.write_text(path.read_text() + "\n# edited\n")
    refused = graphfcl(tmp_path, *words, "--resume")
    assert refused.returncode == 2
    assert "another run" in refused.stderr


@pytest.mark.long
def test_code_that_is_edited_while_a_grid_runs_fails_its_cells(tmp_path: Path) -> None:
    path = nearest_mean(tmp_path)
    script = SCRIPT.format(
        bring="from nearest_mean import NearestMean\nregister_method(NearestMean)", graph=GRAPH, module="nearest_mean"
    )
    edit = f"    open({str(path)!r}, 'a').write('# edited')\n    status = run_grid("
    (tmp_path / "go.py").write_text(script.replace("    status = run_grid(", edit))
    done = run_script(tmp_path, "go.py", "spawn")
    assert done.returncode == 1
    assert "was edited after this grid was started" in done.stderr


@pytest.mark.parametrize(
    ("method", "source"), [("os:system", ""), ("trap:Learner", ""), ("mine", "trap:Learner@0123"), ("gone", "gone:X@0")]
)
def test_a_stored_grid_may_name_a_method_but_never_import_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, source: str
) -> None:
    (tmp_path / "trap.py").write_text("open('sprung', 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "out" / "grids").mkdir(parents=True)
    cell = {"dataset": GRAPH, "method": method, "seed": 0, "source": source, "protocol_version": PROTOCOL_VERSION}
    values = {"name": "crafted", "kind": "grid", "command": "", "cells": [cell]}
    (tmp_path / "out" / "grids" / "crafted.json").write_text(json.dumps(values))
    (grid,) = load_grids("out")
    with pytest.raises(InputError, match=f"'{method}' comes from outside graphfcl"):
        run_grid(grid, "out")
    assert graphfcl_inside("report", "out").code == 0
    assert not list((tmp_path / "out" / "state").glob("*.failed.json")), "the cell may run once the method is there"
    assert not (tmp_path / "sprung").exists()
    assert "trap" not in sys.modules


# Installed plug-ins

PLUG_IN = "[graphfcl.methods]\nnearest-mean = nearest_mean:NearestMean\nhalf = no_such_module:Learner\n"


@pytest.mark.long
def test_an_installed_plug_in_is_listed_and_runs_in_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    (site / "nearest_plug_in-1.0.dist-info").mkdir(parents=True)
    (site / "nearest_plug_in-1.0.dist-info" / "METADATA").write_text("Name: nearest-plug-in\nVersion: 1.0\n")
    (site / "nearest_plug_in-1.0.dist-info" / "entry_points.txt").write_text(PLUG_IN)
    nearest_mean(site)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")]))
    listed = graphfcl(tmp_path, "methods")
    assert listed.returncode == 0
    assert "Nearest class mean on propagated features." in listed.stdout
    assert "broken plug-in" in listed.stdout
    assert "hag-meta" in listed.stdout
    (tmp_path / "mine.toml").write_text(TOML.replace("nearest_mean:NearestMean", "nearest-mean"))
    assert "1 cells done, 0 failed" in bench(tmp_path).stdout
    assert cells(tmp_path)[0]["source"].startswith("nearest_mean:NearestMean@")
    broken = graphfcl(tmp_path, "run", "--method", "half", "--graph", GRAPH)
    assert broken.returncode == 2
    assert broken.stderr.count("\n") == 1
    assert "the plug-in half" in broken.stderr
