"""Reading ``results/``: blocks of the report, CSV files."""

import csv
from functools import cache
from pathlib import Path
from typing import Any

from graphfcl.report import Block, Findings, Row, collect

ROOT = Path(__file__).parents[2]
GRAPHS = ("debian", "wordnet", "amazon-clothing-20", "cora-topics", "coauthor-cs")


@cache
def stored(folder: str) -> Findings:
    return collect(ROOT / "results" / folder)


@cache
def read_csv(name: str) -> list[dict[str, str]]:
    with open(ROOT / "results" / name, newline="") as file:
        return list(csv.DictReader(file))


def find_block(grid: str, graph: str, folder: str = "bench", **protocol: Any) -> Block:
    """The block of a grid on a graph whose protocol has these values."""
    wanted = {"name": "strict", **protocol}
    (found,) = (
        block
        for block in stored(folder).blocks
        if block.grid.name == grid and block.dataset == graph and wanted.items() <= block.protocol.items()
    )
    return found


def find_row(block: Block, name: str) -> Row:
    return next(row for row in block.rows if row.name == name)
