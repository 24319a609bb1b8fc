"""The protocol version of results: named in every title; version 2 is read and marked, any other is refused."""

import csv
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from graphfcl import InputError, load_grids, run_grid
from graphfcl.experiments import Cell, CellStore, Grid, read_cell, run_cell
from graphfcl.experiments.cells import cell_key
from graphfcl.report import accuracy_figure, collect, write_page
from graphfcl.report.version_2 import COUNTS
from tests.methods.test_checks import GRAPH
from tests.report.folders import RULES, printed_tables, store, stored_result

STORED = Path(__file__).parents[2] / "results"
stored_cells = pytest.mark.skipif(
    not (STORED / "active" / "grids" / "active.parquet").exists(),
    reason="source distributions have no cells",
)
MARKED = "protocol version 2, being recomputed"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return stored_result(tmp_path_factory.mktemp("template"))


@pytest.fixture
def of_version_2(tmp_path: Path) -> Path:
    """Two cells of ``results/active``, with the counts of their streams."""
    folder = tmp_path / "stored"
    grid = json.loads((STORED / "active" / "grids" / "active.json").read_bytes())
    kept = [cell for cell in grid["cells"] if cell["dataset"] == "debian" and cell["seed"] == 0]
    kept = [cell for cell in kept if cell["strategy"] == "random"]
    (folder / "grids").mkdir(parents=True)
    (folder / "grids" / "active.json").write_text(json.dumps({**grid, "cells": kept}))
    keys = [cell_key(cell) for cell in kept]
    stored = pq.read_table(STORED / "active" / "grids" / "active.parquet", filters=[("key", "in", keys)])
    pq.write_table(stored, folder / "grids" / "active.parquet")
    shutil.copy(STORED / "active" / COUNTS, folder)
    return folder


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_title_names_the_version(
    tmp_path: Path, template: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    titles: dict[str, list[str]] = {}

    def note_titles(figure: Any, path: Path) -> None:
        titles[Path(path).name] = [panel.get_title() for panel in figure.axes if panel.get_title()]

    monkeypatch.setattr("graphfcl.report.figures.save_figure", note_titles)
    store(tmp_path, "table2", "table2", [(Cell(GRAPH, "cec", seed, rules=RULES), template) for seed in range(2)])
    swept = Cell(GRAPH, "cec", 0, rules={**RULES, "way": 2})
    store(tmp_path, "sweep", "sweep", [(swept, {**template, "protocol": {**template["protocol"], "way": 2}})])
    write_page(tmp_path)
    assert all("protocol version 3" in title for title in printed_tables(tmp_path))
    assert "being recomputed" not in (tmp_path / "report.html").read_text()
    page = re.search(r'type="application/json">(.*?)</script>', (tmp_path / "report.html").read_text(), re.S)
    assert page is not None
    assert json.loads(page.group(1))["about"].startswith("synthetic; 1 to 2 seeds; protocol version 3. ")
    accuracy_figure(template, tmp_path / "run.png")
    assert titles["table2.png"] == ["synthetic, protocol version 3"]
    assert titles["run.png"][0].startswith("proto-gcn on synthetic, seed 0, protocol version 3\n")


@stored_cells
def test_stored_results_of_version_2_are_shown_and_marked(of_version_2: Path) -> None:
    write_page(of_version_2)
    tables = printed_tables(of_version_2)
    assert tables
    assert all(MARKED in title for title in tables)
    rows, _ = tables[f"debian, 2-way 5-shot, strict, active, {MARKED}: what labels bring"]
    assert [row[0] for row in rows] == ["anchor, random", "sgc-ridge, random"]


@stored_cells
def test_stored_counts_are_those_of_the_stored_results() -> None:
    """n_test is the number of nodes in the last confusion matrix."""
    with (STORED / "active" / COUNTS).open(newline="") as file:
        counts = {(row["dataset"], row["track"], row["seed"]): int(row["n_test"]) for row in csv.DictReader(file)}
    left = dict(counts)
    for path in sorted((STORED / "active" / "grids").glob("*.parquet")):
        table = pq.read_table(path, columns=["dataset", "track", "seed", "result"])
        for row in table.filter(table["result"].is_valid()).to_pylist():
            place = (row["dataset"], row["track"], str(row["seed"]))
            if place in left:
                matrices = json.loads(row["result"])["result"]["confusion_matrices"]
                assert left.pop(place) == sum(map(sum, matrices[-1]))
    assert not left, "each stream has a result"


@stored_cells
def test_other_folders_of_version_2_are_refused(of_version_2: Path) -> None:
    (of_version_2 / COUNTS).unlink()
    before = everything(of_version_2)
    match = r"^.*active\.json is of an older protocol version; this graphfcl evaluates under protocol version 3.*--out"
    with pytest.raises(InputError, match=match):
        write_page(of_version_2)
    with pytest.raises(InputError, match=match):
        load_grids(of_version_2)
    with pytest.raises(InputError, match=match):
        run_grid(Grid("other", "grid", (Cell(GRAPH, "proto-gcn", 0, rules=RULES),)), of_version_2)
    with pytest.raises(InputError, match="parquet is of an older protocol version"):
        read_cell(of_version_2 / "grids" / "active.parquet")
    assert {name: content for name, content in everything(of_version_2).items() if "lock" not in name} == before


def test_a_cell_of_another_version_does_not_run(tmp_path: Path) -> None:
    cell = Cell(GRAPH, "proto-gcn", 0, rules=RULES, protocol_version=4)
    with pytest.raises(InputError, match="protocol version 4; this graphfcl evaluates under protocol version 3"):
        run_cell(cell, device="cpu", encoders=tmp_path, data_dir=None)
    assert cell.key != Cell(GRAPH, "proto-gcn", 0, rules=RULES).key


def test_unfinished_cells_are_counted_where_they_will_stand(tmp_path: Path, template: dict[str, Any]) -> None:
    cells = [(Cell(GRAPH, "cec", seed, rules=RULES), template) for seed in range(2)]
    left = Cell(GRAPH, "gpn", 0, rules=RULES)
    broken = Cell(GRAPH, "gpn", 3, rules=RULES)
    store(tmp_path, "table2", "table2", [*cells, (left, None), (broken, None)])
    CellStore(tmp_path).fail(broken, "it broke")
    (block,) = collect(tmp_path).blocks
    assert (block.missing, block.failures) == (1, (("gpn", 3, "it broke"),))
