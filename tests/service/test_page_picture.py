"""The neighbourhood in the browser: how much of it is shown, and more on demand; what a phone shows above the keys."""

import re

import pytest

from tests.service.pages import Page

pytest.importorskip("fastapi")
pytestmark = pytest.mark.long
DRAWN = "return (document.getElementById('picture')._cyreg?.cy.nodes() ?? []).map((each) => each.data('name'))"
BOX = "const box = document.querySelector(arguments[0]).getBoundingClientRect(); return [box.top, box.height]"


def test_a_node_of_the_picture_is_expanded(page: Page) -> None:
    node = page.text("#card-name")
    around = page.served.ask("GET", f"/v1/nodes/{node}/neighbours?limit=150")
    page.wait(lambda: len(page.browser.execute_script(DRAWN)) == len(around["nodes"]), "the picture is drawn")
    total = around["total"]
    shown = "All" if total == len(around["nodes"]) else f"{len(around['nodes'])} of"
    page.shows("#picture-count", f"{shown} {total} nodes within two steps")
    here = {each["id"] for each in around["nodes"]}
    edge, more = next(
        (each["id"], new)
        for each in reversed(around["nodes"])
        for near in [page.served.ask("GET", f"/v1/nodes/{each['id']}/neighbours?limit=150")["nodes"]]
        for new in [{other["id"] for other in near if other["hops"] == 1} - here]
        if 0 < len(new) <= 40
    )
    page.browser.execute_script("document.getElementById('picture-list').closest('details').open = true")
    page.click(f"#picture-list button[aria-label='Expand {edge} in the picture']")
    page.wait(lambda: set(page.browser.execute_script(DRAWN)) == here | more, "its neighbours are added")
    page.shows("#picture-count", f"and {len(more)} more around expanded nodes")
    assert more <= set(page.texts("#picture-list button.node"))
    page.click(f"#picture-list button[aria-label='Expand {edge} in the picture']")
    page.says(f"All neighbours of {edge} are in the picture.")


def test_a_phone_shows_what_the_node_is_above_the_keys(page: Page) -> None:
    page.open(390)
    top, height = page.browser.execute_script(BOX, ".brief")
    keys, _ = page.browser.execute_script(BOX, ".class-keys")
    assert 0 < height < 100
    assert top + height <= keys
    assert page.text(".brief") == ", ".join(re.findall(r"feature_\d+", page.text("#card-features"))[:12])
    page.open(1440)
    assert page.browser.execute_script(BOX, ".brief")[1] == 0, "the card stands beside it"
