"""``graphfcl data import``: real commands, full disks, kills, and memory."""

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from graphfcl import GraphFolder, load_dataset, read_tables, write_tables
from graphfcl.runtime.files import file_lock
from tests.cli.command import assert_one_sentence, graphfcl, graphfcl_inside, run_python
from tests.methods.blocks.samples import folder_of, random_graph

NAME = "synthetic:nodes=400,edges=1600,classes=9,features=20,kind=dense"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables") / "mine"
    write_tables(load_dataset(NAME)[0], folder, suffix="csv")
    with open(folder / "edges.csv", "a") as file:
        file.write("5,5\n" + "1,2\n" * 3)
    return folder


def test_import_and_show(tmp_path: Path, tables: Path) -> None:
    result = graphfcl("data", "import", "--graph", tables, "--out", tmp_path / "big", "--memory", "400MB")
    assert (result.code, result.err) == (0, "")
    folder = GraphFolder.open(tmp_path / "big")
    graph = read_tables(tables)
    lines = result.out.splitlines()
    assert lines[:3] == [
        "400 nodes: labels and ids are written.",
        "20 features are written.",
        f"{graph.edge_count:,} edges are written.",
    ]
    assert [line.removeprefix("note: ") for line in lines if line.startswith("note: ")] == list(graph.notes)
    assert folder.sha256 in lines[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["big"]

    shown = graphfcl("data", "show", "--graph", tmp_path / "big", "--json")
    assert (shown.code, shown.err) == (0, "")
    facts, expected = (
        json.loads(shown.out),
        json.loads(graphfcl_inside("data", "show", "--graph", tables, "--json").out),
    )
    for key in ("nodes", "edges", "weighted", "features", "feature_storage", "classes", "unlabelled_nodes"):
        assert facts[key] == expected[key], key
    for key in ("isolated_nodes", "class_sizes", "notes"):
        assert facts[key] == expected[key], key
    assert facts["same_class_edges"] == pytest.approx(expected["same_class_edges"])
    assert facts["digest"] == folder.sha256
    files = [path for path in (tmp_path / "big").iterdir() if path.name != "manifest.json"]
    assert facts["bytes"] == sum(path.stat().st_size for path in files)
    printed = graphfcl_inside("data", "show", "--graph", tmp_path / "big").out
    assert "edges            1,60" in printed
    assert folder.sha256 in printed


def test_verbs_take_a_folder_like_any_other_graph(tmp_path: Path, tables: Path) -> None:
    assert graphfcl_inside("data", "import", "--graph", tables, "--out", tmp_path / "mine").code == 0
    first, second = (graphfcl_inside("stream", "--graph", path, "--seed", 3) for path in (tables, tmp_path / "mine"))
    assert first.code == 0
    assert first.out == second.out


@pytest.mark.parametrize("words", [[], ["--work", "work", "--workers", "1"]], ids=["in memory", "on the disk"])
def test_a_stream_of_a_folder_is_the_one_that_is_run(
    tmp_path: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder_of(random_graph(300), tmp_path / "big")
    words = [str(tmp_path / word) if word == "work" else word for word in words]
    rules = ["--base", "3", "--pseudo-novel", "3", "--way", "3", "--seed", "4"]
    saved = graphfcl_inside("stream", "--graph", tmp_path / "big", *rules, "--out", tmp_path / "s.json")
    assert saved.code == 0, saved.err
    with monkeypatch.context() as patch:
        patch.setattr("graphfcl.experiments.graph_folders.usual_memory", lambda: 0)
        on_disk = graphfcl_inside("stream", "--graph", tmp_path / "big", *rules)
    assert on_disk.out == saved.out.replace(f"Saved to {tmp_path / 's.json'}.\n", "")
    assert not (tmp_path / "work").exists()
    options = ["--graph", tmp_path / "big", "--method", "sgc-ridge", *words]
    done = graphfcl_inside("run", *options, "--stream", tmp_path / "s.json", "--out", tmp_path / "one")
    assert done.code == 0, done.err
    again = graphfcl_inside("run", *options, *rules, "--out", tmp_path / "two")
    assert again.code == 0, again.err
    streams = [json.loads((tmp_path / name).read_text()) for name in ("s.json", "one/stream.json", "two/stream.json")]
    assert streams[0] == streams[1] == streams[2]


def test_bad_input_ends_in_one_sentence(tmp_path: Path, tables: Path) -> None:
    out = tmp_path / "big"
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").touch()
    (tmp_path / "cut.npz").write_bytes(b"PK\x03\x04")
    for words, arguments in (
        (("there exists already",), [NAME, "--out", tmp_path / "there"]),
        (("'nothing'",), ["nothing", "--out", out]),
        (("100MB of memory", "give --memory 248"), [NAME, "--out", out, "--memory", "100MB"]),
        (("--memory is '2 boxes'",), [NAME, "--out", out, "--memory", "2 boxes"]),
        (("cut.npz", "damaged"), [tmp_path / "cut.npz", "--out", out]),
        (("cannot be written",), [NAME, "--out", tmp_path / "cut.npz" / "big"]),
    ):
        assert_one_sentence(graphfcl_inside("data", "import", "--graph", *arguments), *words)
    assert {path.name for path in tmp_path.iterdir()} == {"there", "cut.npz"}
    with open(tables / "edges.csv") as file:
        lines = file.readlines()
    for place, line, reason in ((3, "1\n", "edges.csv, line 3: the row"), (900, "1,x9\n", "(line 900 'x9')")):
        broken = tmp_path / f"broken{place}"
        broken.mkdir()
        (broken / "nodes.csv").write_bytes((tables / "nodes.csv").read_bytes())
        (broken / "edges.csv").write_text("".join([*lines[: place - 1], line, *lines[place:]]))
        result = graphfcl("data", "import", "--graph", broken, "--out", out)
        assert_one_sentence(result, f"{broken}/edges.csv", reason)
    assert not out.exists()
    assert not list(tmp_path.glob(".*"))


def test_without_duckdb_one_sentence_names_the_extra(
    tmp_path: Path, tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    result = graphfcl_inside("data", "import", "--graph", tables, "--out", tmp_path / "big")
    assert_one_sentence(result, "importing tables needs DuckDB", "pip install 'graphfcl[duckdb]'")
    assert graphfcl_inside("data", "import", "--graph", NAME, "--out", tmp_path / "big").code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["big"]


def test_a_damaged_folder_is_told_by_the_file(tmp_path: Path) -> None:
    assert graphfcl_inside("data", "import", "--graph", NAME, "--out", tmp_path / "big").code == 0
    path = tmp_path / "big" / "edges.indices"
    whole = path.read_bytes()
    path.write_bytes(whole[:-8])
    assert_one_sentence(graphfcl("data", "show", "--graph", tmp_path / "big"), str(path), "it was cut or changed")
    path.write_bytes(whole[:40] + b"\1" + whole[41:])
    assert_one_sentence(graphfcl_inside("data", "show", "--graph", tmp_path / "big"), str(path), "was changed (block 0")
    path.write_bytes(whole)
    assert graphfcl_inside("data", "show", "--graph", tmp_path / "big").code == 0


SMALL_FILES = """
import resource, sys
from graphfcl.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
main(sys.argv[2:])
"""


MANY_EDGES = "synthetic:nodes=400,edges=5000,classes=9,features=2,kind=dense"


@pytest.mark.long
@pytest.mark.parametrize("limit", [1_000, 20_000])
def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, tables: Path, limit: int) -> None:
    """No file may grow beyond the limit, which the system says as it says that a disk is full.

    1,000 bytes are too few for the labels; 20,000 for the features, for those on their way, and for the edges.
    """
    for source in (NAME, tables, MANY_EDGES):
        result = run_python("-c", SMALL_FILES, limit, "data", "import", "--graph", source, "--out", tmp_path / "big")
        assert_one_sentence(result, "the disk is full", "big is written")
        assert list(tmp_path.iterdir()) == []


KILLED = """
import os, signal, sys
from graphfcl import import_graph
def tell(text):
    if "features" in text:
        os.kill(os.getpid(), signal.SIGKILL)
import_graph(sys.argv[1], sys.argv[2], tell=tell)
"""


def test_a_killed_import_starts_over(tmp_path: Path) -> None:
    out = tmp_path / "big"
    assert run_python("-c", KILLED, NAME, out).code == -9
    assert not out.exists()
    assert [path.name for path in tmp_path.iterdir()] == [".big.importing"]
    assert graphfcl_inside("data", "import", "--graph", NAME, "--out", out).code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["big"]
    assert graphfcl_inside("data", "import", "--graph", NAME, "--out", tmp_path / "other").code == 0
    assert GraphFolder.open(out).sha256 == GraphFolder.open(tmp_path / "other").sha256


def test_two_imports_to_one_place(tmp_path: Path) -> None:
    (tmp_path / ".big.importing").mkdir()
    with file_lock(tmp_path / ".big.importing" / "lock", wait=0):
        result = graphfcl("data", "import", "--graph", NAME, "--out", tmp_path / "big")
    assert_one_sentence(result, "another process is importing to", "big")
    assert graphfcl_inside("data", "import", "--graph", NAME, "--out", tmp_path / "big").code == 0


MEASURED = """
import resource, sys
import graphfcl.cli, graphfcl.datasets.importing, graphfcl.graph.folder.sources.tables
import pyarrow, pyarrow.csv, pyarrow.parquet, scipy.sparse, numpy, duckdb
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
before = peak()
graphfcl.cli.app(sys.argv[1:], standalone_mode=False)
print("MB", peak() - before)
"""


@pytest.mark.long
def test_an_import_stays_within_its_memory(tmp_path: Path) -> None:
    """300,000 nodes with ids of their own and 3 million edges in any order."""
    random = np.random.default_rng(0)
    ids = random.permutation(3_000_000)[:300_000]
    columns = {f"f{number}": random.standard_normal(300_000, dtype=np.float32) for number in range(32)}
    nodes = pa.table({"id": ids, "label": random.integers(0, 9, 300_000), **columns})
    ends = ids[random.integers(0, 300_000, (2, 3_000_000))]
    (tmp_path / "tables").mkdir()
    parquet.write_table(nodes, tmp_path / "tables" / "nodes.parquet")
    parquet.write_table(pa.table({"source": ends[0], "target": ends[1]}), tmp_path / "tables" / "edges.parquet")
    arguments = ["data", "import", "--graph", tmp_path / "tables", "--out", tmp_path / "big", "--memory", "300MB"]
    result = run_python("-c", MEASURED, *arguments)
    assert (result.code, result.err) == (0, "")
    assert int(result.out.split()[-1]) < 200
    folder = GraphFolder.open(tmp_path / "big")
    assert folder.node_count == 300_000
    rows = folder.nodes_of(ends.reshape(-1)[:1_000])
    assert (folder.ids(rows) == ends.reshape(-1)[:1_000]).all()
    pairs = {(min(a, b), max(a, b)) for a, b in ends.T.tolist() if a != b}
    assert folder.edge_count == len(pairs)
