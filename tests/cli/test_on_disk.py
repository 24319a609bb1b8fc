"""Models on graph folders through the real command line."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from graphfcl.graph.folder import GraphFolder, write_folder
from tests.cli.command import graphfcl_inside
from tests.methods.on_disk.samples import random_graph


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a graph folder, a fitted model, and tables of supports, nodes and edges."""
    root = tmp_path_factory.mktemp("on disk")
    write_folder(random_graph(300), root / "graph")
    folder = GraphFolder.open(root / "graph")
    hidden = folder.ids(np.flatnonzero(folder.labels == 8)[:5]).tolist()
    (root / "supports.csv").write_text("node,class\n" + "".join(f"{node},new\n" for node in hidden))
    names = ",".join(f"feature_{column}" for column in range(40))
    values = ",".join(str(value) for value in folder.features(0, 1)[0].tolist())
    (root / "nodes.csv").write_text(f"node,{names}\n9000,{values}\n")
    (root / "edges.csv").write_text(f"source,target\n9000,{folder.ids([0])[0]}\n")
    (root / "asked.csv").write_text(f"node\n9000\n{folder.ids([7])[0]}\n")
    done = graphfcl_inside(
        *("fit", "--graph", root / "graph", "--model", root / "model", "--method", "sgc-ridge"),
        *("--work", root / "work", "--memory", "2GB", "--workers", "1", "--hide-classes", "class 8"),
    )
    assert done.code == 0, done.err
    assert "is version 1" in done.out
    return root


def run(*arguments: object) -> str:
    done = graphfcl_inside(*arguments)
    assert done.code == 0, done.err
    return str(done.out)


def refused(*arguments: object) -> str:
    done = graphfcl_inside(*arguments)
    assert done.code == 2
    return str(done.err)


def test_a_life_on_a_graph_folder(made: Path, tmp_path: Path) -> None:
    root = tmp_path / "life"
    shutil.copytree(made, root)
    model = ("--model", root / "model")
    first = run("predict", *model, "--out", root / "first.csv")
    assert "computed" not in first  # the fit left its scores
    assert "300 nodes, 8 classes, version 1" in first
    assert "is version 2" in run("learn", *model, root / "supports.csv")
    said = run("predict", *model, "--out", root / "second.csv")
    assert "Nobody has asked version 2 yet" in said
    assert "Balanced accuracy" in said
    assert "is version 3" in run("grow", *model, "--nodes", root / "nodes.csv", "--edges", root / "edges.csv")
    assert "2 nodes, 9 classes, version 3" in run(
        "predict", *model, "--nodes", root / "asked.csv", "--out", root / "some.csv"
    )
    assert (root / "some.csv").read_text().splitlines()[1].startswith("9000,")
    run("predict", *model, "--out", root / "all.parquet", "--coverage", "0.9")
    assert "rollback" not in run("history", *model)
    assert "equals version 1" in run("rollback", *model, 1)
    run("predict", *model, "--out", root / "again.csv")
    assert (root / "again.csv").read_bytes() == (root / "first.csv").read_bytes()
    assert "labelled nodes" in run("labels", *model, "--out", root / "labels.csv")


def test_a_moved_or_changed_folder_is_one_sentence(made: Path, tmp_path: Path) -> None:
    root = tmp_path / "moved"
    shutil.copytree(made, root)
    asked = ("predict", "--model", root / "model", "--out", tmp_path / "found.csv")
    (root / "graph").rename(root / "away")
    shutil.move(made / "graph", tmp_path / "hidden")  # the place that the full path names
    try:
        assert "--graph DIR" in refused(*asked)
        write_folder(random_graph(300, seed=5), root / "other")
        assert "digest differs" in refused(*asked, "--graph", root / "other")
        assert "300 nodes" in run(*asked, "--graph", root / "away")
        assert "300 nodes" in run(*asked)
    finally:
        shutil.move(tmp_path / "hidden", made / "graph")


def test_what_a_folder_cannot_do_is_said(made: Path) -> None:
    model = ("--model", made / "model")
    for verb in (
        ["explain", 1],
        ["suggest"],
        ["refit"],
        ["erase", made / "asked.csv"],
        ["shrink", "--edges", made / "edges.csv"],
    ):
        assert "stays on the disk" in refused(*verb, *model)


def test_options_of_folders_are_for_folders(tmp_path: Path) -> None:
    name = "synthetic:nodes=60,edges=90,classes=3,features=10"
    assert "graph folders" in refused("fit", "--graph", name, "--model", tmp_path / "m", "--work", tmp_path / "w")
