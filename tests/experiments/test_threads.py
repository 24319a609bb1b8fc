"""How many threads the processes of a grid start."""

import json
from collections.abc import Iterator
from multiprocessing.forkserver import _forkserver
from pathlib import Path
from typing import Any

import pytest

from graphfcl import InputError, run_grid
from graphfcl.experiments import Cell, CellStore, Grid, running
from graphfcl.runtime.cores import usable_cores
from tests.methods.test_checks import GRAPH

THREADS_OF_USERS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "GOTO_NUM_THREADS")
needs_two_cores = pytest.mark.skipif(usable_cores() < 2, reason="with one core every library starts one thread anyway")


class WritesThreads:
    """A process of a grid that writes how many threads its libraries start, instead of running its cell."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __call__(self, plan: running.WorkerPlan, number: int) -> int:
        running.run_and_store = self.write_threads
        return running.take_cells(plan, number)

    def write_threads(self, store: CellStore, cell: Cell, plan: running.WorkerPlan) -> None:  # noqa: ARG002
        import pyarrow.parquet
        import sklearn.manifold
        import torch
        from threadpoolctl import threadpool_info

        assert [pyarrow.parquet, sklearn.manifold], "all that a cell may load"
        actual = {
            "torch": torch.get_num_threads(),
            "between": torch.get_num_interop_threads(),
            "pools": [(pool["prefix"], pool["user_api"], pool["num_threads"]) for pool in threadpool_info()],
        }
        self.place.write_text(json.dumps(actual))
        store.fail(cell, "it only looked")


@pytest.fixture
def _own_fork_server() -> Iterator[None]:
    """A fork server keeps the environment it was started in: none of before may serve, and none of here later."""
    _forkserver._stop()  # type: ignore[attr-defined]
    yield
    _forkserver._stop()  # type: ignore[attr-defined]


@pytest.fixture
def threads_of_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a grid of one cell in a process of its own, and returns what it wrote."""
    monkeypatch.setattr(running, "take_cells", WritesThreads(tmp_path / "threads.json"))
    for name in THREADS_OF_USERS:
        monkeypatch.delenv(name, raising=False)

    def tell(**options: Any) -> dict[str, Any]:
        status = run_grid(Grid("one", "grid", (Cell(GRAPH, "proto-gcn", 0),)), tmp_path / "grid", **options)
        assert status.failed == 1
        return json.loads((tmp_path / "threads.json").read_text())

    return tell


@needs_two_cores
@pytest.mark.usefixtures("_own_fork_server")
@pytest.mark.parametrize("start_method", [pytest.param("spawn", marks=pytest.mark.long), "forkserver"])
def test_no_library_starts_more_threads_than_the_limit(threads_of_a_process: Any, start_method: str) -> None:
    actual = threads_of_a_process(threads=1, start_method=start_method)
    assert actual["torch"] == actual["between"] == 1
    assert {api for _, api, _ in actual["pools"]} == {"blas", "openmp"}, "both kinds are loaded"
    assert {count for _, _, count in actual["pools"]} == {1}, actual["pools"]


@pytest.mark.long
@needs_two_cores
def test_what_the_environment_allows_is_not_raised(threads_of_a_process: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    actual = threads_of_a_process(threads=2)
    assert actual["torch"] == 1
    assert {count for _, _, count in actual["pools"]} == {1}, actual["pools"]


@pytest.mark.long
@needs_two_cores
def test_one_library_s_limit_in_the_environment_is_its_own(
    threads_of_a_process: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    actual = threads_of_a_process(threads=2)
    assert actual["torch"] == 2
    # That of NumPy and SciPy. Torch for ARM has an OpenBLAS of its own, with as many threads as torch.
    assert {count for prefix, _, count in actual["pools"] if prefix == "libscipy_openblas"} == {1}, actual["pools"]


@pytest.mark.long
def test_processes_share_the_usable_cores(threads_of_a_process: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "usable_cores", lambda: 7)
    assert threads_of_a_process(jobs=3)["torch"] == 2


@pytest.mark.parametrize(("cores", "jobs", "expected"), [(16, 14, 1), (16, 4, 4), (2, 8, 1), (1, 1, 1)])
def test_a_share_is_at_least_one_thread(monkeypatch: pytest.MonkeyPatch, cores: int, jobs: int, expected: int) -> None:
    monkeypatch.setattr(running, "usable_cores", lambda: cores)
    assert running._threads_of_each(None, jobs) == expected


def test_no_threads_at_all_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least 1"):
        run_grid(Grid("none", "grid", ()), tmp_path, threads=0)
