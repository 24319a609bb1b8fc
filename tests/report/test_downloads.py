"""What a reader takes from the page: tables as CSV and LaTeX, pictures as SVG, figures that agree and can be read."""

import csv
import io
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from graphfcl.experiments import Cell
from graphfcl.report import collect, latex, overview_table, result_table, write_page
from tests.browser import chromium
from tests.methods.test_checks import GRAPH
from tests.report.folders import RULES, show, store, stored_result

LEVELS = {"anchor": 0.71, "proto-gat": 0.70, "hag-meta": 0.72, 'a method with, a "long" name & more': 0.69}
# Averages whose rounding to two digits is a tie between two numbers.
HALVES = {"a": 0.00125, "b": 0.00375, "c": 0.50625, "d": 0.00875}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Table 2 on two datasets with six seeds, in which anchor is ahead."""
    place = tmp_path_factory.mktemp("downloads")
    template = stored_result(place / "template")
    cells = []
    for dataset in ("here", "there"):
        for name, level in LEVELS.items():
            for seed in range(6):
                value = level + 0.0011 * seed + (0.1 + 0.0001 * seed**2 if name == "anchor" else 0)
                session = [{**one, "balanced_accuracy": value, "seconds": 1 + seed} for one in template["sessions"]]
                result = {**template, "dataset": dataset, "average": value, "sessions": session, "seed": seed}
                cells.append((Cell(f"{GRAPH},{dataset}", name, seed, rules=RULES), result))
    store(place, "table2", "table2", cells)
    write_page(place)
    return place


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


def saved(browser: Any, folder: Path, button: Any, ending: str) -> str:
    """The file that a click on a button saves."""
    behaviour = {"behavior": "allow", "downloadPath": str(folder), "eventsEnabled": False}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", behaviour)
    before = set(folder.glob(f"*.{ending}"))
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'}); arguments[0].click()", button)
    for _ in range(100):
        time.sleep(0.1)
        new = set(folder.glob(f"*.{ending}")) - before
        if new:
            return new.pop().read_text(encoding="utf-8")
    raise AssertionError("nothing was saved")


def button(browser: Any, table: str, text: str) -> Any:
    return browser.find_element("xpath", f"//table[@id='table-{table}']/../..//button[text()='{text}']")


def test_a_saved_latex_table_is_that_of_tables_tex(browser: Any, folder: Path, tmp_path: Path) -> None:
    show(browser, folder, 1280)
    findings = collect(folder)
    block = findings.blocks[0]
    expected = latex(result_table(block, findings.ranks(block)))
    assert expected in (folder / "tables.tex").read_text()
    assert r"\textbf{anchor}" in expected
    text = saved(browser, tmp_path, button(browser, "results", "LaTeX"), "tex")
    assert sorted(text.splitlines()) == sorted(expected.splitlines()), "its rows are sorted as on the page"
    text = saved(browser, tmp_path, button(browser, "overview", "LaTeX"), "tex")
    expected = latex(overview_table(list(findings.blocks), "average", findings.ranks(block)))
    assert sorted(text.splitlines()) == sorted(expected.splitlines())
    assert expected in (folder / "tables.tex").read_text()


def test_a_saved_csv_table_has_the_rows_that_are_shown(browser: Any, folder: Path, tmp_path: Path) -> None:
    show(browser, folder, 1280)
    browser.find_element("css selector", "input[value='proto-gat']").click()
    lines = list(csv.reader(io.StringIO(saved(browser, tmp_path, button(browser, "results", "CSV"), "csv"))))
    findings = collect(folder)
    table = result_table(findings.blocks[0], findings.ranks(findings.blocks[0]))
    assert lines[0] == list(table.columns)
    shown = {row[0]: list(row) for row in table.rows if row[0] != "proto-gat"}
    assert {line[0]: line for line in lines[1:]} == shown
    assert lines[1][0] == "anchor", "in the order of the page"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_saved_picture_stands_alone_and_is_light(browser: Any, folder: Path, tmp_path: Path, scheme: str) -> None:
    show(browser, folder, 1280, scheme)
    buttons = browser.find_elements("xpath", "//figcaption//button[text()='SVG']")
    assert len(buttons) == len(browser.find_elements("css selector", "figure"))
    for one in (buttons[0], buttons[3], buttons[-1]):
        text = saved(browser, tmp_path, one, "svg")
        root = ElementTree.fromstring(text)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert "var(" not in text
        assert "class=" not in text
        assert "color(" not in text
        strokes = set(re.findall(r'fill="(rgb[^"]*)"', text))
        assert "rgb(27, 39, 51)" in strokes, "names are dark on light ground"
        assert root.get("aria-label", "").startswith("here, 1-way 5-shot"), "a saved picture says what it is of"
    assert browser.execute_script("return document.documentElement.className") == ""


@pytest.mark.parametrize("width", [390, 1280])
def test_the_first_column_covers_no_figure(browser: Any, folder: Path, width: int) -> None:
    show(browser, folder, width)
    inside = """return [...document.querySelectorAll("tbody th")].map(cell => {
        const range = document.createRange(); range.selectNodeContents(cell);
        return range.getBoundingClientRect().right - cell.getBoundingClientRect().right})"""
    assert max(browser.execute_script(inside)) <= 0, "a name stays in its cell"
    scroll = """const wide = document.querySelector("#table-results").parentNode; wide.scrollLeft = arguments[0];"""
    cut = """const edge = document.querySelector("#table-results tbody th").getBoundingClientRect().right;
        return [...document.querySelectorAll("#table-results tbody tr:first-child td")].map(cell =>
        cell.getBoundingClientRect()).filter(box => box.left < edge - 1 && box.right > edge + 1).length"""
    for place in (13, 50, 111, 160):
        browser.execute_script(scroll, place)
        time.sleep(0.3)
        room = """const wide = document.querySelector("#table-results").parentNode;
            return [wide.scrollLeft, wide.scrollWidth - wide.clientWidth]"""
        at, most = browser.execute_script(room)
        assert at >= most - 1 or browser.execute_script(cut) == 0, f"a figure is cut at {place}"


def test_pictures_of_a_row_have_one_scale_and_seeds_have_dots(browser: Any, folder: Path) -> None:
    show(browser, folder, 1280)
    scales = browser.execute_script(
        """return [...document.querySelectorAll("figure")].filter(one => one.querySelector(".leader")).map(one =>
        [...one.querySelectorAll("svg text[text-anchor=end]")].map(text => text.textContent).join())"""
    )
    assert len(scales) == 3
    assert len(set(scales)) == 1
    dots = browser.execute_script(
        "return [...document.querySelectorAll('figure')].map(one => one.querySelectorAll('.seed').length)"
    )
    assert dots.count(6 * len(LEVELS)) == 4, "three by method, one against time"
    captions = [one.text for one in browser.find_elements("tag name", "figcaption")]
    assert any("against training time" in text for text in captions)


def test_page_markdown_and_latex_print_the_same_digits(browser: Any, tmp_path: Path) -> None:
    template = stored_result(tmp_path / "template")
    results = [
        (Cell(GRAPH, name, 0, rules=RULES), {**template, "average": value, "pd": -value, "rpd": value})
        for name, value in HALVES.items()
    ]
    store(tmp_path, "table2", "table2", results)
    write_page(tmp_path)
    assert f"{100 * HALVES['a']:.2f}" == "0.12", "Python rounds halves to even"
    show(browser, tmp_path, 1280)
    rows = browser.find_elements("css selector", "#table-results tbody tr")
    shown = [[cell.text for cell in row.find_elements("css selector", "th, td")] for row in rows]
    text, tex = (tmp_path / "tables.md").read_text(), (tmp_path / "tables.tex").read_text()
    assert len(shown) == len(HALVES)
    for cells in shown:
        assert f"| {' | '.join(cells)} |" in text
        assert f"{' & '.join(cells)} " in tex
    pictured = [one.text for one in browser.find_elements("css selector", "svg .value")]
    assert {cells[2] for cells in shown} <= set(pictured)


def test_two_graphs_never_share_a_caption(tmp_path: Path) -> None:
    template = stored_result(tmp_path / "template")
    seen = {**template, "dataset": "mine", "embedding": {"x": [0.0, 1.0], "y": [0.0, 1.0], "labels": [0, 1]}}
    few = {**seen, "protocol": {**template["protocol"], "sessions": 1}}
    for name, kind in (("table2", "table2"), ("sweep", "sweep"), ("embed", "embed")):
        cells = [(Cell(path, "cec", 0, rules=RULES), seen) for path in ("a/mine.npz", "b/mine.npz")]
        cells += [(Cell("a/mine.npz", "cec", 0, rules={**RULES, "sessions": 1}), few)]
        store(tmp_path, name, kind, cells)
    write_page(tmp_path)
    titles = re.findall(r"^### (.*)$", (tmp_path / "tables.md").read_text(), re.M)
    assert len(titles) == len(set(titles))
    for path in ("a/mine.npz", "b/mine.npz"):
        assert sum(f"mine ({path})" in title for title in titles) >= 3
    assert any("sessions 1" in title for title in titles)
    findings = collect(tmp_path)
    shown = [(block.grid.name, block.title) for block in findings.blocks]
    assert len(shown) == len(set(shown))
