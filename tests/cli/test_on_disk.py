"""Models on graph folders through the real command line."""

import errno
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from graphfcl import GraphFolder
from graphfcl.graph.folder import write_folder
from tests.cli.command import graphfcl_inside, succeeded
from tests.cli.test_start_up import large_modules
from tests.methods.blocks.samples import random_graph


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


def refused(*arguments: object) -> str:
    done = graphfcl_inside(*arguments)
    assert done.code == 2
    return str(done.err)


def test_a_life_on_a_graph_folder(made: Path, tmp_path: Path) -> None:
    root = tmp_path / "life"
    shutil.copytree(made, root)
    model = ("--model", root / "model")
    first = succeeded("predict", *model, "--out", root / "first.csv")
    assert "computed" not in first  # the fit left its scores
    assert "300 nodes, 8 classes, version 1" in first
    assert "is version 2" in succeeded("learn", *model, root / "supports.csv")
    output = succeeded("predict", *model, "--out", root / "second.csv")
    assert "First prediction for version 2" in output
    assert "Balanced accuracy" in output
    assert "is version 3" in succeeded("grow", *model, "--nodes", root / "nodes.csv", "--edges", root / "edges.csv")
    assert "2 nodes, 9 classes, version 3" in succeeded(
        "predict", *model, "--nodes", root / "asked.csv", "--out", root / "some.csv"
    )
    assert (root / "some.csv").read_text().splitlines()[1].startswith("9000,")
    succeeded("predict", *model, "--out", root / "all.parquet", "--coverage", "0.9")
    history = succeeded("history", *model)
    assert "rollback" not in history
    assert history.count("not measured") == 6  # learn and grow make no pass
    table = {each["class"]: each for each in json.loads(succeeded("info", root / "model", "--json"))["class_table"]}
    assert table["new"]["recall"] is not None, "the pass for predict measured it"
    assert "equals version 1" in succeeded("rollback", *model, 1)
    succeeded("predict", *model, "--out", root / "again.csv")
    assert (root / "again.csv").read_bytes() == (root / "first.csv").read_bytes()
    assert "labelled nodes" in succeeded("labels", *model, "--out", root / "labels.csv")


def test_a_moved_or_changed_folder_is_one_sentence(made: Path, tmp_path: Path) -> None:
    root = tmp_path / "moved"
    shutil.copytree(made, root)
    predict = ("predict", "--model", root / "model", "--out", tmp_path / "found.csv")
    (root / "graph").rename(root / "away")
    shutil.move(made / "graph", tmp_path / "hidden")  # the place that the full path names
    try:
        assert "--graph DIR" in refused(*predict)
        write_folder(random_graph(300, seed=5), root / "other")
        assert "digest differs" in refused(*predict, "--graph", root / "other")
        assert "300 nodes" in succeeded(*predict, "--graph", root / "away")
        assert "--graph DIR" in refused(*predict), "a verb that reads remembers nothing"
        succeeded("rollback", "--model", root / "model", 1, "--graph", root / "away")
        assert "300 nodes" in succeeded(*predict)
    finally:
        shutil.move(tmp_path / "hidden", made / "graph")


def test_what_to_label_next(made: Path, tmp_path: Path) -> None:
    """With the options of graph folders; the graph folder may have moved, and a version without scores gets them."""
    root = tmp_path / "next"
    shutil.copytree(made, root)
    succeeded("learn", "--model", root / "model", root / "supports.csv")
    moved = ("--model", root / "model", "--graph", made / "graph", "--work", tmp_path / "aside", "--memory", "2GB")
    output = succeeded("suggest", *moved, "--workers", "1", "--budget", "5", "--out", root / "next.csv")
    assert "First prediction for version 2" in output
    assert "Wrote 5 nodes" in output
    assert len((root / "next.csv").read_text().splitlines()) == 6
    assert (tmp_path / "aside").is_dir()
    suggested = json.loads(succeeded("suggest", "--model", root / "model", "--strategy", "uncertain", "--json"))
    assert [each["reason"] for each in suggested] == ["between"] * 20
    succeeded("rollback", "--model", root / "model", 1)
    assert "Group 1:" in succeeded("groups", *moved)
    assert "is version 4" in succeeded("groups", *moved, "--name", "1=wheels", "--version", "3", "--by", "ann")
    assert json.loads(succeeded("explain", 7, *moved, "--json"))["node"] == 7


def test_nodes_leave_are_erased_and_the_model_is_fitted_again(made: Path, tmp_path: Path) -> None:
    root = tmp_path / "life"
    shutil.copytree(made, root)
    model = ("--model", root / "model")
    succeeded("learn", *model, root / "supports.csv")
    succeeded("grow", *model, "--nodes", root / "nodes.csv", "--edges", root / "edges.csv")
    assert "is version 4" in succeeded("shrink", *model, "--edges", root / "edges.csv")
    assert "301 nodes, 9 classes, version 4" in succeeded("predict", *model, "--out", root / "all.csv")
    assert "there is no edge" in refused("shrink", *model, "--edges", root / "edges.csv")
    output = succeeded("erase", root / "asked.csv", *model)
    assert "Erased 2 nodes" in output
    assert "The graph folder still contains ids and features of 1 of them" in output
    assert "299 nodes" in succeeded("predict", *model, "--out", root / "fewer.csv")
    assert "It is version 6" in succeeded("refit", *model, "--anyway")
    assert "299 nodes, 9 classes, version 6" in succeeded("predict", *model, "--out", root / "again.csv")


@pytest.mark.long
@pytest.mark.parametrize("method", ["sgc-ridge", "anchor"])
def test_the_memory_that_is_asked_for_is_enough(made: Path, tmp_path: Path, method: str) -> None:
    words = ["--method", method, "--work", tmp_path / "work", "--workers", "1"]
    quick = [] if method == "sgc-ridge" else ["--set", "pretraining.epochs=1", "--set", "whole_up_to=100"]
    commands = [
        ["fit", "--graph", made / "graph", "--model", tmp_path / "model", *words, *quick],
        ["run", "--graph", made / "graph", "--out", tmp_path / "run", *words, *quick, "--way", "3", "--sessions", "1"],
    ]
    commands[1] += ["--base", "3", "--pseudo-novel", "3"]
    for command in commands:
        message = refused(*command, "--memory", "100MB")
        assert message.endswith("give that much.\n")
        needed = message.split("needs ")[1].split(";")[0]
        succeeded(*command, "--memory", needed)  # nothing was left that stands in the way


def test_a_fit_that_was_killed_after_its_model_was_written_is_done(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path / "late")
    (tmp_path / "late" / "model" / "fitting").mkdir()
    fit = ["fit", "--graph", made / "graph", "--model", tmp_path / "late" / "model", "--method", "sgc-ridge"]
    assert "holds a model already" in refused(*fit)
    assert "is version 1" in succeeded(*fit, "--resume")
    assert not (tmp_path / "late" / "model" / "fitting").exists()
    assert "holds a model already" in refused(*fit, "--resume")


def test_a_damaged_table_is_computed_again_and_a_full_disk_is_one_sentence(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "damaged"
    shutil.copytree(made, root)
    predict = ("predict", "--model", root / "model", "--work", root / "work", "--out", root / "found.csv")
    wanted = succeeded(*predict) and (root / "found.csv").read_bytes()
    (root / "found.csv").unlink()
    table = next(path for path in (root / "work").rglob("scores-*/*"))
    content = bytearray(table.read_bytes())
    content[len(content) // 2] ^= 1
    table.write_bytes(content)
    done = graphfcl_inside(*predict)
    assert done.code == 0, done.err
    assert f"{table} is damaged and was removed: it is computed again" in done.err
    assert (root / "found.csv").read_bytes() == wanted
    table.unlink()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        assert "is full: make room" in refused(*predict)
    succeeded(*predict)
    assert (root / "found.csv").read_bytes() == wanted


REFUSED = {
    "memory": (["--memory", "1MB"], "memory"),
    "method": (["--method", "nothing"], "nothing"),
    "setting": (["--set", "penalty=-1"], "penalty"),
    "class": (["--hide-classes", "nothing"], "nothing"),
    "one class": (["--hide-classes", ",".join(f"class {number}" for number in range(1, 9))], "class"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("work", ["its own", "new", "used"])
def test_a_refused_fit_leaves_nothing_in_any_folder(made: Path, tmp_path: Path, case: str, work: str) -> None:
    options, word = REFUSED[case]
    if work == "used":
        shutil.copytree(made / "work", tmp_path / "work")
    place = [] if work == "its own" else ["--work", tmp_path / "work"]
    method = [] if "--method" in options else ["--method", "sgc-ridge"]
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    message = refused("fit", "--graph", made / "graph", "--model", tmp_path / "a" / "model", *method, *place, *options)
    assert word in message
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()} == before
    assert not (tmp_path / "a").exists()
    assert (tmp_path / "work").exists() == (work == "used")


def test_a_fit_that_can_go_on_keeps_what_it_has(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fit = ["fit", "--graph", made / "graph", "--model", tmp_path / "model", "--method", "sgc-ridge", "--work"]

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("graphfcl.production.model.fitting.run_held_out", lambda *_: full())
        with pytest.raises(OSError, match="No space"):
            refused(*fit, tmp_path / "work")
    assert any((tmp_path / "model" / "fitting").glob("*.safetensors"))
    assert any((tmp_path / "work").rglob("*-*/*"))
    assert "--resume" in refused(*fit, tmp_path / "work")
    assert any((tmp_path / "model" / "fitting").glob("*.safetensors"))
    assert "is version 1" in succeeded(*fit, tmp_path / "work", "--resume")


def test_options_of_folders_are_for_folders(tmp_path: Path) -> None:
    name = "synthetic:nodes=60,edges=90,classes=3,features=10"
    assert "graph folders" in refused("fit", "--graph", name, "--model", tmp_path / "m", "--work", tmp_path / "w")


def test_a_card_is_read_without_the_graph_folder(made: Path, tmp_path: Path) -> None:
    root = tmp_path / "card"
    shutil.copytree(made / "model", root / "model")
    card = json.loads(succeeded("info", root / "model", "--json"))
    assert card["data"]["digest"] == GraphFolder.open(made / "graph").sha256
    assert card["data"]["graph_folder"] == str(made / "graph")
    assert (card["nodes"], card["data"]["hidden"]) == (300, ["class 8"])
    assert sum(each["labels"] + each["validation"] for each in card["class_table"]) == card["labelled"]
    assert not large_modules(tmp_path, "info", root / "model") & {"torch", "scipy"}


def test_the_line_of_a_pass_is_not_in_the_csv(made: Path, tmp_path: Path) -> None:
    root = tmp_path / "life"
    shutil.copytree(made, root)
    succeeded("learn", "--model", root / "model", root / "supports.csv")
    done = graphfcl_inside("predict", "--model", root / "model", "--nodes", root / "supports.csv", "--out", "-")
    assert done.out.startswith('"node","class","probability"')
    assert len(done.out.splitlines()) == 6
    assert "First prediction for version 2" in done.err
