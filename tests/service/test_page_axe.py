"""All views of the page at two widths, in light and in dark, held against the rules of axe."""

from importlib.resources import files
from typing import Any

import pytest

from tests.production.models import members
from tests.service.pages import Page
from tests.service.test_page_class import open_class

pytest.importorskip("fastapi")
pytestmark = pytest.mark.long
RUN = """
const done = arguments[0];
const options = {rules: {"label-content-name-mismatch": {enabled: true}}};
axe.run(document, options).then(
  (found) => done(found.violations.map((each) => [each.id, each.nodes.map((node) => node.target.join(" "))])),
  (error) => done(String(error)),
);
"""


def violations(page: Page, axe: str) -> Any:
    page.browser.execute_cdp_cmd("Runtime.evaluate", {"expression": axe})
    return page.browser.execute_async_script(RUN)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_no_rule_is_violated(page: Page, width: int, scheme: str) -> None:
    axe = (files(pytest.importorskip("axe_core_python")) / "axe.min.js").read_text()
    page.served.ask("DELETE", "/v1/labels", {"ids": [str(node) for node in members("class-01")[:14]]})
    node = str(members("class-08")[0])
    for name, by, conflict in (("class-01", "ann", "refuse"), ("class-02", "bob", "replace")):
        body = {"labels": [{"id": node, "class": name}], "by": by, "on_conflict": conflict}
        page.served.ask("POST", "/v1/labels", body)
    page.browser.set_script_timeout(60)
    page.open(width, scheme)
    page.wait(lambda: page.texts("#card-why p") and page.texts("#effect table"), "card and effect are shown")
    found = {"node": violations(page, axe)}
    page.click("#tab-map")
    page.wait(lambda: page.texts("#map-legend li"), "the map is drawn")
    found["map"] = violations(page, axe)
    open_class(page, "class-01")
    page.wait(lambda: page.all("#members li"), "members are listed")
    found["class"] = violations(page, axe)
    page.click("#tab-review")
    page.wait(lambda: page.all("#review li"), "labels to review are listed")
    found["review"] = violations(page, axe)
    page.click("#keys-button")
    page.wait(lambda: page.all("dialog[open]"), "the list of keys is open")
    found["keys"] = violations(page, axe)
    assert {view: rules for view, rules in found.items() if rules} == {}
    page.console()  # axe reads the canvas, which Chromium remarks on
