"""Runs on graph folders that stay on the disk: what they leave in their work folder."""

from pathlib import Path

import pytest

from graphfcl import GraphfclWarning, GraphFolder, Progress
from graphfcl.experiments import Run, load_checkpoint, run, runs, save_checkpoint
from graphfcl.methods.state import LastTables
from graphfcl.runtime.files import file_lock, temporary_beside
from tests.methods.blocks.samples import folder_of, random_graph
from tests.methods.blocks.streams import stream_of


class Stopped(Exception):
    pass


def job_of(work: Path, graph: Path) -> Run:
    return Run(stream_of(GraphFolder.open(graph), work), "sgc-ridge", {})


def stop_after_session_0(job: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = runs._Recorder.session

    def session(self: runs._Recorder, learner: object, so_far: object) -> None:
        recorded(self, learner, so_far)  # type: ignore[arg-type]
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(runs._Recorder, "session", session)
        with pytest.raises(Stopped):
            run(job, folder)


def tables(work: Path) -> set[str]:
    return {path.name for path in work.iterdir() if path.is_dir()}


def test_a_run_that_goes_on_removes_the_tables_of_the_session_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder_of(random_graph(300), tmp_path / "graph")
    whole = run(job_of(tmp_path / "calm", tmp_path / "graph"), tmp_path / "one")
    job = job_of(tmp_path / "stopped", tmp_path / "graph")
    stop_after_session_0(job, tmp_path / "two", monkeypatch)
    resumed = run(job_of(tmp_path / "stopped", tmp_path / "graph"), tmp_path / "two", resume=True)
    assert resumed["confusion_matrices"] == whole["confusion_matrices"]
    assert tables(tmp_path / "stopped") == tables(tmp_path / "calm")


def test_a_checkpoint_cannot_name_other_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder_of(random_graph(300), tmp_path / "graph")
    job = job_of(tmp_path / "work", tmp_path / "graph")
    stop_after_session_0(job, tmp_path / "run", monkeypatch)
    path = tmp_path / "run" / runs.CHECKPOINT_FILE
    state, values = load_checkpoint(path)
    for name in ("precious", "precious-0123456789abcdef"):
        (tmp_path / name).mkdir()
    named = ["../precious", "../precious-0123456789abcdef", str(tmp_path / "precious"), "..", ""]
    save_checkpoint(path, state, {**values, "tables": [*values["tables"], *named]})
    run(job_of(tmp_path / "work", tmp_path / "graph"), tmp_path / "run", resume=True)
    assert (tmp_path / "precious").is_dir()
    assert (tmp_path / "precious-0123456789abcdef").is_dir()
    last = LastTables()
    last.recall(named)
    assert last.names == ()


def test_a_run_computes_a_damaged_tile_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder_of(random_graph(300), tmp_path / "graph")
    whole = run(job_of(tmp_path / "calm", tmp_path / "graph"), tmp_path / "one")
    job = job_of(tmp_path / "stopped", tmp_path / "graph")
    stop_after_session_0(job, tmp_path / "two", monkeypatch)
    (damaged,) = (tmp_path / "stopped").glob("vectors-*/part-0000")
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    with pytest.warns(GraphfclWarning, match="part-0000 is damaged and was removed: it is computed again"):
        resumed = run(job_of(tmp_path / "stopped", tmp_path / "graph"), tmp_path / "two", resume=True)
    assert resumed["confusion_matrices"] == whole["confusion_matrices"]


class Watching(Progress):
    """Sees whether somebody else could compute in a work folder."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.free: list[bool] = []

    def step(self, *_: object, **__: object) -> None:
        with file_lock(self.work / "computing", wait=0) as free:
            self.free.append(free)


def test_a_run_is_alone_in_its_work_folder(tmp_path: Path) -> None:
    folder_of(random_graph(300), tmp_path / "graph")
    half = temporary_beside(tmp_path / "work" / "x-0123456789abcdef" / "part-0000")
    half.parent.mkdir(parents=True)
    half.write_bytes(b"half")
    watching = Watching(tmp_path / "work")
    run(job_of(tmp_path / "work", tmp_path / "graph"), tmp_path / "one", progress=watching)
    assert watching.free
    assert not any(watching.free)
    assert not half.exists()
    watching.step()
    assert watching.free[-1]
