"""Models on graph folders that stay on the disk: the same answers as in memory, and changes without a pass."""

import json
import shutil
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphfcl.methods.blocks.column_phases as column_phases
import graphfcl.methods.blocks.row_tasks as row_tasks
import graphfcl.production.graph.folder_model_graph as folder_model_graph
import graphfcl.production.model.calibrating as calibrating
import graphfcl.production.model.state as model_state
from graphfcl import (
    GraphClassifier,
    GraphfclWarning,
    GraphFolder,
    InputError,
    ModelFolder,
    Progress,
    Resources,
    Tasks,
    start_workers,
)
from graphfcl.graph.folder import write_folder
from graphfcl.methods.sgc_ridge import SgcRidge
from graphfcl.production.graph.place import FolderUse
from graphfcl.production.model.fit_checkpoints import FitCheckpoints
from graphfcl.runtime import resources
from graphfcl.runtime.files import file_lock, shared_lock
from graphfcl.runtime.tasks import Workers
from tests.methods.blocks.samples import random_graph
from tests.production.models import everything

HIDDEN = ["class 7", "class 8"]
SETTINGS: dict[str, dict[str, Any]] = {
    "sgc-ridge": {},
    "anchor": {"encoder_input": "hops", "pretraining.epochs": 3},
}


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)


def folder_graph(path: Path, work: Path, *, words: bool = False) -> GraphFolder:
    if not path.exists():
        write_folder(random_graph(400, words=words), path)
    return GraphFolder.open(path, Resources(work, 4 << 30))


def fit(graph: Any, method: str = "sgc-ridge") -> GraphClassifier:
    return GraphClassifier(method, SETTINGS[method]).fit(graph, hide_classes=HIDDEN)


def supports(graph: GraphFolder) -> dict[str, list[int]]:
    number = {name: place for place, name in enumerate(graph.class_names)}
    return {name: graph.node_ids[np.flatnonzero(graph.labels == number[name])[:5]].tolist() for name in HIDDEN}


@pytest.fixture
def graph(tmp_path: Path) -> GraphFolder:
    return folder_graph(tmp_path / "graph", tmp_path / "work")


@pytest.fixture
def model(graph: GraphFolder) -> GraphClassifier:
    return fit(graph)


@pytest.fixture
def no_passes(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Called, it makes every phase over the graph fail."""

    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("a pass over the graph folder")

    def forbid() -> None:
        monkeypatch.setattr(row_tasks, "run_tasks", fail)
        monkeypatch.setattr(column_phases, "run_tasks", fail)

    return forbid


def assert_same(first: GraphClassifier, second: GraphClassifier) -> None:
    """Up to roundings of vectors to 16 bits that fall on the other side."""
    nodes = sorted(first.node_ids_.tolist())
    one, other = first.prediction_columns(nodes, coverage=0.8), second.prediction_columns(nodes, coverage=0.8)
    np.testing.assert_array_equal(one["node"], other["node"])
    assert (one["class"] == other["class"]).mean() > 0.99
    np.testing.assert_allclose(one["probability"], other["probability"], atol=5e-3)
    np.testing.assert_allclose(one["unknown_score"], other["unknown_score"], atol=2e-2)
    assert (one["unknown"] == other["unknown"]).mean() > 0.98
    assert (one["set"] == other["set"]).mean() > 0.97
    np.testing.assert_allclose(first.predict_proba(nodes), second.predict_proba(nodes), atol=5e-3)


@pytest.mark.long
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
            nodes=([5000, 5001], graph.features(0, 2), None),
            edges=([5000, 5001, *ends], [*ends, 5000, 5001], None),
        )
    assert_same(memory, disk)
    for each in (memory, disk):
        each.unlearn(supports(graph)[HIDDEN[0]][:2]).merge(*HIDDEN)
    assert_same(memory, disk)
    assert disk.history[-1]["exact"]


def test_edges_alone_change_what_is_known_of_labelled_nodes(graph: GraphFolder) -> None:
    memory, disk = fit(graph.loaded()), fit(graph)
    learned = supports(graph)
    others = graph.node_ids[np.flatnonzero(graph.labels == 0)[:10]].tolist()
    source = [node for nodes in learned.values() for node in nodes for _ in others]
    for each in (memory, disk):
        each.learn(learned).add_edges(source, others * (len(source) // len(others)))
    assert_same(memory, disk)


def test_changes_make_no_pass_and_the_next_question_does(
    model: GraphClassifier, graph: GraphFolder, no_passes: Callable[[], None]
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
    model: GraphClassifier, graph: GraphFolder, tmp_path: Path, no_passes: Callable[[], None]
) -> None:
    model.learn(supports(graph))
    found = model.calibrate()
    assert found is not None
    assert found.accuracy["leave_one_out"] is not None
    model.save(tmp_path / "model")
    no_passes()
    loaded = GraphClassifier.load(tmp_path / "model")
    assert loaded.has_answers
    assert loaded.calibrate() is None
    asked = graph.node_ids[[5, 3, 300]].tolist()
    every = model.prediction_columns()
    some = loaded.prediction_columns(asked)
    places = [every["node"].tolist().index(node) for node in asked]
    for name in ("class", "probability", "unknown_score"):
        np.testing.assert_array_equal(some[name], every[name][places])


def test_a_loss_is_said_by_the_pass_that_measures_it(model: GraphClassifier, graph: GraphFolder) -> None:
    model.max_loss = -1.0
    assert model.calibrate() is None
    model.learn(supports(graph))
    found = model.calibrate()
    assert found is not None
    assert "points of balanced accuracy" in found.warning


def test_work_files_may_be_deleted(model: GraphClassifier, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    before = model.prediction_columns()
    shutil.rmtree(tmp_path / "work")
    loaded = GraphClassifier.load(tmp_path / "model")
    assert not loaded.has_answers
    after = loaded.prediction_columns()
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


def damage(work: Path, pattern: str) -> list[Path]:
    """Change a byte in the middle of some files, which keep their length."""
    paths = sorted(path for path in work.rglob(pattern) if path.is_file() and path.stat().st_size)
    for path in paths:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    return paths


@pytest.mark.parametrize("pattern", ["scores-*/*", "readings-*/*", "*-*/*", "*"])
def test_a_file_with_another_byte_is_computed_again_by_who_meets_it(
    model: GraphClassifier, tmp_path: Path, pattern: str
) -> None:
    model.save(tmp_path / "model")
    before = model.prediction_columns()
    assert damage(tmp_path / "work", pattern)
    for nodes in (before["node"][:3].tolist(), None):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GraphfclWarning)
            after = GraphClassifier.load(tmp_path / "model").prediction_columns(nodes)
        for name, values in after.items():
            np.testing.assert_array_equal(values, before[name][: len(values)])
        damage(tmp_path / "work", pattern)


@pytest.mark.parametrize("method", ["sgc-ridge", pytest.param("anchor", marks=pytest.mark.long)])
def test_fits_and_changes_compute_damaged_files_again(graph: GraphFolder, tmp_path: Path, method: str) -> None:
    wanted = fit(graph, method).learn(supports(graph)).predict_proba()
    assert damage(tmp_path / "work", "*-*/*")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphfclWarning)
        model = fit(graph, method)
        damage(tmp_path / "work", "*-*/*")
        model.learn(supports(graph))
        damage(tmp_path / "work", "*-*/*")
        np.testing.assert_array_equal(model.predict_proba(), wanted)
        model.unlearn(supports(graph)[HIDDEN[0]][:1])
        damage(tmp_path / "work", "*-*/*")
        assert model.predict().size


@pytest.mark.parametrize("named", ["outside", "another"])
def test_answers_that_name_another_table_are_computed_again(model: GraphClassifier, tmp_path: Path, named: str) -> None:
    wanted = model.predict_proba()
    model.save(tmp_path / "model")
    assert GraphClassifier.load(tmp_path / "model").has_answers
    path = next((tmp_path / "work").glob("answers-*.json"))
    said = json.loads(path.read_bytes())
    if named == "outside":
        shutil.copytree(tmp_path / "work" / said["tables"]["scores"]["folder"], tmp_path / "elsewhere")
        said["tables"]["scores"]["folder"] = "../elsewhere"
    else:
        said["tables"]["scores"] = said["tables"]["readings"]
    path.write_text(json.dumps(said))
    loaded = GraphClassifier.load(tmp_path / "model")
    assert not loaded.has_answers
    np.testing.assert_array_equal(loaded.predict_proba(), wanted)


def test_folders_that_move_are_found_or_asked_for(model: GraphClassifier, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    wanted = model.predict()
    (tmp_path / "graph").rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"graph folder .* not where it was.*--graph DIR"):
        GraphClassifier.load(tmp_path / "model").predict()
    use = FolderUse(graph=tmp_path / "elsewhere")
    before = everything(tmp_path / "model")
    np.testing.assert_array_equal(GraphClassifier.load(tmp_path / "model", use=use).predict(), wanted)
    assert everything(tmp_path / "model") == before, "a reader does not change what is remembered"
    with pytest.raises(InputError, match="not where it was"):
        GraphClassifier.load(tmp_path / "model").predict()
    assert ModelFolder(tmp_path / "model", use).rollback(1) == 2  # whoever writes a version does
    np.testing.assert_array_equal(GraphClassifier.load(tmp_path / "model").predict(), wanted)
    (tmp_path / "both").mkdir()
    for name in ("model", "elsewhere", "work"):
        (tmp_path / name).rename(tmp_path / "both" / name)
    moved = GraphClassifier.load(tmp_path / "both" / "model")
    assert moved.has_answers
    np.testing.assert_array_equal(moved.predict(), wanted)


def test_readers_do_not_change_what_is_remembered(model: GraphClassifier, graph: GraphFolder, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    shutil.copytree(tmp_path / "graph", tmp_path / "copy")
    place = (tmp_path / "model" / "graph.json").read_bytes()
    use = FolderUse(graph=tmp_path / "copy", work=tmp_path / "other work", memory=6 << 30, workers=2)
    reader = GraphClassifier.load(tmp_path / "model", use=use)
    reader.prediction_columns()
    reader.label_columns()
    reader.info()
    reader.calibrate()
    assert (tmp_path / "model" / "graph.json").read_bytes() == place
    with ModelFolder(tmp_path / "model", use).editing() as changed:
        changed.learn(supports(graph))
    said = json.loads((tmp_path / "model" / "graph.json").read_bytes())
    assert said["graph"]["full"] == str(tmp_path / "copy")
    assert (said["memory"], said["workers"]) == (6 << 30, 2)


def test_another_graph_folder_is_refused(model: GraphClassifier, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    write_folder(random_graph(400, seed=1), tmp_path / "other")
    with pytest.raises(InputError, match="digest differs"):
        GraphClassifier.load(tmp_path / "model", use=FolderUse(graph=tmp_path / "other")).predict()
    shutil.rmtree(tmp_path / "graph")
    write_folder(random_graph(400, seed=1), tmp_path / "graph")
    with pytest.raises(InputError, match="digest differs"):
        GraphClassifier.load(tmp_path / "model").predict()


def test_versions_and_growth_go_through_the_folder(model: GraphClassifier, graph: GraphFolder, tmp_path: Path) -> None:
    folder = ModelFolder(tmp_path / "model")
    model.save(folder.path)
    first = model.predict()
    with folder.editing() as changed:
        changed.learn(supports(graph))
    with folder.editing() as changed:
        changed.grow(nodes=([7000], graph.features(9, 10), None), edges=([7000], graph.node_ids[9:10].tolist(), None))
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


def test_new_nodes_and_edges_are_checked(model: GraphClassifier, graph: GraphFolder) -> None:
    known = int(graph.node_ids[0])
    features = graph.features(0, 1)
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


def test_a_method_that_needs_memory_is_refused(graph: GraphFolder) -> None:
    with pytest.raises(InputError, match="needs the whole graph in memory"):
        GraphClassifier("proto-gcn").fit(graph)


def test_answers_about_all_nodes_come_in_the_order_of_the_source(
    model: GraphClassifier, graph: GraphFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = [*graph.graph().node_ids.tolist(), 5000]
    assert wanted[:-1] != graph.node_ids.tolist()
    model.add_nodes([5000], graph.features(0, 1))
    found = model.prediction_columns()
    assert found["node"].tolist() == wanted == model.node_ids_.tolist()
    monkeypatch.setattr(model_state, "AT_A_TIME", 64)  # several passes, of several blocks
    monkeypatch.setattr(folder_model_graph, "BLOCK", 64)
    monkeypatch.setattr(folder_model_graph, "SHARE", (4 << 30) // (100 * (4 * 7 + 16)))
    parts = list(model.predictions_in_blocks())
    assert len(parts) == 7
    for name, values in found.items():
        np.testing.assert_array_equal(np.concatenate([part[name] for part in parts]), values)
    some = model.prediction_columns(wanted[::-7])
    for name, values in found.items():
        np.testing.assert_array_equal(some[name], values[::-7])


def test_answers_are_those_of_a_full_pass_at_every_age(
    model: GraphClassifier, graph: GraphFolder, tmp_path: Path
) -> None:
    folder = ModelFolder(tmp_path / "model")
    model.save(folder.path)
    one, two = HIDDEN
    ends = graph.node_ids[:6].tolist()
    for change in (
        lambda changed: changed.learn({one: supports(graph)[one]}),
        lambda changed: changed.add_edges(ends[:3], ends[3:]),
        lambda changed: changed.learn({two: supports(graph)[two]}),
    ):
        with folder.editing() as changed:
            change(changed)
        folder.load().calibrate()
    folder.rollback(2)
    with folder.editing() as changed:
        changed.learn({two: supports(graph)[two]})
    for version in (2, 3, 4, 5, 6):
        used = GraphClassifier.load(folder.path, version=version, use=FolderUse(work=tmp_path / "work"))
        fresh = GraphClassifier.load(folder.path, version=version, use=FolderUse(work=tmp_path / f"fresh {version}"))
        assert fresh.predict_proba().tobytes() == used.predict_proba().tobytes()
        assert fresh.unknown_scores().tobytes() == used.unknown_scores().tobytes()


def test_states_of_the_graph_that_nobody_asks_about_go(
    model: GraphClassifier, graph: GraphFolder, tmp_path: Path
) -> None:
    folder, work = ModelFolder(tmp_path / "model"), tmp_path / "work"
    model.save(folder.path)
    ends = graph.node_ids.tolist()
    stopped = work / "graph-0123456789abcdef"
    stopped.mkdir()  # nobody finished its answers
    seen = []
    for number in range(3):
        with folder.editing() as changed:
            changed.add_edges([ends[number]], [ends[number + 9]])
        folder.load().calibrate()
        seen.append(sorted(path.name for path in work.glob("graph-*") if path != stopped))
    assert [len(names) for names in seen] == [2, 2, 2]
    assert len({name for names in seen for name in names}) == 4
    assert len(list(work.glob("grown-*"))) == 2
    assert stopped.exists()
    with shared_lock(work / seen[-1][0] / "in-use"), shared_lock(work / seen[-1][1] / "in-use"):  # somebody computes
        for number in range(3, 5):
            with folder.editing() as changed:
                changed.add_edges([ends[number]], [ends[number + 9]])
            folder.load().calibrate()
        assert {name for name in seen[-1] if (work / name).exists()} == set(seen[-1])


def test_half_written_files_go_unless_somebody_computes(model: GraphClassifier) -> None:
    graph: Any = model.graph_
    half = graph.work / "x-0" / ".part-0000.host.1.ab.tmp"
    half.parent.mkdir()
    half.write_bytes(b"half")
    with shared_lock(graph.work / "in-use"), graph.in_use():
        assert half.exists()
    with graph.in_use():
        assert not half.exists()


def test_two_who_ask_at_once_compute_once(
    model: GraphClassifier, graph: GraphFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.learn(supports(graph)).save(tmp_path / "model")
    passes, computed = [], calibrating.compute_answers

    def counted(*given: Any) -> Any:
        passes.append(given)
        time.sleep(0.2)  # the other asks meanwhile
        return computed(*given)

    monkeypatch.setattr(calibrating, "compute_answers", counted)
    models = [GraphClassifier.load(tmp_path / "model") for _ in range(2)]
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(lambda each: each.predict_proba(), models)
    np.testing.assert_array_equal(first, second)
    assert len(passes) == 1


def test_whoever_fits_or_changes_sums_is_alone_in_the_work_folder(
    graph: GraphFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free: list[bool] = []

    class Watching(Progress):
        def step(self, *_: Any, **__: Any) -> None:
            with file_lock(tmp_path / "work" / "computing", wait=0) as found:
                free.append(found)

    model = GraphClassifier("sgc-ridge").fit(graph, hide_classes=HIDDEN, progress=Watching())
    assert free
    assert not any(free)
    model.learn(supports(graph))
    free.clear()
    restate = SgcRidge.restate

    def watched(*given: Any) -> bool:
        Watching().step()
        return restate(*given)

    monkeypatch.setattr(SgcRidge, "restate", watched)
    model.merge(*HIDDEN)
    assert free == [False]


def test_workers_are_started_once_for_a_pass(
    model: GraphClassifier, graph: GraphFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Tasks] = []

    @contextmanager
    def start(tasks: Tasks) -> Iterator[Workers]:
        started.append(tasks)
        with start_workers(Tasks()) as workers:  # tasks run here
            yield Workers(tasks, workers.engine)

    monkeypatch.setattr(resources, "start_workers", start)
    model.learn(supports(graph)).save(tmp_path / "model")
    use = FolderUse(workers=2, engine=Tasks("submitit", submitit_options={"cluster": "local"}))
    loaded = GraphClassifier.load(tmp_path / "model", use=use)
    np.testing.assert_array_equal(loaded.predict_proba(), model.predict_proba())
    assert [(tasks.backend, tasks.workers, tasks.folder) for tasks in started] == [
        ("submitit", 2, tmp_path / "work" / "tasks")
    ]
    assert ModelFolder(tmp_path / "model", use).rollback(1) == 2
    again: Resources = vars(GraphClassifier.load(tmp_path / "model").graph_)["resources"]
    assert (again.workers, again.starts_workers) == (2, True)
    assert isinstance(again.tasks, Tasks)
    assert again.tasks.backend == "local"  # the engine is of a command, not of the model


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


def test_a_fit_that_was_stopped_goes_on(graph: GraphFolder, tmp_path: Path) -> None:
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
    other = graph.with_resources(Resources(tmp_path / "other work", 4 << 30))
    np.testing.assert_array_equal(
        found.prediction_columns()["probability"], fit(other).prediction_columns()["probability"]
    )


@pytest.mark.long
def test_a_calibration_run_that_was_stopped_leaves_nothing_behind(graph: GraphFolder, tmp_path: Path) -> None:
    def run(work: str, progress: Progress, *, resume: bool) -> set[str]:
        checkpoints = FitCheckpoints(tmp_path / f"fitting {work}", resume=resume)
        there = graph.with_resources(Resources(tmp_path / work, 4 << 30))
        GraphClassifier("anchor", SETTINGS["anchor"]).fit(there, progress=progress, checkpoints=checkpoints)
        return {path.name for path in (tmp_path / work).rglob("*") if path.is_file()}

    with pytest.raises(Killed):
        run("one", KilledAt("calibration run, scores"), resume=False)
    half = next((tmp_path / "one").rglob("x-*")) / ".part-0000.host.1.ab.tmp"
    half.write_bytes(b"half")
    assert run("one", KilledAt("never"), resume=True) == run("two", KilledAt("never"), resume=False)
