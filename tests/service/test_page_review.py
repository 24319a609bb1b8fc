"""Labels to review, in a real browser."""

import pytest

from tests.production.models import members
from tests.service.pages import Page

pytest.importorskip("fastapi")
ENTER, RIGHT, BACKSPACE = "\ue007", "\ue014", "\ue003"


def label_of(page: Page, node: str) -> str | None:
    label: str | None = page.served.ask("GET", f"/v1/nodes/{node}")["label"]
    return label


def rows(page: Page) -> list[str]:
    return page.texts("#review button.node")


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1440, "light")])
def test_labels_are_reviewed(page: Page, width: int, scheme: str) -> None:
    """With the keyboard alone: the tab, then buttons; the focus stays among the rows."""
    nodes = [str(node) for node in members("class-08")[:3]]
    for name, by, conflict in (("class-01", "ann", "refuse"), ("class-02", "bob", "replace")):
        body = {"labels": [{"id": node, "class": name} for node in nodes], "by": by, "on_conflict": conflict}
        page.served.ask("POST", "/v1/labels", body)
    page.open(width, scheme)
    tab = page.browser.find_element("css selector", "#tab-class")
    tab.send_keys(RIGHT)
    page.wait(lambda: rows(page)[:3] == nodes, "labels on which people disagree come first")
    assert "People disagree: ann says class-01" in page.text("#review li:first-child")
    assert page.browser.execute_script("return document.documentElement.scrollWidth") <= width
    keep = page.browser.find_element("css selector", f"[aria-label='Keep {nodes[0]} as class-02']")
    keep.send_keys(ENTER)
    page.says(f"{nodes[0]} stays class-02")
    page.wait(lambda: nodes[0] not in rows(page), "it is gone")
    page.wait(lambda: page.browser.execute_script("return Boolean(document.activeElement.closest('#review'))"), "focus")
    change = page.browser.find_element("css selector", f"[aria-label='Is class-01: change the label of {nodes[1]}']")
    change.send_keys(ENTER)
    page.wait(lambda: label_of(page, nodes[1]) == "class-01", "it is changed")
    page.wait(lambda: nodes[1] not in rows(page), "which settles it")
    page.click(f"[aria-label='Remove the label of {nodes[2]}']")
    page.click("dialog[open] .primary")
    page.wait(lambda: label_of(page, nodes[2]) is None, "it is removed")
    page.wait(lambda: nodes[2] not in rows(page), "and gone")
    page.click("#tab-node")
    page.click("#tab-review")
    page.wait(lambda: page.all("#review-heading"), "it opens again")
    assert nodes[0] not in rows(page), "a label that was kept does not return"


def question(page: Page) -> str:
    """The node in turn, when its card is shown."""
    page.wait(lambda: page.all("#queue-reason .why"), "the node in turn is shown")
    page.wait(lambda: page.text("#card-name") == page.text("#question .id"), "one node is shown")
    return page.text("#card-name")


def goes_on(page: Page, node: str) -> None:
    page.wait(lambda: page.text("#card-name") != node, "it goes on")


def shows(page: Page, node: str) -> None:
    page.wait(lambda: page.text("#card-name") == node, "it is shown")


def go_on_to_second_look(page: Page) -> str:
    """Skip nodes until a label is to be looked at again."""
    for _ in range(20):
        node = question(page)
        if page.text("#queue-reason strong") == "Second look.":
            return node
        page.press(" ")
        goes_on(page, node)
    raise AssertionError("no second look among twenty questions")


def test_the_queue_mixes_in_second_looks(page: Page) -> None:
    """A key keeps the label or changes it; either settles what people said, and no label is asked about again."""
    nodes = [str(node) for node in members("class-08")[3:6]]
    for name, by, conflict in (("class-01", "ann", "refuse"), ("class-02", "bob", "replace")):
        body = {"labels": [{"id": node, "class": name} for node in nodes], "by": by, "on_conflict": conflict}
        page.served.ask("POST", "/v1/labels", body)
    page.open(1440)
    kept = go_on_to_second_look(page)
    assert kept in nodes
    assert "People disagree: ann says class-01" in page.text("#queue-reason")
    shown = page.texts(".class-key")
    assert any("class-01" in text for text in shown)
    assert any("class-02" in text for text in shown)
    page.click(".class-key[aria-pressed=true]")
    page.says(f"{kept} stays class-02")
    page.press(BACKSPACE)
    page.says(f"The label of {kept} was kept")
    assert question(page) == kept
    assert label_of(page, kept) == "class-02", "no other label was taken back"
    page.press(" ")
    goes_on(page, kept)
    changed = go_on_to_second_look(page)
    assert changed in set(nodes) - {kept}
    page.click(".class-key", "class-01")
    page.wait(lambda: label_of(page, changed) == "class-01", "it is changed")
    page.press(BACKSPACE)
    page.wait(lambda: label_of(page, changed) == "class-02", "it is taken back")
    page.wait(lambda: page.text("#queue-reason strong") == "Second look.", "the second look is there again")
    assert question(page) == changed
    page.click(".class-key", "class-01")
    page.wait(lambda: label_of(page, changed) == "class-01", "it is changed again")
    (statement,) = page.served.ask("GET", f"/v1/nodes/{changed}")["statements"]
    assert statement["kept"]["reason"] == "review"
    skipped = go_on_to_second_look(page)
    assert {kept, changed, skipped} == set(nodes)
    page.press(" ")
    goes_on(page, skipped)
    issues = {each["id"] for each in page.served.ask("GET", "/v1/label-issues")["issues"]}
    assert issues & set(nodes) == {skipped}
    for _ in range(8):
        assert question(page) not in nodes
        page.press(" ")


def test_without_unlabelled_nodes_the_queue_asks_for_second_looks(page: Page) -> None:
    """But not for the one that somebody else is looking at."""
    nodes = {name: [str(node) for node in members(name)] for name in ("class-08", "class-09")}
    disputed, leased = nodes["class-08"][:2], nodes["class-08"][2]
    page.leave()
    lease = {"holder": "somebody else", "ids": [leased]}
    page.wait(lambda: page.served.ask("POST", "/v1/queue/leases", lease)["held"] == [leased], "it is leased")
    wrong = {"labels": [{"id": node, "class": "class-02"} for node in (leased, *disputed)], "by": "bob"}
    page.served.ask("POST", "/v1/labels", wrong)
    labels = [{"id": node, "class": name} for name, listed in nodes.items() for node in listed]
    page.served.ask("POST", "/v1/labels", {"labels": labels, "by": "ann", "on_conflict": "replace"})
    assert page.served.ask("GET", "/v1/queue")["unlabelled"] == 0
    page.open(1440)
    for node in disputed:
        shows(page, node)
        page.wait(lambda: page.text("#queue-reason strong") == "Second look.", "and why")
        page.click(".class-key[aria-pressed=true]")
        page.says(f"{node} stays class-08")

    def ended() -> bool:
        assert page.text("#card-name") != leased
        return page.ended()

    page.wait(ended, "that was all")
