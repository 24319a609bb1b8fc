"""Cells of a graph that was edited after they had run."""

import warnings
from pathlib import Path

import pytest

from graphfcl import GraphfclWarning, build_graph, load_dataset, run_grid, write_tables
from graphfcl.experiments import Cell, CellStore, Grid, grid_from_toml, run_cell
from tests.cli.command import graphfcl
from tests.experiments.test_grid import WARM
from tests.methods.test_checks import GRAPH

RULES = {"base": 3, "pseudo_novel": 3, "way": 1, "shot": 3, "sessions": 1}
QUICK = {"pretraining.epochs": 3}


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    made, _ = load_dataset("synthetic:nodes=300,edges=1200,classes=8,features=60,signal=0.8,skew=0.2")
    dense = build_graph(made.adjacency, made.features.toarray(), made.labels, class_names=made.class_names)
    write_tables(dense, folder, suffix="csv")
    return folder


def edit(dataset: Path) -> None:
    """Give the first node the label of another class."""
    path = dataset / "nodes.csv"
    head, first, *others = path.read_text().splitlines(keepends=True)
    node, label, *features = first.split(",")
    other = next(line.split(",")[1] for line in others if line.split(",")[1] != label)
    path.write_text("".join([head, ",".join([node, other, *features]), *others]))


def cells_of(dataset: object, seeds: int) -> tuple[Cell, ...]:
    return tuple(Cell(str(dataset), "proto-gcn", seed, rules=RULES, settings=QUICK) for seed in range(seeds))


def fill(folder: Path, grid: Grid) -> CellStore:
    """As :func:`run_grid` does, without a process of its own."""
    store = CellStore(folder)
    grid.save(folder)
    for cell in grid.cells:
        store.save(cell, run_cell(cell, device="cpu", encoders=folder / "encoders", data_dir=None))
    return store


def graph_of(store: CellStore, cell: Cell) -> str:
    result = store.read(cell)
    assert result is not None
    return str(result["graph_sha256"])


def test_cells_of_an_edited_graph_run_again(tmp_path: Path, dataset: Path) -> None:
    mine, other = cells_of(dataset, 2), cells_of(GRAPH, 1)
    grid = Grid("both", "grid", (*mine, *other))
    store = fill(tmp_path, grid)
    before = graph_of(store, mine[0])
    kept = store.path(other[0]).stat().st_mtime_ns
    edit(dataset)
    # A grid with one of the two cells is asked for: the other one must not stay beside it as it is.
    with pytest.warns(GraphfclWarning, match=r"mine has changed: the earlier results of 2 cells were set aside"):
        status = run_grid(Grid("one", "grid", (mine[0], *other)), tmp_path, start_method=WARM)
    assert (status.done, status.failed) == (2, 0)
    assert graph_of(store, mine[0]) != before
    assert not store.done(mine[1])
    assert store.path(other[0]).stat().st_mtime_ns == kept, "another dataset's cell is left alone"
    assert {path.name for path in store.notes.glob("*.outdated")} == {f"{cell.key}.outdated" for cell in mine}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run_grid(grid, tmp_path, start_method=WARM).done == 3
    assert graph_of(store, mine[1]) == graph_of(store, mine[0])


def test_a_graph_is_loaded_only_where_that_tells_something(
    tmp_path: Path, dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = Grid("one", "grid", cells_of(dataset, 1))
    store = fill(tmp_path / "out", grid)
    with monkeypatch.context() as patch:
        patch.setattr("graphfcl.experiments.running.load_dataset", None)
        known = {str(dataset): graph_of(store, grid.cells[0])}
        assert run_grid(grid, tmp_path / "out", graphs=known).done == 1, "the caller knows it"
        CellStore(tmp_path / "new").fail(grid.cells[0], "it failed")
        assert run_grid(grid, tmp_path / "new").failed == 1, "there is no result of it"
    dataset.rename(tmp_path / "elsewhere")
    assert run_grid(grid, tmp_path / "out").done == 1, "a graph that is gone has not changed"


def test_what_another_process_has_run_again_stays(tmp_path: Path, dataset: Path) -> None:
    (cell,) = cells_of(dataset, 1)
    store = fill(tmp_path, Grid("one", "grid", (cell,)))
    assert not store.set_outdated_aside(cell, graph_of(store, cell))
    with store.claim(cell):
        assert not CellStore(tmp_path).set_outdated_aside(cell, "another"), "somebody is running it"
    assert store.set_outdated_aside(cell, "another")
    assert not store.set_outdated_aside(cell, "another"), "there is nothing left"


@pytest.mark.long
def test_bench_says_so(tmp_path: Path, dataset: Path) -> None:
    path = tmp_path / "one.toml"
    path.write_text(
        f'graphs = ["{dataset}"]\nseeds = 1\nways = [1]\nshots = [3]\nsessions = 1\n'
        '[[variants]]\nname = "quick"\nmethod = "proto-gcn"\nsettings = {"pretraining.epochs" = 3}\n'
    )
    fill(tmp_path / "out", grid_from_toml(path))
    edit(dataset)
    done = graphfcl("bench", path, "--out", tmp_path / "out", "--device", "cpu")
    assert done.code == 0
    assert "1 cells done, 0 failed" in done.out
    notes = [line for line in done.err.splitlines() if "has changed" in line]
    assert len(notes) == 1
    assert notes[0].startswith(f"note: {dataset} has changed: the earlier results of 1 cell were set")
