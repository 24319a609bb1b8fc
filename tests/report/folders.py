"""Blocks and folders of cells for reports to read."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from graphfcl.experiments import Cell, CellStore, Grid, run_cell
from graphfcl.report import Block, Row
from graphfcl.stream import PROTOCOL_VERSION
from tests.methods.test_checks import GRAPH, QUICK

RULES = {"base": 4, "pseudo_novel": 3, "way": 1, "shot": 5}


def save(folder: Path, grid: Grid) -> None:
    store = CellStore(folder)
    grid.save(folder)
    for cell in grid.cells:
        if not store.done(cell):
            store.save(cell, run_cell(cell, device="cpu", encoders=folder / "encoders", data_dir=None))


def fake(values: dict[str, list[float]], sessions: int = 2) -> Block:
    def result(value: float, name: str) -> dict[str, Any]:
        session = {"balanced_accuracy": value, "base": value, "novel": None}
        return {
            "sessions": [session] * sessions,
            "average": value,
            "pd": 0.1,
            "rpd": 0.2,
            "matrix": [[value, None], [value, value]],
            "uses_pool_labels": name == "joint",
            "flags": {"control": name == "closed-set-control"},
            "trained_on_query_labels": False,
            "protocol_version": PROTOCOL_VERSION,
            "versions": {},
            "n_train": 3,
            "n_test": 1,
        }

    rows = [Row(n, {s: result(v, n) for s, v in enumerate(figures)}) for n, figures in values.items()]
    rules = {"name": "strict", "track": "transductive", "way": 2, "shot": 5}
    return Block(Grid("g", "table2", ()), "debian", rules, tuple(rows), (), 0)


def stored_result(folder: Path) -> dict[str, Any]:
    """A genuine result, to be stored as that of other cells."""
    cell = Cell(GRAPH, "proto-gcn", 0, rules=RULES, settings=QUICK["proto-gcn"])
    return run_cell(cell, device="cpu", encoders=folder / "encoders", data_dir=None)


def store(folder: Path, name: str, kind: str, results: Iterable[tuple[Cell, dict[str, Any] | None]]) -> None:
    """A grid of these cells; one without a result has not run."""
    actual = list(results)
    Grid(name, kind, tuple(cell for cell, _ in actual), f"graphfcl bench {name}").save(folder)
    for cell, result in actual:
        if result is not None:
            CellStore(folder).save(cell, result)


def printed_tables(folder: Path) -> dict[str, tuple[list[list[str]], str]]:
    """Title → cells of the rows of a Markdown table, and the notes below it."""
    parts = re.split(r"^### ", (folder / "tables.md").read_text(), flags=re.MULTILINE)[1:]
    actual = {}
    for part in parts:
        title, *lines = part.splitlines()
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
        actual[title] = (rows[2:], "\n".join(line for line in lines if line and not line.startswith("|")))
    return actual


def show(browser: Any, folder: Path, width: int, scheme: str = "light", address: str = "") -> None:
    """Open the report of a folder in a window of that width."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    media = {"media": "", "features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    browser.get("about:blank")  # another address of the same page alone would not load it again
    browser.get((folder / "report.html").as_uri() + address)
