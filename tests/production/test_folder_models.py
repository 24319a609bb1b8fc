"""Models on graph folders that stay on the disk: the same answers as in memory, and changes without a pass."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphfcl.methods.on_disk.column_phases as column_phases
import graphfcl.methods.on_disk.row_phases as row_phases
from graphfcl.errors import InputError
from graphfcl.graph.folder import GraphFolder, write_folder
from graphfcl.graph.folder_graph import FolderGraph
from graphfcl.graph.visible_folder import Means
from graphfcl.methods import Progress
from graphfcl.production import GraphClassifier, ModelFolder
from graphfcl.production.fit_checkpoints import FitCheckpoints
from graphfcl.production.graph_place import FolderUse
from tests.methods.on_disk.samples import random_graph

HIDDEN = ["class 7", "class 8"]
SETTINGS: dict[str, dict[str, Any]] = {
    "sgc-ridge": {},
    "anchor": {"encoder_input": "hops", "pretraining.epochs": 3},
}


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)


def folder_graph(path: Path, work: Path, *, words: bool = False) -> FolderGraph:
    if not path.exists():
        write_folder(random_graph(400, words=words), path)
    return FolderGraph(GraphFolder.open(path), Means(work, 4 << 30))


def fit(graph: Any, method: str = "sgc-ridge") -> GraphClassifier:
    return GraphClassifier(method, SETTINGS[method]).fit(graph, hide_classes=HIDDEN)


def supports(graph: FolderGraph) -> dict[str, list[int]]:
    number = {name: place for place, name in enumerate(graph.class_names)}
    return {name: graph.node_ids[np.flatnonzero(graph.labels == number[name])[:5]].tolist() for name in HIDDEN}


@pytest.fixture
def graph(tmp_path: Path) -> FolderGraph:
    return folder_graph(tmp_path / "graph", tmp_path / "work")


@pytest.fixture
def model(graph: FolderGraph) -> GraphClassifier:
    return fit(graph)


@pytest.fixture
def no_passes(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Called, it makes every phase over the graph fail."""

    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("a pass over the graph folder")

    def forbid() -> None:
        monkeypatch.setattr(row_phases, "run_tasks", fail)
        monkeypatch.setattr(column_phases, "run_tasks", fail)

    return forbid


def assert_same(first: GraphClassifier, second: GraphClassifier) -> None:
    """Up to roundings of vectors to 16 bits that fall on the other side."""
    one, other = first.predictions(coverage=0.8), second.predictions(coverage=0.8)
    np.testing.assert_array_equal(one["node"], other["node"])
    assert (one["class"] == other["class"]).mean() > 0.99
    np.testing.assert_allclose(one["probability"], other["probability"], atol=5e-3)
    np.testing.assert_allclose(one["unknown_score"], other["unknown_score"], atol=2e-2)
    assert (one["unknown"] == other["unknown"]).mean() > 0.98
    assert (one["set"] == other["set"]).mean() > 0.97
    np.testing.assert_allclose(first.predict_proba(), second.predict_proba(), atol=5e-3)


@pytest.mark.parametrize(("method", "words"), [("sgc-ridge", True), ("anchor", False)])
def test_answers_are_those_of_the_same_model_in_memory(tmp_path: Path, method: str, words: bool) -> None:
    graph = folder_graph(tmp_path / "graph", tmp_path / "work", words=words)
    memory, disk = fit(graph.loaded(), method), fit(graph, method)
    assert_same(memory, disk)
    assert disk.history[-1]["accuracy"]["validation"] == pytest.approx(memory.history[-1]["accuracy"]["validation"])
    for each in (memory, disk):
        each.learn(supports(graph))
    assert_same(memory, disk)
    ends = graph.node_ids[:4].tolist()
    for each in (memory, disk):
        each.grow(
            nodes=([5000, 5001], graph.folder.features(0, 2), None),
            edges=([5000, 5001, *ends], [*ends, 5000, 5001], None),
        )
    assert_same(memory, disk)
    for each in (memory, disk):
        each.unlearn(supports(graph)[HIDDEN[0]][:2]).merge(*HIDDEN)
    assert_same(memory, disk)
    assert disk.history[-1]["exact"]


def test_changes_make_no_pass_and_the_next_question_does(
    model: GraphClassifier, graph: FolderGraph, no_passes: Callable[[], None]
) -> None:
    before = model.predict()
    no_passes()
    model.learn(supports(graph))
    assert set(HIDDEN) < set(model.classes_)
    model.add_edges(graph.node_ids[:2].tolist(), graph.node_ids[2:4].tolist())
    assert "accuracy" not in model.history[-1]
    assert len(before) == 400
    with pytest.raises(AssertionError, match="a pass"):
        model.predict()


def test_a_saved_model_answers_from_the_disk_alone(
    model: GraphClassifier, graph: FolderGraph, tmp_path: Path, no_passes: Callable[[], None]
) -> None:
    model.learn(supports(graph))
    found = model.settle()
    assert found is not None
    assert found.accuracy["leave_one_out"] is not None
    model.save(tmp_path / "model")
    no_passes()
    loaded = GraphClassifier.load(tmp_path / "model")
    assert loaded.has_answers
    assert loaded.settle() is None
    asked = graph.node_ids[[5, 3, 300]].tolist()
    every = model.predictions()
    some = loaded.predictions(asked)
    places = [every["node"].tolist().index(node) for node in asked]
    for name in ("class", "probability", "unknown_score"):
        np.testing.assert_array_equal(some[name], every[name][places])


def test_a_loss_is_said_by_the_pass_that_measures_it(model: GraphClassifier, graph: FolderGraph) -> None:
    model.max_loss = -1.0
    assert model.settle() is None
    model.learn(supports(graph))
    found = model.settle()
    assert found is not None
    assert "points of balanced accuracy" in found.warning


def test_work_files_may_be_deleted(model: GraphClassifier, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    before = model.predictions()
    shutil.rmtree(tmp_path / "work")
    loaded = GraphClassifier.load(tmp_path / "model")
    assert not loaded.has_answers
    after = loaded.predictions()
    np.testing.assert_array_equal(before["class"], after["class"])
    np.testing.assert_allclose(before["probability"], after["probability"], atol=1e-6)


def test_a_damaged_table_is_computed_again(model: GraphClassifier, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    before = model.predict()
    for path in (tmp_path / "work").rglob("scores-*/*"):
        path.write_bytes(path.read_bytes()[:-10])
    loaded = GraphClassifier.load(tmp_path / "model")
    assert not loaded.has_answers
    np.testing.assert_array_equal(loaded.predict(), before)


def test_folders_that_move_are_found_or_asked_for(model: GraphClassifier, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    wanted = model.predict()
    (tmp_path / "graph").rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"graph folder .* not where it was.*--graph DIR"):
        GraphClassifier.load(tmp_path / "model").predict()
    use = FolderUse(graph=tmp_path / "elsewhere")
    np.testing.assert_array_equal(GraphClassifier.load(tmp_path / "model", use=use).predict(), wanted)
    np.testing.assert_array_equal(GraphClassifier.load(tmp_path / "model").predict(), wanted)  # it was noted
    (tmp_path / "both").mkdir()
    for name in ("model", "elsewhere", "work"):
        (tmp_path / name).rename(tmp_path / "both" / name)
    moved = GraphClassifier.load(tmp_path / "both" / "model")
    assert moved.has_answers
    np.testing.assert_array_equal(moved.predict(), wanted)


def test_another_graph_folder_is_refused(model: GraphClassifier, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    write_folder(random_graph(400, seed=1), tmp_path / "other")
    with pytest.raises(InputError, match="digest differs"):
        GraphClassifier.load(tmp_path / "model", use=FolderUse(graph=tmp_path / "other")).predict()
    shutil.rmtree(tmp_path / "graph")
    write_folder(random_graph(400, seed=1), tmp_path / "graph")
    with pytest.raises(InputError, match="digest differs"):
        GraphClassifier.load(tmp_path / "model").predict()


def test_versions_and_growth_go_through_the_folder(model: GraphClassifier, graph: FolderGraph, tmp_path: Path) -> None:
    folder = ModelFolder(tmp_path / "model")
    model.save(folder.path)
    first = model.predict()
    with folder.editing() as changed:
        changed.learn(supports(graph))
    with folder.editing() as changed:
        changed.grow(
            nodes=([7000], graph.folder.features(9, 10), None), edges=([7000], graph.node_ids[9:10].tolist(), None)
        )
    with folder.editing() as changed:
        changed.add_edges([7000], graph.node_ids[10:11].tolist())
    loaded = folder.load()
    assert (loaded.graph_.node_count, loaded.graph_.edge_count) == (401, graph.edge_count + 2)
    assert loaded.predict([7000])[0] in loaded.classes_
    np.testing.assert_array_equal(loaded.predict(), changed.predict())
    assert folder.info().nodes == 401
    folder.rollback(1)
    np.testing.assert_array_equal(folder.load().predict(), first)
    assert [entry["what"] for entry in folder.history()] == ["fit", "learn", "grow", "grow", "rollback"]


def test_new_nodes_and_edges_are_checked(model: GraphClassifier, graph: FolderGraph) -> None:
    known = int(graph.node_ids[0])
    features = graph.folder.features(0, 1)
    for change, said in [
        (lambda: model.add_nodes([known], features), "in the graph already"),
        (lambda: model.add_nodes(["x"], features), "no whole number"),
        (lambda: model.add_nodes([9999], features[:, :3]), "features of shape"),
        (lambda: model.add_edges([known], [123456]), "not in the graph"),
        (lambda: model.learn({"new": [123456]}), "not in the graph"),
    ]:
        with pytest.raises(InputError, match=said):
            change()
    assert len(model.history) == 1


@pytest.mark.parametrize("verb", ["groups", "suggest", "refit"])
def test_what_needs_memory_is_refused(model: GraphClassifier, verb: str) -> None:
    with pytest.raises(InputError, match="stays on the disk"):
        getattr(model, verb)()


def test_more_is_refused(model: GraphClassifier, graph: FolderGraph, tmp_path: Path) -> None:
    node = int(graph.node_ids[0])
    model.save(tmp_path / "model")
    for call in (
        lambda: model.explain(node),
        lambda: model.spread([node]),
        lambda: model.remove_nodes([node]),
        lambda: ModelFolder(tmp_path / "model").erase([node]),
        lambda: model.all_scores(),
    ):
        with pytest.raises(InputError, match="stays on the disk"):
            call()
    with pytest.raises(InputError, match="needs the whole graph in memory"):
        GraphClassifier("proto-gcn").fit(graph)


class Killed(Exception):
    pass


class KilledAt(Progress):
    """Stops a fit when a phase begins."""

    def __init__(self, stage: str) -> None:
        self.stage = stage
        self.seen: list[str] = []

    def step(self, stage: str, *_: Any, **__: Any) -> None:
        self.seen.append(stage)
        if stage == self.stage:
            raise Killed


def test_a_fit_that_was_stopped_goes_on(graph: FolderGraph, tmp_path: Path) -> None:
    def run(progress: Progress, *, resume: bool) -> GraphClassifier:
        checkpoints = FitCheckpoints(tmp_path / "fitting", resume=resume)
        model = GraphClassifier("sgc-ridge")
        return model.fit(graph, hide_classes=HIDDEN, progress=progress, checkpoints=checkpoints)

    with pytest.raises(Killed):
        run(KilledAt("choosing"), resume=False)
    again = KilledAt("never")
    found = run(again, resume=True)
    assert "hops" not in again.seen
    assert "vectors" not in again.seen
    other = replace(graph, means=Means(tmp_path / "other work", 4 << 30))
    np.testing.assert_array_equal(found.predictions()["probability"], fit(other).predictions()["probability"])
