"""The report's page in a real browser: what it opens on, sorting, the address, pictures, keyboard, paper."""

import copy
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from graphfcl.experiments import Cell
from graphfcl.report import write_page
from tests.browser import chromium
from tests.methods.test_checks import GRAPH
from tests.report.folders import RULES, show, store, stored_result

EVIL = "<img src=x onerror=alert(1)>"
LEVELS = {"anchor": 0.71, "proto-gat": 0.70, "hag-meta": 0.72, "meta-gnn": 0.69, "my-own": 0.80, EVIL: 0.695}
WIDTHS = [390, 1280]
SESSIONS = 41


def result(template: dict[str, Any], dataset: str, level: float, sessions: int = 0) -> dict[str, Any]:
    """A result with this level of accuracy; with other sessions than the template's where a number is given."""
    actual = copy.deepcopy(template) | {"dataset": dataset, "average": level, "pd": 0.9 - level}
    if sessions:
        actual["sessions"] = [{**template["sessions"][-1], "session": number} for number in range(sessions)]
        actual["matrix"] = [[0.5 if j <= t else None for j in range(sessions)] for t in range(sessions)]
    for number, session in enumerate(actual["sessions"]):
        session["balanced_accuracy"] = level - 0.001 * number
    return actual


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A grid that comes first by name, Table 2 on two datasets, forty sessions, a sweep."""
    place = tmp_path_factory.mktemp("page")
    template = stored_result(place / "template")

    def one(dataset: str, method: str, level: float, sessions: int = 0, **rules: int) -> tuple[Cell, dict[str, Any]]:
        actual = result(template, dataset, level, sessions)
        protocol = {**actual["protocol"], **rules}
        return Cell(f"{GRAPH},{dataset}", method, 0, rules={**RULES, **rules}), actual | {"protocol": protocol}

    store(place, "a-few", "grid", [one("here", name, LEVELS[name]) for name in ("my-own", "anchor")])
    here = [one("here", name, level) for name, level in LEVELS.items()]
    there = [one("there", name, 1.4 - level) for name, level in LEVELS.items()]
    there += [one("there", "joint", 0.5)]
    store(place, "table2", "table2", here + there)
    store(place, "forty", "grid", [one("long", name, LEVELS[name], SESSIONS) for name in ("hag-meta", "anchor")])
    swept = [one("swept", "cec", 0.5, way=way, shot=shot) for way in (1, 2, 10) for shot in (1, 5, 10, 100)]
    store(place, "sweep", "sweep", swept)
    write_page(place)
    return place


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


def heads(browser: Any, key: str) -> list[str]:
    """The heads of a table's rows."""
    return [cell.text for cell in browser.find_elements("css selector", f"#table-{key} tbody th")]


def sort_button(browser: Any, key: str, title: str) -> Any:
    buttons = browser.find_elements("css selector", f"#table-{key} thead button")
    return next(button for button in buttons if button.text.strip("↕▲▼") == title)


def boxes(browser: Any, selector: str) -> list[dict[str, float]]:
    script = "return [...document.querySelectorAll(arguments[0])].map(one => one.getBoundingClientRect().toJSON())"
    return browser.execute_script(script, selector)


def overlap(one: dict[str, float], other: dict[str, float]) -> bool:
    across = min(one["right"], other["right"]) - max(one["left"], other["left"])
    return across > 1 and min(one["bottom"], other["bottom"]) - max(one["top"], other["top"]) > 3


def test_it_opens_on_table_2_with_methods_by_datasets(browser: Any, folder: Path) -> None:
    show(browser, folder, 1280)
    assert browser.find_element("css selector", "[role=tab][aria-selected=true]").text == "Table 2"
    first = browser.find_element("css selector", "#results section")
    assert first.find_element("tag name", "h2").text == "Overview: methods × datasets"
    titles = [head.text.strip("↕▲▼") for head in first.find_elements("css selector", "thead th")]
    assert titles[:4] == ["method", "mean over datasets", "here", "there"]
    assert heads(browser, "overview")[-1] == "joint", "without a figure of one dataset it has no mean"
    assert heads(browser, "results") == ["my-own", "hag-meta", "anchor", "proto-gat", EVIL, "meta-gnn"]
    assert browser.find_elements("css selector", "img") == []


@pytest.mark.parametrize("tab", ["table2", "forty", "datasets", "repeat"])
def test_tables_have_captions_and_scopes(browser: Any, folder: Path, tab: str) -> None:
    show(browser, folder, 1280, address=f"#tab={tab}")
    for table in browser.find_elements("tag name", "table"):
        assert table.find_element("tag name", "caption").text
        assert {head.get_attribute("scope") for head in table.find_elements("css selector", "thead th")} == {"col"}
        rows = table.find_elements("css selector", "tbody tr")
        assert len(rows) == len(table.find_elements("css selector", "tbody th[scope=row]"))
    for picture in browser.find_elements("css selector", "figure svg:not(.swatch)"):
        assert picture.get_attribute("aria-label")


def test_columns_are_sorted_by_click_and_keyboard(browser: Any, folder: Path) -> None:
    from selenium.webdriver import ActionChains, Keys

    show(browser, folder, 1280)
    best_first = heads(browser, "results")
    sort_button(browser, "results", "PD").click()
    assert heads(browser, "results") == best_first, "the least loss first, which is that of the best"
    sort_button(browser, "results", "PD").click()
    assert heads(browser, "results") == best_first[::-1]
    sort_button(browser, "results", "method").click()
    assert heads(browser, "results") == sorted(best_first)
    button = sort_button(browser, "overview", "there")
    browser.execute_script("arguments[0].focus()", button)
    ActionChains(browser).send_keys(Keys.ENTER).perform()
    assert heads(browser, "overview")[0] == "meta-gnn"
    ActionChains(browser).send_keys(Keys.SPACE).perform()
    assert heads(browser, "overview")[0] == "joint"
    assert browser.switch_to.active_element == button, "the focus stays"
    cell = browser.find_element("css selector", "#table-overview th[aria-sort]")
    assert (cell.text.strip("▲"), cell.get_attribute("aria-sort")) == ("there", "ascending")


def test_the_address_holds_the_choice(browser: Any, folder: Path) -> None:
    show(browser, folder, 1280)
    there = next(one for one in browser.find_elements("css selector", "#block option") if one.text.startswith("there"))
    there.click()
    browser.find_element("css selector", "#metric option[value=pd]").click()
    browser.find_element("css selector", "input[value='proto-gat']").click()
    sort_button(browser, "results", "seeds").click()
    sort_button(browser, "results", "0").click()
    address = "#" + browser.current_url.partition("#")[2]
    seen = browser.find_element("id", "panel").text
    show(browser, folder, 1280, address=address)
    assert browser.find_element("id", "panel").text == seen
    assert "proto-gat" not in heads(browser, "results")
    assert browser.find_element("id", "metric").get_attribute("value") == "pd"
    assert browser.find_element("css selector", "#table-results th[aria-sort]").text.strip("▼") == "0"
    browser.find_element("xpath", "//*[@role='tab'][text()='forty']").click()
    browser.back()
    assert browser.find_element("id", "panel").text == seen, "back goes back"


def test_an_address_of_another_report_opens_this_one(browser: Any, folder: Path) -> None:
    address = "#tab=none&data=%3Cimg%20src=x%3E&metric=no&sort-results=down%20no&sort-=up&hide=nobody&x=%"
    show(browser, folder, 1280, address=address)
    assert browser.get_log("browser") == []
    assert browser.find_element("css selector", "[aria-selected=true]").text == "Table 2"
    assert heads(browser, "results")[0] == "my-own"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_method_has_one_colour_and_mark_everywhere(browser: Any, folder: Path, scheme: str) -> None:
    script = """return [...document.querySelectorAll("#table-results tbody tr")].map(row => [
        row.firstChild.textContent.replace(/[†‡§¶]/g, ""), getComputedStyle(row.querySelector(".line")).stroke,
        row.querySelector(".shape").outerHTML])"""
    actual: dict[str, set[tuple[str, str]]] = {}
    for tab in ("table2", "a-few", "forty"):
        show(browser, folder, 1280, scheme, address=f"#tab={tab}")
        rows = browser.execute_script(script)
        assert len({colour for _, colour, _ in rows}) == len(rows), "no two of a tab have the same"
        for name, colour, mark in rows:
            actual.setdefault(name, set()).add((colour, mark))
        ends = browser.execute_script(
            """return [...document.querySelectorAll("figure .name")].map(text => [text.textContent,
            getComputedStyle(text).getPropertyValue("--own")])"""
        )
        assert len({(name, colour) for name, colour in ends}) == len({name for name, _ in ends})
    assert actual.keys() == LEVELS.keys()
    assert all(len(looks) == 1 for looks in actual.values())


@pytest.mark.parametrize("width", WIDTHS)
def test_names_at_line_ends_do_not_overlap(browser: Any, folder: Path, width: int) -> None:
    show(browser, folder, width)
    pictures = browser.execute_script(
        """return [...document.querySelectorAll("figure")].filter(one => one.querySelector(".leader")).map(one =>
        [...one.querySelectorAll(".name")].map(text => text.getBoundingClientRect().toJSON()))"""
    )
    assert len(pictures) == 3
    for names in pictures:
        assert len(names) == len(LEVELS)
        assert not any(overlap(one, other) for one, other in combinations(names, 2))
        assert all(name["right"] <= width for name in names)


@pytest.mark.parametrize("width", WIDTHS)
def test_forty_sessions_are_folded_so_that_figures_are_legible(browser: Any, folder: Path, width: int) -> None:
    show(browser, folder, width, address="#tab=forty")
    cells = boxes(browser, ".cell rect")
    assert min(cell["width"] for cell in cells) >= 24
    script = "return Math.min(...[...document.querySelectorAll('.cell text')].map(one => one.getBBox().height))"
    assert browser.execute_script(script) >= 10
    assert max(cell["right"] for cell in cells) <= width, "nothing to scroll"
    captions = [one.text for one in browser.find_elements("css selector", "figcaption")]
    assert any("th of 41 sessions" in text or "rd of 41 sessions" in text for text in captions)
    columns = [one.text for one in browser.find_elements("css selector", ".column-name")]
    assert {"0", "40"} <= set(columns)
    browser.find_element("id", "every").click()
    assert len(browser.find_elements("css selector", ".column-name")) == 2 * SESSIONS
    assert min(cell["width"] for cell in boxes(browser, ".cell rect")) >= 24
    assert "sessions=all" in browser.current_url
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width, (
        "the map scrolls, not the page"
    )


@pytest.mark.parametrize("width", WIDTHS)
def test_labels_of_the_sweep_do_not_overlap(browser: Any, folder: Path, width: int) -> None:
    show(browser, folder, width, address="#tab=sweep")
    labels = boxes(browser, "figure svg:not(.swatch) text")
    assert [one.text for one in browser.find_elements("css selector", ".column-name")] == ["1", "5", "10", "100"]
    assert not any(overlap(one, other) for one, other in combinations(labels, 2))


def test_classes_of_an_embedding_have_numbers_and_a_list(browser: Any, tmp_path: Path) -> None:
    template = stored_result(tmp_path / "template")
    flat = {"x": [0.0, 1.0, 1.1, 5.0], "y": [0.0, 1.0, 0.9, 3.0], "labels": [0, 2, 2, 1]}
    seen = result(template, "here", 0.5) | {"embedding": flat}
    store(tmp_path, "embed", "embed", [(Cell(GRAPH, "cec", 0, rules=RULES, embed=True), seen)])
    write_page(tmp_path)
    show(browser, tmp_path, 390, address="#tab=embeddings")
    numbers = [each.text for each in browser.find_elements("css selector", "svg .classNumber")]
    listed = browser.find_elements("css selector", ".classLegend li")
    assert sorted(numbers) == ["1", "2", "3"]
    assert [each.get_attribute("value") for each in listed] == ["1", "2", "3"]
    assert all(each.text for each in listed)
    assert not browser.execute_script("return document.documentElement.scrollWidth > innerWidth")


def test_tabs_work_with_the_keyboard_and_the_focus_is_seen(browser: Any, folder: Path) -> None:
    from selenium.webdriver import ActionChains, Keys

    show(browser, folder, 1280)
    ActionChains(browser).send_keys(Keys.TAB).perform()
    assert browser.switch_to.active_element.text == "Table 2"
    outline = "return getComputedStyle(document.activeElement).outlineStyle"
    assert browser.execute_script(outline) == "solid"
    ActionChains(browser).send_keys(Keys.END).perform()
    assert browser.switch_to.active_element.text == "How to repeat it"
    assert browser.switch_to.active_element.get_attribute("aria-selected") == "true"
    assert browser.find_element("tag name", "h2").text == "How to repeat it"
    ActionChains(browser).send_keys(Keys.ARROW_RIGHT).perform()
    assert browser.switch_to.active_element.text == "Table 2"
    ActionChains(browser).send_keys(Keys.TAB).perform()
    assert browser.switch_to.active_element.get_attribute("id") == "block", "one stop for all tabs"


def test_on_paper_it_is_light_and_without_controls(browser: Any, folder: Path) -> None:
    show(browser, folder, 1280, "dark")
    dark = {"media": "print", "features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not browser.find_element("id", "tabs").is_displayed()
    assert not browser.find_element("id", "bar").is_displayed()
    browser.execute_script(
        "addEventListener('beforeprint', () => { window.printed = document.querySelector('figure svg').clientWidth })"
    )
    browser.execute_cdp_cmd("Page.printToPDF", {})
    assert browser.execute_script("return window.printed") <= 320, "three pictures side by side"
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert boxes(browser, "figure svg")[0]["width"] > 400, "afterwards it is as before"
