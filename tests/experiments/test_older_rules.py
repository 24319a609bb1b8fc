"""Results of other rules, in folders that several processes use."""

import json
import shutil
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pytest

from graphfcl.errors import GraphfclWarning
from graphfcl.experiments import Cell, CellStore, Grid, load_grids
from graphfcl.experiments.older_rules import set_other_rules_aside
from graphfcl.stream import RULES
from tests.golden.record import FOLDER

BEFORE = FOLDER / "before" / "grid"


def test_what_was_set_aside_before_is_not_written_over(tmp_path: Path) -> None:
    store = CellStore(tmp_path / "grid")
    for _ in range(3):
        shutil.copytree(BEFORE, tmp_path / "grid", dirs_exist_ok=True)
        with pytest.warns(GraphfclWarning, match="4 results of rules 1"):
            assert set_other_rules_aside(store) == 4
    kept = sorted(path.name for path in store.notes.glob("small.*.json"))
    assert kept == ["small.rules-1-2.json", "small.rules-1-3.json", "small.rules-1.json"]
    assert set_other_rules_aside(store) == 0


def _start(folder: str, number: int) -> None:
    """What a process does when it starts a grid of its own in the folder."""
    set_other_rules_aside(CellStore(folder))
    before = Cell.from_json(json.loads((BEFORE / "grids" / "small.json").read_bytes())["cells"][0])
    Grid(f"own-{number}", "grid", (replace(before, seed=number, rules_number=RULES),)).save(folder)


def test_processes_that_start_together_lose_no_grid(tmp_path: Path) -> None:
    shutil.copytree(BEFORE, tmp_path / "grid")
    context = get_context("fork")
    processes = [context.Process(target=_start, args=(str(tmp_path / "grid"), number)) for number in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 4
    assert sorted(grid.name for grid in load_grids(tmp_path / "grid")) == [f"own-{number}" for number in range(4)]
    assert len(list((tmp_path / "grid" / "state").glob("*.rules-1.parquet"))) == 4
