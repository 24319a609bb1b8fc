"""Two people at the page: who labels is asked once, nobody is asked what another is asked, conflicts are explained."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.service.pages import DECISIONS, Page

pytest.importorskip("fastapi")
pytestmark = pytest.mark.long
ENTER, ESCAPE, TAB = "\ue007", "\ue00c", "\ue004"


@contextmanager
def second_tab(page: Page) -> Iterator[None]:
    """Another person: a tab of its own, in which the page is open."""
    browser, first = page.browser, page.browser.current_window_handle
    browser.switch_to.new_window("tab")
    own = browser.current_window_handle
    try:
        page.open()
        yield
    finally:
        browser.switch_to.window(own)
        page.leave()
        browser.close()
        browser.switch_to.window(first)


def focus(page: Page) -> str:
    return str(page.browser.execute_script("return document.activeElement.id"))


def coming(page: Page) -> set[str]:
    """The node in turn and those that are shown below it."""
    return {page.text("#card-name"), *page.texts("#queue-next button")[:2]}


def ready_queue(page: Page) -> Any:
    """The queue, once its order is that of the version."""
    queue = page.served.ask("GET", "/v1/queue")
    return queue["status"] == "ready" and queue["nodes"]


def settled(page: Page) -> str:
    """Wait until the page has the order of its version; the node after the one that is shown."""
    queue = page.wait(lambda: ready_queue(page), "the order is computed")
    node = page.text("#card-name")
    following = str(next(each["id"] for each in queue if each["id"] != node))
    page.wait(lambda: page.texts("#queue-next button")[0] == following, "the page has this order")
    return following


def test_a_name_is_asked_once_and_kept_with_reason_and_note(page: Page) -> None:
    page.browser.execute_script("localStorage.removeItem('graphfcl.name')")
    node = page.text("#card-name")
    page.press("m")
    page.enter("dialog[open] input", "seen in the shop")
    page.shows("#labelling", "Your note: “seen in the shop”")
    assert focus(page) == "question", "the next key belongs to it"
    page.press("1")
    page.wait(lambda: "Who is labelling?" in page.text("dialog[open]"), "the name is asked")
    page.press("eve", ENTER)
    page.says("The model learned in")
    (said,) = page.served.ask("GET", f"/v1/nodes/{node}")["statements"]
    assert (said["by"], said["kept"]["note"]) == ("eve", "seen in the shop")
    assert said["kept"]["reason"] in ("Looks unknown", "In doubt", "Looks known")
    assert said["when"]
    assert focus(page) == "question"
    page.press("2")
    page.wait(lambda: len(page.texts(DECISIONS)) == 2 and page.texts("#status-work") == [""], "it is learned")
    assert page.all("dialog[open]") == []
    page.shows("#versions", "By eve.")
    page.show(node)
    page.shows("#card-statements", "eve")
    page.shows("#card-statements", "seen in the shop")
    page.browser.execute_script("localStorage['graphfcl.name'] = 'ann'")


def test_two_tabs_are_not_asked_about_the_same_node(page: Page) -> None:
    settled(page)
    first = coming(page)
    assert len(first) == 3
    with second_tab(page):
        page.wait(lambda: not coming(page) & first, "the leased nodes are left out")
        for _ in range(3):
            node = page.text("#card-name")
            page.press("2")
            page.wait(lambda node=node: page.text("#card-name") != node, "it goes on")  # type: ignore[misc]
            page.wait(lambda: not coming(page) & first, "the leased nodes are left out")
        page.wait(lambda: page.texts("#status-work") == [""], "all is learned")
        second = coming(page)
        page.browser.switch_to.window(page.browser.window_handles[0])
        page.wait(lambda: page.version() > 1, "the other tab sees it")
        page.press(" ")
        page.wait(lambda: page.text("#card-name") not in first - coming(page), "it goes on")
        page.wait(lambda: not coming(page) & second, "the nodes of the other tab are left out")
        page.browser.switch_to.window(page.browser.window_handles[1])


def test_leases_end_when_the_page_is_left(page: Page) -> None:
    """Nothing is leased from then on, until the page is shown again."""

    def leased() -> set[str]:
        nodes = sorted(coming(page))
        taken = page.served.ask("POST", "/v1/queue/leases", {"holder": "bob", "ids": nodes})["taken"]
        page.served.ask("POST", "/v1/queue/leases", {"holder": "bob", "ids": []})
        return set(taken)

    settled(page)
    page.wait(lambda: leased() == coming(page), "three nodes are leased")
    page.browser.execute_script("dispatchEvent(new PageTransitionEvent('pagehide', {persisted: true}))")
    page.wait(lambda: not leased(), "they are free")
    node = page.text("#card-name")
    page.press(" ")
    page.wait(lambda: page.text("#card-name") != node, "it goes on")
    assert not leased()
    page.browser.execute_script("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
    page.wait(lambda: leased() == coming(page), "they are leased again")


def test_a_conflict_is_explained_and_settled(page: Page) -> None:
    node = page.text("#card-name")
    page.be_still()
    page.lose("held")
    page.press("1")
    labels = [{"id": node, "class": "class-05"}]
    page.served.ask("POST", "/v1/labels", {"labels": labels, "by": "bob"})
    page.lose("nothing")
    page.says(f"{node}: bob labelled it class-05 before you said class-00.")
    page.shows(DECISIONS, "bob labelled it class-05 before you said class-00")
    page.click(f"{DECISIONS} button", "Replace by class-00")
    page.wait(lambda: page.served.ask("GET", f"/v1/nodes/{node}")["label"] == "class-00", "it is replaced")
    page.console()  # 412 and 409


def test_a_digit_on_a_focused_button_labels_nothing(page: Page) -> None:
    node = page.text("#card-name")
    page.press("/", "class", ESCAPE)
    assert focus(page) == "question"
    page.browser.execute_script("document.getElementById('keys-button').focus()")
    page.press(TAB, "2")
    page.says("Nothing was labelled, as the focus is on “Token”.")
    assert page.texts(DECISIONS) == []
    page.press(ESCAPE, "2")
    page.shows(f"{DECISIONS}:first-child", f"{node} is class-01")


@pytest.mark.parametrize("width", [390, 1440])
def test_few_stops_of_the_tab_key_lead_to_the_card(page: Page, width: int) -> None:
    page.open(width)
    page.wait(lambda: page.all("#groups article form button:enabled"), "groups are found")
    inside = "return document.getElementById('card').contains(document.activeElement)"
    stops = 0
    while not page.browser.execute_script(inside):
        page.press(TAB)
        stops += 1
        assert stops <= (10 if width == 390 else 25)
    page.browser.execute_script("document.activeElement.blur(); scrollTo(0, 0)")
    page.open(width)
    page.press(TAB, TAB, ENTER)
    assert focus(page) == "card-name"


def test_ticked_members_of_a_group_are_taught(page: Page) -> None:
    page.wait(lambda: page.all("#groups article form button:enabled"), "groups are found")
    group = "#groups article:first-child"
    assert "estimated purity" in page.text(f"{group} .hint")
    typical = page.texts(f"{group} ul[aria-label='Typical nodes'] button")
    page.click(f"{group} summary")
    others = page.texts(f"{group} ul[aria-label='Further members'] button")
    page.click(f"{group} input[aria-label='Teach {typical[0]}']")
    page.shows(f"{group} form button", f"Teach {len(typical) - 1} nodes")
    page.click(f"{group} input[aria-label='Teach {others[-1]}']")
    page.enter(f"{group} input[data-node]", "wheels")
    page.says("The model learned “wheels”")
    taught = [node for node in (*typical, *others) if page.served.ask("GET", f"/v1/nodes/{node}")["label"] == "wheels"]
    assert sorted(taught) == sorted([*typical[1:], others[-1]])


def test_the_next_node_is_shown_without_asking_the_service(page: Page) -> None:
    """Card, reasons and neighbourhood are read ahead; the service is away when they are needed."""
    node, following = page.text("#card-name"), settled(page)
    page.wait(lambda: "computed" not in page.text("#card-why"), "the reasons are there")
    kept = "return performance.getEntriesByType('resource').filter(each => each.name.includes(arguments[0])).length"
    page.wait(lambda: page.browser.execute_script(kept, f"/nodes/{following}/") >= 2, "it is read ahead")
    page.lose("reads")
    page.press(" ")
    page.wait(lambda: page.text("#card-name") == following != node, "it is shown")
    page.wait(lambda: page.text("#card-why p") and "does not answer" not in page.text("#card-why"), "with reasons")
    page.lose("nothing")
