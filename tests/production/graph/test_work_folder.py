"""Who computes in a work folder, and which of its files stay."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphfcl.production.model.calibrating as calibrating
from graphfcl import GraphClassifier, GraphFolder, ModelFolder, Progress, Resources, Tasks, start_workers
from graphfcl.methods.sgc_ridge import SgcRidge
from graphfcl.production import FolderUse
from graphfcl.runtime import resources
from graphfcl.runtime.files import file_lock, shared_lock
from graphfcl.runtime.tasks import Workers
from tests.production.graph.folder_models import HIDDEN, supports


def test_states_of_the_graph_that_nobody_asks_about_go(
    model: GraphClassifier, graph: GraphFolder, tmp_path: Path
) -> None:
    folder, work = ModelFolder(tmp_path / "model"), tmp_path / "work"
    model.save(folder.path)
    ends = graph.node_ids.tolist()
    stopped = work / "graph-0123456789abcdef"
    stopped.mkdir()  # its answers were not finished
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
