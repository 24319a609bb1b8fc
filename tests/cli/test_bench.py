"""``graphfcl bench`` and ``graphfcl report``: the real command, and bad input."""

import json
from pathlib import Path

import pytest

from graphfcl.cli.bench import _listed
from graphfcl.experiments import read_cell
from tests.cli.command import assert_one_sentence, graphfcl, graphfcl_inside

GRAPH = "synthetic:nodes=700,edges=2800,classes=10,features=300,signal=0.6,skew=0.5"
TOML = f"""
name = "quick"
graphs = ["{GRAPH}"]
seeds = 2
ways = [1]
sessions = 2
[[variants]]
name = "proto"
method = "proto-gcn"
settings = {{"pretraining.epochs" = 3}}
"""


@pytest.mark.long
def test_a_grid_from_a_file_ends_in_a_report_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / "quick.toml").write_text(TOML)
    words = ("bench", str(tmp_path / "quick.toml"), "--out", str(tmp_path / "out"), "--device", "cpu")
    done = graphfcl(*words)
    assert done.code == 0, done.err
    assert "2 cells done, 0 failed" in done.out
    assert "2 of 2 done" in done.err
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {"report.html", "tables.md", "tables.tex", "cells"}
    assert "proto" in (tmp_path / "out" / "tables.md").read_text()
    page = (tmp_path / "out" / "report.html").read_text()
    assert "graphfcl bench" in page
    again = graphfcl(*words)
    assert "2 cells done" in again.out
    assert "of 2 done" not in again.err, "nothing was left to run"
    assert graphfcl("report", str(tmp_path / "out")).code == 0


@pytest.mark.long
def test_shots_end_in_a_figure_and_go_on(tmp_path: Path) -> None:
    words = [
        "bench",
        "shots",
        "--graph",
        GRAPH,
        "--methods",
        "sgc-ridge,teen",
        "--out",
        str(tmp_path),
        "--device",
        "cpu",
    ]
    done = graphfcl(*words, "--seeds", "1", "--shot", "1,50,all", "--sessions", "2")
    assert done.code == 0, done.err
    assert "6 cells done, 0 failed" in done.out
    assert done.err.count("were left out") == 1, "the classes are the same at every K"
    assert (tmp_path / "shots.png").exists()
    assert (tmp_path / "shots-new-classes.png").exists()
    assert "| method | seeds | 1 | 50 | all |" in (tmp_path / "tables.md").read_text()
    again = graphfcl(*words, "--seeds", "2", "--shot", "1,50,all", "--sessions", "2")
    assert "12 cells done, 0 failed" in again.out
    results = [read_cell(path) for path in (tmp_path / "cells").iterdir()]
    tests = {(cell.seed, result["n_test"], tuple(result["classes"])) for cell, result in filter(None, results)}
    assert len(tests) == 2, "the same test nodes and classes at every K"


@pytest.mark.long
def test_failures_are_told_and_end_with_exit_code_1(tmp_path: Path) -> None:
    (tmp_path / "quick.toml").write_text(TOML.replace('epochs" = 3', 'learning_rate" = 1e30'))
    words = ("bench", str(tmp_path / "quick.toml"), "--out", str(tmp_path / "out"), "--device", "cpu")
    done = graphfcl(*words)
    assert done.code == 1
    assert "0 cells done, 2 failed." in done.out
    assert done.out.count("failed: ") == 2
    assert "diverged at step" in done.out
    assert "run failed cells again with --retry-failed" in done.out
    again = graphfcl(*words, "--json")
    assert again.code == 1
    failures = json.loads(again.out)["failures"]
    assert [failure["cell"].split()[-3:] for failure in failures] == [["proto", "seed", "0"], ["proto", "seed", "1"]]
    assert all("diverged" in failure["error"] for failure in failures)


def test_table_1_is_printed_and_kept(tmp_path: Path) -> None:
    done = graphfcl_inside("bench", "table1", "--graph", "debian", "--out", tmp_path)
    assert done.code == 0
    assert "62615" in done.out
    assert json.loads((tmp_path / "table1.json").read_text())["rows"][0][0] == "debian"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["table2", "--methods", "hagmeta"], "did you mean 'hag-meta'"),
        (["table2", "--graph", "debain"], "did you mean 'debian'"),
        (["tabel2"], "did you mean 'table2'"),
        (["nothing"], "there are table1"),
        (["missing.toml"], "does not exist"),
        (["table2", "--way", "1,2"], "only sweep takes several"),
        (["sweep", "--way", "two"], "give a number, or for sweep and shots several"),
        (["shots", "--way", "1,2"], "only sweep takes several"),
        (["shots", "--shot", "1,every"], "give a number, or for sweep and shots several"),
        (["shots", "--shot", "all"], "add the largest K"),
        (
            ["shots", "--graph", GRAPH, "--shot", "1,200,all"],
            "with 201 nodes or more; a stream with 200 shots needs two",
        ),
        (["table2", "--shot", "all"], "give a number, or for sweep and shots several"),
        (["table3", "--methods", "cec"], "does not use --methods"),
        (["embed", "--seeds", "3"], "does not use --seeds"),
        (["mine.toml", "--seeds", "3"], "leave --seeds out"),
        (["table2", "--track", "sideways", "--graph", GRAPH], "track"),
    ],
)
def test_bad_input_is_one_sentence(words: list[str], message: str, tmp_path: Path) -> None:
    assert_one_sentence(graphfcl_inside("bench", *words, "--out", tmp_path / "out"), message)
    assert not (tmp_path / "out").exists(), "nothing was written"


def test_a_method_that_the_file_does_not_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "quick.toml").write_text(TOML)
    words = ("bench", tmp_path / "quick.toml", "--method", "graphfcl.methods.cec:Cec", "--out", tmp_path / "out")
    assert_one_sentence(graphfcl_inside(*words), "quick.toml does not name 'cec': add it to `methods`")
    assert not (tmp_path / "out").exists()


def test_a_report_needs_a_grid(tmp_path: Path) -> None:
    assert_one_sentence(graphfcl_inside("report", tmp_path), "has no grid")


def test_commas_inside_a_dataset_s_options_separate_nothing() -> None:
    assert _listed(f"debian,{GRAPH},wordnet") == ["debian", GRAPH, "wordnet"]
    assert _listed(None) == []
