"""Results of other rules: they are never mixed with those of today, and never lost."""

import json
import warnings
from contextlib import suppress
from itertools import chain
from itertools import count as counting
from pathlib import Path

from graphfcl.errors import GraphfclWarning
from graphfcl.experiments.cells import Cell
from graphfcl.experiments.grid import grids_locked
from graphfcl.experiments.store import CellStore, read_cell
from graphfcl.files import write_bytes
from graphfcl.stream import RULES


def set_other_rules_aside(store: CellStore) -> int:
    """Move results of other rules from a folder's ``cells`` to its ``state``, and their cells out of its grids.

    How many results there were. A grid is kept as it was in ``state`` too, as ``NAME.rules-1.json``. One process at a
    time does so, or one could remove the grid that another has just saved.
    """
    with grids_locked(store.folder):
        count, numbers = _set_grids_aside(store)
        count += _set_strays_aside(store, numbers)
    if count:
        listed = " and ".join(map(str, sorted(numbers)))
        warnings.warn(
            f"{store.folder} held {count} results of rules {listed}; this graphfcl runs by rules {RULES}, so they were "
            f"set aside in {store.notes.name}/: results of different rules never stand in one table.",
            GraphfclWarning,
            2,
        )
    return count


def _set_grids_aside(store: CellStore) -> tuple[int, set[int]]:
    """How many results of other rules the folder's grids name, and the numbers of these rules."""
    count, numbers = 0, set[int]()
    for path in sorted((store.folder / "grids").glob("*.json")):
        try:
            content = path.read_bytes()
            values = json.loads(content)
            cells = [Cell.from_json(cell) for cell in values["cells"]]
        except (OSError, ValueError, KeyError, TypeError):
            continue  # another process was faster; or it is damaged, which whoever reads it next says
        others = [cell for cell in cells if cell.rules_number != RULES]
        if not others:
            continue
        numbers |= {cell.rules_number for cell in others}
        write_bytes(_free(store.notes, f"{path.stem}.rules-{others[0].rules_number}"), content)
        count += sum(store.set_rules_aside(cell) for cell in others)
        kept = [cell.as_json() for cell in cells if cell.rules_number == RULES]
        if kept:
            write_bytes(path, json.dumps({**values, "cells": kept}, indent=1).encode())
        else:
            path.unlink(missing_ok=True)
    return count, numbers


def _set_strays_aside(store: CellStore, numbers: set[int]) -> int:
    """Results of other rules that no grid names any more; ``numbers`` gets theirs."""
    named = set[str]()
    for path in (store.folder / "grids").glob("*.json"):
        with suppress(OSError, ValueError, KeyError, TypeError):
            named |= {Cell.from_json(cell).key for cell in json.loads(path.read_bytes())["cells"]}
    count = 0
    for path in sorted(store.cells.glob("*.parquet")):
        found = None if path.stem in named else read_cell(path)
        if found is not None and found[0].rules_number != RULES and store.set_rules_aside(found[0]):
            numbers.add(found[0].rules_number)
            count += 1
    return count


def _free(folder: Path, stem: str) -> Path:
    """A name that no file has yet: what was set aside before is not written over."""
    endings = chain([""], (f"-{number}" for number in counting(2)))
    return next(path for ending in endings if not (path := folder / f"{stem}{ending}.json").exists())
