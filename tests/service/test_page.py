"""The page in a real browser, in front of a real server."""

import re

import pytest

from tests.production.models import members
from tests.service.pages import DECISIONS, Page

pytest.importorskip("fastapi")
MARKUP = "<img src=x onerror=alert(1)>"
GUESS = "#card-classes li:first-child .bar-name"


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_it_opens_on_a_phone_and_in_the_dark(page: Page, width: int, scheme: str) -> None:
    page.open(width, scheme)
    page.wait(lambda: page.texts(GUESS) and page.texts("#picture canvas"), "card and picture are there")
    assert page.browser.execute_script("return document.documentElement.scrollWidth") <= width
    ground = page.browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", ground))) < 200) == (scheme == "dark")
    assert page.version() >= 1
    assert page.texts(".class-key kbd") == [str(key) for key in range(1, 9)], "classes and their keys are in sight"
    assert page.texts(".class-key span") == [f"class-{number:02}" for number in range(8)]
    assert page.served.token not in page.browser.current_url


@pytest.mark.long
@pytest.mark.parametrize("width", [390, 960, 1280])
def test_a_long_id_stays_in_its_card(page: Page, width: int) -> None:
    page.open(width)
    page.wait(lambda: page.texts("#card-why button.node"), "neighbours are explained")
    wider = page.browser.execute_script(
        "document.querySelector('#card-why button.node').textContent = 'a-long-name'.repeat(10);"
        "const card = document.getElementById('card');"
        "return [...card.querySelectorAll('*')].filter(each => each.checkVisibility()"
        " && each.getBoundingClientRect().right > card.getBoundingClientRect().right + 1).map(each => each.tagName)"
    )
    assert wider == []


@pytest.mark.parametrize("width", [390, 1280])
def test_the_order_of_the_tab_key_is_that_of_the_eye(page: Page, width: int) -> None:
    page.open(width)
    places = page.browser.execute_script(
        "return [...document.querySelectorAll('main section')].filter(each => each.checkVisibility())"
        ".map(each => [each.getAttribute('aria-labelledby'),"
        " each.getBoundingClientRect().left, each.getBoundingClientRect().top])"
    )
    assert [name for name, *_ in sorted(places, key=lambda place: place[1:])] == [name for name, *_ in places]
    if width == 390:
        assert [name for name, *_ in places[:3]] == ["queue-heading", "card-name", "picture-heading"]


@pytest.mark.long
def test_the_way_of_a_new_user(page: Page) -> None:
    """Search, teach a class, see it predicted, undo, name a group, roll back."""
    first, second, third, other = members("class-08")[:4]
    start = page.version()

    page.show(str(first))
    page.press("n")
    page.enter("dialog[open] input", "gears")
    page.says("The model learned in")
    assert re.search(r"learned in \d+\.\d s", page.text("#status-message"))
    assert page.texts(DECISIONS)[0].startswith(f"{first} is gears")
    for node in (second, third):
        page.show(str(node))
        page.wait(lambda: page.texts(".class-key")[-1].removesuffix(", likeliest") == "9 gears", "the class has a key")
        page.press("9")
        page.shows(f"{DECISIONS}:first-child", f"{node} is gears")
    page.wait(lambda: page.texts("#status-work") == [""], "all is learned")

    page.show(str(other))
    assert page.text(GUESS) == "gears", "a node without a label is predicted"
    page.wait(lambda: page.text("#card-why p").startswith("The model calls it 'gears'"), "it says why")
    row = page.wait(lambda: [each for each in page.texts("#catalogue li") if each.startswith("gears")], "it is listed")
    assert "more labels" in page.text("#catalogue-gain")
    assert "3 labels" in row[0]

    page.press("\ue003")
    page.says(f"{third} is not labelled gears")
    assert [each.split(" is ")[0] for each in page.texts(DECISIONS)] == [str(second), str(first)]
    assert page.served.ask("GET", f"/v1/nodes/{third}")["label"] is None
    assert page.text("#card-name") == str(third), "it is in turn again"

    name_group(page)
    page.click(f"#versions button[aria-label='Go back to version {start}']")
    page.click("dialog[open] .primary")
    page.says(f"equals version {start}")
    page.wait(lambda: "gears" not in page.text("#catalogue"), "the catalogue is as it was")
    assert page.texts(DECISIONS) == []


def name_group(page: Page) -> None:
    page.wait(lambda: page.all("#groups article form button:enabled"), "groups are found")
    typical = page.texts("#groups article:first-child ul[aria-label='Typical nodes'] button")
    page.enter("#groups article:first-child input[data-node]", "wheels")
    page.says("The model learned “wheels”")
    page.wait(lambda: "wheels" in page.text("#catalogue .class-name"), "the class is in the catalogue")
    assert page.served.ask("GET", f"/v1/nodes/{typical[0]}")["label"] == "wheels"


@pytest.mark.long
def test_keys_are_enough(page: Page) -> None:
    """Everything is reached without a pointer, and each key does what the list of keys says."""
    tab, enter, escape, space, backspace = "\ue004", "\ue007", "\ue00c", " ", "\ue003"
    page.press(tab)
    assert page.browser.switch_to.active_element.text == "Skip to labelling"
    page.press(enter)
    assert page.browser.switch_to.active_element.get_attribute("id") == "question-panel"

    page.press("?")
    page.wait(lambda: "take the last decision back" in page.text("dialog[open] dd"), "the keys are listed")
    page.press("1", "n", space)
    assert page.all("dialog[open]") == [], "space pressed the button that had the focus"
    page.press("?", escape)
    assert page.all("dialog[open]") == []
    assert page.texts(DECISIONS) == [], "keys do nothing while a dialog is open"

    before = page.text("#card-name")
    page.press(space)
    page.wait(lambda: page.text("#question") != f"Which class is {before}?", "the next node is in turn")
    current = page.text("#card-name")
    page.press("2")
    page.wait(lambda: page.texts(DECISIONS), "it is decided")
    assert page.texts(DECISIONS)[0].startswith(f"{current} is class-01")
    page.wait(lambda: page.text("#card-name") not in (before, current), "it goes on by itself")
    page.says("The model learned in")
    page.press(backspace)
    page.says(f"{current} is not labelled class-01")

    hasty = page.text("#card-name")
    page.press("1", "2")
    page.wait(lambda: page.texts("#status-work") == [""], "all is learned")
    assert page.served.ask("GET", f"/v1/nodes/{hasty}")["label"] == "class-00", "a hasty key never labels a node again"
    while page.texts(DECISIONS):
        page.press(backspace)

    page.press("/", "1", "n", "2", " ", backspace)
    assert page.browser.execute_script("return document.activeElement.value") == "1n2", "a field takes keys as letters"
    assert page.texts(DECISIONS) == []
    page.press(escape)


@pytest.mark.long
def test_a_decision_can_be_changed_and_the_basket_teaches(page: Page) -> None:
    first, second, third = map(str, members("class-09")[:3])
    page.show(first)
    page.press("1")
    page.says("The model learned in")
    page.click("#decisions button", "Change")
    page.enter("dialog[open] input", "class-03")
    page.wait(lambda: "class-03" in page.text(DECISIONS), "it is changed")
    page.wait(lambda: page.served.ask("GET", f"/v1/nodes/{first}")["label"] == "class-03", "the service has it")

    for node in (second, third):
        page.show(node)
        page.press("b")
    page.wait(lambda: page.texts("#basket-nodes .node") == [second, third], "both are in the basket")
    page.wait(lambda: page.all("#basket-meter .bar-fill"), "their spread is measured")
    page.enter("#basket-name", "cogs")
    page.wait(lambda: "cogs" in page.text("#catalogue .class-name"), "the class is learned")
    assert page.served.ask("GET", f"/v1/nodes/{third}")["label"] == "cogs"
    assert page.texts("#basket-nodes li") == []


@pytest.mark.long
def test_markup_in_a_name_is_text(page: Page) -> None:
    page.browser.execute_script("window.alert = () => { window.alarmed = true }")
    node = str(members("class-08")[0])
    page.show(node)
    page.press("n")
    page.enter("dialog[open] input", MARKUP)
    page.says(f"{node} is {MARKUP}")
    page.show(node)
    page.wait(lambda: MARKUP in page.text("#catalogue .class-name"), "it is in the catalogue")
    for place in ("#catalogue .class-name", "#decisions", "#card-label", ".class-key", "#versions", "#picture-legend"):
        page.shows(place, MARKUP)
    page.click("#catalogue summary", MARKUP)
    page.click("#catalogue details[open] button", "Rename")
    page.enter("dialog[open] input", "<b>bold</b>")
    page.says("is called “")
    assert page.all("img, b") == []
    assert not page.browser.execute_script("return Boolean(window.alarmed)")
    loaded = page.browser.execute_script("return performance.getEntriesByType('resource').map(each => each.name)")
    assert [each for each in loaded if not each.startswith(page.served.address)] == []
    assert [each for each in loaded if each.endswith("/x")] == []


@pytest.mark.long
def test_a_change_from_elsewhere_is_not_overwritten(page: Page) -> None:
    node = str(members("class-08")[0])
    page.click("#catalogue summary", "class-00")
    page.click("#catalogue details[open] button", "Retire")
    page.wait(lambda: page.all("dialog[open]"), "it is asked")
    changed = page.served.ask("POST", "/v1/labels", {"labels": [{"id": node, "class": "elsewhere"}]})
    page.click("dialog[open] .primary")
    page.says(f"Someone else changed the model. The page shows version {changed['version']}")
    page.wait(lambda: "elsewhere" in page.text("#catalogue .class-name"), "the page shows it")
    assert "class-00" in page.text("#catalogue .class-name")
    assert page.version() == changed["version"]
    refused = [each for each in page.console() if "412" not in each]  # Chromium tells every refused request
    assert refused == []


@pytest.mark.long
def test_a_confirmation_holds_for_the_version_that_was_shown(page: Page) -> None:
    page.click("#catalogue summary", "class-01")
    page.click("#catalogue details[open] button", "Retire")
    page.wait(lambda: page.all("dialog[open]"), "it is asked")
    node = str(members("class-08")[1])
    changed = page.served.ask("POST", "/v1/labels", {"labels": [{"id": node, "class": "meanwhile"}]})
    page.wait(lambda: page.version() == changed["version"], "the page has read the other version")
    page.click("dialog[open] .primary")
    page.says("Nothing was changed")
    assert page.served.ask("GET", "/v1/model")["version"] == changed["version"]


@pytest.mark.long
def test_the_token_is_asked_for_and_stays_in_the_tab(page: Page) -> None:
    page.leave()
    page.open(token=False)
    node = page.text("#card-name")
    page.press("1")
    page.enter("dialog[open] input[type=password]", "wrong-token-of-nobody")
    page.wait(lambda: "A token is needed" in page.text("#status-message"), "it is refused")
    assert page.served.ask("GET", f"/v1/nodes/{node}")["label"] is None
    page.click("#token-button")
    page.enter("dialog[open] input[type=password]", page.served.token)
    page.click("#decisions button", "Try again")
    page.says("The model learned in")
    assert page.served.ask("GET", f"/v1/nodes/{node}")["label"] == "class-00"
    assert page.browser.execute_script("return [Object.keys(localStorage), document.cookie]") == [
        ["graphfcl.name"],
        "",
    ]
    assert [each for each in page.console() if "401" not in each] == []


def test_a_new_class_that_looks_like_a_known_one_is_taught_if_it_is_meant(page: Page) -> None:
    first, second = members("class-08")[:2]
    for node, button in ((first, "Cancel"), (second, "Teach a new class")):
        page.show(str(node))
        page.press("n")
        page.enter("dialog[open] input", "Class-00")
        page.click("dialog[open] button", button)
    page.shows(f"{DECISIONS}:first-child", f"{second} is Class-00")
