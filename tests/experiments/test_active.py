"""Runs, cells and grids of the track ``active``."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphfcl import (
    ActiveLearningState,
    InputError,
    Query,
    Strategy,
    Stream,
    load_dataset,
    make_stream,
    register_strategy,
)
from graphfcl.active import STRATEGIES, registry
from graphfcl.experiments import Cell, CellStore, Run, grid_from_toml, run, run_cell
from graphfcl.experiments.benchmark import GRAPHS
from graphfcl.experiments.paper_grids import active

GRAPH = "synthetic:nodes=300,edges=1200,classes=9,features=60,signal=0.8,skew=0.4"
RULES = {"base": 3, "pseudo_novel": 2, "way": 2, "shot": 3}


@pytest.fixture(scope="module")
def stream() -> Stream:
    graph, protocol = load_dataset(GRAPH)
    return make_stream(graph, protocol, seed=1, track="active", **RULES)


def job(stream: Stream, strategy: str = "typical") -> Run:
    return Run(stream, "sgc-ridge", {}, strategy=strategy)


@pytest.fixture(scope="module")
def result(stream: Stream) -> dict[str, Any]:
    return run(job(stream))


def numbers(result: dict[str, Any]) -> Any:
    sessions = [{key: value for key, value in one.items() if key != "seconds"} for one in result["sessions"]]
    return sessions, result["confusion_matrices"], result["labelled_nodes"], result["balanced_at_60"]


def test_a_result_says_what_was_labelled_and_what_it_brought(stream: Stream, result: dict[str, Any]) -> None:
    assert (result["strategy"], result["needs_oracle"]) == ("typical", False)
    assert [one["labels"] for one in result["sessions"]] == [0, 6, 12]
    assert result["budget"] == 12
    ids = [node for nodes in result["labelled_nodes"] for node in nodes]
    assert len(ids) == len(set(ids)) == 12
    candidates = stream.graph.node_ids[stream.node_of_number[stream.candidates]].tolist()
    assert set(ids) <= set(candidates)
    labels = {node: stream.graph.class_names[stream.graph.labels[stream.graph.nodes_of([node])[0]]] for node in ids}
    novel = set(stream.classes[5:])
    assert result["sessions"][-1]["novel_classes_found"] == len(novel & set(labels.values()))
    assert result["classes_found"] == len(novel & set(labels.values())) / 4
    curve = [one["balanced_accuracy"] for one in result["sessions"]]
    assert result["balanced_at_60"] == pytest.approx(curve[1] + (7.2 - 6) / 6 * (curve[2] - curve[1]))
    assert result["balanced_at_all"] == pytest.approx(curve[2])
    last = np.array(result["confusion_matrices"][-1])
    assert last.shape == (9, 9)
    json.dumps(result)


def test_an_interrupted_run_ends_with_the_same_numbers(
    stream: Stream, result: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(job(stream), tmp_path / "out", monkeypatch)
    with pytest.raises(InputError, match="another run"):
        run(job(stream, "random"), tmp_path / "out", resume=True)
    again = run(job(stream), tmp_path / "out", resume=True)
    assert numbers(again) == numbers(result)
    assert numbers(json.loads((tmp_path / "out" / "result.json").read_text())) == numbers(result)


class Keeping(Strategy):
    """As many candidates as it was called before, and one more"""

    calls = 0

    def choose(self, state: ActiveLearningState) -> list[Query]:
        self.calls += 1
        return [Query(int(row), "random") for row in state.candidates[: self.calls]]


def interrupted(given: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stops a run after session 1."""
    from graphfcl.experiments import runs

    saved = runs._Recorder.session

    def session(self: Any, learner: Any, so_far: Any) -> None:
        saved(self, learner, so_far)
        if len(so_far.confusions) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as changed:
        changed.setattr(runs._Recorder, "session", session)
        with pytest.raises(KeyboardInterrupt):
            run(given, folder)


def test_what_a_strategy_keeps_does_not_matter_to_a_run_that_goes_on(
    stream: Stream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry.REGISTRY, "registered", {})
    register_strategy(Keeping)
    whole = run(job(stream, "keeping"))
    interrupted(job(stream, "keeping"), tmp_path, monkeypatch)
    assert numbers(run(job(stream, "keeping"), tmp_path, resume=True)) == numbers(whole)


def test_a_strategy_that_was_edited_meanwhile_is_told(
    stream: Stream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry.REGISTRY, "registered", {})
    register_strategy(Keeping)
    interrupted(job(stream, "keeping"), tmp_path, monkeypatch)
    actual = registry.REGISTRY.registered["keeping"]
    registry.REGISTRY.registered["keeping"] = replace(actual, source=actual.source[:-16] + "0" * 16)
    with pytest.raises(InputError, match="the code of its strategy was edited, so choose another --out"):
        run(job(stream, "keeping"), tmp_path, resume=True)
    with pytest.raises(InputError, match="repeat its options, or choose another --out"):
        run(job(stream, "random"), tmp_path, resume=True)


def test_a_strategy_and_the_track_belong_together(stream: Stream) -> None:
    with pytest.raises(InputError, match="name a strategy"):
        Run(stream, "sgc-ridge", {})
    graph, protocol = load_dataset(GRAPH)
    with pytest.raises(InputError, match="use that track"):
        Run(make_stream(graph, protocol, seed=1), "sgc-ridge", {}, strategy="random")


def test_cells_without_a_strategy_keep_their_keys() -> None:
    plain = Cell("debian", "anchor", 3, rules={"track": "open"})
    assert "strategy" not in plain.as_json()
    assert plain.key == Cell(**plain.as_json()).key
    cell = replace(plain, rules={"track": "active"}, strategy="typical")
    assert Cell(**cell.as_json()) == cell
    assert cell.row == "anchor, typical"
    assert len({plain.key, cell.key, replace(cell, strategy="random").key}) == 3


def test_the_key_of_a_plain_cell_is_what_it_was() -> None:
    assert Cell("debian", "hag-meta", 0, rules={"way": 2}).key == "56583cd12d4a5c0c79ca"


def test_the_grid_has_every_method_with_every_strategy() -> None:
    grid = active()
    assert {cell.dataset for cell in grid.cells} == set(GRAPHS)
    assert {cell.strategy for cell in grid.cells} == {*STRATEGIES, "of-each-class"}
    assert {cell.seed for cell in grid.cells} == set(range(5))
    assert all(cell.rules == {"track": "active"} for cell in grid.cells)
    assert len({cell.key for cell in grid.cells}) == len(grid.cells) == 5 * 2 * (len(STRATEGIES) + 1) * 5


def test_a_cell_is_run_and_stored(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    cell = Cell(GRAPH, "sgc-ridge", 1, rules={**RULES, "track": "active"}, strategy="of-each-class")
    actual = run_cell(cell, device="cpu", encoders=tmp_path / "encoders", data_dir=None)
    assert actual["needs_oracle"]
    store = CellStore(tmp_path)
    store.save(cell, actual)
    assert (store.read(cell) or {})["labelled_nodes"] == actual["labelled_nodes"]
    table = pq.read_table(store.path(cell))
    assert table.column("labels").to_pylist() == [0, 6, 12]
    assert set(table.column("strategy").to_pylist()) == {"of-each-class"}
    assert table.column("classes_found").to_pylist()[0] == 1.0


def test_a_file_lists_strategies(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'graphs=["{GRAPH}"]\nmethods=["sgc-ridge"]\nseeds=1\ntracks=["active"]\nstrategies=["random"]\n')
    assert [cell.strategy for cell in grid_from_toml(path).cells] == ["random"]
    path.write_text(f'graphs=["{GRAPH}"]\nmethods=["sgc-ridge"]\nstrategies=["random"]\n')
    with pytest.raises(InputError, match="line 3: strategies need tracks"):
        grid_from_toml(path)
    path.write_text(f'graphs=["{GRAPH}"]\nmethods=["sgc-ridge"]\ntracks=["active"]\nstrategies=["randm"]\n')
    with pytest.raises(InputError, match="did you mean 'random'"):
        grid_from_toml(path)
