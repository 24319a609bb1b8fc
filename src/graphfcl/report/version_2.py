"""Read stored results of protocol version 2, which are being recomputed under the current version.

This is the only code that reads another protocol version, and it computes nothing. In version 2 the track ``active`` is
called ``asked``. Results of version 2 do not contain n_train and n_test of their streams, so these are in the file
``counts.csv`` next to the grids (written by ``python -m scripts.version_2_counts``).
"""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from graphfcl.experiments import Cell, CellStore, Grid
from graphfcl.experiments.cells import cell_key

COUNTS = "counts.csv"


def load_version_2(store: CellStore) -> tuple[list[Grid], Callable[[Cell], dict[str, Any] | None]] | None:
    """Read the grids of a folder of version 2, with a function that reads their results; None for other folders."""
    if not (store.folder / COUNTS).exists():
        return None
    keys: dict[str, str] = {}  # key in the current version → key in version 2
    grids = []
    for path in sorted((store.folder / "grids").glob("*.json")):
        content = json.loads(path.read_bytes())
        cells = tuple(_cell(values) for values in content["cells"])
        keys |= {cell.key: cell_key(values) for cell, values in zip(cells, content["cells"], strict=True)}
        grids.append(Grid(content["name"], content["kind"], cells, content["command"]))
    counts = _read_counts(store.folder / COUNTS)

    def read(cell: Cell) -> dict[str, Any] | None:
        values = store.read_values(keys[cell.key])
        if values is None:
            return None
        result = values["result"]
        protocol = _renamed({key: value for key, value in result["protocol"].items() if key != "rules"})
        return {
            **{key: value for key, value in result.items() if key != "rules"},
            "protocol_version": result["rules"],
            "protocol": protocol,
            **counts[result["dataset"], protocol["track"], result["seed"]],
        }

    return grids, read


def _cell(values: dict[str, Any]) -> Cell:
    own = {key: value for key, value in values.items() if key != "rules_number"}
    return Cell(**{**own, "rules": _renamed(values["rules"])}, protocol_version=values["rules_number"])


def _renamed(rules: dict[str, Any]) -> dict[str, Any]:
    """Replace the old name of the track in rules."""
    return {**rules, "track": "active"} if rules.get("track") == "asked" else rules


def _read_counts(path: Path) -> dict[tuple[str, str, int], dict[str, int]]:
    """Read n_train and n_test by dataset, track and seed."""
    with path.open(newline="") as file:
        return {
            (row["dataset"], row["track"], int(row["seed"])): {name: int(row[name]) for name in ("n_train", "n_test")}
            for row in csv.DictReader(file)
        }
