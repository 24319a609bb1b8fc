"""Grids on engines, with killed workers and beside local processes; folders that several machines share."""

import errno
import fcntl
import json
import multiprocessing
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from graphfcl import InputError, Tasks, load_grids, run_grid
from graphfcl.experiments import Cell, CellStore, Grid, GridStatus
from graphfcl.experiments import grid as grid_module
from graphfcl.experiments import running as grid_running
from graphfcl.experiments.running import WorkerPlan, take_cells
from graphfcl.runtime.tasks import Backend, Outcome, WorkerLost, Workers, running
from tests.cli.command import assert_one_sentence, graphfcl_inside
from tests.experiments.test_grid import grid_of, table, unbroken
from tests.runtime.tasks.conftest import on_ray
from tests.runtime.tasks.engines import ON_THIS_MACHINE, needs

__all__ = ["on_ray", "unbroken"]  # fixtures


class Killer:
    """Watches a grid, and kills the first worker that has begun a cell."""

    def __init__(self, folder: Path) -> None:
        self.notes, self.killed = folder / "state", 0

    def __call__(self, _: GridStatus) -> None:
        for note in self.notes.glob("*.started.json"):
            if not self.killed:
                self.killed = json.loads(note.read_bytes())["process"]
                os.kill(self.killed, signal.SIGKILL)


@pytest.fixture
def look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid_running, "SECONDS_HERE", 0.02)
    monkeypatch.setattr(running, "LOOK_EVERY", 0.02)


@pytest.mark.long
@pytest.mark.usefixtures("look_often", "on_ray")
def test_a_grid_on_ray_with_a_killed_worker_finds_the_same(tmp_path: Path, unbroken: tuple[Path, Grid]) -> None:
    killer = Killer(tmp_path)
    status = run_grid(grid_of(), tmp_path, jobs=2, tasks=Tasks("ray"), watch=killer)
    assert (status.done, status.failed, status.settled) == (8, 0, True)
    assert killer.killed
    assert table(tmp_path, grid_of()) == table(*unbroken)
    assert not list((tmp_path / "state").glob("*.started.json"))


@pytest.mark.long
@pytest.mark.usefixtures("look_often")
def test_backends_mix_and_go_on_where_another_stopped(
    tmp_path: Path, unbroken: tuple[Path, Grid], on_ray: Workers
) -> None:
    needs("submitit")
    whole = grid_of()
    first, second = (Grid("tiny", "grid", whole.cells[:count]) for count in (3, 6))
    assert run_grid(first, tmp_path, jobs=1).done == 3
    on_jobs = Tasks("submitit", submitit_options=ON_THIS_MACHINE, folder=tmp_path / "state" / "submitit")
    assert run_grid(second, tmp_path, jobs=2, tasks=on_jobs).done == 6
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "cells").iterdir()}
    assert len(before) == 6
    assert run_grid(whole, tmp_path, jobs=2, tasks=on_ray.tasks).done == 8
    assert table(tmp_path, whole) == table(*unbroken)
    assert all((tmp_path / "cells" / name).stat().st_mtime_ns == when for name, when in before.items())


def test_a_cell_that_kills_its_workers_is_given_up_by_the_next(tmp_path: Path) -> None:
    store, (deadly, good) = CellStore(tmp_path), grid_of(seeds=1).cells[:2]
    for _ in range(3):
        store.note_start(deadly, "this call")
    store.note_start(good, "an earlier call")
    assert (store.starts(deadly, "this call"), store.starts(good, "this call")) == (3, 0)
    assert take_cells(WorkerPlan(tmp_path, (deadly, good), "this call", "cpu", None), 0) == 1
    assert "its worker died 3 times" in (store.error(deadly) or "")
    assert store.done(good), "what was begun by another call does not count"
    assert not list((tmp_path / "state").glob("*.started.json"))


class Dying:
    """An engine whose workers die; ``before`` they begin a cell, or in the middle of the first one."""

    threads: int | None = None

    def __init__(self, before: bool) -> None:
        self.before = before

    def submit(self, order: Any) -> Any:
        if not self.before:
            (plan,) = order.function.args
            store = CellStore(plan.folder)
            left = [cell for cell in plan.cells if not store.settled(cell)]
            if left:
                store.note_start(left[0], plan.call)
            else:
                return Outcome(0), object()
        return None, object()

    def wait(self, handles: Sequence[Any], seconds: float) -> Sequence[Any]:  # noqa: ARG002
        return handles

    def outcome(self, handle: Any) -> Outcome:
        if handle[0] is None:
            raise WorkerLost("out of memory.")
        return handle[0]

    def cancel(self, handles: Sequence[Any]) -> None: ...

    def close(self) -> None: ...


def on_dying_workers(monkeypatch: pytest.MonkeyPatch, before: bool) -> Tasks:
    backend = Backend("dying", "workers that die", lambda _: Dying(before))
    monkeypatch.setattr(running, "find_backend", lambda _: backend)
    return Tasks("dying")


def test_workers_that_die_before_they_begin_end_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = on_dying_workers(monkeypatch, before=True)
    with pytest.raises(InputError, match=r"workers die before they begin a cell of .* \(out of memory\): check"):
        run_grid(grid_of(seeds=1), tmp_path, jobs=2, tasks=tasks)
    assert not list((tmp_path / "state").glob("*.failed.json"))


def test_cells_that_kill_their_workers_fail_and_the_grid_comes_to_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = on_dying_workers(monkeypatch, before=False)
    grid = grid_of(seeds=1)
    status = run_grid(grid, tmp_path, jobs=1, tasks=tasks)
    assert (status.done, status.failed) == (0, 4)
    assert all("its worker died 3 times" in (CellStore(tmp_path).error(cell) or "") for cell in grid.cells)


def _save(folder: Path, number: int, ready: Any) -> None:
    """Save a grid of the same name with cells of its own; all read what is there before one of them writes."""
    read = grid_module._read_grid

    def read_and_wait(path: Path) -> Grid:
        actual = read(path)
        time.sleep(0.2)
        return actual

    grid_module._read_grid = read_and_wait
    cells = tuple(Cell("debian", "cec", seed) for seed in range(10 * number, 10 * number + 10))
    grid = Grid("shared", "grid", cells, f"command {number}")
    ready.wait()
    grid.save(folder)


def test_processes_that_save_a_grid_at_once_lose_nothing(tmp_path: Path) -> None:
    count = 4
    Grid("shared", "grid", (Cell("debian", "cec", 99),), "command before").save(tmp_path)
    context = multiprocessing.get_context("fork")
    ready = context.Barrier(count)
    processes = [context.Process(target=_save, args=(tmp_path, number, ready)) for number in range(count)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * count
    (actual,) = load_grids(tmp_path)
    assert sorted(cell.seed for cell in actual.cells) == [*range(10 * count), 99]
    assert sorted(actual.command.splitlines()) == [*(f"command {number}" for number in range(count)), "command before"]


def test_a_grid_on_a_file_system_without_locks_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(InputError, match=r"has no file locks \(Function not implemented\): mount it with"):
        run_grid(grid_of(seeds=1), tmp_path)


TOML = """
graphs = ["synthetic:nodes=400,edges=1600,classes=9,features=80"]
methods = ["proto-gcn"]
seeds = 1
base = 4
pseudo_novel = 2
"""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--backend", "rai"], "did you mean 'ray'"),
        (["--ray-address", "auto"], "an address of Ray is of no use to the backend local"),
        (["--submitit-option", "mem_gb=3"], "options of submitit are of no use"),
        (["--backend", "submitit", "--submitit-option", "mem_gb"], "write it as key=value"),
    ],
)
def test_bad_options_of_an_engine_are_one_sentence(tmp_path: Path, words: list[str], message: str) -> None:
    (tmp_path / "grid.toml").write_text(TOML)
    done = graphfcl_inside("bench", tmp_path / "grid.toml", "--out", tmp_path / "out", "--device", "cpu", *words)
    assert_one_sentence(done, message)
    assert not (tmp_path / "out").exists(), "nothing was written"
