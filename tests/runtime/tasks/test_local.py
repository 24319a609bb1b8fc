"""Tasks on this machine: in this process, and in others that may be killed."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from graphfcl import InputError, Tasks, run_tasks, start_workers
from graphfcl.runtime.cores import usable_cores
from graphfcl.runtime.tasks import TaskError, Workers, find_backend, running
from graphfcl.runtime.tasks.contract import Package
from graphfcl.runtime.tasks.worker import own_package
from tests.runtime.tasks.samples import dies, has_a_fault, products, refuses, slow_for_the_first, square, threads, where

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def two() -> Iterator[Workers]:
    with start_workers(Tasks(workers=2)) as workers:
        yield workers


def test_one_worker_is_this_process() -> None:
    assert run_tasks(square, range(5)) == [0, 1, 4, 9, 16]
    assert {process for process, _ in run_tasks(where, range(3))} == {os.getpid()}
    assert run_tasks(square, []) == []


def test_results_stand_in_the_order_of_the_items(two: Workers) -> None:
    assert run_tasks(slow_for_the_first, range(6), two) == list(range(6))


def test_two_workers_are_two_processes_with_their_share_of_the_cores(two: Workers) -> None:
    actual = run_tasks(where, range(8), two)
    assert os.getpid() not in {process for process, _ in actual}
    assert {folder for _, folder in actual} == {os.getcwd()}
    share = max(1, usable_cores() // 2)
    assert all(max(counts) <= share for counts in run_tasks(threads, range(4), two))


def test_a_folder_that_workers_do_not_have_does_not_matter(two: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getcwd", lambda: "/nowhere at all")
    assert run_tasks(square, [3], two) == [9]


def test_threads_of_this_process_are_limited_for_the_tasks_alone() -> None:
    before = threads(0)
    assert run_tasks(threads, [0], Tasks(threads=1)) == [{1}]
    assert threads(0) == before


def test_a_killed_worker_costs_nothing_and_changes_no_byte(two: Workers, tmp_path: Path) -> None:
    expected = products(tmp_path / "one", Tasks())
    assert products(tmp_path / "two", two) == expected
    assert products(tmp_path / "killed", two, killer=3) == expected


@pytest.mark.long
def test_a_task_that_kills_its_workers_is_given_up_in_one_sentence(two: Workers) -> None:
    with pytest.raises(InputError, match=r"^3 workers of the backend local died in the same task.*SIGKILL; .*\.$"):
        run_tasks(dies, range(4), two)
    assert run_tasks(square, range(3), two) == [0, 1, 4], "workers are there again"


def test_lost_workers_may_be_judged_by_the_caller(two: Workers) -> None:
    def lost(index: int, error: Exception) -> None:
        raise KeyError(index, str(error))

    with pytest.raises(KeyError, match=r"\(1, 'killed by SIGKILL'\)"):
        run_tasks(dies, range(4), two, lost=lost)


@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_task_says_about_its_input_is_what_is_raised(two: Workers, workers: int) -> None:
    with pytest.raises(InputError) as caught:
        run_tasks(refuses, range(4), two if workers == 2 else Tasks())
    assert str(caught.value) == "item 1 is bad: fix it."


@pytest.mark.parametrize("workers", [1, 2])
def test_a_fault_is_one_sentence_and_shows_where_for_whoever_asks(two: Workers, workers: int) -> None:
    with pytest.raises(TaskError, match=r"a task failed on .* \(ZeroDivisionError: division by zero\)") as caught:
        run_tasks(has_a_fault, range(4), two if workers == 2 else Tasks())
    (note,) = caught.value.__notes__
    assert "samples.py" in note


def test_progress_counts_finished_tasks(two: Workers) -> None:
    for workers in (two, Tasks()):
        counted: list[tuple[int, int]] = []
        run_tasks(square, range(5), workers, progress=lambda *counts, counted=counted: counted.append(counts))
        assert counted[-1] == (5, 5)
        assert counted == sorted(counted)


def test_a_function_that_cannot_travel_is_refused_before_anything_runs() -> None:
    ran = []
    with pytest.raises(TypeError, match="top level of a module"):
        run_tasks(partial(lambda item: ran.append(item), 3), [1])
    assert not ran


def test_workers_with_another_package_refuse(two: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    own = own_package()
    monkeypatch.setattr(running, "own_package", lambda: Package("9.9.9", own.digest))
    with pytest.raises(
        InputError, match=rf"has graphfcl {own.version}, but its task comes from 9\.9\.9: install the same"
    ):
        run_tasks(square, range(3), two)
    monkeypatch.setattr(running, "own_package", lambda: Package(own.version, "0" * 64))
    with pytest.raises(InputError, match="has other files of graphfcl"):
        run_tasks(square, range(3), two)


def test_the_digest_is_of_every_file(tmp_path: Path) -> None:
    """A copy of the package has the same digest, an edited one another."""
    import shutil

    import graphfcl

    copy = tmp_path / "graphfcl"
    shutil.copytree(Path(graphfcl.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    code = "from graphfcl.runtime.source_code import package_digest; print(package_digest())"

    def digest() -> str:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        return subprocess.check_output([sys.executable, "-c", code], env=environment, text=True, cwd=tmp_path).strip()

    assert digest() == own_package().digest
    (copy / "nn" / "inputs.py").write_text((copy / "nn" / "inputs.py").read_text() + "\n")
    assert digest() != own_package().digest


PARENT = """
import sys, time
from graphfcl.runtime.tasks import Tasks, run_tasks
from tests.runtime.tasks.test_local import note_and_sleep
if __name__ == "__main__":
    run_tasks(note_and_sleep, [sys.argv[1]] * 2, Tasks(workers=2))
"""


def note_and_sleep(place: str) -> None:
    with open(place, "a") as file:
        file.write(f"{os.getpid()}\n")
    time.sleep(60)


@pytest.mark.long
def test_workers_end_when_whoever_started_them_is_gone(tmp_path: Path) -> None:
    (tmp_path / "go.py").write_text(PARENT)
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    place = tmp_path / "processes"
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "go.py"), str(place)], env={**os.environ, "PYTHONPATH": path}
    )
    deadline = time.monotonic() + 60
    while not place.exists() or len(place.read_text().split()) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.kill()
    process.wait()
    actual = [int(line) for line in place.read_text().split()]
    while any(Path(f"/proc/{each}").exists() for each in actual):
        assert time.monotonic() < deadline, "a worker lives on"
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, "at least 1"),
        ({"threads": 0}, "at least 1"),
        ({"ray_address": "auto"}, "an address of Ray is of no use to the backend local"),
        ({"submitit_options": {"mem_gb": 4}}, "options of submitit are of no use to the backend local"),
    ],
)
def test_wrong_options_are_one_sentence(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Tasks(**options)  # type: ignore[arg-type]


def test_an_unknown_backend_is_one_sentence() -> None:
    with pytest.raises(InputError, match="there is no backend 'rai': did you mean 'ray'"):
        find_backend("rai")
