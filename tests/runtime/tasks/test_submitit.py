"""Tasks as jobs of submitit's local executor; options for Slurm."""

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from graphfcl import GraphfclWarning, InputError, Tasks, run_tasks
from graphfcl.runtime.tasks import Workers, running
from graphfcl.runtime.tasks.contract import Package
from graphfcl.runtime.tasks.submitit_backend import options_from
from graphfcl.runtime.tasks.worker import own_package
from tests.runtime.tasks.engines import ON_THIS_MACHINE, needs
from tests.runtime.tasks.samples import dies, products, refuses, square


def on_this_machine(folder: Path, **options: Any) -> Tasks:
    return Tasks("submitit", 2, submitit_options={**ON_THIS_MACHINE, **options}, folder=folder)


@pytest.mark.long
def test_two_jobs_at_a_time_leave_nothing_behind(tmp_path: Path) -> None:
    needs("submitit")
    assert run_tasks(square, [3, 4], on_this_machine(tmp_path / "jobs")) == [9, 16]
    assert list((tmp_path / "jobs").iterdir()) == [], "tasks and results were removed"


@pytest.mark.long
def test_two_workers_change_no_byte_also_if_one_is_killed(on_submitit: Workers, tmp_path: Path) -> None:
    expected = products(tmp_path / "one", Tasks())
    assert products(tmp_path / "killed", on_submitit, killer=3) == expected


@pytest.mark.long
def test_an_error_of_a_task_arrives_and_the_others_are_stopped(on_submitit: Workers) -> None:
    with pytest.raises(InputError) as caught:
        run_tasks(refuses, range(4), on_submitit)
    assert str(caught.value) == "item 1 is bad: fix it."


@pytest.mark.long
def test_workers_with_another_package_refuse(on_submitit: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    own = own_package()
    monkeypatch.setattr(running, "own_package", lambda: Package("9.9.9", own.digest))
    with pytest.raises(InputError, match=rf"has graphfcl {own.version}, but its task comes from 9\.9\.9"):
        run_tasks(square, [1], on_submitit)


@pytest.mark.long
def test_logs_of_a_task_that_is_given_up_are_kept_but_nothing_that_is_pickled(tmp_path: Path) -> None:
    needs("submitit")
    sentence = r"^3 workers of the backend submitit died in the same task.*logs are in .*\.$"
    with pytest.warns(GraphfclWarning, match="logs of jobs"), pytest.raises(InputError, match=sentence):
        run_tasks(dies, [1], on_this_machine(tmp_path / "jobs"))
    (folder,) = (tmp_path / "jobs").iterdir()
    assert list(folder.glob("*.err"))
    assert not list(folder.rglob("*.pkl"))
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wrong_name": 3}, "does not accept these options"),
        ({"timeout_min": "soon"}, "does not accept these options"),
        ({"cluster": "slrum"}, "did you mean 'slurm'"),
    ],
)
def test_wrong_options_are_one_sentence(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    needs("submitit")
    with pytest.raises(InputError, match=message):
        run_tasks(square, [1], on_this_machine(tmp_path / "jobs", **options))
    assert not (tmp_path / "jobs").exists() or not list((tmp_path / "jobs").iterdir())


def test_slurm_where_there_is_none_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("submitit")
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(InputError, match="this machine has no Slurm"):
        run_tasks(square, [1], on_this_machine(tmp_path, cluster="slurm"))


def test_without_the_package_one_sentence_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(InputError, match=r"pip install 'graphfcl\[submitit\]'\.$"):
        run_tasks(square, [1], Tasks("submitit"))


def test_options_are_numbers_where_they_look_like_one() -> None:
    assert options_from(["slurm_partition=long", "timeout_min = 60", "mem_gb=2.5", "slurm_comment=a=b"]) == {
        "slurm_partition": "long",
        "timeout_min": 60,
        "mem_gb": 2.5,
        "slurm_comment": "a=b",
    }
    for text in ("nothing", "=3"):
        with pytest.raises(InputError, match="write it as key=value"):
            options_from([text])
