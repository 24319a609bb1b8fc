"""Info and refit as a user types them."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.command import assert_one_sentence, graphfcl, graphfcl_inside
from tests.production.models import NAME, copy_of, everything, fitted, members


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has grown old: a class that it knows as a few-shot class has twelve labels."""
    folder = tmp_path_factory.mktemp("model") / "m"
    model = fitted()
    model.save(folder)
    model.learn({"eight": members("class-08")[:12]}).save(folder)
    model.wait()
    return folder


@pytest.fixture
def model(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "m"))


def all_but_cache(model: Path) -> dict[str, bytes]:
    """Who reads a version may write its cache."""
    return {name: content for name, content in everything(model).items() if not name.startswith("cache")}


@pytest.mark.long
def test_info_says_what_the_model_is_and_what_asks_for_a_refit(model: Path) -> None:
    before = everything(model)
    shown = graphfcl("info", "--model", model)
    assert shown.code == 0, shown.err
    for words in ("proto-gcn", "9, 1 of them few-shot", "500, 1,500", "cache on disk", "1 of 9: eight 12"):
        assert words in shown.out
    assert shown.out.rstrip().endswith("A refit is due (few-shot classes with 7 labels or more).")
    values = json.loads(graphfcl_inside("info", "--model", model, "--json", "--full").out)
    assert (values["version"], values["classes"], values["refit_due"]) == (2, 9, True)
    assert [sign["over"] for sign in values["signs"]] == [False, False, False, True]
    assert everything(model) == before


def test_refit_shows_each_class_and_is_a_version_or_nothing(model: Path) -> None:
    taken = graphfcl_inside("refit", "--model", model, "--anyway")
    assert taken.code == 0, taken.err
    assert "It is version 3" in taken.out
    assert "held-out nodes" in taken.out
    assert all(name in taken.out for name in ("eight", "class-00", "class-07"))
    before = all_but_cache(model)
    again = graphfcl("refit", "--model", model)
    assert again.code == 0, again.err
    assert "The new model is no better:" in again.out
    assert "Nothing was changed" in again.out
    assert all_but_cache(model) == before
    assert "refit: 9 classes" in graphfcl_inside("history", "--model", model).out
    assert graphfcl_inside("info", "--model", model).out.rstrip().endswith("No refit is due.")
    assert graphfcl_inside("rollback", "--model", model, 2).code == 0
    assert "A refit is due" in graphfcl_inside("info", "--model", model).out


def test_refit_takes_a_graph_with_the_same_nodes(model: Path) -> None:
    taken = graphfcl_inside("refit", "--model", model, "--anyway", "--graph", NAME)
    assert taken.code == 0, taken.err
    assert json.loads(graphfcl_inside("history", "--model", model, "--json").out)[-1]["new"]
    before = everything(model)
    other = graphfcl_inside("refit", "--model", model, "--graph", NAME.replace("nodes=500", "nodes=499"))
    assert_one_sentence(other, "graphfcl shrink")
    assert everything(model) == before
    assert_one_sentence(graphfcl_inside("refit", "--model", model / "nowhere"), "does not exist")
    assert_one_sentence(graphfcl_inside("info", "--model", model / "nowhere"), "does not exist")


def test_history_hints_at_a_refit(tmp_path: Path) -> None:
    model = copy_of(fitted())
    model.max_loss = -1.0  # a model that must gain a whole point of recall has lost
    model.learn({"nine": members("class-09")[:5]}).save(tmp_path / "m")
    model.wait()
    hint = graphfcl_inside("history", "--model", tmp_path / "m").out.splitlines()[-1]
    assert hint.startswith("A refit is due (classes that lost more than")
    assert "graphfcl info --model" in hint
