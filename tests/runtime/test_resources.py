"""What may be used to compute on a graph folder: bytes for tasks and for rows, and workers that are started once."""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from graphfcl import InputError, Resources, Tasks, run_tasks
from graphfcl.runtime import resources
from graphfcl.runtime.memory import parse_bytes
from graphfcl.runtime.resources import Need


def process_of(_: int) -> int:
    return os.getpid()


@pytest.mark.parametrize("workers", [1, 3])
def test_needed_is_enough_and_less_is_not(tmp_path: Path, workers: int) -> None:
    tasks = Tasks(workers=workers)
    needed = Resources(tmp_path, 0, tasks).needed_for(10**9, 1000)
    Resources(tmp_path, needed, tasks).require(1000, Need(10**9, "a block"))
    with pytest.raises(InputError, match=r"is too small: a block .*need"):
        Resources(tmp_path, needed - 10, tasks).require(1000, Need(10**9, "a block"))


@pytest.mark.parametrize(
    ("elsewhere", "shared"),
    [
        (Tasks("ray", 4), True),
        (Tasks("submitit", 4, submitit_options={"cluster": "local"}), True),
        (Tasks("ray", 4, ray_address="10.0.0.1:6379"), False),
        (Tasks("submitit", 4, submitit_options={"cluster": "slurm"}), False),
    ],
)
def test_workers_of_this_machine_share_its_memory_whoever_starts_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elsewhere: Tasks, shared: bool
) -> None:
    monkeypatch.setattr(resources, "process_bytes", lambda: 300 << 20)
    of_task = Resources(tmp_path, 4 << 30, elsewhere).bytes_of_task(1000)
    local = Resources(tmp_path, 4 << 30, Tasks(workers=4)).bytes_of_task(1000)
    assert of_task == (local if shared else (4 << 30) - (300 << 20))
    alone = Resources(tmp_path, 0, replace(elsewhere, workers=1))
    held = alone.needed_for(10**8, 1000)
    assert held >= 10**8 + (300 << 20) * (2 if shared else 1), "a worker elsewhere is never this process"
    replace(alone, memory=held).require(1000, Need(10**8, "a block"))
    with pytest.raises(InputError, match="a block"):
        replace(alone, memory=held - 10).require(1000, Need(10**8, "a block"))


def test_rows_held_beside_waiting_workers_are_counted(tmp_path: Path) -> None:
    actual = []
    for workers in (1, 2):
        tasks = Tasks(workers=workers)
        with pytest.raises(InputError, match=r"--memory 1MB is too small: the head's training needs") as refused:
            Resources(tmp_path, 1 << 20, tasks).require(1000, Need(10**9, "the head's training", here=True))
        actual.append(parse_bytes(re.findall(r"needs ([\d.]+GB); give", str(refused.value))[0], "--memory"))
        Resources(tmp_path, actual[-1], tasks).require(1000, Need(10**9, "the head's training", here=True))
    assert actual[1] > actual[0]


@pytest.mark.parametrize("workers", [1, 2])
def test_the_limit_that_is_named_is_enough_for_a_process_that_is_a_little_larger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    tasks, needs = (
        Tasks(workers=workers),
        [Need(10**6, "a block"), Need(10**8, "a slice"), Need(10**7, "rows", here=True)],
    )
    monkeypatch.setattr(resources, "process_bytes", lambda: 300 << 20)
    with pytest.raises(InputError, match="a slice") as refused:
        Resources(tmp_path, 1 << 20, tasks).require(1000, *needs)
    named = parse_bytes(re.findall(r"needs ([\d.]+[MG]B); give", str(refused.value))[0], "--memory")
    monkeypatch.setattr(resources, "process_bytes", lambda: 303 << 20)
    Resources(tmp_path, named, tasks).require(1000, *needs)


@pytest.mark.long
def test_workers_are_started_once(tmp_path: Path) -> None:
    with Resources(tmp_path, 1 << 30, Tasks(workers=2, threads=1)).at_work() as means:
        assert means.workers == 2
        first = set(run_tasks(process_of, range(4), means.tasks))
        second = set(run_tasks(process_of, range(4), means.tasks))
        with means.at_work() as inside:
            third = set(run_tasks(process_of, range(4), inside.tasks))
    assert os.getpid() not in first
    assert len(first | second | third) <= 2
