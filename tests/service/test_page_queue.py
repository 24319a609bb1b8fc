"""The labelling queue, the keys of many classes and unknown nodes, in a real browser."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

from graphfcl import Graph, GraphClassifier, load_dataset
from tests.service.pages import DECISIONS, Page, Served, serving

pytest.importorskip("fastapi")
NAME = "synthetic:nodes=420,edges=1700,classes=14,features=150,signal=1.5"
HIDDEN = ("class-12", "class-13")
TAB, ENTER, ESCAPE, BACKSPACE, DOWN, UP = "\ue004", "\ue007", "\ue00c", "\ue003", "\ue015", "\ue013"


@pytest.fixture(scope="module")
def truth() -> Graph:
    """A graph of 14 classes."""
    return load_dataset(NAME)[0]


@pytest.fixture(scope="module")
def many(truth: Graph, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A model of 12 classes. Without a label are two more classes and two nodes of each of the twelve."""
    labels = truth.labels.copy()
    for number in range(len(truth.class_names)):
        labels[np.flatnonzero(labels == number)[:2]] = -1
    folder = tmp_path_factory.mktemp("many") / "model"
    GraphClassifier("sgc-ridge").fit(replace(truth, labels=labels), hide_classes=HIDDEN).save(folder)
    with serving(folder) as service:
        yield service


@pytest.fixture
def page(browser: Any, many: Served) -> Iterator[Page]:
    opened = Page(browser, many)
    opened.leave()
    if many.ask("GET", "/v1/model")["version"] != 1:
        many.ask("POST", "/v1/versions/1/rollback")
    opened.open(1440)
    yield opened
    assert [each for each in opened.console() if "412" not in each] == []
    browser.get("about:blank")  # the server of this module ends before the browser


def unlabelled(page: Page) -> list[str]:
    """All nodes without a label, as the service counts them."""
    ids: list[str] = []
    cursor = ""
    while cursor is not None:
        answer = page.served.ask("GET", f"/v1/queue?limit=150{cursor and f'&cursor={cursor}'}")
        ids += [each["id"] for each in answer["nodes"]]
        cursor = answer["next_cursor"]
    return ids


def teach(page: Page, labels: dict[str, str]) -> int:
    """Labels from elsewhere; the version that they make."""
    body = {"labels": [{"id": node, "class": name} for node, name in labels.items()]}
    return int(page.served.ask("POST", "/v1/labels", body)["version"])


def node_in_turn(page: Page) -> str:
    """The node that the question, the card and the reason are about."""
    page.wait(lambda: page.all("#queue-reason .why"), "the node in turn is shown")
    page.wait(lambda: page.text("#card-name") == page.text("#question .id"), "one node is shown")
    return page.text("#card-name")


def skip(page: Page) -> None:
    before = node_in_turn(page)
    page.press(" ")
    page.wait(lambda: page.text("#card-name") != before or "skipped" in page.text("#queue-reason"), "it goes on")


def ended(page: Page) -> bool:
    return "You skipped" in page.text("#queue-reason")


def skip_all(page: Page) -> list[str]:
    seen: list[str] = []
    while page.wait(lambda: "end" if ended(page) else page.all("#queue-reason .why"), "a node or the end") != "end":
        seen.append(node_in_turn(page))
        assert len(seen) < 200
        skip(page)
    return seen


def keys(page: Page) -> dict[str, str]:
    """The class of each key that is shown."""
    rows = [re.match(r"(\d) (.*?)(?:, likeliest)?$", text) for text in page.texts(".class-key")]
    return {row.group(1): row.group(2) for row in rows if row}


def type_class(page: Page, letters: str) -> None:
    """Choose a class by typing, without a pointer, and go on to the next node."""
    before = node_in_turn(page)
    page.press("o")
    page.wait(lambda: page.all("dialog[open] [role=option]"), "classes are listed")
    page.press(letters, ENTER)
    page.wait(lambda: page.text("#card-name") != before, "it goes on")
    node_in_turn(page)


def learned(page: Page) -> None:
    page.wait(lambda: page.texts("#status-work") == [""], "all is learned")
    page.wait(
        lambda: str(page.served.ask("GET", "/v1/model")["version"]) == str(page.version()), "the version is shown"
    )


@pytest.mark.long
def test_the_queue_ends_when_every_node_has_a_label(page: Page) -> None:
    """Nodes are passed, labelled here and elsewhere; no labelled one comes back, and no other one is left out."""
    every = unlabelled(page)
    assert len(every) > 40
    seen, reasons = [], []
    for _ in range(12):
        seen.append(node_in_turn(page))
        reasons.append(page.text("#queue-reason strong"))
        skip(page)
    assert "Looks unknown." in reasons, "nodes that look unknown are asked about"
    assert len([each for each in reasons if each != "Looks unknown."]) >= 4, "and known classes too"
    type_class(page, "class-03")
    (decision,) = page.texts(DECISIONS)
    labelled = [decision.split(" is ")[0]]
    learned(page)
    elsewhere = [node for node in unlabelled(page) if node not in seen and node != node_in_turn(page)][:3]
    version = teach(page, dict.fromkeys(elsewhere, "class-05"))
    page.wait(lambda: page.version() == version, "the page shows the new version")
    seen += skip_all(page)
    rest = sorted(set(every) - set(labelled) - set(elsewhere))
    assert sorted(seen) == rest, "each once"
    assert page.text("#queue-reason p") == f"You skipped all {len(rest)} nodes without a label."
    assert page.text("#queue-count") == f"{len(rest)} unlabelled"

    page.press("g")
    assert node_in_turn(page) in rest, "the skipped ones are shown again"
    page.open(1440)
    assert node_in_turn(page) in rest
    assert sorted(skip_all(page)) == rest, "after the page was loaded again"
    page.press("g")
    last = node_in_turn(page)
    version = teach(page, {node: "class-01" for node in rest if node != last})
    page.wait(lambda: page.version() == version, "the page shows the new version")
    page.wait(lambda: page.text("#queue-count") == "1 unlabelled", "one is left")
    assert node_in_turn(page) == last
    page.press(next(key for key, name in keys(page).items() if name == "class-03"))
    learned(page)
    page.wait(page.ended, "it says so")
    assert unlabelled(page) == []


@pytest.mark.long
def test_an_undone_node_is_in_turn_again(page: Page) -> None:
    node = node_in_turn(page)
    type_class(page, "class-07")
    learned(page)
    page.press(BACKSPACE)
    page.says(f"{node} is not labelled class-07")
    learned(page)
    page.wait(lambda: page.text("#card-label").startswith("No label"), "its label is gone")
    assert node_in_turn(page) == node
    page.shows("#queue-reason", "You took its label back.")
    assert node in unlabelled(page)
    page.press("b")
    page.wait(lambda: node_in_turn(page) != node, "it goes on")
    both = []
    for letters in ("class-07", "class-08"):
        both.append(node_in_turn(page))
        type_class(page, letters)
    page.press(BACKSPACE, BACKSPACE)
    page.wait(lambda: page.text("#card-name") == both[0] and not page.texts(DECISIONS), "both are undone")
    page.wait(lambda: set(both) <= set(unlabelled(page)), "neither has a label")


@pytest.mark.long
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1440, "light")])
def test_a_key_keeps_its_class(page: Page, width: int, scheme: str) -> None:
    """With 12 classes, by keys alone: from node to node, at the tenth class, with new versions and after loading."""
    page.open(width, scheme)
    assert keys(page) == {}, "no class was used"
    shown: dict[str, str] = {}

    def unchanged() -> None:
        for key, name in keys(page).items():
            assert shown.setdefault(key, name) == name

    for number in range(11):
        type_class(page, f"class-{number:02}")
        unchanged()
    assert shown == {str(number + 1): f"class-{number:02}" for number in range(9)}, "nine classes have keys"
    learned(page)
    version = teach(page, dict.fromkeys(unlabelled(page)[-2:], "a class from elsewhere"))
    page.wait(lambda: page.version() == version, "the page shows the new version")
    page.wait(lambda: "a class from elsewhere" in page.text("#catalogue"), "it is in the catalogue")
    unchanged()
    for key in ("3", "9"):
        node = node_in_turn(page)
        page.press(key)
        page.shows(f"{DECISIONS}:first-child", f"{node} is {shown[key]}")
        page.wait(lambda node=node: page.text("#card-name") != node, "it goes on")  # type: ignore[misc]
        node_in_turn(page)
        unchanged()
    assert page.browser.execute_script("return document.documentElement.scrollWidth") <= width
    learned(page)
    page.open(width, scheme)
    assert keys(page) == shown, "after the page was loaded again"


@pytest.mark.long
def test_a_key_follows_a_renamed_class_and_rests_when_its_class_is_gone(page: Page) -> None:
    for name in ("class-04", "class-05", "class-06"):
        type_class(page, name)
    learned(page)
    assert keys(page) == {"1": "class-04", "2": "class-05", "3": "class-06"}
    page.click("#catalogue summary", "class-04")
    page.click("#catalogue details[open] button", "Rename")
    page.enter("dialog[open] input", "renamed")
    page.says("is called “renamed”")
    page.wait(lambda: keys(page) == {"1": "renamed", "2": "class-05", "3": "class-06"}, "it keeps its key")
    page.click("#catalogue summary", "class-05")
    page.click("#catalogue details[open] button", "Merge")
    page.enter("dialog[open] input", "class-06")
    page.click("dialog[open] .primary", "Merge")
    page.says("is merged into")
    page.wait(lambda: keys(page) == {"1": "renamed", "3": "class-06"}, "no other class gets its key")
    node = node_in_turn(page)
    page.press("2")
    page.says("Key 2 stands for “class-05”, which is gone.")
    page.press("9")
    page.says("Key 9 stands for no class.")
    assert node_in_turn(page) == node
    page.press("n")
    page.enter("dialog[open] input", "fresh")
    page.wait(lambda: keys(page) == {"1": "renamed", "3": "class-06", "4": "fresh"}, "a new class gets a free key")


@pytest.mark.long
def test_classes_are_chosen_by_typing_and_arrow_keys(page: Page) -> None:
    node = node_in_turn(page)
    likeliest = page.texts("#card-classes .bar-name")
    page.press("o")
    options = page.wait(lambda: page.texts("dialog[open] [role=option]"), "classes are listed")
    assert options[: len(likeliest)] == likeliest, "the likeliest come first"
    assert len(options) == 12
    marked = "dialog[open] [aria-selected=true]"
    page.press(DOWN, DOWN, UP)
    assert page.texts(marked) == [options[1]]
    field = page.browser.switch_to.active_element
    assert page.text(f"#{field.get_attribute('aria-activedescendant')}") == options[1]
    page.press("nosuch")
    page.shows("dialog[open]", "No class has these letters.")
    page.press(ENTER)
    assert page.all("dialog[open]"), "nothing is chosen"
    page.press(*[BACKSPACE] * 6, "1", DOWN)
    assert all("1" in name for name in page.texts("dialog[open] [role=option]"))
    chosen = page.text(marked)
    page.press(ENTER)
    page.shows(f"{DECISIONS}:first-child", f"{node} is {chosen}")
    page.press("o", ESCAPE)
    assert page.all("dialog[open]") == []


def reason_agrees(page: Page) -> bool:
    """Whether the reason says what the card says; both are read at once."""
    reason, unknown, guess = page.browser.execute_script(
        "const found = (selector) => document.querySelector(selector);"
        "return [found('#queue-reason').textContent, found('#card-unknown').dataset.unknown,"
        " found('#card-classes .bar-name').textContent]"
    )
    return ("Looks unknown." in reason) == (unknown == "true") and (unknown == "true" or guess in reason)


def known_after(page: Page, labels: dict[str, str], nodes: list[str]) -> list[str]:
    """Those of `nodes` that look unknown without `labels` and not with them."""

    def unknown() -> set[str]:
        return {node for node in nodes if page.served.ask("GET", f"/v1/nodes/{node}")["unknown"]}

    before = unknown()
    teach(page, labels)
    after = unknown()
    page.served.ask("POST", "/v1/versions/1/rollback")
    return sorted(before - after)


@pytest.mark.long
def test_the_reason_agrees_with_the_card(page: Page, truth: Graph) -> None:
    """Also after other people taught the class of the node that is shown."""
    hidden = {
        name: [str(node) for node in truth.node_ids[truth.labels == truth.class_number(name)].tolist()]
        for name in HIDDEN
    }
    taught = {name: dict.fromkeys(nodes[:8], name) for name, nodes in hidden.items()}
    becomes_known = {
        node: name for name, nodes in hidden.items() for node in known_after(page, taught[name], nodes[8:])
    }
    assert becomes_known
    page.open(1440)
    while page.text("#queue-reason strong") != "Looks unknown." or node_in_turn(page) not in becomes_known:
        assert reason_agrees(page)
        skip(page)
    node = node_in_turn(page)
    version = teach(page, taught[becomes_known[node]])
    page.wait(lambda: page.version() == version, "the page shows the new version")
    page.wait(lambda: page.texts("#card-unknown[data-unknown=false]"), "the card shows that it is known")
    assert node_in_turn(page) == node
    assert reason_agrees(page)
    assert "Looks unknown" not in page.text("#queue-reason")
    for _ in range(4):
        skip(page)
        assert reason_agrees(page)


@pytest.mark.long
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1440, "dark")])
def test_unknown_nodes_are_not_drawn_as_a_class(page: Page, width: int, scheme: str) -> None:
    page.open(width, scheme)
    around = f"/v1/nodes/{quote(node_in_turn(page), safe='')}/neighbours?limit=150"
    nodes = page.served.ask("GET", around)["nodes"]
    unknown = {each["id"] for each in nodes if each["unknown"] and each["label"] is None}
    guessed = {each["id"] for each in nodes if not each["unknown"] and each["label"] is None}
    assert unknown
    drawn = page.wait(
        lambda: page.browser.execute_script(
            "const drawn = document.getElementById('picture')._cyreg?.cy.nodes() ?? [];"
            "return drawn.map(each => [each.data('name'), each.style('shape'), each.style('border-color')])"
        ),
        "the picture is drawn",
    )
    looks = {name: (shape, colour) for name, shape, colour in drawn}
    of_unknown = {looks[each] for each in unknown}
    assert len(of_unknown) == 1
    assert {shape for shape, _ in of_unknown} == {"diamond"}
    others = [looks[name] for name in looks if name not in unknown]
    assert not {colour for _, colour in of_unknown} & {colour for _, colour in others}
    marks = {colour: shape for shape, colour in others}
    assert all(marks[colour] == shape for shape, colour in others), "each colour has a mark of its own"
    assert "diamond" not in marks.values()
    assert "unknown" in page.texts("#picture-legend li")
    rows = dict(
        page.browser.execute_script(
            "return [...document.querySelectorAll('#picture-list li')].map(each =>"
            " [each.querySelector('button').textContent, each.querySelector('.hint').textContent])"
        )
    )
    for node, words in rows.items():
        assert ("unknown" in words) == (node in unknown)
        assert ("perhaps" in words) == (node in guessed)
