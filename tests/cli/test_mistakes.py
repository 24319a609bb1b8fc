"""Forty deliberate mistakes: each is answered with one sentence that says what is wrong, where, and how to fix it."""

import errno
import json
import os
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from graphfcl import ModelFolder
from tests.cli.command import graphfcl_inside

COUNT, CLASSES = 90, ("shoes", "hats", "books")
ROWS = [
    f"p{node},{'' if node % 9 == 8 else CLASSES[node % 3]},{20 * (node % 3) + node % 7}.5,{node % 5}"
    for node in range(COUNT)
]
NODES = "id,label,price,stock\n" + "\n".join(ROWS)
EDGES = "source,target\n" + "\n".join(f"p{node},p{(node + 3) % COUNT}" for node in range(COUNT))
FIT = ("fit", "--method", "sgc-ridge", "--model", "new", "--graph")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of tables and a model of it."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "shop").mkdir()
    (folder / "shop" / "nodes.csv").write_text(NODES)
    (folder / "shop" / "edges.csv").write_text(EDGES)
    done = graphfcl_inside("fit", "--graph", folder / "shop", "--model", folder / "m", "--method", "sgc-ridge")
    assert done.code == 0, done.err
    return folder


@pytest.fixture
def here(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of both, and the folder that the commands run in."""
    shutil.copytree(shop, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def nodes(old: str, new: str, encoding: str = "utf-8") -> Callable[[Path], object]:
    """A mistake in the table of nodes."""
    assert old in NODES
    return lambda here: (here / "shop" / "nodes.csv").write_text(NODES.replace(old, new, 1), encoding=encoding)


def edges(old: str, new: str) -> Callable[[Path], object]:
    assert old in EDGES
    return lambda here: (here / "shop" / "edges.csv").write_text(EDGES.replace(old, new, 1))


def file(name: str, content: str | bytes) -> Callable[[Path], object]:
    data = content if isinstance(content, bytes) else content.encode()
    return lambda here: (here / name).write_bytes(data)


def nothing(_: Path) -> None:
    pass


def damage(here: Path) -> None:
    path = next((here / "m").glob("*.sqlite"), None) or next(path for path in (here / "m").iterdir() if path.is_file())
    path.write_bytes(b"not a database" * 100)


def newer(here: Path) -> None:
    """The version as a later release would write it."""
    with closing(sqlite3.connect(here / "m" / "model.sqlite")) as database:
        database.execute("PRAGMA user_version = 99")


MISTAKES: dict[str, tuple[Callable[[Path], object], tuple[str, ...], tuple[str, ...]]] = {
    # tables
    "no such folder": (nothing, (*FIT, "shopp"), ("shopp", "no dataset or file")),
    "a file in place of its folder": (nothing, (*FIT, "shop/nodes.csv"), ("shop/nodes.csv", "give the folder")),
    "no table of edges": (lambda here: (here / "shop/edges.csv").unlink(), (*FIT, "shop"), ("edges.csv", "needs")),
    "no column of ids": (nodes("id,label", "sku,label"), (*FIT, "shop"), ("nodes.csv", "'id'", "id=")),
    "no column of labels": (nodes("label", "kind"), (*FIT, "shop"), ("nodes.csv", "'label'", "label=")),
    "no column of sources": (edges("source", "a"), (*FIT, "shop"), ("edges.csv", "'source'", "source=")),
    "a column that is not there": (nothing, (*FIT, "shop:features=prize"), ("'prize'", "did you mean 'price'")),
    "an option that is not there": (nothing, (*FIT, "shop:lable=label"), ("'lable'", "did you mean 'label'")),
    "a column as two things": (nothing, (*FIT, "shop:features=price,drop=price"), ("'price'", "choose one")),
    "an id twice": (nodes("p7,", "p6,"), (*FIT, "shop"), ("nodes.csv", "line", "'p6'")),
    "no id": (nodes("p7,", ","), (*FIT, "shop"), ("nodes.csv, line 9", "missing", "fill it in")),
    "ids 1.0 and 1": (nodes("p6,", "1.0,"), (*FIT, "shop"), ("edges.csv", "'p6'", "unknown_ends")),
    "an infinite number": (nodes(",3\n", ",inf\n"), (*FIT, "shop"), ("nodes.csv, line 5", "'stock'", "infinite")),
    "a word among numbers": (
        nodes(",3\n", ",many\n"),
        (*FIT, "shop:features=price+stock"),
        ("nodes.csv, line 5", "'stock'", "'many'", "fix it"),
    ),
    "a decimal comma": (
        nodes("0.5,0", '"0,5",0'),
        (*FIT, "shop:features=price+stock"),
        ("nodes.csv, line 2", "'price'", "decimal"),
    ),
    "an empty file": (file("shop/nodes.csv", ""), (*FIT, "shop"), ("nodes.csv", "header")),
    "a header only": (
        file("shop/nodes.csv", "id,label,price\n"),
        (*FIT, "shop"),
        ("edges.csv", "no edge joins", "has rows"),
    ),
    "another encoding": (nodes("shoes", "sch\u00f6n", "latin-1"), (*FIT, "shop"), ("nodes.csv", "line", "UTF-8")),
    "another kind of file": (
        lambda here: (here / "shop/nodes.csv").rename(here / "shop/nodes.parquet"),
        (*FIT, "shop"),
        ("nodes.parquet", "cannot be read"),
    ),
    "a row with too many columns": (nodes(",3\n", ",3,4\n"), (*FIT, "shop"), ("nodes.csv, line 5", "5 columns", "4")),
    "an edge to nowhere": (
        edges("p0,p3", "p0,p999"),
        (*FIT, "shop"),
        ("edges.csv", "line 2", "'p999'", "unknown_ends"),
    ),
    "a negative weight": (
        file("shop/edges.csv", "source,target,weight\np0,p3,-1\n"),
        (*FIT, "shop"),
        ("edges.csv, line 2", "-1", "below 0"),
    ),
    "a single class": (
        file("shop/nodes.csv", NODES.replace("hats", "shoes").replace("books", "shoes")),
        (*FIT, "shop"),
        ("class", "two"),
    ),
    # settings and options
    "a method that is not there": (
        nothing,
        ("fit", "--graph", "shop", "--model", "new", "--method", "ancor"),
        ("'anchor'",),
    ),
    "a setting that is not there": (nothing, (*FIT, "shop", "--set", "penalties=1"), ("penalties", "sgc-ridge")),
    "a class to hide that is not there": (nothing, (*FIT, "shop", "--hide-classes", "shoe"), ("'shoe'", "'shoes'")),
    "a coverage in percent": (nothing, ("predict", "--model", "m", "--coverage", "90", "--out", "-"), ("90", "0.9")),
    "an output of unknown type": (
        nothing,
        ("predict", "--model", "m", "--out", "x.xls"),
        ("x.xls", ".parquet or .csv"),
    ),
    # models
    "a model that exists": (nothing, ("fit", "--graph", "shop", "--model", "m"), ("holds a model already",)),
    "a model that is missing": (nothing, ("learn", "--model", "mm", "shop/nodes.csv"), ("mm", "holds no model")),
    "a damaged model": (damage, ("learn", "--model", "m", "shop/nodes.csv"), ("m", "damaged")),
    "a model of a later release": (
        newer,
        ("learn", "--model", "m", "shop/nodes.csv"),
        ("m", "format 99", "use the graphfcl that wrote it"),
    ),
    "an output where none can be": (nothing, ("predict", "--model", "m", "--out", "shop/nodes.csv/x.csv"), ("x.csv",)),
    # what is learned
    "a misspelt class": (
        file("s.csv", "id,label\np8,Shoes\n"),
        ("learn", "--model", "m", "s.csv"),
        ("'Shoes'", "'shoes'", "--new-class"),
    ),
    "a new class that is not meant": (
        file("s.csv", "id,label\np8,bags\n"),
        ("learn", "--model", "m", "s.csv", "--no-new-classes"),
        ("'bags'",),
    ),
    "a node that is not there": (
        file("s.csv", "id,label\np8,hats\nx1,hats\n"),
        ("learn", "--model", "m", "s.csv"),
        ("s.csv, line 3", "'x1'"),
    ),
    "a node with two labels": (
        file("s.csv", "id,label\np8,hats\np8,books\n"),
        ("learn", "--model", "m", "s.csv"),
        ("s.csv", "'p8'", "hats", "books"),
    ),
    "another label than before": (
        file("s.csv", "id,label\np0,hats\n"),
        ("learn", "--model", "m", "s.csv"),
        ("'p0'", "'shoes'", "'hats'", "--on-conflict"),
    ),
    "a class that is not there": (
        nothing,
        ("rename", "--model", "m", "shoe", "boots"),
        ("'shoe'", "did you mean 'shoes'"),
    ),
    "a version that is not there": (nothing, ("rollback", "--model", "m", "7"), ("version 7",)),
    # a dirty daily table
    "a daily table without a feature": (
        file("n.csv", "id,price\nq1,3\n"),
        ("grow", "--model", "m", "--nodes", "n.csv"),
        ("n.csv", "'stock'"),
    ),
    "a daily table with other features of a known node": (
        file("n.csv", "id,price,stock\np0,77,1\n"),
        ("grow", "--model", "m", "--nodes", "n.csv"),
        ("'p0'", "--on-existing"),
    ),
    "a daily edge to nowhere": (
        file("e.csv", "source,target\np0,q9\n"),
        ("grow", "--model", "m", "--edges", "e.csv"),
        ("e.csv, line 2", "'q9'", "add the node"),
    ),
    "a daily table with a word": (
        file("n.csv", "id,price,stock\nq1,cheap,1\n"),
        ("grow", "--model", "m", "--nodes", "n.csv"),
        ("n.csv, line 2", "'price'", "'cheap'"),
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_answered_in_one_sentence(here: Path, mistake: str) -> None:
    prepare, command, words = MISTAKES[mistake]
    prepare(here)
    before = {path: path.read_bytes() for path in (here / "m").rglob("*") if path.is_file()}
    done = graphfcl_inside(*command)
    assert done.code == 2, done
    lines = done.err.strip().splitlines()
    errors = [line for line in lines if not line.startswith("note: ")]
    assert len(errors) == 1, done.err
    assert "Traceback" not in done.err
    for word in words:
        assert word in errors[0], errors[0]
    assert not (here / "new").exists() or not any((here / "new").glob("*.sqlite")), "nothing is left of a refused fit"
    after = {path: path.read_bytes() for path in (here / "m").rglob("*") if path.is_file()}
    assert {path.name for path in after} >= {path.name for path in before}
    for path, content in before.items():
        assert after[path] == content, f"{path.name} was changed"


def test_there_are_forty_of_them() -> None:
    assert len(MISTAKES) >= 40


def test_a_full_disk(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("graphfcl.runtime.files.os.fsync", full)
    (here / "s.csv").write_text("id,label\np8,hats\n")
    done = graphfcl_inside("predict", "--model", "m", "--out", "answers.csv")
    assert done.code == 2, done
    assert "No space left on device" in done.err
    assert len(done.err.strip().splitlines()) == 1


@contextmanager
def without_rights(folder: Path) -> Iterator[None]:
    """Meanwhile nobody may write into a folder, and the process is nobody if it is root, whom rights do not bind."""
    for place in (folder, *folder.rglob("*")):
        place.chmod(0o555 if place.is_dir() else 0o444)
    for parent in folder.parents:
        if stat.S_IMODE(parent.stat().st_mode) & 0o055 != 0o055:
            parent.chmod(stat.S_IMODE(parent.stat().st_mode) | 0o055)
    is_root, nobody = os.getuid() == 0, 65534
    if is_root:
        os.setresuid(nobody, nobody, 0)
    try:
        yield
    finally:
        if is_root:
            os.setresuid(0, 0, 0)
        folder.chmod(0o755)


@pytest.mark.parametrize(
    "command",
    [
        ("learn", "--model", "m", "s.csv"),
        ("predict", "--model", "m", "--out", "m/answers.csv"),
        (*FIT[:-2], "m/new", "--graph", "shop"),
    ],
    ids=lambda command: command[0],
)
def test_no_rights(here: Path, command: tuple[str, ...]) -> None:
    (here / "s.csv").write_text("id,label\np8,hats\n")
    twin = shutil.copytree(here, here / "twin")
    with pytest.MonkeyPatch.context() as patch:  # with rights it works; and what it imports is imported
        patch.chdir(twin)
        assert graphfcl_inside(*command).code == 0
    before = {path: path.read_bytes() for path in (here / "m").rglob("*") if path.is_file()}
    with without_rights(here / "m"):
        done = graphfcl_inside(*command)
    assert done.code == 2, done
    errors = [line for line in done.err.strip().splitlines() if not line.startswith("note: ")]
    assert len(errors) == 1, done.err
    assert "cannot be written" in errors[0]
    assert {path: path.read_bytes() for path in (here / "m").rglob("*") if path.is_file()} == before


def test_two_commands_at_once(here: Path) -> None:
    (here / "s.csv").write_text("id,label\np8,hats\n")
    with ModelFolder(here / "m").editing():
        done = graphfcl_inside("learn", "--model", "m", "s.csv", "--wait", "0")
    assert done.code == 2
    assert len(done.err.strip().splitlines()) == 1
    assert "--wait" in done.err or "another process" in done.err


def test_a_guarded_job_stops_with_3(here: Path) -> None:
    wrong = [f"p{node},{CLASSES[(node + 1) % 3]}" for node in range(COUNT) if node % 9 != 8][::2]
    (here / "s.csv").write_text("\n".join(["id,label", *wrong]))
    call = ("learn", "--model", "m", "s.csv", "--on-conflict", "replace", "--max-loss", "0.01")
    done = graphfcl_inside(*call)
    assert done.code == 3, done
    assert len(done.err.strip().splitlines()) == 1
    assert ModelFolder(here / "m").current() == 1
    assert json.loads(graphfcl_inside("history", "--model", "m", "--json").out)
