"""A graph is named by --graph."""

import json
from pathlib import Path

import pytest

from tests.cli.command import assert_one_sentence, graphfcl_inside


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["data", "show"], "name the graph with --graph: `graphfcl data list` shows the names."),
        (["data", "import", "--out", "x"], "name the graph with --graph"),
        (["stream"], "name the graph with --graph"),
        (["bench", "mine.toml", "--graph", "debian"], "a TOML file describes its whole grid: leave --graph out."),
    ],
)
def test_a_missing_graph_is_asked_for(words: list[str], why: str) -> None:
    assert_one_sentence(graphfcl_inside(*words), why)


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
        result = graphfcl_inside(words[0], "--graph", tmp_path, *words[1:])
        assert [(result.out + result.err).count(f"note: {note}") for note in notes] == [1] * len(notes), result


def test_words_and_numbers_are_both_named(tmp_path: Path) -> None:
    words = ("red apple", "green pear", "blue plum")
    nodes = "\n".join(f"{n},{'abc'[n % 3]},{words[n % 3]},{n * 0.1:.1f}" for n in range(30))
    (tmp_path / "nodes.csv").write_text(f"id,label,text,price\n{nodes}\n")
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"{n},{(n + 3) % 30}\n" for n in range(30)))
    graph = f"{tmp_path}:features=text+price"
    facts = json.loads(graphfcl_inside("data", "show", "--graph", graph, "--json").out)
    assert (facts["features"], facts["numbers_beside_words"]) == (7, 1)
    assert "7 (6 word counts and 1 number, " in graphfcl_inside("data", "show", "--graph", graph).out
