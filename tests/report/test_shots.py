"""The report of several numbers of labels on the same classes and test nodes."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphfcl import Protocol
from graphfcl.experiments import Cell
from graphfcl.experiments.paper_grids import shot_rules
from graphfcl.report import collect, write_page
from graphfcl.report.shots import MEASURES, shot_curves
from tests.browser import chromium
from tests.methods.test_checks import GRAPH
from tests.report.folders import RULES, printed_tables, show, store, stored_result

SHOTS = (1, 5, "all")
LEVELS = {"anchor": 0.7, "cec": 0.5}  # at K = 1; each further K adds 0.1
DATASETS = ("here", "there")


def cells_of(template: dict[str, Any], dataset: str, method: str, seed: int) -> list[tuple[Cell, dict[str, Any]]]:
    """A cell for each number of labels; joint has the last alone."""
    cells = []
    for place, shot in enumerate(shot_rules(SHOTS)):
        if method == "joint" and place < len(SHOTS) - 1:
            continue
        result = copy.deepcopy(template) | {"dataset": dataset, "seed": seed, "uses_pool_labels": method == "joint"}
        result["protocol"] = Protocol.from_json(result["protocol"] | shot).as_json()
        result["n_supports"] = 12 * sum(session > 0 for session in result["session_of_class"])
        level = LEVELS.get(method, 0.75) + 0.1 * place + 0.01 * seed
        result["average"], result["sessions"][-1]["balanced_accuracy"] = level - 0.05, level
        result["sessions"][-1]["novel"] = level - 0.2
        cells.append((Cell(f"{GRAPH},{dataset}", method, seed, rules={**RULES, **shot}), result))
    return cells


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return stored_result(tmp_path_factory.mktemp("template"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, template: dict[str, Any]) -> Path:
    place = tmp_path_factory.mktemp("shots")
    runs = [(d, m, s) for s in range(2) for m in (*LEVELS, "joint") for d in DATASETS]
    store(place, "shots", "shots", [cell for run in runs for cell in cells_of(template, *run)])
    write_page(place)
    return place


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


def test_a_table_has_methods_by_labels(folder: Path) -> None:
    tables = printed_tables(folder)
    titles = [title for title in tables if title.endswith("by labels per new class")]
    assert len(titles) == len(DATASETS) * len(MEASURES)
    rows, notes = tables[titles[0]]
    assert titles[0].startswith("here, 1-way, strict, transductive, split for 5-shot, protocol version")
    assert [row[0] for row in rows] == ["anchor", "cec", "joint†"]
    assert [cell.split(" ± ")[0] for cell in rows[0][1:]] == ["2", "70.50", "80.50", "90.50"]
    assert rows[0][2].endswith(" ± 6.35"), "Student's interval of two seeds a point apart"
    assert len(set(rows[2][2:])) == 1, "the same labels at every K, so one figure"
    assert "classes and test nodes are those of K = 5 at every K" in notes
    assert "all: every label of supports and pool, 12 per new class on average" in notes
    new, _ = tables[titles[1]]
    assert new[0][2].startswith("50.50"), "new classes only"
    assert any(title.startswith("here, 1-way all-shot, strict") for title in tables), "each K has the usual tables too"
    assert "70.50 $\\pm$ 6.35" in (folder / "tables.tex").read_text()
    assert {path.name for path in folder.glob("*.png")} == {"shots.png", "shots-new-classes.png"}


def test_other_rules_and_unfinished_cells_are_curves_of_their_own(tmp_path: Path, template: dict[str, Any]) -> None:
    cells: list[tuple[Cell, dict[str, Any] | None]] = [*cells_of(template, "here", "anchor", 0)]
    cells += [(cell, None) for cell, _ in cells_of(template, "here", "cec", 0)[1:]]
    cells += [*cells_of(template, "here", "cec", 0)[:1], *cells_of(template, "here", "anchor", 1)[:1]]
    wide = [(cell, result) for cell, result in cells_of(template, "here", "anchor", 0)]
    for cell, result in wide:
        result["protocol"] = {**result["protocol"], "way": 2}
        cells.append((Cell(cell.dataset, "anchor", 0, rules={**cell.rules, "way": 2}), result))
    plain = template | {"dataset": "here"}
    store(tmp_path, "mine", "grid", [*cells, (Cell(f"{GRAPH},here", "anchor", 0, rules=RULES), plain)])
    write_page(tmp_path)
    first, second = shot_curves(collect(tmp_path).blocks)
    assert first.labels == second.labels == ["1", "5", "all"]
    assert (first.blocks[0].protocol["way"], second.blocks[0].protocol["way"]) == (1, 2)
    assert first.figures("cec", "average")[1:] == [None, None], "not joint, so nothing is filled in"
    lines = {line[0]: line for line in first.table("average").rows}
    assert lines["anchor"][1] == "1 to 2"
    assert lines["cec"][3:] == ("", "")


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_has_a_picture_for_each_dataset(browser: Any, folder: Path, width: int) -> None:
    show(browser, folder, width, address="#tab=shots&hide=cec")
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    sections = browser.find_elements("css selector", "#results section")[: len(MEASURES)]
    for section, title in zip(sections, MEASURES.values(), strict=True):
        assert section.find_element("tag name", "h2").text == f"Labels per new class: {title}"
        figures = section.find_elements("tag name", "figure")
        assert [figure.find_element("tag name", "figcaption").text for figure in figures] == [
            f"{name} SVG" for name in DATASETS
        ]
        for figure in figures:
            texts = [text.text for text in figure.find_elements("css selector", "svg > text")]
            assert texts[-4:] == ["1", "5", "all", "labels per new class"]
            assert [name.text for name in figure.find_elements("css selector", ".name")] == ["anchor", "joint"]
            dashed = [line.get_attribute("stroke-dasharray") for line in figure.find_elements("css selector", ".line")]
            assert dashed == [None, "6 4"], "pool labels are dashed; the best lies above"
            assert len(figure.find_elements("css selector", ".band")) == 2
    rows = browser.find_elements("css selector", "#table-shots-novel tbody tr")
    assert [row.text.split()[0] for row in rows] == ["joint†", "anchor"]
