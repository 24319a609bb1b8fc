"""The page where requests or answers are lost: every change is made once, and is not attributed to someone else."""

import pytest

from tests.production.models import members
from tests.service.pages import DECISIONS, Page

pytest.importorskip("fastapi")


def label_of(page: Page, node: str) -> str | None:
    return page.served.ask("GET", f"/v1/nodes/{node}")["label"]


def decide(page: Page, node: str, key: str) -> None:
    page.show(node)
    page.press(key)


def all_learned(page: Page) -> None:
    page.wait(lambda: page.texts("#status-work") == [""] and page.all(DECISIONS), "all is learned")
    page.wait(lambda: len(page.all("#decisions li[data-state=learned]")) == len(page.all(DECISIONS)), "all is learned")


@pytest.mark.long
def test_a_change_whose_answer_is_lost_is_made_once(page: Page) -> None:
    """Try again and Undo ask the service whether it learned the label."""
    first, second, third = map(str, members("class-08")[:3])
    start = page.served.ask("GET", "/v1/model")["version"]
    for node, button in ((first, "Try again"), (second, "Undo")):
        page.show(node)
        page.lose("answers")
        page.press("1")
        page.wait(lambda: page.all("#decisions li[data-state=failed]"), "it is not known to be learned")
        assert label_of(page, node) == "class-00"
        page.lose("nothing")
        page.click("#decisions li:first-child button", button)
        all_learned(page)
        assert page.texts(DECISIONS)[0].startswith(f"{first} is class-00")
    page.says(f"{second} is not labelled class-00")
    assert [label_of(page, node) for node in (first, second)] == ["class-00", None]

    page.show(third)
    page.lose("changes")
    page.press("1")
    page.wait(lambda: page.all("#decisions li[data-state=failed]"), "it is not learned")
    page.click("#decisions li:first-child button", "Undo")
    page.says("The service does not answer")
    page.wait(lambda: len(page.all(DECISIONS)) == 2, "it is listed while its outcome is open")
    page.lose("nothing")
    page.click("#decisions li:first-child button", "Undo")
    page.says(f"{third} has its label back as it was")
    assert label_of(page, third) is None
    assert page.served.ask("GET", "/v1/model")["version"] == start + 3, "two labels, one of them taken back"
    assert [each for each in page.console() if "412" not in each] == []


@pytest.mark.long
def test_an_undo_whose_answer_is_lost_is_made_once(page: Page) -> None:
    node = str(members("class-08")[0])
    decide(page, node, "1")
    all_learned(page)
    start = page.served.ask("GET", "/v1/model")["version"]
    page.lose("answers")
    page.press("\ue003")
    page.says("The service does not answer")
    assert label_of(page, node) is None
    page.lose("nothing")
    page.press("\ue003")
    page.says(f"{node} is not labelled class-00")
    assert page.texts(DECISIONS) == []
    assert page.served.ask("GET", "/v1/model")["version"] == start + 1


@pytest.mark.long
def test_the_newest_decision_about_a_node_is_taken_back_first(page: Page) -> None:
    node = str(members("class-08")[0])
    for key in "12":
        decide(page, node, key)
        all_learned(page)
    newest, oldest = page.texts(DECISIONS)
    assert newest.startswith(f"{node} is class-01")
    assert oldest.startswith(f"{node} is class-00")
    assert "labelled again later" in oldest
    assert page.texts("#decisions li:last-child .row-actions button") == []
    page.click("#decisions button", "Undo")
    page.wait(lambda: label_of(page, node) == "class-00", "it has the label from before")
    page.click("#decisions button", "Undo")
    page.wait(lambda: label_of(page, node) is None, "it has no label")
    assert page.texts(DECISIONS) == []


@pytest.mark.long
def test_a_label_is_corrected_before_it_is_learned(page: Page) -> None:
    """One that waits is not sent at all; one that is being learned is replaced."""
    sent, waiting = map(str, members("class-08")[:2])
    start = page.served.ask("GET", "/v1/model")["version"]
    page.lose("held")
    for node, key in ((sent, "1"), (waiting, "1"), (waiting, "2"), (sent, "2")):
        decide(page, node, key)
    states = [each.get_attribute("data-state") for each in page.all(DECISIONS)]
    assert states == ["waiting", "waiting", "sending"]
    page.lose("nothing")
    all_learned(page)
    assert [label_of(page, node) for node in (sent, waiting)] == ["class-01", "class-01"]
    assert page.served.ask("GET", "/v1/model")["version"] <= start + 3
    page.press("\ue003")
    page.says(f"{sent} is not labelled class-01")
    assert label_of(page, sent) == "class-00", "it has the label from before"


@pytest.mark.long
def test_a_decision_is_not_stuck_when_the_service_goes_away(page: Page) -> None:
    """The model has moved on, and the page cannot ask to which version."""
    node, other = map(str, members("class-08")[:2])
    page.show(node)
    page.lose("reads")
    page.served.ask("POST", "/v1/labels", {"labels": [{"id": other, "class": "class-02"}]})
    page.press("1")
    page.wait(lambda: page.all("#decisions li[data-state=failed]"), "it is not learned")
    assert label_of(page, node) is None
    page.lose("nothing")
    page.click("#decisions button", "Try again")
    all_learned(page)
    assert label_of(page, node) == "class-00"
    assert [each for each in page.console() if "412" not in each] == []


def version_of(page: Page) -> int:
    return page.served.ask("GET", "/v1/model")["version"]


def keys_of(page: Page) -> list[str]:
    """The keys of all changes that the page sent since answers were first lost."""
    return page.browser.execute_script("return window.keys")


def rename(page: Page, old: str, new: str) -> None:
    if old not in page.text("#catalogue details[open] .class-name"):
        page.click("#catalogue summary", old)
    page.click("#catalogue details[open] button", "Rename")
    page.enter("dialog[open] input", new)


@pytest.mark.long
def test_a_rename_whose_answer_is_lost_is_made_once_and_is_ones_own(page: Page) -> None:
    start, node = version_of(page), str(members("class-08")[0])
    decide(page, node, "1")
    all_learned(page)
    page.be_still()
    page.lose("answers")
    rename(page, "class-00", "first")
    page.says("The service does not answer")
    assert version_of(page) == start + 2
    page.lose("nothing")
    rename(page, "class-00", "first")
    page.says("“class-00” is called “first”")
    page.wait(lambda: "first" in page.text("#catalogue .class-name"), "the page shows it")
    assert len(set(keys_of(page)[-4:])) == 1, "the repeated request has the key of the first"
    assert version_of(page) == start + 2
    assert page.texts(DECISIONS)[0].startswith(f"{node} is first"), "decisions follow the name"
    assert "Someone else" not in page.text("#status-message")


@pytest.mark.long
def test_a_rename_that_was_not_made_is_sent_again_with_its_key(page: Page) -> None:
    start = version_of(page)
    page.lose("changes")
    rename(page, "class-00", "first")
    page.says("The service does not answer")
    page.lose("nothing")
    rename(page, "class-00", "first")
    page.says("“class-00” is called “first”")
    assert version_of(page) == start + 1
    assert len(set(keys_of(page))) == 1
    assert [each for each in page.console() if "412" not in each] == []


@pytest.mark.long
def test_the_next_change_knows_the_lost_ones_as_its_own(page: Page) -> None:
    """A retirement, a label and an undo get no answer; what follows each of them is not attributed to someone else."""
    start, node, other = version_of(page), *map(str, members("class-08")[:2])
    page.show(node)
    page.be_still()
    page.lose("answers")
    page.click("#catalogue summary", "class-07")
    page.click("#catalogue details[open] button", "Retire")
    page.click("dialog[open] .primary")
    page.says("The service does not answer")
    page.lose("nothing")
    decide(page, node, "1")
    all_learned(page)
    assert label_of(page, node) == "class-00"
    assert version_of(page) == start + 2

    page.show(other)
    page.lose("answers")
    page.press("2")
    page.wait(lambda: page.all("#decisions li[data-state=failed]"), "it is not known to be learned")
    page.lose("nothing")
    rename(page, "class-03", "third")
    page.says("“class-03” is called “third”")
    all_learned(page)
    assert version_of(page) == start + 4

    page.lose("answers")
    page.press("\ue003")
    page.says("The service does not answer")
    page.lose("nothing")
    rename(page, "class-04", "fourth")
    page.says("“class-04” is called “fourth”")
    assert label_of(page, other) is None
    assert len(page.texts(DECISIONS)) == 1
    assert version_of(page) == start + 6
    assert page.console() == []


@pytest.mark.long
def test_a_version_that_is_heard_before_its_answer_is_ones_own(page: Page) -> None:
    """The page asks every ten seconds which version there is."""
    page.lose("answers")
    rename(page, "class-00", "first")
    page.says("The service does not answer")
    page.lose("nothing")
    page.says("“class-00” is called “first”")
    page.wait(lambda: "first" in page.text("#catalogue .class-name"), "the page shows it")


@pytest.mark.long
def test_a_group_is_named_once(page: Page) -> None:
    page.wait(lambda: page.all("#groups article form button:enabled"), "groups are found")
    start = version_of(page)
    page.lose("answers")
    page.enter("#groups article:first-child input[data-node]", "wheels")
    page.says("The service does not answer")
    page.lose("nothing")
    page.enter("#groups article:first-child input[data-node]", "wheels")
    page.says("The model learned “wheels”")
    assert version_of(page) == start + 1
