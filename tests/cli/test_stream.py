"""``graphfcl stream``."""

import json
from pathlib import Path

import numpy as np
import pytest

from graphfcl import Stream, build_graph, load_dataset, make_stream, save_stream, write_npz
from graphfcl.experiments.benchmark import verify_stream
from tests.cli.command import Result, assert_one_sentence, graphfcl, run_all

NAME = "synthetic:nodes=400,classes=8,edges=1200"


def rows_of(stream: Stream) -> list[list[str]]:
    """What the schedule must say of each session, counted again."""
    rows = []
    for number in range(len(stream) + 1):
        visible = stream.evaluation_graph(number)
        new = np.flatnonzero(stream.session_of_class == number)
        labels = stream.session(number).supports if number else [*stream.base.train, *stream.base.validation]
        rows.append(
            [
                str(number),
                *(", ".join(stream.classes[column] for column in new) if number else "base and pseudo-novel").split(),
                str(len(labels)),
                str(stream.queries(number).nodes.size),
                str(int((stream.session_of_class <= number).sum())),
                str(visible.node_count),
                str(visible.edge_count),
            ]
        )
    return rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Saved streams, whole and damaged, and a graph with a class that is too small."""
    folder = tmp_path_factory.mktemp("streams")
    graph, _ = load_dataset(NAME)
    save_stream(make_stream(graph, seed=3), folder / "whole.json")
    content = (folder / "whole.json").read_text()
    (folder / "cut.json").write_text(content[: len(content) // 2])
    (folder / "changed.json").write_text(content.replace('"seed": 3', '"seed": 4'))
    (folder / "other.json").write_text(json.dumps({"format": "something else"}))
    random = np.random.default_rng(0)
    labels = [["a", "b", "c"][node % 3] for node in range(60)] + ["tiny"] * 2
    write_npz(build_graph(random.random((62, 62)) < 0.1, np.eye(62), labels), folder / "small.npz")
    return folder


@pytest.fixture(scope="module")
def results(folder: Path) -> dict[str, Result]:
    saved = folder / "saved.json"
    made = {"made": graphfcl("stream", "--graph", NAME, "--seed", 0, "--out", saved)}
    from_file = ["stream", "--graph", NAME, "--from"]
    return made | run_all(
        {
            "read": [*from_file, saved],
            "other graph": ["stream", "--graph", "synthetic:nodes=400,classes=8,edges=1201", "--from", saved],
            "cut": [*from_file, folder / "cut.json"],
            "changed": [*from_file, folder / "changed.json"],
            "other": [*from_file, folder / "other.json"],
            "none": [*from_file, folder / "none.json"],
            "rules": [*from_file, saved, "--shot", 3],
            "shots": ["stream", "--graph", "debian", "--novel", "games,", "--shot", 99999],
            "classes": ["stream", "--graph", NAME, "--base", 50],
            "class": ["stream", "--graph", "debian", "--novel", "gmaes,"],
            "track": ["stream", "--graph", NAME, "--track", "closed"],
            "unwritable": ["stream", "--graph", NAME, "--out", folder / "whole.json" / "inside.json"],
            "small": ["stream", "--graph", folder / "small.npz", "--seed", 1],
        },
        {"read", "other graph", "changed", "shots", "classes", "small"},
    )


def test_the_schedule_is_that_of_the_stream(results: dict[str, Result]) -> None:
    graph, _ = load_dataset(NAME)
    stream = make_stream(graph, seed=0)
    result = results["made"]
    assert (result.code, result.err) == (0, "")
    printed = [line.replace(",", "").split() for line in result.out.splitlines() if line.strip()[:1].isdigit()]
    expected = [[word.replace(",", "") for word in row] for row in rows_of(stream)]
    assert printed[-len(expected) :] == expected
    assert f"base ({stream.split.base_count}): {', '.join(stream.base.base_classes)}" in result.out
    assert stream.protocol.hash in result.out


def test_a_saved_stream_prints_the_same_schedule(folder: Path, results: dict[str, Result]) -> None:
    assert results["read"].code == 0
    assert results["made"].out == results["read"].out + f"Saved to {folder / 'saved.json'}.\n"


def test_the_saved_file_holds_the_seed_and_the_graph(folder: Path, results: dict[str, Result]) -> None:
    assert results["made"].code == 0
    content = json.loads((folder / "saved.json").read_text())
    graph, _ = load_dataset(NAME)
    assert content["seed"] == 0
    assert content["graph"]["sha256"] == graph.sha256


def test_a_stream_of_another_graph_is_refused(folder: Path, results: dict[str, Result]) -> None:
    assert_one_sentence(results["other graph"], str(folder / "saved.json"), "was made for another graph")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cut", "cut short"),
        ("changed", "was changed or damaged"),
        ("other", "is not a saved stream"),
        ("none", "does not exist"),
    ],
)
def test_a_damaged_stream_is_refused(folder: Path, results: dict[str, Result], name: str, words: str) -> None:
    assert_one_sentence(results[name], str(folder / f"{name}.json"), words)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("rules", ("--from",)),
        ("shots", ("class 'games' of debian has 1092 nodes", "99999 shots")),
        ("classes", ("50 base", "synthetic has 8 classes with")),
        ("class", ("debian has no class 'gmaes'", "did you mean 'games'?")),
        ("track", ("'closed'", "transductive, isolated, open")),
        ("unwritable", ("inside.json cannot be written",)),
    ],
)
def test_rules_that_cannot_be_are_refused(results: dict[str, Result], name: str, words: tuple[str, ...]) -> None:
    assert_one_sentence(results[name], *words)


def test_what_is_left_out_is_told_in_a_note(results: dict[str, Result]) -> None:
    result = results["small"]
    assert result.code == 0
    (note,) = result.err.splitlines()
    assert note.startswith("note: small: ")
    assert "tiny (2 nodes" in note


# The benchmark's streams


@pytest.mark.long
def test_the_benchmark_s_streams_are_verified(tmp_path: Path) -> None:
    save_stream(make_stream(*load_dataset("wordnet"), seed=4), tmp_path / "same.json")
    save_stream(make_stream(*load_dataset("wordnet"), seed=4, way=1), tmp_path / "other.json")
    results = run_all(
        {
            "all": ["stream", "--verify", "--data-dir", tmp_path],
            "one": ["stream", "--graph", "wordnet", "--verify"],
            "saved": ["stream", "--graph", "wordnet", "--from", tmp_path / "same.json", "--verify"],
            "other": ["stream", "--graph", "wordnet", "--from", tmp_path / "other.json", "--verify"],
            "missing": ["stream", "--graph", "cora-topics", "--verify", "--data-dir", tmp_path],
            "unlisted": ["stream", "--graph", "synthetic", "--verify"],
            "seed": ["stream", "--graph", "wordnet", "--verify", "--seed", 3],
            "nothing": ["stream"],
        },
        outside={"one"},
    )
    assert results["all"].code == results["one"].code == results["saved"].code == 0
    assert "cora-topics: files missing, not checked" in results["all"].out
    assert results["all"].out.endswith("20 streams are identical to the benchmark, protocol version 3.\n")
    assert "wordnet: 10 of 10 streams are identical" in results["one"].out
    assert results["saved"].out == "This is the benchmark's stream of wordnet with seed 4, protocol version 3.\n"
    for name, text in (
        ("other", "differs from the benchmark's stream of wordnet with seed 4"),
        ("missing", "files of cora-topics are missing"),
        ("unlisted", "synthetic is not a graph of the benchmark"),
        ("seed", "leave the other options out"),
        ("nothing", "name the graph"),
    ):
        assert_one_sentence(results[name], text)


def test_a_stream_that_is_drawn_otherwise_is_not_the_benchmark_s(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, protocol = load_dataset("debian")
    assert verify_stream(make_stream(graph, protocol, seed=1), "debian").same
    assert not verify_stream(make_stream(graph, protocol, seed=1, track="open"), "debian").same
    assert not verify_stream(make_stream(graph, protocol, seed=17), "debian").same
    monkeypatch.setattr("graphfcl.stream.stream.draw_numbers", lambda graph, _: np.arange(graph.node_count))
    assert not verify_stream(make_stream(graph, protocol, seed=1), "debian").same, "other numbers are another stream"
