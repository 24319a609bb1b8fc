"""Ids, class names and people on the command line: found, kept, and never obeyed by a terminal."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graphfcl import GraphClassifier, ModelFolder
from graphfcl.errors import CONTROL
from tests.cli.command import Result, assert_one_sentence, graphfcl, graphfcl_inside
from tests.production.models import copy_of, fitted, graph_in_memory, members, with_parts

EIGHT, NINE = members("class-08"), members("class-09")
HOSTILE = "evil\x1b[2J\x9b31m\u202e"


@pytest.fixture(scope="module")
def start() -> GraphClassifier:
    return fitted("anchor")


@pytest.fixture
def model(start: GraphClassifier, tmp_path: Path) -> Path:
    copy_of(start).save(tmp_path / "m")
    return tmp_path / "m"


def table(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def test_who_and_when_on_the_command_line(model: Path, tmp_path: Path) -> None:
    first = table(
        tmp_path / "first.csv",
        f"node,class,by,when,ticket\n{EIGHT[0]},eight,ann,2026-11-16,T-1\n{EIGHT[0]},eight,bob,,\n{EIGHT[1]},eight,ann,,\n",
    )
    learned = graphfcl_inside("learn", "--model", model, first)
    assert learned.code == 0, learned.err
    second = table(
        tmp_path / "second.csv", f"node,class,by\n{EIGHT[0]},nine,carl\n{NINE[0]},nine,carl\n{EIGHT[1]},nine,carl\n"
    )
    refused = graphfcl_inside("learn", "--model", model, second)
    assert_one_sentence(
        refused,
        f"second.csv, line 2: node '{EIGHT[0]}' is labelled 'eight' already (by ann, 2026-11-16 and bob)",
        f"second.csv, line 4: node '{EIGHT[1]}' is labelled 'eight' already (by ann), here it is 'nine' (by carl)",
        "--on-conflict",
    )
    assert_one_sentence(
        graphfcl_inside("learn", "--model", model, second, "--on-conflict", "no"), "choose one of refuse, keep, replace"
    )
    assert graphfcl_inside("learn", "--model", model, second, "--on-conflict", "keep").code == 0
    other = table(tmp_path / "other.csv", f"node,class,by\n{EIGHT[1]},nine,dora\n")
    replaced = graphfcl("learn", "--model", model, other, "--on-conflict", "replace")
    assert replaced.code == 0, replaced.err
    wanted = table(tmp_path / "asked.csv", f"node\n{EIGHT[0]}\n{EIGHT[1]}\n{NINE[0]}\n")
    written = graphfcl_inside("labels", "--model", model, "--nodes", wanted, "--out", tmp_path / "labels.csv")
    assert "3 labelled nodes, 4 rows" in written.out
    with open(tmp_path / "labels.csv") as file:
        rows = sorted(tuple(row.values()) for row in csv.DictReader(file))
    assert rows == sorted(
        [
            (str(EIGHT[0]), "eight", "support", "ann", "2026-11-16", "T-1"),
            (str(EIGHT[0]), "eight", "support", "bob", "", ""),
            (str(EIGHT[1]), "nine", "support", "dora", "", ""),
            (str(NINE[0]), "nine", "support", "carl", "", ""),
        ]
    )
    entries = json.loads(graphfcl_inside("history", "--model", model, "--json").out)
    assert entries[1]["statements"][0]["kept"] == {"ticket": "T-1"}
    assert [entry.get("on_conflict") for entry in entries] == [None, None, "keep", "replace"]
    assert entries[3]["conflicts"][0]["statements"][0]["by"] == "ann"
    assert entries[3]["conflicts"][0]["new_statements"][0]["by"] == "dora"
    shown = graphfcl_inside("history", "--model", model).out
    assert "is nine (by dora)" in shown
    assert "eight (by ann)" in shown
    everything = graphfcl_inside("labels", "--model", model, "--out", tmp_path / "all.parquet")
    assert everything.code == 0, everything.err
    # What was written can be learned again: all of it is known.
    again = graphfcl_inside("learn", "--model", model, tmp_path / "labels.csv")
    assert again.code == 0, again.err
    assert "3 nodes had this label already" in again.out


def test_an_old_folder_cannot_write_to_the_terminal(start: GraphClassifier, tmp_path: Path) -> None:
    ids = np.array([f"n{node}{HOSTILE}" for node in range(500)], dtype=object)
    label_store = replace(start.label_store_, names=(f"zero{HOSTILE}", *start.label_store_.names[1:]))
    entry = {**start.history[0], "classes": [f"zero{HOSTILE}"], "graph": HOSTILE, "warning": HOSTILE}
    model = with_parts(start, [entry], graph=replace(graph_in_memory(start), ids=ids), label_store=label_store)
    model.save(tmp_path / "m")
    hostile = f"n{EIGHT[0]}{HOSTILE}"
    supports = table(tmp_path / "s.csv", f'node,class\n"{hostile}","zero{HOSTILE}"\n')
    results: list[Result] = [
        graphfcl("explain", "--model", tmp_path / "m", hostile),
        graphfcl_inside("explain", "--model", tmp_path / "m", hostile, "--json"),
        graphfcl_inside("learn", "--model", tmp_path / "m", supports),
        graphfcl_inside("history", "--model", tmp_path / "m"),
        graphfcl_inside("history", "--model", tmp_path / "m", "--json"),
        graphfcl_inside("predict", "--model", tmp_path / "m", "--out", tmp_path / "p.csv"),
        graphfcl_inside("labels", "--model", tmp_path / "m", "--out", tmp_path / "l.csv"),
        graphfcl_inside("merge", "--model", tmp_path / "m", "class-02", f"zero{HOSTILE}"),
        graphfcl_inside("learn", "--model", tmp_path / "m", supports),
    ]
    for result in results:
        assert result.code == 0, result.err
    results += [
        graphfcl_inside("retire", "--model", tmp_path / "m", "nothing\x1b[31m at all"),
        graphfcl_inside("rename", "--model", tmp_path / "m", f"zero{HOSTILE}", "new\x1b[31mname"),
    ]
    for result in results[9:]:
        assert_one_sentence(result)
    for result in results:
        assert not CONTROL.search((result.out + result.err).replace("\n", ""))
    assert r"evil\x1b[2J" in results[3].out


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"node,class\n{first},eight\n{second},ei\xffght\n", "line 3 is not UTF-8"),
        (b"node,class\n{first},ei\x07ght\n", r"s.csv, line 2: the class name 'ei\x07ght' holds the control character"),
        (b"node,class\n{first},eight\n{second}\xed\xa0\x80,eight\n", "line 3 is not UTF-8"),
        (b"node,class,by\n{first},eight,a\x1bb\n", "s.csv, line 2: the name in 'by'"),
        (b"node,class\n{first},eight\nx,eight\n{second},eight\n", "s.csv, line 3: node 'x' is not in the graph. Fix"),
        (b"node,class\n{first}," + b"e" * 300 + b"\n", "longer than 200 characters"),
    ],
)
def test_a_table_that_cannot_be_used_names_its_line(model: Path, tmp_path: Path, content: bytes, words: str) -> None:
    for name, node in (("first", EIGHT[0]), ("second", EIGHT[1])):
        content = content.replace(f"{{{name}}}".encode(), str(node).encode())
    (tmp_path / "s.csv").write_bytes(content)
    assert_one_sentence(graphfcl_inside("learn", "--model", model, tmp_path / "s.csv"), words)
    assert ModelFolder(model).current() == 1


def test_new_nodes_name_their_line(model: Path, tmp_path: Path) -> None:
    for text, words in (
        ("node\n9000\n9000 \n", "n.csv, line 3: node id '9000 ' and '9000' (n.csv, line 2) are the same id"),
        ("node\n9000\nx\x1by\n", "n.csv, line 3: the node id"),
        (f"node\n9000\n{'9' * 1001}\n", "longer than 1,000 characters"),
        (f"node\n 0{EIGHT[0]}\n", "is not a whole number"),
    ):
        nodes = table(tmp_path / "n.csv", text)
        assert_one_sentence(graphfcl_inside("grow", "--model", model, "--nodes", nodes), words)


def test_a_graph_with_hostile_class_names_is_refused_and_clean_ones_are_shown(tmp_path: Path) -> None:
    table(tmp_path / "edges.csv", "source,target\na,b\n")
    table(tmp_path / "nodes.csv", f"id,label\na,x\nb,{HOSTILE}\n")
    assert_one_sentence(graphfcl_inside("data", "show", "--graph", tmp_path), "nodes.csv, line 3", "U+001B")
    table(tmp_path / "nodes.csv", "id,label\na, naïve\nb,nai\u0308ve\n")
    shown = graphfcl_inside("data", "show", "--graph", tmp_path)
    assert "were cleaned" in shown.out
    facts = json.loads(graphfcl_inside("data", "show", "--graph", tmp_path, "--json").out)
    assert facts["class_sizes"] == {"naïve": 2}
