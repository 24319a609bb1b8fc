"""The protocol version of results: named in every title, and refused if it is another one."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from graphfcl import InputError, load_grids, run_grid
from graphfcl.experiments import Cell, CellStore, Grid, run_cell
from graphfcl.report import accuracy_figure, collect, write_page
from tests.methods.test_checks import GRAPH
from tests.report.folders import RULES, printed_tables, store, stored_result


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return stored_result(tmp_path_factory.mktemp("template"))


def everything(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


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
    page = re.search(r'type="application/json">(.*?)</script>', (tmp_path / "report.html").read_text(), re.S)
    assert page is not None
    assert json.loads(page.group(1))["about"].startswith("synthetic; 1 to 2 seeds; protocol version 3. ")
    accuracy_figure(template, tmp_path / "run.png")
    assert titles["table2.png"] == ["synthetic, protocol version 3"]
    assert titles["run.png"][0].startswith("proto-gcn on synthetic, seed 0, protocol version 3\n")


def test_folders_of_another_version_are_refused(tmp_path: Path, template: dict[str, Any]) -> None:
    store(tmp_path, "old", "grid", [(Cell(GRAPH, "proto-gcn", 0, rules=RULES), template)])
    path = tmp_path / "grids" / "old.json"
    grid = json.loads(path.read_bytes())
    for cell in grid["cells"]:
        cell["protocol_version"] = 2
    path.write_text(json.dumps(grid))
    before = everything(tmp_path)
    match = r"^.*old\.json is of protocol version 2; this graphfcl evaluates under protocol version 3.*--out"
    for read in (write_page, load_grids):
        with pytest.raises(InputError, match=match):
            read(tmp_path)
    with pytest.raises(InputError, match=match):
        run_grid(Grid("other", "grid", (Cell(GRAPH, "proto-gcn", 0, rules=RULES),)), tmp_path)
    assert everything(tmp_path) == before


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
