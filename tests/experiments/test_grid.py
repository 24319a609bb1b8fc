"""Grids: killed and continued, shared by processes, with failures and damage."""

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphfcl import GraphfclWarning, InputError, load_grids, run_grid
from graphfcl.experiments import Cell, CellStore, Grid, read_cell
from graphfcl.experiments.paper_grids import table2
from tests.methods.test_checks import GRAPH
from tests.warm import run_warm

RULES = {"base": 4, "pseudo_novel": 3, "way": 1, "shot": 5}
ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
OTHER = GRAPH.replace("nodes=700", "nodes=600")
# One fork server for all grids of a test process, so that not every worker imports torch; scripts below spawn theirs.
WARM = "forkserver"


def grid_of(seeds: int = 2, **settings: Any) -> Grid:
    """2 datasets × 2 methods × seeds."""
    quick = {
        "proto-gcn": {"pretraining.epochs": 3, **settings},
        "finetune": {"pretraining.epochs": 3, "fine_tuning": [[2, 0.001]], **settings},
    }
    cells = [
        Cell(dataset, method, seed, rules=RULES, settings=quick[method])
        for seed in range(seeds)
        for method in quick
        for dataset in (GRAPH, OTHER)
    ]
    return Grid("tiny", "grid", tuple(cells), "graphfcl bench tiny.toml")


def table(folder: Path, grid: Grid) -> dict[str, Any]:
    """What the cells say, without time and memory."""
    store = CellStore(folder)
    actual = {}
    for cell in grid.cells:
        result = store.read(cell)
        assert result is not None, store.error(cell)
        actual[cell.key] = (result["confusion_matrices"], result["chosen"], result["average"])
    return actual


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Grid]:
    folder, grid = tmp_path_factory.mktemp("grid"), grid_of()
    status = run_grid(grid, folder, jobs=1, start_method=WARM)
    assert (status.done, status.failed) == (8, 0)
    return folder, grid


SLOW = """
import time
from pathlib import Path
from graphfcl.experiments import run_grid, running
from tests.experiments.test_grid import grid_of
plain = running.run_and_store
def slowly(*arguments):
    plain(*arguments)
    time.sleep(1)  # so that it can be killed in the middle
running.run_and_store = slowly  # a spawned worker imports the script as its main module, so the hook is there too
if __name__ == "__main__":
    run_grid(grid_of(), Path({folder!r}), jobs=1)
"""


def start(folder: Path, script: Path) -> subprocess.Popen[bytes]:
    script.write_text(SLOW.format(folder=str(folder)))
    return subprocess.Popen([sys.executable, str(script)], cwd=ROOT, env=ENVIRONMENT, start_new_session=True)


@pytest.mark.long
def test_killed_in_the_middle_and_continued_it_gives_the_same_table(
    tmp_path: Path, unbroken: tuple[Path, Grid]
) -> None:
    process = start(tmp_path / "grid", tmp_path / "go.py")
    cells = tmp_path / "grid" / "cells"
    deadline = time.monotonic() + 120
    while not cells.exists() or len(list(cells.glob("*.parquet"))) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    finished = {path.name: path.stat().st_mtime_ns for path in cells.glob("*.parquet")}
    assert 3 <= len(finished) < 8
    status = run_grid(grid_of(), tmp_path / "grid", jobs=1, start_method=WARM)
    assert (status.done, status.failed) == (8, 0)
    assert table(tmp_path / "grid", grid_of()) == table(*unbroken)
    assert all((cells / name).stat().st_mtime_ns == when for name, when in finished.items()), "done is done"


TWO = """
import sys
from multiprocessing import get_context
from pathlib import Path
from graphfcl.experiments import run_grid, running
from tests.experiments.test_grid import grid_of
plain = running.run_cell
def noted(cell, **options):
    with open({watcher!r}, "a") as file:
        file.write(cell.key + "\\n")
    return plain(cell, **options)
running.run_cell = noted
if __name__ == "__main__":
    words = (grid_of(), Path({folder!r}))
    options = {{"jobs": 1, "start_method": "fork", "threads": 1}}
    processes = [get_context("fork").Process(target=run_grid, args=words, kwargs=options) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    sys.exit(max(abs(process.exitcode) for process in processes))
"""


def test_two_processes_never_run_a_cell_twice(tmp_path: Path, unbroken: tuple[Path, Grid]) -> None:
    watcher, script = tmp_path / "ran", tmp_path / "two.py"
    script.write_text(TWO.format(watcher=str(watcher), folder=str(tmp_path / "grid")))
    done = run_warm(script, cwd=ROOT, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    ran = watcher.read_text().split()
    assert sorted(ran) == sorted(cell.key for cell in unbroken[1].cells)


STARTED = """
from pathlib import Path
from graphfcl.experiments import Grid, run_grid
from graphfcl.experiments import running
from tests.experiments.test_grid import grid_of
if __name__ == "__main__":
    grid = Grid("tiny", "grid", grid_of(seeds=1).cells[:2])
    status = run_grid(grid, Path({folder!r}), jobs=2, start_method={start_method!r})
    assert (status.done, status.failed) == (2, 0), status
"""


def test_processes_may_be_forked(tmp_path: Path, unbroken: tuple[Path, Grid]) -> None:
    """Spawned ones are in the test above, a fork server in the others; ``tests/outside`` tries all three."""
    script, folder = tmp_path / "go.py", tmp_path / "grid"
    script.write_text(STARTED.format(folder=str(folder), start_method="fork"))
    done = run_warm(script, cwd=ROOT, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    grid = Grid("tiny", "grid", unbroken[1].cells[:2])
    expected = table(*unbroken)
    assert table(folder, grid) == {cell.key: expected[cell.key] for cell in grid.cells}


@pytest.mark.long
def test_processes_end_when_whoever_started_them_is_gone(tmp_path: Path) -> None:
    """Also with a fork server, which is their parent as the system sees it."""
    script = tmp_path / "go.py"
    text = STARTED.format(folder=str(tmp_path / "grid"), start_method="forkserver")
    hook = """
import os, time
def slow(store, cell, plan):
    open({place!r}, "a").write(f"{{os.getpid()}}\\n")
    time.sleep(2)
running.run_and_store = slow
if __name__"""
    script.write_text(text.replace("if __name__", hook.format(place=str(tmp_path / "pids")), 1))
    process = subprocess.Popen([sys.executable, str(script)], cwd=ROOT, env=ENVIRONMENT)
    deadline = time.monotonic() + 120
    while not (tmp_path / "pids").exists():
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)
    process.kill()
    process.wait()
    pids = {int(line) for line in (tmp_path / "pids").read_text().split()}
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < deadline, "a worker lives on"
        time.sleep(0.1)


def test_an_unknown_way_to_start_processes_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'forkserver'"):
        run_grid(grid_of(seeds=1), tmp_path, start_method="fork-server")
    with pytest.raises(InputError, match="cannot use a GPU"):
        run_grid(grid_of(seeds=1), tmp_path, start_method="fork", device="cuda")


def test_the_source_of_a_method_is_part_of_a_cell_only_where_there_is_one() -> None:
    cell = Cell("debian", "cec", 3, "mine", {"way": 2}, {"size": 8})
    assert cell.key == "6396c10a2d153e112a02"
    names = ["dataset", "method", "seed", "variant", "rules", "settings", "embed", "protocol_version"]
    assert list(cell.as_json()) == names
    assert replace(cell, protocol_version=2).key != cell.key
    foreign = replace(cell, source="abc")
    assert foreign.key != cell.key
    assert foreign.key != replace(cell, source="abd").key
    assert foreign.as_json() == {**cell.as_json(), "source": "abc"}
    assert Cell(**foreign.as_json()) == foreign
    assert Cell(**cell.as_json()) == cell


def test_a_cell_that_fails_does_not_stop_the_rest(tmp_path: Path) -> None:
    good, bad = grid_of(seeds=1).cells[0], Cell(GRAPH, "proto-gcn", 0, rules={**RULES, "base": 900})
    grid = Grid("mixed", "grid", (bad, good))
    status = run_grid(grid, tmp_path, jobs=1, start_method=WARM)
    assert (status.done, status.failed) == (1, 1)
    store = CellStore(tmp_path)
    assert "900" in (store.error(bad) or "")
    begun = time.monotonic()
    assert run_grid(grid, tmp_path, jobs=1).failed == 1
    assert time.monotonic() - begun < 2, "a failed cell is not tried again by itself"
    store.forget_failures(grid.cells)
    assert store.error(bad) is None


@pytest.mark.parametrize("damage", ["cut", "bit", "no parquet"])
def test_a_damaged_cell_is_set_aside_and_runs_again(tmp_path: Path, unbroken: tuple[Path, Grid], damage: str) -> None:
    grid = Grid("one", "grid", unbroken[1].cells[:1])
    store, cell = CellStore(tmp_path), grid.cells[0]
    good = CellStore(unbroken[0]).path(cell).read_bytes()
    content = bytearray(good)
    if damage == "cut":
        content = content[: len(content) // 2]
    elif damage == "bit":
        content[-20] ^= 8  # in the footer
    else:
        content = bytearray(b"hello")
    store.cells.mkdir()
    store.path(cell).write_bytes(content)
    with pytest.warns(GraphfclWarning, match="set aside"):
        assert run_grid(grid, tmp_path, jobs=1, start_method=WARM).done == 1
    assert table(tmp_path, grid) == {cell.key: table(*unbroken)[cell.key]}
    assert store.note(cell, "damaged").exists()


def test_every_byte_of_a_cell_is_guarded(tmp_path: Path, unbroken: tuple[Path, Grid]) -> None:
    """A flipped bit anywhere is noticed, or changes nothing that is read."""
    path = CellStore(unbroken[0]).path(unbroken[1].cells[0])
    good, expected = path.read_bytes(), read_cell(path)
    for place in range(0, len(good), max(1, len(good) // 150)):
        content = bytearray(good)
        content[place] ^= 1 << (place % 8)
        (tmp_path / "cell").write_bytes(content)
        assert read_cell(tmp_path / "cell") in (None, expected)


def test_the_folder_is_one_table(unbroken: tuple[Path, Grid]) -> None:
    import pyarrow.parquet as pq

    actual = pq.read_table(unbroken[0] / "cells")
    assert actual.num_rows == 8 * 4
    assert set(actual["method"].to_pylist()) == {"proto-gcn", "finetune"}
    assert all(0 <= value <= 1 for value in actual["balanced_accuracy"].to_pylist())
    assert actual["novel"].null_count == 8, "there is no novel class at session 0"


def test_a_packed_folder_has_one_file_per_grid(tmp_path: Path, unbroken: tuple[Path, Grid]) -> None:
    import pyarrow.parquet as pq

    folder, grid = tmp_path / "packed", unbroken[1]
    shutil.copytree(unbroken[0], folder)
    expected, rows = table(*unbroken), pq.read_table(folder / "cells").num_rows
    CellStore(folder).pack()
    pack = folder / "grids" / f"{grid.name}.parquet"
    assert sorted(folder.glob("*/*.parquet")) == [pack]
    assert pq.read_table(pack).num_rows == rows
    assert table(folder, grid) == expected
    before = pack.read_bytes()
    CellStore(folder).pack()
    assert pack.read_bytes() == before, "packing again changes nothing"
    assert run_grid(grid, folder, jobs=1, start_method=WARM).done == len(grid.cells), "a run unpacks it"
    assert not pack.exists()
    assert table(folder, grid) == expected


def test_a_damaged_pack_and_an_unfinished_grid_are_refused(tmp_path: Path, unbroken: tuple[Path, Grid]) -> None:
    folder, grid = tmp_path / "packed", unbroken[1]
    shutil.copytree(unbroken[0], folder)
    store = CellStore(folder)
    store.path(grid.cells[0]).unlink()
    with pytest.raises(InputError, match=r"1 cells of .* have no result: finish its grids first"):
        store.pack()
    assert store.done(grid.cells[1]), "nothing was packed"
    shutil.copy(CellStore(unbroken[0]).path(grid.cells[0]), store.path(grid.cells[0]))
    store.pack()
    pack = folder / "grids" / f"{grid.name}.parquet"
    content = bytearray(pack.read_bytes())
    content[len(content) // 2] ^= 1
    pack.write_bytes(content)
    with pytest.raises(InputError, match="is damaged: restore it from a copy"):
        CellStore(folder).read(grid.cells[0])


def test_a_grid_that_grows_keeps_what_it_had(tmp_path: Path) -> None:
    first, second = table2(["debian"], ["cec"], 3, ["strict"], {}), table2(["wordnet"], ["cec"], 2, ["strict"], {})
    Grid("table2", "table2", first.cells, "one").save(tmp_path)
    Grid("table2", "table2", second.cells, "two").save(tmp_path)
    Grid("table2", "table2", first.cells[:1], "one").save(tmp_path)
    (actual,) = load_grids(tmp_path)
    assert {cell.key for cell in actual.cells} == {cell.key for cell in (*first.cells, *second.cells)}
    assert actual.command.splitlines() == ["one", "two"]
    with pytest.raises(InputError, match="another name"):
        Grid("table2", "grid", first.cells).save(tmp_path)


@pytest.mark.long
def test_a_cell_whose_process_dies_again_and_again_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deadly, good = grid_of(seeds=1).cells[:2]
    monkeypatch.setattr("graphfcl.experiments.running.take_cells", DiesOf(deadly.key))
    status = run_grid(Grid("deadly", "grid", (deadly, good)), tmp_path, jobs=1, start_method=WARM)
    assert (status.done, status.failed) == (1, 1)
    assert "died 3 times" in (CellStore(tmp_path).error(deadly) or "")


def test_processes_that_cannot_work_end_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphfcl.experiments.running.take_cells", _die_at_once)
    with pytest.raises(InputError, match=r"workers die before they begin a cell of .* \(exit code 1\): check"):
        run_grid(grid_of(seeds=1), tmp_path, jobs=1, start_method=WARM)


def _die_at_once(*_: object) -> None:
    os._exit(1)


class DiesOf:
    """A worker that is killed while it runs one of the cells."""

    def __init__(self, key: str) -> None:
        self.key = key

    def __call__(self, plan: Any, number: int) -> int:
        from graphfcl.experiments import running

        plain = running.run_and_store

        def run_or_die(store: CellStore, cell: Cell, plan: Any) -> None:
            if cell.key == self.key:
                os.kill(os.getpid(), signal.SIGKILL)
            plain(store, cell, plan)

        running.run_and_store = run_or_die
        return running.take_cells(plan, number)


def test_grids_are_remembered(unbroken: tuple[Path, Grid], tmp_path: Path) -> None:
    (actual,) = load_grids(unbroken[0])
    assert actual == unbroken[1]
    with pytest.raises(InputError, match="has no grid"):
        load_grids(tmp_path)
    (tmp_path / "grids").mkdir()
    (tmp_path / "grids" / "x.json").write_text("{")
    with pytest.raises(InputError, match="damaged"):
        load_grids(tmp_path)
