"""A graph is named by --graph; older names are still read."""

import json
from pathlib import Path

import pytest

from graphfcl import InputError
from graphfcl.experiments.grid_file import grid_from_toml
from tests.cli.command import assert_one_sentence, graphfcl_inside

SMALL = "synthetic:nodes=300,edges=1200,classes=9,features=60"


@pytest.mark.parametrize(
    ("verb", "older"),
    [
        (["data", "show"], [SMALL]),
        (["stream", "--way", "1", "--sessions", "1"], [SMALL]),
        (["bench", "table1"], ["--datasets", f"{SMALL},debian"]),
        (["run", "--method", "sgc-ridge", "--way", "1", "--sessions", "1", "--device", "cpu"], ["--dataset", SMALL]),
    ],
)
def test_the_older_name_does_the_same(verb: list[str], older: list[str], tmp_path: Path) -> None:
    out = ["--out", tmp_path / "out"] if verb[0] in ("bench", "run") else []
    found = graphfcl_inside(*verb, *older, *out, "--json")
    assert found.code == 0, found.err
    newer = graphfcl_inside(*verb, "--graph", older[-1], *out, "--json")
    assert newer.code == 0, newer.err
    drop = ("seconds", "total_seconds", "sessions", "peak_memory_mb", "pretraining", "stored_bytes")
    first, second = ({k: v for k, v in json.loads(each.out).items() if k not in drop} for each in (found, newer))
    assert first == second


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["data", "show", "debian", "--graph", "debian"], "the graph is named twice, by --graph and by its name alone"),
        (["data", "show"], "name the graph with --graph: `graphfcl data list` has the names."),
        (["data", "import", "--out", "x"], "name the graph with --graph"),
        (["stream"], "name the graph with --graph"),
        (
            ["run", "--dataset", "debian", "--graph", "debian"],
            "named twice, by --graph and by --dataset: keep --graph.",
        ),
        (
            ["bench", "table1", "--datasets", "a", "--graph", "b"],
            "graphs are named twice, by --graph and by --datasets",
        ),
        (["bench", "mine.toml", "--graph", "debian"], "a TOML file describes its whole grid: leave --graph out."),
    ],
)
def test_one_graph_has_one_name(words: list[str], why: str) -> None:
    assert_one_sentence(graphfcl_inside(*words), why)


def test_grids_read_both_names(tmp_path: Path) -> None:
    rest = 'methods = ["cec"]\nseeds = 1\n'
    cells = []
    for key in ("graphs", "datasets"):
        path = tmp_path / f"{key}.toml"
        path.write_text(f'{key} = ["debian", "wordnet"]\n{rest}')
        cells.append(grid_from_toml(path).cells)
    assert cells[0] == cells[1]
    assert [cell.dataset for cell in cells[0]] == ["debian", "wordnet"]
    both = tmp_path / "both.toml"
    both.write_text(f'graphs = ["debian"]\ndatasets = ["debian"]\n{rest}')
    with pytest.raises(InputError, match="line 2: `datasets` is an older name of `graphs`: keep `graphs`"):
        grid_from_toml(both)


def test_commands_say_the_notes_of_their_graph_once(tmp_path: Path) -> None:
    nodes = "\n".join(f"{n},{'abc'[n % 3]},{n * 0.1:.1f},{n % 3}" for n in range(60))
    (tmp_path / "nodes.csv").write_text(f"id,label,x,code\n{nodes}\n")
    edges = "\n".join(f"{n},{(n + 3) % 60}" for n in range(60))
    (tmp_path / "edges.csv").write_text(f"source,target\n{edges}\n")
    notes = json.loads(graphfcl_inside("data", "show", "--graph", tmp_path, "--json").out)["notes"]
    assert notes
    assert any(note.startswith("Warning") for note in notes)
    rules = ["--way", 1, "--base", 1, "--pseudo-novel", 1]
    for words in (
        ["run", *rules, "--method", "sgc-ridge", "--device", "cpu", "--out", tmp_path / "run"],
        ["stream", *rules],
        ["suggest", "--budget", 2],
    ):
        found = graphfcl_inside(words[0], "--graph", tmp_path, *words[1:])
        assert [(found.out + found.err).count(f"note: {note}") for note in notes] == [1] * len(notes), found


def test_words_and_numbers_are_both_named(tmp_path: Path) -> None:
    words = ("red apple", "green pear", "blue plum")
    nodes = "\n".join(f"{n},{'abc'[n % 3]},{words[n % 3]},{n * 0.1:.1f}" for n in range(30))
    (tmp_path / "nodes.csv").write_text(f"id,label,text,price\n{nodes}\n")
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"{n},{(n + 3) % 30}\n" for n in range(30)))
    graph = f"{tmp_path}:features=text+price"
    facts = json.loads(graphfcl_inside("data", "show", "--graph", graph, "--json").out)
    assert (facts["features"], facts["numbers_beside_words"]) == (7, 1)
    assert "7 (6 word counts and 1 number, " in graphfcl_inside("data", "show", "--graph", graph).out
