"""Results of other rules: they are never mixed with those of today, and never lost."""

import json
import warnings

from graphfcl.errors import GraphfclWarning
from graphfcl.experiments.cells import Cell
from graphfcl.experiments.store import CellStore
from graphfcl.files import read_bytes, write_bytes
from graphfcl.stream import RULES


def set_other_rules_aside(store: CellStore) -> int:
    """Move results of other rules from a folder's ``cells`` to its ``state``, and their cells out of its grids.

    How many results there were. A grid is kept as it was in ``state`` too, as ``NAME.rules-1.json``.
    """
    count, numbers = 0, set[int]()
    for path in sorted((store.folder / "grids").glob("*.json")):
        content = read_bytes(path, "the grid")
        try:
            values = json.loads(content)
            cells = [Cell.from_json(cell) for cell in values["cells"]]
        except (ValueError, KeyError, TypeError):
            continue  # whoever reads the grid next says that it is damaged
        others = [cell for cell in cells if cell.rules_number != RULES]
        if not others:
            continue
        numbers |= {cell.rules_number for cell in others}
        write_bytes(store.notes / f"{path.stem}.rules-{others[0].rules_number}.json", content)
        count += sum(store.set_rules_aside(cell) for cell in others)
        kept = [cell.as_json() for cell in cells if cell.rules_number == RULES]
        if kept:
            write_bytes(path, json.dumps({**values, "cells": kept}, indent=1).encode())
        else:
            path.unlink()
    if numbers:
        listed = " and ".join(map(str, sorted(numbers)))
        warnings.warn(
            f"{store.folder} held {count} results of rules {listed}; this graphfcl runs by rules {RULES}, so they were "
            f"set aside in {store.notes.name}/: results of different rules never stand in one table.",
            GraphfclWarning,
            2,
        )
    return count
