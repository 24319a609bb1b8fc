"""Runs: results, checkpoints, and going on after an interruption."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphfcl import GraphfclWarning, InputError, Learner, Progress, Stream, load_stream
from graphfcl.experiments import (
    CHECKPOINT_FILE,
    RESULT_FILE,
    STREAM_FILE,
    Run,
    load_checkpoint,
    run,
    runs,
    save_checkpoint,
)
from graphfcl.experiments.runs import forget_peaks, peak_gpu_memory_mb
from graphfcl.methods import METHODS
from graphfcl.runtime.source_code import package_commit
from tests.golden.samples import SHORT, golden_stream
from tests.marks import some_first
from tests.methods.test_checks import EASY, stream_of

COSTS = {"total_seconds", "peak_memory_mb", "peak_gpu_memory_mb", "versions", "pretraining"}


def small_stream(seed: int = 0, **changes: Any) -> Stream:
    return stream_of(seed, EASY, **changes)


def job(seed: int = 0, **changes: Any) -> Run:
    return Run(small_stream(seed), "hag-meta", {**SHORT["hag-meta"], **changes})


def numbers(result: dict[str, Any]) -> dict[str, Any]:
    """A result without what time and memory it took."""
    kept = {key: value for key, value in result.items() if key not in COSTS}
    kept["sessions"] = [{k: v for k, v in session.items() if k != "seconds"} for session in result["sessions"]]
    return json.loads(json.dumps(kept))


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    folder = tmp_path_factory.mktemp("unbroken")
    return run(job(), folder), folder


def test_the_result_holds_what_was_found(unbroken: tuple[dict[str, Any], Path]) -> None:
    result, folder = unbroken
    assert json.loads((folder / RESULT_FILE).read_text()) == json.loads(json.dumps(result))
    sessions = result["sessions"]
    assert [session["session"] for session in sessions] == [0, 1, 2, 3]
    assert [session["classes"] for session in sessions] == [7, 8, 9, 10]
    keys = {"session", "classes", "balanced_accuracy", "accuracy", "base", "novel", "harmonic_mean", "seconds"}
    assert keys <= set(sessions[0])
    assert sessions[0]["novel"] is None
    assert result["pd"] == pytest.approx(sessions[0]["balanced_accuracy"] - sessions[-1]["balanced_accuracy"])
    assert result["rpd"] == pytest.approx(result["pd"] / sessions[0]["balanced_accuracy"])
    assert result["matrix"][0][1] is None
    for number, matrix in enumerate(result["confusion_matrices"]):
        recalls = [row[k] / sum(row) for k, row in enumerate(matrix)]
        assert np.mean(recalls) == pytest.approx(sessions[number]["balanced_accuracy"])
    assert result["seed"] == 0
    assert result["settings"]["episodes"] == 8
    assert {"torch", "numpy", "python", "graphfcl", "code", "machine"} <= set(result["versions"])
    assert result["versions"].get("commit") == package_commit()
    assert result["peak_memory_mb"] > 50
    assert result["peak_gpu_memory_mb"] is None, "it was on a CPU"
    assert not result["trained_on_query_labels"]
    assert result["protocol_hash"] == job().stream.protocol.hash
    assert load_stream(folder / STREAM_FILE, job().stream.graph).classes == job().stream.classes


def test_memory_on_a_gpu_counts_from_the_start_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The card is faked: what is called of torch, and when."""
    calls: list[str] = []
    monkeypatch.setattr("torch.cuda.init", lambda: calls.append("init"))
    monkeypatch.setattr("torch.cuda.reset_peak_memory_stats", lambda device: calls.append(f"forget {device}"))
    monkeypatch.setattr("torch.cuda.max_memory_allocated", lambda device: 3 * 2**20 if device == "cuda" else 0)
    forget_peaks("cpu")
    assert peak_gpu_memory_mb("cpu") is None
    assert calls == []
    forget_peaks("cuda")
    assert calls == ["init", "forget cuda"]
    assert peak_gpu_memory_mb("cuda") == 3


def test_paper_results_are_marked() -> None:
    result = run(Run(small_stream(name="paper"), "hag-meta", SHORT["hag-meta"]))
    assert result["trained_on_query_labels"]


class Interrupted(Exception):
    pass


class Interrupt(Progress):
    """Raises at the n-th checkpoint, after it was saved."""

    def __init__(self, at: int) -> None:
        self.left = at
        self.stages: list[str] = []

    def checkpoint(self, learner: Learner) -> None:
        self.stages.append(getattr(learner, "stage", ""))
        self.left -= 1
        if self.left == 0:
            raise Interrupted


@pytest.fixture
def _every_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphfcl.experiments.runs.SECONDS_BETWEEN_CHECKPOINTS", 0.0)


@pytest.mark.usefixtures("_every_checkpoint")
def test_a_run_interrupted_at_every_checkpoint_ends_with_the_same_numbers(
    tmp_path: Path, unbroken: tuple[dict[str, Any], Path]
) -> None:
    watcher = Interrupt(at=10**6)
    run(job(), progress=watcher)
    assert {"pre-training", "meta-training", "choosing", "refit", "ready"} <= set(watcher.stages)
    for number, stage in enumerate(watcher.stages):
        progress = Interrupt(1)
        with pytest.raises(Interrupted):
            run(job(), tmp_path, progress=progress, resume=number > 0)
        assert progress.stages == [stage], "it goes on where it was"
        assert not (tmp_path / RESULT_FILE).exists()
    assert numbers(run(job(), tmp_path, resume=True)) == numbers(unbroken[0])


@pytest.mark.usefixtures("_every_checkpoint")
@pytest.mark.parametrize("method", some_first(method.name for method in METHODS if method.name != "hag-meta"))
def test_every_method_goes_on_after_an_interruption(tmp_path: Path, method: str) -> None:
    """One run that is interrupted at the start of each of its stages, and in the middle of each."""
    one = Run(small_stream(), method, SHORT[method])
    watcher = Interrupt(at=10**6)
    expected = numbers(run(one, progress=watcher))
    stages = watcher.stages
    first = "encoder" if method in ("anchor", "anchor-pool", "joint") else "pre-training"  # which these do not have
    trained = "pretraining.epochs" in SHORT[method]
    assert stages
    assert not trained or {first, "pre-trained", "ready"} <= set(stages)
    if "episodes" in SHORT[method]:
        assert {"meta-training", "choosing", "refit"} <= set(stages)
    places = {stages.index(stage) + 1 for stage in stages}
    places |= {stages.index(stage) + 1 + stages.count(stage) // 2 for stage in stages if stages.count(stage) > 2}
    before = 0
    for at in sorted(places):
        progress = Interrupt(at - before)
        with pytest.raises(Interrupted):
            run(one, tmp_path, progress=progress, resume=before > 0)
        assert progress.stages == stages[before:at], "it goes on where it was"
        before = at
    assert numbers(run(one, tmp_path, resume=True)) == expected


@pytest.mark.usefixtures("_every_checkpoint")
@pytest.mark.parametrize("session", [1, 2, 3])
def test_a_run_interrupted_between_sessions_ends_with_the_same_numbers(
    tmp_path: Path, unbroken: tuple[dict[str, Any], Path], session: int
) -> None:
    with pytest.raises(Interrupted):
        run(job(), tmp_path, progress=_AtSession(session))
    _, values = load_checkpoint(tmp_path / CHECKPOINT_FILE)
    assert len(values["confusions"]) == session + 1
    assert numbers(run(job(), tmp_path, resume=True)) == numbers(unbroken[0])


class _AtSession(Progress):
    def __init__(self, session: int) -> None:
        self.session = session

    def step(self, stage: str, step: int, total: int, **_: float | None) -> None:  # noqa: ARG002
        if stage == "sessions" and step == self.session:
            raise Interrupted


def test_resuming_a_finished_run_gives_its_result_again(unbroken: tuple[dict[str, Any], Path]) -> None:
    result, folder = unbroken
    assert numbers(run(job(), folder, resume=True)) == numbers(result)


def test_the_peak_of_an_interrupted_run_is_that_of_all_its_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "peak_memory_mb", lambda: 5000.0)
    with pytest.raises(Interrupted):
        run(job(), tmp_path, progress=_AtSession(1))
    monkeypatch.setattr(runs, "peak_memory_mb", lambda: 400.0)
    assert run(job(), tmp_path, resume=True)["peak_memory_mb"] == 5000.0
    monkeypatch.setattr(runs, "peak_memory_mb", lambda: 6000.0)
    assert run(job(), tmp_path, resume=True)["peak_memory_mb"] == 6000.0


def test_resume_without_a_checkpoint_says_so_and_starts_anew(
    tmp_path: Path, unbroken: tuple[dict[str, Any], Path]
) -> None:
    with pytest.warns(GraphfclWarning, match="no checkpoint"):
        result = run(job(), tmp_path, resume=True)
    assert numbers(result) == numbers(unbroken[0])


def test_an_unfinished_run_is_not_overwritten(tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        run(job(), tmp_path, progress=Interrupt(1))
    before = (tmp_path / CHECKPOINT_FILE).read_bytes()
    with pytest.raises(InputError, match="--resume"):
        run(job(), tmp_path)
    with pytest.raises(InputError, match="--resume"):
        run(job(seed=3), tmp_path)
    assert (tmp_path / CHECKPOINT_FILE).read_bytes() == before


def test_a_folder_of_another_run_is_refused(unbroken: tuple[dict[str, Any], Path]) -> None:
    _, folder = unbroken
    before = (folder / RESULT_FILE).read_bytes()
    with pytest.raises(InputError, match="another run"):
        run(job(seed=1), folder)
    with pytest.raises(InputError, match="another run"):
        run(job(nla=False), folder, resume=True)
    assert (folder / RESULT_FILE).read_bytes() == before


@pytest.mark.parametrize("damage", ["cut", "bit", "not a checkpoint"])
def test_a_damaged_checkpoint_is_refused(tmp_path: Path, unbroken: tuple[dict[str, Any], Path], damage: str) -> None:
    content = bytearray((unbroken[1] / CHECKPOINT_FILE).read_bytes())
    if damage == "cut":
        content = content[: len(content) // 2]
    elif damage == "bit":
        content[-100] ^= 4
    else:
        content = bytearray(b"hello")
    (tmp_path / CHECKPOINT_FILE).write_bytes(content)
    with pytest.raises(InputError, match="damaged"):
        run(job(), tmp_path, resume=True)


def test_names_differ_whenever_runs_do() -> None:
    names = {job().short_name(), job(seed=1).short_name(), job(nla=False).short_name()}
    assert len(names) == 3


def test_a_checkpoint_of_another_protocol_version_is_refused(tmp_path: Path) -> None:
    small = Run(golden_stream("transductive"), "sgc-ridge", SHORT["sgc-ridge"])
    run(small, tmp_path / "out")
    path = tmp_path / "out" / "checkpoint.safetensors"
    state, values = load_checkpoint(path)
    save_checkpoint(path, state, {**values, "identity": {**values["identity"], "protocol_version": 2}})
    (tmp_path / "out" / RESULT_FILE).unlink()
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"is of protocol version 2; .* version 3.*another --out\.$"):
        run(small, tmp_path / "out", resume=True)
    assert path.read_bytes() == before, "nothing was touched"
