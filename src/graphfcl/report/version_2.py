"""Read stored results of protocol version 2, which are being recomputed under the current version.

The only code that reads another protocol version: nothing is computed under it. Version 2 calls the track ``active``
``asked``. ``counts.csv`` beside the grids holds n_train and n_test of their streams, which results of version 2 do not
store (``python -m scripts.version_2_counts``).
"""

import csv
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from graphfcl.experiments import Cell, Grid
from graphfcl.experiments.store import read_values

COUNTS = "counts.csv"


def load_version_2(folder: str | Path) -> tuple[list[Grid], Callable[[Cell], dict[str, Any] | None]] | None:
    """The grids of a folder of version 2 and a function that reads their results; None for any other folder."""
    if not (Path(folder) / COUNTS).exists():
        return None
    files: dict[str, Path] = {}
    grids = []
    for path in sorted((Path(folder) / "grids").glob("*.json")):
        content = json.loads(path.read_bytes())
        cells = []
        for values in content["cells"]:
            cells.append(_cell(values))
            files[cells[-1].key] = Path(folder) / "cells" / f"{file_key(values)}.parquet"
        grids.append(Grid(content["name"], content["kind"], tuple(cells), content["command"]))
    counts = _read_counts(Path(folder) / COUNTS)

    def read(cell: Cell) -> dict[str, Any] | None:
        values = read_values(files[cell.key])
        if values is None:
            return None
        result, protocol = values["result"], values["result"]["protocol"]
        return {
            **{key: value for key, value in result.items() if key != "rules"},
            "protocol_version": result["rules"],
            "protocol": _renamed({key: value for key, value in protocol.items() if key != "rules"}),
            **counts[result["dataset"], protocol["track"], result["seed"]],
        }

    return grids, read


def _cell(values: dict[str, Any]) -> Cell:
    own = {key: value for key, value in values.items() if key != "rules_number"}
    return Cell(**{**own, "rules": _renamed(values["rules"])}, protocol_version=values["rules_number"])


def _renamed(rules: dict[str, Any]) -> dict[str, Any]:
    """Rules with the present name of their track."""
    return {**rules, "track": "active"} if rules.get("track") == "asked" else rules


def file_key(values: dict[str, Any]) -> str:
    """The name of the cell's file under version 2."""
    named = {key: value for key, value in values.items() if key != "variant"}
    return hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()[:20]


def _read_counts(path: Path) -> dict[tuple[str, str, int], dict[str, int]]:
    """(dataset, track, seed) → n_train and n_test."""
    with path.open(newline="") as file:
        return {
            (row["dataset"], row["track"], int(row["seed"])): {name: int(row[name]) for name in ("n_train", "n_test")}
            for row in csv.DictReader(file)
        }
