"""``--json``: one document on standard output and nothing else, with the keys that the help page names."""

import csv
import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from graphfcl.cli.help import JSON_KEYS
from tests.cli.command import assert_one_sentence, graphfcl, graphfcl_inside
from tests.production.models import fitted, members

SMALL = "synthetic:nodes=300,edges=1200,classes=9,features=60"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("answers") / "m"
    model = fitted()
    model.save(folder)
    model.wait()
    return folder


@pytest.fixture
def model(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "m"))


def table(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def answer(*words: object, code: int = 0) -> Any:
    """The document that a command prints; whatever else it says is on standard error."""
    result = graphfcl_inside(*words, "--json")
    assert result.code == code, result.err
    return json.loads(result.out)


def assert_named(verb: str, values: dict[str, Any]) -> None:
    """The help page names the keys."""
    named = set(re.findall(r"\w+", JSON_KEYS[verb]))
    assert set(values) <= named or "more" in named, set(values) - named
    assert len(set(values) & named) >= min(3, len(values))


def test_verbs_that_change_a_model(model: Path, tmp_path: Path) -> None:
    eight, nine = members("class-08"), members("class-09")
    supports = table(tmp_path / "s.csv", "node,class", *(f"{node},eight" for node in eight[:4]))
    ids = table(tmp_path / "i.csv", "node", str(eight[0]))
    edge = table(tmp_path / "e.csv", "source,target", f"{eight[0]},{nine[0]}")
    verbs: list[tuple[str, list[object], str]] = [
        ("learn", [supports], "learn"),
        ("rename", ["eight", "acht"], "rename"),
        ("unlearn", [ids], "unlearn"),
        ("grow", ["--edges", edge], "grow"),
        ("shrink", ["--edges", edge], "shrink"),
        ("merge", ["class-06", "class-07"], "merge"),
        ("retire", ["class-05"], "retire"),
        ("rollback", [2], "rollback"),
    ]
    for number, (verb, words, what) in enumerate(verbs, 2):
        values = answer(verb, *words, "--model", model)
        assert set(values) == {"model", "version", "classes", "changes"}
        assert_named(verb, values)
        assert values["version"] == number
        assert [change["what"] for change in values["changes"]] == [what]
        assert values["model"] == str(model)
    assert "eight" in values["classes"], "version 9 equals version 2"
    assert answer("history", "--model", model)[-1]["what"] == "rollback"
    erased = answer("erase", ids, "--model", model)
    assert_named("erase", {key: value for key, value in erased.items() if key != "method"})
    assert (erased["nodes"], erased["version"]) == (1, 10)
    pruned = answer("prune", "--keep", 2, "--model", model)
    assert (pruned["kept"], len(pruned["removed"])) == ([9, 10], 8)


def test_verbs_that_answer_of_a_model(model: Path, tmp_path: Path) -> None:
    nodes = table(tmp_path / "asked.csv", "node", "5", "7")
    values = answer("predict", "--model", model, "--nodes", nodes, "--top", 3)
    assert_named("predict", values)
    assert [row["node"] for row in values["predictions"]] == [5, 7]
    for row in values["predictions"]:
        shares = [row["probability"], row["probability_2"], row["probability_3"]]
        assert sorted(shares, reverse=True) == shares
        assert len({row["class"], row["class_2"], row["class_3"]} & set(values["classes"])) == 3
    written = answer("predict", "--model", model, "--out", tmp_path / "all.csv")
    assert (written["nodes"], written["out"]) == (500, str(tmp_path / "all.csv"))
    rows = answer("labels", "--model", model)
    assert_named("labels", rows)
    assert len(rows["labels"]) == rows["rows"]
    assert set(rows["labels"][0]) == {"node", "class", "part", "by", "when"}
    assert_named("info", answer("info", model))
    assert answer("suggest", "--model", model, "--budget", 2)[0]["node"] in range(500)


def test_verbs_of_graphs_and_methods(tmp_path: Path) -> None:
    listed = answer("data", "list")
    assert_named("data list", listed)
    assert listed["graphs"][0] == {**listed["graphs"][0], "name": "debian", "files": "shipped"}
    assert answer("data", "show", "--graph", SMALL)["nodes"] == 300
    imported = answer("data", "import", "--graph", SMALL, "--out", tmp_path / "folder")
    assert_named("data import", imported)
    assert imported["digest"] == answer("data", "show", "--graph", tmp_path / "folder")["digest"]
    stream = answer("stream", "--graph", SMALL, "--way", 1, "--sessions", 2)
    assert_named("stream", stream)
    assert [session["session"] for session in stream["sessions"]] == [0, 1, 2]
    assert [len(session["new_classes"]) for session in stream["sessions"]][1:] == [1, 1]
    methods = answer("methods")["methods"]
    assert {"group", "name", "title", "reference"} == set(methods[0])
    assert answer("methods", "anchor")["settings"][0].keys() == {"name", "default", "kind", "explanation"}


def test_a_run_and_a_report(tmp_path: Path) -> None:
    words = ["--graph", SMALL, "--method", "sgc-ridge", "--way", 1, "--sessions", 1, "--device", "cpu"]
    values = answer("run", *words, "--out", tmp_path / "run")
    stored = json.loads((tmp_path / "run" / "result.json").read_text())
    assert values == {"folder": str(tmp_path / "run"), **stored}
    grid = answer("bench", "table1", "--graph", SMALL, "--out", tmp_path / "bench")
    assert [Path(path).exists() for path in grid["files"]] == [True]
    assert_named("bench", grid)


def test_json_is_all_that_a_process_prints(model: Path) -> None:
    result = graphfcl("info", model, "--json")
    assert result.code == 0, result.err
    assert json.loads(result.out)["method"] == "proto-gcn"
    assert result.out.isascii()


def test_csv_goes_to_standard_output(model: Path, tmp_path: Path) -> None:
    shown = graphfcl("predict", "--model", model, "--coverage", 0.9, "--top", 2, "--out", "-")
    assert shown.code == 0, shown.err
    graphfcl_inside("predict", "--model", model, "--coverage", 0.9, "--top", 2, "--out", tmp_path / "a.csv")
    assert shown.out == (tmp_path / "a.csv").read_text()
    rows = list(csv.DictReader(io.StringIO(shown.out)))
    assert len(rows) == 500
    assert json.loads(rows[0]["set"])
    assert "500 nodes, 8 classes, version 1;" in shown.err
    labels = graphfcl_inside("labels", "--model", model, "--out", "-")
    graphfcl_inside("labels", "--model", model, "--out", tmp_path / "l.csv")
    assert labels.out == (tmp_path / "l.csv").read_text()


def test_all_classes_are_the_most_that_top_can_name(model: Path, tmp_path: Path) -> None:
    nodes = table(tmp_path / "asked.csv", "node", "5")
    row = answer("predict", "--model", model, "--nodes", nodes, "--top", 99)["predictions"][0]
    shares = [value for key, value in row.items() if key.startswith("probability")]
    assert len(shares) == 8
    assert sum(shares) == pytest.approx(1)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["predict", "--out", "answers.txt"], "answers.txt: predictions are written as .parquet or .csv"),
        (["predict"], "there is no output for predictions: add --out FILE, --out - for CSV, or --json."),
        (["predict", "--out", "-", "--json"], "--out - and --json both write to standard output"),
        (["labels", "--out", "labels"], "labels: labels are written as .parquet or .csv"),
        (["labels"], "there is no output for labels"),
        (["predict", "--out", "a.csv", "--device", "cuda:x"], "--device is 'cuda:x'; it must be auto, cpu or cuda"),
    ],
)
def test_a_wrong_place_is_refused_before_the_model_is_loaded(words: list[str], why: str) -> None:
    """The model is not even there."""
    assert_one_sentence(graphfcl_inside(words[0], "--model", "nowhere", *words[1:]), why)


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--graph", "no-such-graph", "--out"],
        ["bench", "table1", "--graph", "no-such-graph", "--out"],
        ["stream", "--graph", SMALL, "--out"],
    ],
)
def test_a_folder_that_is_a_file_is_refused_at_once(words: list[str], tmp_path: Path) -> None:
    file = table(tmp_path / "file", "text")
    place = file / "stream.json" if words[0] == "stream" else file
    assert_one_sentence(graphfcl_inside(*words, place), "--out", "is a file", "Nothing was computed")


def test_info_names_one_model_in_one_form(model: Path) -> None:
    for verb in ("info", "history"):
        assert_one_sentence(graphfcl_inside(verb), f"name one model: as in `graphfcl {verb} my_model`")
        assert_one_sentence(graphfcl_inside(verb, model, "--model", model), "name one model: leave --model out")
        assert graphfcl_inside(verb, model, "--json").out == graphfcl_inside(verb, "--model", model, "--json").out
    assert_one_sentence(graphfcl_inside("info", model, "--json", "--markdown"), "exclude each other")
    assert_one_sentence(graphfcl_inside("info", "nowhere"), "the model nowhere does not exist")
    assert graphfcl_inside("info", model).out == graphfcl_inside("info", "--model", model).out
