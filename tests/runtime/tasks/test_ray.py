"""Tasks on a real Ray of two workers; addresses at which there is none."""

import os
import socket
import sys
from pathlib import Path

import pytest

from graphfcl import InputError, Tasks, run_tasks
from graphfcl.runtime.tasks import TaskError, Workers, running
from graphfcl.runtime.tasks.contract import Package
from graphfcl.runtime.tasks.ray_backend import _threads
from graphfcl.runtime.tasks.worker import own_package
from tests.runtime.tasks.engines import needs
from tests.runtime.tasks.samples import dies, has_a_fault, products, refuses, square, threads, where


@pytest.mark.long
def test_two_workers_change_no_byte_also_if_one_is_killed(on_ray: Workers, tmp_path: Path) -> None:
    expected = products(tmp_path / "one", Tasks())
    assert products(tmp_path / "killed", on_ray, killer=3) == expected


@pytest.mark.long
def test_workers_are_other_processes_with_their_share_of_the_cores(on_ray: Workers) -> None:
    assert os.getpid() not in {process for process, _ in run_tasks(where, range(8), on_ray)}
    assert on_ray.engine.threads is not None
    assert all(max(counts) <= on_ray.engine.threads for counts in run_tasks(threads, range(4), on_ray))


@pytest.mark.long
def test_errors_of_tasks_arrive(on_ray: Workers) -> None:
    with pytest.raises(InputError) as caught:
        run_tasks(refuses, range(4), on_ray)
    assert str(caught.value) == "item 1 is bad: fix it."
    with pytest.raises(TaskError, match="ZeroDivisionError"):
        run_tasks(has_a_fault, range(4), on_ray)
    assert run_tasks(square, range(3), on_ray) == [0, 1, 4]


@pytest.mark.long
def test_workers_with_another_package_refuse(on_ray: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    own = own_package()
    monkeypatch.setattr(running, "own_package", lambda: Package("9.9.9", own.digest))
    with pytest.raises(InputError, match=rf"has graphfcl {own.version}, but its task comes from 9\.9\.9"):
        run_tasks(square, range(3), on_ray)


@pytest.mark.long
def test_a_task_that_kills_its_workers_is_given_up_in_one_sentence(on_ray: Workers) -> None:
    with pytest.raises(InputError, match=r"^3 workers of the backend ray died in the same task.*WorkerCrashed.*\.$"):
        run_tasks(dies, range(4), on_ray)
    assert run_tasks(square, range(3), on_ray) == [0, 1, 4]


@pytest.fixture
def no_ray_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another Ray may run for other tests of this process: let it look as if there was none."""
    needs("ray")
    import ray

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)


@pytest.mark.usefixtures("no_ray_yet")
def test_a_closed_port_is_one_sentence() -> None:
    with socket.socket() as server:  # bound, but nothing listens
        server.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{server.getsockname()[1]}"
        for prefix in ("", "ray://"):
            with pytest.raises(
                InputError, match=rf"^there is no Ray at {prefix}{address} \(Connection refused\): start"
            ):
                run_tasks(square, [1], Tasks("ray", ray_address=prefix + address))


@pytest.mark.usefixtures("no_ray_yet")
def test_an_address_that_is_none_is_one_sentence() -> None:
    for address in ("nonsense", "no such host:6379", "localhost:99999999"):
        with pytest.raises(InputError, match=f"there is no Ray at {address}"):
            run_tasks(square, [1], Tasks("ray", ray_address=address))


def test_without_the_package_one_sentence_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"pip install 'graphfcl\[ray\]'\.$"):
        run_tasks(square, [1], Tasks("ray"))


@pytest.mark.parametrize(
    ("workers", "threads", "nodes", "expected"),
    [(2, None, [8], 4), (3, None, [8], 2), (16, None, [8], 1), (2, None, [4, 4, 4], 4), (2, 3, [1, 4], 3)],
)
def test_cores_of_a_worker(workers: int, threads: int | None, nodes: list[int], expected: int) -> None:
    assert _threads(Tasks("ray", workers, threads=threads), nodes) == expected


def test_more_cores_than_any_node_has_are_refused_rather_than_waited_for() -> None:
    with pytest.raises(InputError, match="no node of Ray has 8 cores for a worker, the largest has 4"):
        _threads(Tasks("ray", threads=8), [2, 4])
    with pytest.raises(InputError, match="no node with a core"):
        _threads(Tasks("ray"), [0])
