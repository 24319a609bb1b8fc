"""The view of a class, in a real browser: members, accepting them, its labels."""

import pytest

from tests.production.models import members
from tests.service.pages import Page

pytest.importorskip("fastapi")
ENTER, DOWN, SPACE = "\ue007", "\ue015", " "


def open_class(page: Page, name: str) -> None:
    page.click("#tab-class")
    page.wait(lambda: page.all("#members-class"), "the view is open")
    page.click("#members-class")
    page.enter("dialog[open] input", name)
    page.shows("#members-heading", name)


def label_of(page: Page, node: str) -> str | None:
    label: str | None = page.served.ask("GET", f"/v1/nodes/{node}")["label"]
    return label


def test_members_are_accepted_and_labels_changed(page: Page) -> None:
    """With the keyboard on a desk, and without a label lost."""
    taken = [str(node) for node in members("class-01")[:14]]
    page.served.ask("DELETE", "/v1/labels", {"ids": taken})
    page.open(1440)
    open_class(page, "class-01")
    listed = page.texts("#members button.node")
    shown = page.served.ask("GET", "/v1/classes/class-01/members?limit=100")
    assert listed == [each["id"] for each in shown["members"]]
    assert "100 %" not in page.text("#members .hint")
    chosen = page.browser.find_element("css selector", "#accept-threshold")
    chosen.send_keys(DOWN)
    last = next(each for each in shown["choices"] if each["nodes"] == len(listed))
    page.wait(lambda: f"Accept {len(listed)} nodes" in page.text("#accept"), "all can be accepted")
    errors = last["expected_errors"]
    assert f"({errors['low']}–{errors['high']})" in page.text("#view-class form")
    page.browser.find_element("css selector", "#members input").send_keys(SPACE)
    page.shows("#accept", f"Accept {len(listed) - 1} nodes")
    assert "with the 1 that you unticked" in page.text("#view-class form")
    page.browser.find_element("css selector", "#accept").send_keys(ENTER)
    page.says(f"{len(listed) - 1} predictions accepted as class-01")
    page.wait(lambda: page.texts("#members button.node") == listed[:1], "the one that was left out stays")
    assert label_of(page, listed[1]) == "class-01"
    assert label_of(page, listed[0]) is None
    page.click("#accept-back")
    page.says("taken back")
    page.wait(lambda: page.texts("#members button.node") == listed, "all are members again")
    page.click(f"#members [data-node='{listed[0]}'] button", "Confirm")
    page.wait(lambda: label_of(page, listed[0]) == "class-01", "it is taught")
    page.shows("#class-labels", "taught · ")
    page.click(f"#class-labels [data-node='{listed[0]}'] button", "Change")
    page.enter("dialog[open] input", "class-02")
    page.wait(lambda: label_of(page, listed[0]) == "class-02", "it is changed")
    page.press("\ue003")
    page.wait(lambda: label_of(page, listed[0]) == "class-01", "and undone")
    page.click(f"#class-labels [data-node='{listed[0]}'] button", "Remove")
    page.click("dialog[open] .primary")
    page.wait(lambda: label_of(page, listed[0]) is None, "it is removed")


def test_the_view_fits_on_a_phone(page: Page) -> None:
    page.open(390, "dark")
    page.click("#catalogue summary")
    page.click("#catalogue button", "Members and labels")
    page.shows("#class-labels-heading", "Labels of class-00")
    page.wait(lambda: page.texts("#class-labels li"), "labels are listed")
    assert page.browser.execute_script("return document.documentElement.scrollWidth") <= 390
    page.click("#class-labels button.node")
    page.wait(lambda: page.browser.execute_script("return !document.getElementById('view-node').hidden"), "it is shown")
