"""Strategies by name: our own, registered ones, module:Class, plug-ins."""

from pathlib import Path

import pytest

from graphfcl import ActiveLearningState, InputError, Query, Strategy, find_strategy, register_strategy
from graphfcl.active import STRATEGIES, registry, strategy_from
from graphfcl.active.strategies import Typical


class FirstRows(Strategy):
    """The first candidates"""

    def choose(self, state: ActiveLearningState) -> list[Query]:
        return [Query(int(row), "random") for row in state.candidates[: state.budget]]


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.REGISTRY, "registered", {})


def test_our_own_have_titles_and_can_be_made() -> None:
    for name in STRATEGIES:
        actual = find_strategy(name)
        assert actual.title
        assert not actual.source
        assert isinstance(actual.make(), Strategy)
    assert find_strategy("typical").strategy is Typical


def test_register_and_find() -> None:
    assert register_strategy(FirstRows) is FirstRows
    assert register_strategy(FirstRows) is FirstRows
    actual = find_strategy("first-rows")
    assert actual.strategy is FirstRows
    assert actual.title == "The first candidates"
    assert actual.source.startswith("tests.active.test_registry:FirstRows@")
    assert find_strategy("tests.active.test_registry:FirstRows") == actual


def test_unknown_names() -> None:
    with pytest.raises(InputError, match="did you mean 'typical'"):
        find_strategy("typicl")
    with pytest.raises(InputError, match="comes from outside graphfcl"):
        find_strategy("mine", "somewhere:Mine@0123")


def test_module_and_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    body = "    def choose(self, state):\n        return []\n"
    (tmp_path / "active_mine.py").write_text(
        f"from graphfcl import Strategy\nclass MostLinks(Strategy):\n{body}\nclass Bare(Strategy):\n    pass\n"
        f"class Taken(Strategy):\n    name = 'random'\n{body}\n"
        f"class OfEachClass(Strategy):\n{body}\nclass Needs(Strategy):\n"
        f"    def __init__(self, more):\n        pass\n{body}\nOther = 3\n"
    )
    assert strategy_from("active_mine:MostLinks").name == "most-links"
    assert strategy_from("graphfcl.active.strategies:Typical").name == "typical"
    for reference, says in (
        ("active_mine:Bare", "lacks choose"),
        ("active_mine:Taken", "graphfcl itself uses that name"),
        ("active_mine:OfEachClass", "is called 'of-each-class', but graphfcl itself uses that name"),
        ("active_mine:Needs", "without arguments"),
        ("active_mine:Other", "derives from graphfcl.Strategy"),
        ("active_mine:MostLink", "did you mean 'MostLinks'"),
        ("not_there:Mine", "cannot be imported"),
        ("mine.py:Mine", "name the module, not its file"),
    ):
        with pytest.raises(InputError, match=says):
            strategy_from(reference)


class Point:
    """An entry point."""

    name, value = "first-rows", "somewhere:FirstRows"

    def load(self) -> type[Strategy]:
        return FirstRows


def test_a_plug_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "graphfcl.runtime.registry.entry_points", lambda group: [Point()] if group == "graphfcl.strategies" else []
    )
    assert find_strategy("first-rows").strategy is FirstRows
