"""Grids of independent cells, stored beside the results of their cells."""

import json
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from graphfcl.active import find_strategy
from graphfcl.errors import InputError
from graphfcl.experiments.cells import OTHER_FOLDER, Cell
from graphfcl.experiments.store import grids_locked
from graphfcl.methods import find_method
from graphfcl.runtime.files import read_bytes, write_bytes
from graphfcl.stream import refuse_other_version


@dataclass(frozen=True)
class Grid:
    """Cells that belong together, and how a report shows them.

    Args:
        name: Name of the grid and of its file in the folder of results.
        kind: Kind of table that a report shows: table2, table3, sweep, shots, embed, active or grid.
        cells: Runs of the grid. A cell with a method or strategy from outside the package gets the hash of its code.
        command: Command that made the grid, for the report.
    """

    name: str
    kind: str
    cells: tuple[Cell, ...]
    command: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", tuple(_with_source(cell) for cell in self.cells))

    def save(self, folder: str | Path) -> None:
        """Write the grid to a folder of results, merged with a stored grid of the same name and kind.

        Cells of methods and strategies whose code has changed are dropped from the stored grid.

        Raises:
            InputError: If the folder has a grid of another protocol version, or one of this name and another kind.
        """
        with grids_locked(folder):
            for path in _grid_files(folder):
                _read_grid(path)
            self._merge_into(folder)
            self._drop_outdated_code(Path(folder))

    def _merge_into(self, folder: str | Path) -> None:
        path = Path(folder) / "grids" / f"{self.name}.json"
        cells, commands = {cell.key: cell for cell in self.cells}, [self.command]
        if path.exists():
            before = _read_grid(path)
            if before.kind != self.kind:
                raise InputError(f"{folder} has a grid {self.name!r} of kind {before.kind}: choose another name.")
            cells = {cell.key: cell for cell in before.cells} | cells
            commands = [*before.command.splitlines(), *commands]
        values = {
            "name": self.name,
            "kind": self.kind,
            "command": "\n".join(dict.fromkeys(commands)),
            "cells": [cell.as_json() for cell in cells.values()],
        }
        write_bytes(path, json.dumps(values, indent=1).encode())

    def _drop_outdated_code(self, folder: Path) -> None:
        """Drop cells of methods and strategies whose code has changed since they were stored."""
        methods = {cell.method: cell.source for cell in self.cells if cell.source}
        strategies = {cell.strategy: cell.strategy_source for cell in self.cells if cell.strategy_source}
        for path in _grid_files(folder):
            values = json.loads(path.read_bytes())
            kept = [
                cell
                for cell in values["cells"]
                if methods.get(cell["method"], cell.get("source")) == cell.get("source")
                and strategies.get(cell.get("strategy"), cell.get("strategy_source")) == cell.get("strategy_source")
            ]
            if len(kept) < len(values["cells"]):
                write_bytes(path, json.dumps({**values, "cells": kept}, indent=1).encode())


def _with_source(cell: Cell) -> Cell:
    """Add the code hashes of a method and a strategy from outside the package to a cell."""
    with suppress(InputError):  # an unknown method is reported when the cell runs
        method = find_method(cell.method) if not cell.source else None
        if method is not None and method.source:
            cell = replace(cell, method=method.name, source=method.source)
    with suppress(InputError):  # an unknown strategy, too
        strategy = find_strategy(cell.strategy) if cell.strategy and not cell.strategy_source else None
        if strategy is not None and strategy.source:
            cell = replace(cell, strategy=strategy.name, strategy_source=strategy.source)
    return cell


def load_grids(folder: str | Path) -> list[Grid]:
    """Read all grids of a folder of results.

    Args:
        folder: Folder that `graphfcl bench --out` or :func:`run_grid` has written.

    Returns:
        The grids, sorted by name. Each has ``name``, ``kind``, ``cells`` and ``command``.

    Raises:
        InputError: If the folder has no grid, or a grid is damaged or has another protocol version.

    Examples:
        >>> from graphfcl import load_grids
        >>> from graphfcl.experiments import Cell, Grid
        >>> Grid("penalties", "grid", (Cell("shop-demo", "sgc-ridge", seed=0),)).save("results")
        >>> [(grid.name, len(grid.cells)) for grid in load_grids("results")]
        [('penalties', 1)]
    """
    paths = _grid_files(folder)
    if not paths:
        raise InputError(f"{folder} has no grid: give a folder that `graphfcl bench --out` has written.")
    return [_read_grid(path) for path in paths]


def _grid_files(folder: str | Path) -> list[Path]:
    return sorted((Path(folder) / "grids").glob("*.json"))


def _read_grid(path: Path) -> Grid:
    content = read_bytes(path, "the grid")
    try:
        values = json.loads(content)
        for version in {cell.get("protocol_version") for cell in values["cells"]}:
            refuse_other_version(version, str(path), OTHER_FOLDER)
        cells = tuple(Cell(**cell) for cell in values["cells"])
        return Grid(values["name"], values["kind"], cells, values["command"])
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is damaged: delete it and run its `graphfcl bench` command again.") from error


@dataclass
class GridStatus:
    """Progress of a grid. Cells that other calls run are counted when they are done."""

    total: int
    done: int = 0
    failed: int = 0
    running: dict[int, Cell] = field(default_factory=dict)  # cells of this call, numbered from 0
    seconds_left: float | None = None

    @property
    def settled(self) -> bool:
        """Whether every cell is done or has failed."""
        return self.done + self.failed >= self.total
