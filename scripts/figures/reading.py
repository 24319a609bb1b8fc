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


def find_blocks(grid: str, protocol: str = "strict", folder: str = "bench", **rules: Any) -> tuple[Block, ...]:
    """The blocks of a grid under a protocol with these rules, graph by graph."""
    wanted = {"name": protocol, **rules}
    found = [
        block
        for block in stored(folder).blocks
        if block.grid.name == grid and wanted.items() <= block.protocol.items() and block.dataset in GRAPHS
    ]
    return tuple(sorted(found, key=lambda block: GRAPHS.index(block.dataset)))


def find_block(grid: str, graph: str, protocol: str = "strict", **rules: Any) -> Block:
    """The one block of a grid on a graph under a protocol with these rules."""
    (found,) = (block for block in find_blocks(grid, protocol, **rules) if block.dataset == graph)
    return found


def find_row(block: Block, name: str) -> Row:
    return next(row for row in block.rows if row.name == name)
