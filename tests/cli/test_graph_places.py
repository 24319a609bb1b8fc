"""Where the graph folder and the work folder of a model are, through the real command line."""

import json
import shutil
from pathlib import Path

import pytest

from graphfcl.graph.folder import write_folder
from tests.cli.command import graphfcl_inside, succeeded
from tests.methods.blocks.samples import random_graph

RIDGE = ("--method", "sgc-ridge", "--workers", "1")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a graph folder and a model of it without any prediction."""
    root = tmp_path_factory.mktemp("places")
    write_folder(random_graph(300), root / "graph")
    succeeded("fit", "--graph", root / "graph", "--model", root / "model", *RIDGE, "--work", root / "model" / "work")
    shutil.rmtree(root / "model" / "work")
    return root


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "copy")
    return tmp_path / "copy"


def refused(*arguments: object) -> str:
    done = graphfcl_inside(*arguments)
    assert done.code == 2, done.err
    assert len(done.err.splitlines()) == 1
    return str(done.err)


def test_what_was_refused_is_not_remembered(root: Path) -> None:
    predict = ("predict", "--model", root / "model", "--out", root / "found.csv")
    (root / "file").touch()
    before = (root / "model" / "graph.json").read_bytes()
    assert "--memory 100MB is too small" in refused(*predict, "--memory", "100MB")
    for place in (root / "file", root / "file" / "inside"):
        assert f"--work {place} cannot be made" in refused(*predict, "--work", place)
    assert (root / "model" / "graph.json").read_bytes() == before
    assert "300 nodes" in succeeded(*predict)


def test_a_change_remembers_what_was_enough(root: Path) -> None:
    words = ("--model", root / "model", "--memory", "4GB", "--work", root / "new")
    succeeded("retire", "class 1", *words)
    place = json.loads((root / "model" / "graph.json").read_text())
    assert (place["memory"], place["work"]["full"]) == (4 << 30, str(root / "new"))


def test_a_work_folder_that_went_is_one_sentence(root: Path) -> None:
    succeeded("retire", "class 1", "--model", root / "model", "--work", root / "new")
    shutil.rmtree(root / "new", ignore_errors=True)
    (root / "new").touch()
    message = refused("predict", "--model", root / "model", "--out", root / "b.csv")
    assert f"the work folder {root / 'new'}" in message
    assert "--work" in message


@pytest.mark.parametrize("inside", ["", "inside"])
def test_a_work_folder_that_cannot_be_made_is_refused_before_anything_is_written(root: Path, inside: str) -> None:
    (root / "file").touch()
    before = sorted(root.iterdir())
    work = ("--graph", root / "graph", *RIDGE, "--work", root / "file" / inside)
    for words in (("fit", "--model", root / "second"), ("run", "--out", root / "run")):
        message = refused(*words, *work)
        assert f"--work {root / 'file' / inside} cannot be" in message
        assert sorted(root.iterdir()) == before


def test_every_verb_that_needs_the_graph_folder_is_told_where_it_is(root: Path) -> None:
    place = json.loads((root / "model" / "graph.json").read_text())
    place["graph"]["full"] = str(root / "nowhere")
    (root / "model" / "graph.json").write_text(json.dumps(place))
    (root / "graph").rename(root / "away")
    for verb in (["rename", "class 1", "first"], ["labels", "--out", root / "labels.csv"]):
        missing = refused(*verb, "--model", root / "model")
        assert "--graph DIR" in missing
    succeeded("labels", "--out", root / "labels.csv", "--model", root / "model", "--graph", root / "away")
    succeeded("rename", "class 1", "first", "--model", root / "model", "--graph", root / "away")
    succeeded("labels", "--out", root / "labels.csv", "--model", root / "model")
    (root / "away").rename(root / "again")
    succeeded("rename", "class 2", "second", "--model", root / "model", "--graph", root / "again")


def test_of_two_places_the_one_with_the_right_graph_is_taken(root: Path) -> None:
    shutil.copytree(root / "model", root / "moved" / "model")
    place = json.loads((root / "moved" / "model" / "graph.json").read_text())
    place["graph"]["full"] = str(root / "graph")
    (root / "moved" / "model" / "graph.json").write_text(json.dumps(place))
    write_folder(random_graph(300, seed=5), root / "moved" / "graph")
    predict = ("predict", "--model", root / "moved" / "model", "--out", root / "found.csv")
    assert "300 nodes" in succeeded(*predict)
    shutil.rmtree(root / "graph")
    assert "digest differs" in refused(*predict)
