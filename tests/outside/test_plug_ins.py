"""Metrics, datasets and strategies of an installed package: real entry points, found without an edit elsewhere."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphfcl
from graphfcl import (
    Dataset,
    Graph,
    InputError,
    compute_stream_metrics,
    find_dataset,
    find_method,
    find_metric,
    find_strategy,
    load_dataset,
    register_dataset,
    register_metric,
    run_grid,
)
from graphfcl.datasets import registry
from graphfcl.experiments import Cell, CellStore, Grid
from graphfcl.metrics import SessionMetric, built_in, recalls
from tests.methods.test_checks import GRAPH
from tests.warm import run_warm

METRICS = '''"""The class that is recognised worst: min_c found_c / nodes_c."""

import numpy as np

from graphfcl.metrics import SessionMetric, StreamMetric, StreamRecord, recalls


def worst_recall(confusion: np.ndarray, arrival: np.ndarray, session: int) -> float:
    return float(np.nanmin(recalls(confusion)))


def confused(record: StreamRecord) -> float:
    last = record.confusions[-1]
    return float(last.sum() - np.trace(last))


WORST = SessionMetric(name="worst_recall", title="worst", what="recall of the worst class", of=worst_recall)
CONFUSED = StreamMetric(
    name="confused", title="nodes confused", what="in the last session", of=confused, share=False
)
'''
DATASET = f'''"""A graph of our own."""

from graphfcl import Dataset, Protocol, load_dataset

MINE = Dataset(
    "mine",
    "a graph of our own",
    lambda folder, options: load_dataset("{GRAPH}")[0],
    "made here",
    Protocol(base=4, pseudo_novel=3, way=1, shot=5),
)
'''
STRATEGY = '''"""The first candidates."""

from graphfcl import Strategy, Query


class FirstRows(Strategy):
    """The first candidates"""

    def choose(self, state):
        return [Query(int(row), "random") for row in state.candidates[: state.budget]]
'''
ENTRY_POINTS = """
[graphfcl.metrics]
worst = own_metrics:WORST
confused = own_metrics:CONFUSED
[graphfcl.datasets]
mine = own_dataset:MINE
[graphfcl.strategies]
first-rows = own_strategy:FirstRows
"""
TOML = f"""
graphs = ["{GRAPH}"]
methods = []
seeds = 2
ways = [1]
sessions = 2
base = 4
pseudo_novel = 3
[[variants]]
name = "quick"
method = "proto-gcn"
settings = {{"pretraining.epochs" = 3}}
"""
SOURCE = Path(graphfcl.__file__).parents[1]
QUICK = ("--method", "proto-gcn", "--set", "pretraining.epochs=3", "--device", "cpu")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a package with plug-ins is installed."""
    root = tmp_path_factory.mktemp("site")
    installed(root, "own_plug_ins", ENTRY_POINTS)
    for name, text in {"own_metrics": METRICS, "own_dataset": DATASET, "own_strategy": STRATEGY}.items():
        (root / f"{name}.py").write_text(text)
    return root


def installed(site: Path, name: str, entry_points: str) -> None:
    folder = site / f"{name}-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Name: {name}\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(entry_points)


def call(site: Path | None, *words: object) -> str:
    path = [str(SOURCE), *([] if site is None else [str(site)])]
    done = run_warm("-m", "graphfcl", *words, env={**os.environ, "PYTHONPATH": os.pathsep.join(path)})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_metric_stands_in_the_result_and_in_what_is_printed(site: Path, tmp_path: Path) -> None:
    rules = ("--base", 4, "--pseudo-novel", 3, "--way", 1)
    printed = call(site, "run", "--graph", GRAPH, *rules, *QUICK, "--out", tmp_path)
    result = json.loads((tmp_path / "result.json").read_text())
    for session, confusion in zip(result["sessions"], result["confusion_matrices"], strict=True):
        assert session["worst_recall"] == min(row[k] / sum(row) for k, row in enumerate(confusion))
        assert list(session)[-3:] == ["macro_f1", "worst_recall", "seconds"]
    assert "harmonic   worst" in printed
    assert f"nodes confused {result['confused']:.2f}\n" in printed
    last = next(line for line in printed.splitlines() if line.split()[:1] == [str(len(result["sessions"]) - 1)])
    assert f"{100 * result['sessions'][-1]['worst_recall']:.2f}" in last.split()


@pytest.mark.long
def test_a_metric_stands_in_a_grid_and_its_report(site: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    (tmp_path / "grid.toml").write_text(TOML)
    call(site, "bench", tmp_path / "grid.toml", "--device", "cpu", "--out", tmp_path / "out")
    table = pq.read_table(tmp_path / "out" / "cells")
    assert all(0 <= value <= 1 for value in table["worst_recall"].to_pylist())
    assert all(value >= 0 for value in table["confused"].to_pylist())
    text = (tmp_path / "out" / "tables.md").read_text()
    assert "| method | worst, last session | nodes confused |" in text
    assert "worst: recall of the worst class" in text
    assert "further metrics" in (tmp_path / "out" / "tables.tex").read_text()
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Further metrics" in page
    data = json.loads(page.partition('<script id="data" type="application/json">')[2].partition("</script>")[0])
    (row,) = data["blocks"][0]["rows"]
    assert {"worst_recall", "confused"} <= set(row["metrics"])
    assert len(row["curves"]["worst_recall"]["mean"]) == 3
    shown = set(data["blocks"][0]["further"])
    assert shown == {"worst_recall"}, "a count has no place among curves in %"


def test_a_report_on_cells_without_a_metric_does_without_it(site: Path, tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(TOML)
    call(None, "bench", tmp_path / "grid.toml", "--device", "cpu", "--out", tmp_path / "out")
    call(site, "report", tmp_path / "out")
    assert "Further metrics" not in (tmp_path / "out" / "report.html").read_text()


def test_a_dataset_is_known(site: Path, tmp_path: Path) -> None:
    assert "a graph of our own" in call(site, "data", "list")
    call(site, "run", "--graph", "mine", *QUICK, "--out", tmp_path)
    assert len(json.loads((tmp_path / "result.json").read_text())["sessions"]) == 4


def test_a_strategy_selects_nodes(site: Path, tmp_path: Path) -> None:
    words = ("--track", "active", "--strategy", "first-rows", "--method", "sgc-ridge", "--device", "cpu")
    call(site, "run", "--graph", "mine", *words, "--out", tmp_path)
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["strategy"] == "first-rows"
    assert "worst_recall" in result["sessions"][0]


def test_a_broken_metric_leaves_a_warning_and_breaks_nothing_else(tmp_path: Path) -> None:
    installed(tmp_path / "site", "half", "[graphfcl.metrics]\nhalf = no_such_module:METRIC\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE), str(tmp_path / "site")])}
    words = ("--graph", GRAPH, "--method", "sgc-ridge", "--device", "cpu", "--out", tmp_path / "out")
    done = run_warm("-m", "graphfcl", "run", *words, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("the plug-in half (no_such_module:METRIC) cannot be imported") == 1


def test_names_in_files_are_looked_up_and_never_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trap.py").write_text("open('sprung', 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for find in (find_metric, find_dataset, find_strategy, find_method):
        with pytest.raises(InputError):
            find("trap:Thing")
    assert not (tmp_path / "sprung").exists()


def worst(confusion: np.ndarray, arrival: np.ndarray, session: int) -> float:  # noqa: ARG001
    return float(np.nanmin(recalls(confusion)))


@pytest.mark.parametrize(
    ("register", "wrong", "why"),
    [
        (register_metric, 3, "it is not a metric"),
        (register_metric, SessionMetric(name="a b", title="", what="", of=worst), "use letters, digits"),
        (
            register_metric,
            SessionMetric(name="accuracy", title="", what="", of=worst),
            "graphfcl itself uses that name",
        ),
        (register_metric, SessionMetric(name="x", title="", what="", of=None), "is not callable"),  # type: ignore[arg-type]
        (register_dataset, 3, "it is not a graphfcl.Dataset"),
        (register_dataset, Dataset("debian", "", len, ""), "graphfcl itself uses that name"),  # type: ignore[arg-type]
        (register_dataset, Dataset("x", "", None, ""), "is not callable"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_registered_is_refused(register: Callable[[Any], Any], wrong: Any, why: str) -> None:
    with pytest.raises(InputError, match=why):
        register(wrong)


def test_what_is_registered_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(built_in.REGISTRY, "registered", {})
    monkeypatch.setattr(registry.REGISTRY, "registered", {})
    metric = SessionMetric(name="worst", title="worst", what="recall of the worst class", of=worst)
    assert register_metric(metric) is metric
    assert find_metric("worst") is metric
    assert register_metric(replace(metric, title="again")).title == "again", "a cell of a notebook runs twice"
    found = compute_stream_metrics([np.array([[3, 1], [0, 2]])], np.zeros(2, dtype=np.int64))
    assert found.sessions[0].values["worst"] == 0.75
    with pytest.raises(InputError, match="test_plug_ins:worst has that name already"):
        register_metric(replace(metric, of=len))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="did you mean 'forgetting'"):
        find_metric("forgeting")
    dataset = Dataset("mine", "a graph", lambda _, __: load_dataset(GRAPH)[0], "made here")
    assert register_dataset(dataset) is dataset
    assert load_dataset("mine")[0].node_count == load_dataset(GRAPH)[0].node_count


def small_graph(folder: Path | None, options: dict[str, str]) -> Graph:  # noqa: ARG001
    return load_dataset(GRAPH)[0]


def test_workers_of_a_grid_know_what_is_registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(built_in.REGISTRY, "registered", {})
    monkeypatch.setattr(registry.REGISTRY, "registered", {})
    register_metric(SessionMetric(name="worst", title="worst", what="recall of the worst class", of=worst))
    register_dataset(Dataset("mine", "a graph", small_graph, "made here"))
    rules = {"base": 4, "pseudo_novel": 3, "way": 1, "sessions": 1}
    grid = Grid("small", "grid", (Cell("mine", "sgc-ridge", 0, rules=rules),))
    status = run_grid(grid, tmp_path, device="cpu")
    assert (status.done, status.failed) == (1, 0)
    result = CellStore(tmp_path).read(grid.cells[0])
    assert result is not None
    assert 0 <= result["sessions"][0]["worst"] <= 1
    register_metric(SessionMetric(name="here", title="", what="", of=lambda *_: 1.0))
    with pytest.raises(InputError, match="as a lambda, so worker processes cannot import it"):
        run_grid(Grid("other", "grid", (Cell("mine", "sgc-ridge", 1, rules=rules),)), tmp_path, device="cpu")
