"""Read a folder of results: its grids, and blocks of rows that can be compared with each other."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.experiments import Cell, CellStore, Grid, load_grids
from graphfcl.metrics import average_ranks
from graphfcl.report.blocks import Block, claims
from graphfcl.report.rows import Row
from graphfcl.report.statistics import Claims

RULES = ("name", "track", "standardise", "class_order")  # must be equal on all datasets of an average rank
FIRST = {"table2": 0, "table3": 1}  # kinds of grids with which a report begins


@dataclass(frozen=True, eq=False)
class Findings:
    """The content of a folder of results."""

    folder: Path
    grids: tuple[Grid, ...]
    blocks: tuple[Block, ...]
    failures: tuple[tuple[Grid, Cell, str], ...]

    def ranks(self, like: Block) -> dict[str, float]:
        """Average rank of each row over all (dataset, seed) pairs in the blocks under the same protocol.

        Rows with a mark, and rows that are missing on a dataset, have no rank.
        """
        blocks = self._alike(like, RULES)
        if len({block.dataset for block in blocks}) < len(blocks):  # the grid has several N or K on a dataset
            blocks = self._alike(like, (*RULES, "way", "shot", "split_shot", "pool_as_supports"))
        names = [row.name for row in like.rows if not row.marks]
        names = [name for name in names if all(any(row.name == name for row in block.rows) for block in blocks)]
        if len(names) < 2:
            return {}
        scores = []
        for block in blocks:
            rows = {row.name: row.values("average") for row in block.rows if row.name in names}
            shared = sorted(set.intersection(*(set(values) for values in rows.values())))
            scores += [[rows[name][seed] for name in names] for seed in shared]
        if not scores:
            return {}
        return dict(zip(names, average_ranks(np.array(scores)).tolist(), strict=True))

    def _alike(self, like: Block, rules: Sequence[str]) -> list[Block]:
        """The blocks of the same grid with the same values of some rules."""
        blocks = [block for block in self.blocks if block.grid is like.grid]
        return [block for block in blocks if all(block.protocol.get(r) == like.protocol.get(r) for r in rules)]


def _other_forms(grid: Grid) -> set[str]:
    """Rows of Table 2 that show another form of a method. Other grids have none: all their rows are compared."""
    if grid.kind != "table2":
        return set()
    plain = {cell.method for cell in grid.cells if cell.row == cell.method}
    return {cell.row for cell in grid.cells if cell.row != cell.method and cell.method in plain}


def collect(folder: str | Path) -> Findings:
    """Read all grids of a folder, the paper's tables first."""
    store = CellStore(folder)
    grids = sorted(load_grids(folder), key=lambda grid: FIRST.get(grid.kind, len(FIRST)))
    blocks: list[Block] = []
    failures = []
    for grid in grids:
        order, forms = list(dict.fromkeys(cell.row for cell in grid.cells)), _other_forms(grid)
        places: dict[str, list[Cell]] = {}
        for cell in grid.cells:
            places.setdefault(f"{cell.dataset} {sorted(cell.rules.items())}", []).append(cell)
        for cells in places.values():
            results = [(cell, store.read(cell)) for cell in cells]
            finished = [(cell, result) for cell, result in results if result is not None]
            errors = [(cell, store.error(cell)) for cell, result in results if result is None]
            failed = [(cell, error) for cell, error in errors if error is not None]
            failures += [(grid, cell, error) for cell, error in failed]
            by_row: dict[str, dict[int, dict[str, Any]]] = {}
            for cell, result in sorted(finished, key=lambda pair: pair[0].seed):
                by_row.setdefault(cell.row, {})[cell.seed] = result
            if finished:
                first, result = finished[0]
                rows = tuple(Row(name, by_row[name], name in forms) for name in order if name in by_row)
                faults = tuple((cell.row, cell.seed, error) for cell, error in failed)
                shown = (grid, result["dataset"], result["protocol"], rows, faults)
                blocks.append(Block(*shown, missing=len(errors) - len(failed), dataset_path=first.dataset))
    titled = tuple(_with_unique_titles(blocks))
    return Findings(Path(folder), tuple(grids), titled, tuple(failures))


def _with_unique_titles(blocks: Sequence[Block]) -> list[Block]:
    """Make titles unique: add paths to graphs of the same name, and differing rules to other blocks."""
    paths: dict[str, set[str]] = {}
    for block in blocks:
        paths.setdefault(block.dataset, set()).add(block.dataset_path)
    named = [
        replace(block, dataset=f"{block.dataset} ({block.dataset_path})") if len(paths[block.dataset]) > 1 else block
        for block in blocks
    ]
    return [_with_further_rules(block, [b for b in named if b.grid is block.grid]) for block in named]


def _with_further_rules(block: Block, blocks: Sequence[Block]) -> Block:
    """Add the rules in which a block differs from others with the same title."""
    same = [other.protocol for other in blocks if other.title == block.title]
    differ = [rule for rule in block.protocol if any(other.get(rule) != block.protocol[rule] for other in same)]
    texts = [f", {rule.replace('_', ' ')} {block.protocol[rule]}" for rule in differ]
    return replace(block, further_rules="".join(texts))


def claims_by_dataset(
    findings: Findings, reference: str, metric: str = "average", grid: str = "table2"
) -> dict[str, Claims]:
    """Claims of a method by dataset, over the blocks of a grid that contain it."""
    blocks = [block for block in findings.blocks if block.grid.name == grid]
    return {
        block.dataset: claims(block, reference, metric) for block in blocks if reference in block.fair_figures(metric)
    }
