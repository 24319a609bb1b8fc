"""What may be used to compute on a graph folder: bytes for tasks and for rows, and workers that are started once."""

import os
import re
from pathlib import Path

import pytest

from graphfcl.byte_sizes import bytes_from
from graphfcl.errors import InputError
from graphfcl.graph.visible_folder import Means
from graphfcl.tasks import Tasks, run_tasks


def process_of(_: int) -> int:
    return os.getpid()


@pytest.mark.parametrize("workers", [1, 3])
def test_needed_is_enough_and_less_is_not(tmp_path: Path, workers: int) -> None:
    tasks = Tasks(workers=workers)
    needed = Means(tmp_path, 0, tasks).needed_for(10**9, 1000)
    Means(tmp_path, needed, tasks).require_for_task(10**9, 1000, "a block")
    with pytest.raises(InputError, match=r"is too small: a block .*need"):
        Means(tmp_path, needed - 10, tasks).require_for_task(10**9, 1000, "a block")


def test_rows_held_beside_waiting_workers_are_counted(tmp_path: Path) -> None:
    found = []
    for workers in (1, 2):
        tasks = Tasks(workers=workers)
        with pytest.raises(InputError, match=r"--memory 1MB is too small: the head's training needs") as told:
            Means(tmp_path, 1 << 20, tasks).require_here(10**9, 1000, "the head's training")
        found.append(bytes_from(re.findall(r"needs ([\d.]+GB); give", str(told.value))[0], "--memory"))
        Means(tmp_path, found[-1], tasks).require_here(10**9, 1000, "the head's training")
    assert found[1] > found[0]


def test_workers_are_started_once(tmp_path: Path) -> None:
    with Means(tmp_path, 1 << 30, Tasks(workers=2, threads=1)).at_work() as means:
        assert means.workers == 2
        first = set(run_tasks(process_of, range(4), means.tasks))
        second = set(run_tasks(process_of, range(4), means.tasks))
        with means.at_work() as inside:
            third = set(run_tasks(process_of, range(4), inside.tasks))
    assert os.getpid() not in first
    assert len(first | second | third) <= 2
