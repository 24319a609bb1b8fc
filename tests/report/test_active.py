"""The report of the track ``active``."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from graphfcl.experiments import Cell, CellStore, Grid
from graphfcl.report import collect, write_page
from tests.browser import chromium
from tests.report.folders import printed_tables, save, show

GRAPH = "synthetic:nodes=300,edges=1200,classes=9,features=60,signal=0.8,skew=0.4"
RULES = {"base": 3, "pseudo_novel": 2, "way": 2, "shot": 3, "track": "active"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("active")
    cells = [
        Cell(GRAPH, "sgc-ridge", seed, rules=RULES, strategy=strategy)
        for seed in range(2)
        for strategy in ("random", "auto", "of-each-class")
    ]
    save(place, Grid("active", "active", tuple(cells), "graphfcl bench active"))
    write_page(place)
    return place


def test_the_table_has_mean_and_interval_and_marks_the_oracle(folder: Path) -> None:
    rows, notes = next(
        actual for title, actual in printed_tables(folder).items() if title.endswith(": what labels bring")
    )
    assert [row[0] for row in rows] == ["sgc-ridge, random", "sgc-ridge, auto", "sgc-ridge, of-each-class¶"]
    store = CellStore(folder)
    grid = collect(folder).grids[0]
    results = [store.read(cell) or {} for cell in grid.cells if cell.strategy == "random"]
    mean = np.mean([100 * result["balanced_at_60"] for result in results])
    assert rows[0][3].startswith(f"{mean:.2f} ± ")
    assert rows[2][-1] == "100.00 ± 0.00"
    assert "¶ needs an oracle" in notes


def test_who_is_compared_with_whom(folder: Path) -> None:
    block = collect(folder).blocks[0]
    assert block.reference.name == "sgc-ridge, auto"
    oracle = block.rows[-1]
    assert oracle.marks == ("needs an oracle",)
    assert not block.comparable(oracle)
    assert oracle.name not in collect(folder).ranks(block)


def test_the_page_has_curves_against_labels(folder: Path) -> None:
    page = (folder / "report.html").read_text()
    data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.S).group(1))  # type: ignore[union-attr]
    shown = data["blocks"][0]["active"]
    assert [row["dashed"] for row in shown["curves"]] == [False, False, True]
    assert shown["curves"][0]["labels"] == [0, 6, 12]
    assert shown["curves"][2]["found"] == [0, 50, 100]
    assert "What labels bring" in page
    assert (folder / "active.png").read_bytes().startswith(b"\x89PNG")
    assert r"of-each-class\P{}" in (folder / "tables.tex").read_text()


def test_the_page_is_drawn(folder: Path) -> None:
    with chromium() as browser:
        show(browser, folder, 390)
        assert browser.get_log("browser") == []
        assert browser.find_element("css selector", "#results h2").text == "What labels bring"
        captions = [one.text for one in browser.find_elements("tag name", "figcaption")]
        assert captions[:2] == ["balanced accuracy, all classes (%) SVG", "novel classes found (%) SVG"]
