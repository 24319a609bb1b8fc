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
    """Cells that belong together, and what they are for.

    kind: table2, table3, sweep, shots, embed, active or grid: how a report shows them.
    cells: those of a method from outside say from which code it comes.
    command: what was typed.
    """

    name: str
    kind: str
    cells: tuple[Cell, ...]
    command: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", tuple(_with_source(cell) for cell in self.cells))

    def save(self, folder: str | Path) -> None:
        """Store it beside the cells, joined with the grid that is there under its name.

        A folder that holds a grid of another protocol version is refused.
        """
        with grids_locked(folder):
            for path in _grid_files(folder):
                _read_grid(path)
            self._join(folder)
            self._drop_older_code(Path(folder))

    def _join(self, folder: str | Path) -> None:
        path = Path(folder) / "grids" / f"{self.name}.json"
        cells, commands = {cell.key: cell for cell in self.cells}, [self.command]
        if path.exists():
            before = _read_grid(path)
            if before.kind != self.kind:
                raise InputError(
                    f"{folder} holds a grid {self.name!r} of kind {before.kind}: give this one another name."
                )
            cells = {cell.key: cell for cell in before.cells} | cells
            commands = [*before.command.splitlines(), *commands]
        values = {
            "name": self.name,
            "kind": self.kind,
            "command": "\n".join(dict.fromkeys(commands)),
            "cells": [cell.as_json() for cell in cells.values()],
        }
        write_bytes(path, json.dumps(values, indent=1).encode())

    def _drop_older_code(self, folder: Path) -> None:
        """Of a method or strategy whose code was edited, only cells of the new code stay: a row would mix the two."""
        now = {cell.method: cell.source for cell in self.cells if cell.source}
        strategies = {cell.strategy: cell.strategy_source for cell in self.cells if cell.strategy_source}
        for path in _grid_files(folder):
            values = json.loads(path.read_bytes())
            kept = [
                cell
                for cell in values["cells"]
                if now.get(cell["method"], cell.get("source")) == cell.get("source")
                and strategies.get(cell.get("strategy"), cell.get("strategy_source")) == cell.get("strategy_source")
            ]
            if len(kept) < len(values["cells"]):
                write_bytes(path, json.dumps({**values, "cells": kept}, indent=1).encode())


def _with_source(cell: Cell) -> Cell:
    with suppress(InputError):  # an unknown method is reported when the cell runs
        method = find_method(cell.method) if not cell.source else None
        if method is not None and method.source:
            cell = replace(cell, method=method.name, source=method.source)
    with suppress(InputError):  # and so is an unknown strategy
        strategy = find_strategy(cell.strategy) if cell.strategy and not cell.strategy_source else None
        if strategy is not None and strategy.source:
            cell = replace(cell, strategy=strategy.name, strategy_source=strategy.source)
    return cell


def load_grids(folder: str | Path) -> list[Grid]:
    """All grids whose cells are in a folder."""
    paths = _grid_files(folder)
    if not paths:
        raise InputError(f"{folder} holds no grid: give a folder that `graphfcl bench --out` has written.")
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
    """How far a grid is; cells of other processes are counted when they are done."""

    total: int
    done: int = 0
    failed: int = 0
    running: dict[int, Cell] = field(default_factory=dict)  # by process
    seconds_left: float | None = None

    @property
    def settled(self) -> bool:
        return self.done + self.failed >= self.total
