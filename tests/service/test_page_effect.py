"""What a change did, in a real browser: moved nodes, warnings, recalls with their numbers."""

import pytest

from tests.production.models import members
from tests.service.pages import Page

pytest.importorskip("fastapi")


def test_a_change_shows_its_effect(page: Page) -> None:
    taught, other = [str(node) for node in members("class-08")[:5]], str(members("class-00")[0])
    page.open(390, "dark")
    body = {"labels": [{"id": node, "class": "gears"} for node in taught]}
    version = page.served.ask("POST", "/v1/labels", body)["version"]
    page.open(390, "dark")
    page.shows("#effect-version", f"Version {version}")
    page.wait(lambda: page.all("#effect table"), "the effect is computed")
    effect = page.served.ask("GET", f"/v1/versions/{version}/effect")
    assert f"{effect['changed']} of 500 nodes" in page.text("#effect")
    rows = page.texts("#effect > table tbody tr:not([hidden])")
    assert len(rows) == len(effect["moves"])
    into = next(move for move in effect["moves"] if move["after"] == "gears")
    words = f"from {into['before'] or 'looks unknown'} to gears"
    toggle = next(each for each in page.all("#effect [aria-expanded]") if words in each.get_attribute("aria-label"))
    toggle.send_keys("\ue007")
    page.wait(lambda: page.texts("#effect td .chips button"), "its nodes are listed")
    listed = page.texts("#effect td .chips button")
    assert set(listed) <= set(taught) | {str(node) for node in range(500)}
    page.click("#effect td .chips button", listed[0])
    page.wait(lambda: page.text("#card-name") == listed[0], "a node of the list is shown")
    assert page.browser.execute_script("return document.documentElement.scrollWidth") <= 390
    assert any("5 of 5 (57–100\u00a0%)" in text for text in page.texts("#catalogue li"))
    wrong = {"labels": [{"id": other, "class": "gears"}], "on_conflict": "replace"}
    version = page.served.ask("POST", "/v1/labels", wrong)["version"]
    page.press("g")
    page.open(1440)
    page.shows("#effect-version", f"Version {version}")
    page.shows("#effect .warning", "just given")
    assert other in page.text("#effect [aria-label='Labels that look wrong']")
    page.click(f"button[aria-label='Changes of version {version - 1}']")
    page.shows("#effect-version", f"Version {version - 1}")
    assert page.browser.execute_script("return document.activeElement.id") == "effect-heading"
