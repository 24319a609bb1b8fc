"""The verbs of a model in production, as a user types them."""

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from graphfcl import ModelFolder
from tests.cli.command import Result, graphfcl, graphfcl_inside
from tests.production.models import HIDDEN, NAME, members

QUICK = ["--set", "pretraining.epochs=4", "--set", "hidden=32", "--set", "size=16", "--set", "rank=32"]


def write(path: Path, header: str, rows: list[tuple[object, ...]]) -> Path:
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    folder = tmp_path_factory.mktemp("model") / "m"
    done = graphfcl_inside("fit", "--graph", NAME, "--model", folder, "--hide-classes", ",".join(HIDDEN), *QUICK)
    return folder, done


@pytest.fixture
def model(made: tuple[Path, Result], tmp_path: Path) -> Path:
    import shutil

    assert made[1].code == 0, made[1].err
    return Path(shutil.copytree(made[0], tmp_path / "m"))


def test_a_life(model: Path, tmp_path: Path) -> None:
    eight, nine = members("class-08"), members("class-09")
    supports = write(tmp_path / "supports.csv", "node,class", [(n, "eight") for n in eight[:5]] + [(nine[0], "nine")])
    learned = graphfcl("learn", "--model", model, supports)
    assert learned.code == 0, learned.err
    assert "10 classes" in learned.out
    assert "version 2" in learned.out
    nodes = write(tmp_path / "nodes.csv", "node,feature_3", [(9000, 1)])
    edges = write(tmp_path / "edges.csv", "source,target", [(9000, eight[0])])
    assert graphfcl_inside("grow", "--model", model, "--nodes", nodes, "--edges", edges).code == 0
    wanted = write(tmp_path / "asked.csv", "node", [(n,) for n in (*eight, 9000)])
    out = tmp_path / "preds.parquet"
    assert graphfcl_inside("predict", "--model", model, "--nodes", wanted, "--out", out).code == 0
    table = pq.read_table(out)
    assert table.column_names == ["node", "class", "probability", "unknown_score", "unknown"]
    assert table["node"].to_pylist() == [*eight, 9000]
    assert table["class"].to_pylist().count("eight") > len(eight) / 2
    assert graphfcl_inside("predict", "--model", model, "--out", tmp_path / "preds.csv").code == 0
    with open(tmp_path / "preds.csv") as file:
        assert len(list(csv.DictReader(file))) == 501
    for words in (
        ("unlearn", write(tmp_path / "back.csv", "node", [(nine[0],)])),
        ("rename", "eight", "acht"),
        ("merge", "class-00", "class-01"),
        ("retire", "class-02"),
        ("shrink", "--nodes", write(tmp_path / "gone.csv", "node", [(9000,)])),
        ("rollback", "1"),
    ):
        done = graphfcl_inside(words[0], "--model", model, *words[1:])
        assert done.code == 0, done.err
    history = graphfcl_inside("history", "--model", model)
    for text in ("fit on synthetic", "learn eight (new)", "grow: 1 node, 1 edge", "rollback to version 1"):
        assert text in history.out
    entries = json.loads(graphfcl_inside("history", "--model", model, "--json").out)
    assert [entry["version"] for entry in entries] == list(range(1, 10))
    explained = graphfcl_inside("explain", "--model", model, eight[0])
    assert explained.code == 0, explained.err
    assert "Evidence for" in explained.out
    assert set(json.loads(graphfcl_inside("explain", "--model", model, eight[0], "--json").out)) == {
        "node", "classes", "blocks", "features", "around", "neighbours"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("node,class\nnobody,eight\n", "s.csv, line 2: node 'nobody' is not in the graph"),
        (
            "node,class\n{first},eight\n{first},nine\n",
            "line 3: node '{first}' is labelled 'eight' in s.csv, line 2, here",
        ),
        ("node,class\n{first},eight,x\n", "line 2: the row has 3 columns in place of 2"),
        ("node,class\n{first},\n", "line 2: node '{first}' has an empty class"),
        ("node,kind\n{first},x\n", "has no column 'class'"),
        ("", "cannot be read as a table"),
        ("node,class\n", "nothing to learn"),
    ],
)
def test_bad_supports(model: Path, tmp_path: Path, rows: str, message: str) -> None:
    first = str(members("class-08")[0])
    (tmp_path / "s.csv").write_text(rows.replace("{first}", first))
    done = graphfcl_inside("learn", "--model", model, tmp_path / "s.csv")
    assert done.code == 2
    assert message.replace("{first}", first) in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert ModelFolder(model).current() == 1


def test_bad_input_of_the_other_verbs(model: Path, tmp_path: Path) -> None:
    nodes = write(tmp_path / "n.csv", "node,colour", [(9000, 1)])
    edges = write(tmp_path / "e.csv", "source,target", [(9000, 1)])
    listed = tmp_path / "l.csv"
    listed.write_text('node,why\n\n1,"two\nlines"\nnope,\n')
    for words, message in (
        (("fit", "--graph", NAME, "--model", model), "holds a model already"),
        (("learn", "--model", tmp_path / "none", nodes), "holds no model"),
        (("learn", "--model", model, nodes), "has no column 'class'"),
        (("grow", "--model", model), "nothing to add"),
        (("grow", "--model", model, "--nodes", nodes), "no feature 'colour'"),
        (
            ("grow", "--model", model, "--edges", edges),
            "e.csv, line 2: an edge leads to node '9000', which is not in the graph",
        ),
        (("shrink", "--model", model, "--nodes", nodes), "'9000' is not in the graph"),
        (("predict", "--model", model, "--json", "--nodes", listed), "l.csv, line 5: node 'nope' is not in the graph"),
        (("unlearn", "--model", model, listed), "l.csv, line 5: node 'nope' is not in the graph"),
        (("predict", "--model", model, "--out", tmp_path / "p.txt"), ".parquet or .csv"),
        (("predict", "--model", tmp_path / "none", "--out", tmp_path / "p.csv"), "does not exist"),
        (("history", "--model", tmp_path / "none"), "does not exist"),
        (("rollback", "--model", model, "7"), "no version 7"),
        (("rename", "--model", model, "class-0", "x"), "did you mean 'class-0"),
        (("retire", "--model", model, "nothing at all"), "knows no class"),
        (("explain", "--model", model, "nobody"), "is not in the graph"),
    ):
        done = graphfcl_inside(*words)
        assert done.code == 2, (words, done)
        assert message in done.err, (words, done.err)
    assert ModelFolder(model).current() == 1
