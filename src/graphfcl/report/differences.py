"""Compare the results of two folders, for example before and after a change of the code."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.metrics import PairedDifference, paired_difference
from graphfcl.report.blocks import Block
from graphfcl.report.comparison import p_figure
from graphfcl.report.findings import Findings, collect
from graphfcl.report.rows import Row, codes_of, machines_of
from graphfcl.report.table import Table, two_digits

COLUMNS = ("grid", "dataset and protocol", "row", "seeds", "before", "after", "difference", "p", "notes")


@dataclass(frozen=True)
class RowDifference:
    """A row in two folders: average over sessions in percent, over seeds with the same stream.

    Attributes:
        grid: Name of the grid.
        block: Title of the block.
        row: Name of the row.
        before: Mean in the first folder; None if it has no such row.
        after: Mean in the second folder; None if it has no such row.
        difference: after − before; None if a folder has no such row, or no stream is the same.
        notes: Other differences.
        identical: Whether every seed has the same value in both folders.
    """

    grid: str
    block: str
    row: str
    before: float | None
    after: float | None
    difference: PairedDifference | None
    notes: tuple[str, ...]
    identical: bool = False

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return self.identical and not self.notes

    def values(self) -> dict[str, Any]:
        """The comparison as plain values."""
        test = self.difference
        return {
            "grid": self.grid,
            "block": self.block,
            "row": self.row,
            "seeds": test.count if test else 0,
            "before": self.before,
            "after": self.after,
            "difference": test.mean if test else None,
            "interval": test.interval if test else None,
            "p_value": test.p_value if test else None,
            "notes": list(self.notes),
            "same": self.same,
        }

    def cells(self) -> tuple[str, ...]:
        """The texts of the row's line in a table."""
        test = self.difference
        change = "" if test is None else two_digits(test.mean, sign=True)
        change += "" if test is None or test.interval is None else f" ± {test.interval:.2f}"
        return (
            self.grid,
            self.block,
            self.row,
            str(test.count if test else 0),
            *("" if value is None else two_digits(value) for value in (self.before, self.after)),
            change,
            "" if test is None or test.p_value is None else p_figure(test.p_value),
            "; ".join(self.notes),
        )


@dataclass(frozen=True)
class FolderDifference:
    """The rows of two folders.

    Attributes:
        before: First folder.
        after: Second folder.
        rows: Rows in the order of the second folder, followed by rows that only the first has.
        code: Code of the first and the second folder; None if it is the same.
        machine: Machines of the first and the second folder; None if they are the same.
    """

    before: str
    after: str
    rows: tuple[RowDifference, ...]
    code: tuple[str, str] | None
    machine: tuple[str, str] | None

    def table(self) -> Table:
        """Table with a line for each row that differs."""
        changed = [row for row in self.rows if not row.same]
        notes = [
            "average over sessions (%) over the seeds with the same stream; difference: after minus before, with the "
            "95 % interval and the raw p-value of the corrected resampled t-test",
            f"rows that are the same in both: {len(self.rows) - len(changed)}",
        ]
        notes += [f"code: {self.code[0]} before, {self.code[1]} after"] if self.code else []
        notes += [f"machine: {self.machine[0]} before, {self.machine[1]} after"] if self.machine else []
        title = f"before: {self.before}; after: {self.after}"
        return Table(title, COLUMNS, tuple(row.cells() for row in changed), notes=tuple(notes))


Place = tuple[str, str, str, str]  # grid, path of the dataset, protocol as JSON, row


def folder_differences(before: str | Path, after: str | Path) -> FolderDifference:
    """Compare two folders of results of the same protocol version."""
    first, second = collect(before), collect(after)
    versions = [{block.version_text for block in findings.blocks} for findings in (first, second)]
    if all(versions) and versions[0] != versions[1]:
        texts = [" and ".join(sorted(each)) for each in versions]
        raise InputError(
            f"{before} has {texts[0]}, and {after} has {texts[1]}: only results of the same protocol version are "
            "comparable."
        )
    old, new = _rows(first), _rows(second)
    rows = tuple(_difference(place, old.get(place), new.get(place)) for place in dict.fromkeys([*new, *old]))
    every = [[row for _, row in found.values()] for found in (old, new)]
    codes = [" and ".join(codes_of(each)) for each in every]
    machines = [" and ".join(machines_of(each)) for each in every]
    return FolderDifference(str(before), str(after), rows, _if_different(codes), _if_different(machines))


def _if_different(texts: list[str]) -> tuple[str, str] | None:
    return None if texts[0] == texts[1] else (texts[0], texts[1])


def _rows(findings: Findings) -> dict[Place, tuple[Block, Row]]:
    return {
        (block.grid.name, block.dataset_path, json.dumps(block.protocol, sort_keys=True), row.name): (block, row)
        for block in findings.blocks
        for row in block.rows
    }


def _difference(place: Place, old: tuple[Block, Row] | None, new: tuple[Block, Row] | None) -> RowDifference:
    grid, name = place[0], place[-1]
    if old is None or new is None:
        ((block, row),) = [each for each in (old, new) if each is not None]
        before, after = (None if each is None else _mean(each[1]) for each in (old, new))
        alone = (f"only {'before' if new is None else 'after'} ({_seeds(len(row.results))})",)
        return RowDifference(grid, block.title, name, before, after, None, alone)
    (_, first), (block, second) = old, new
    same = [seed for seed in first.results if seed in second.results and _stream(first, seed) == _stream(second, seed)]
    notes = _notes(first, second, same)
    if not same:
        return RowDifference(grid, block.title, name, _mean(first), _mean(second), None, notes)
    theirs, ours = ([row.values("average")[seed] for seed in same] for row in (first, second))
    ratio = float(np.mean([block.ratios[seed] for seed in same]))
    means = (float(np.mean(theirs)), float(np.mean(ours)))
    test = paired_difference(ours, theirs, ratio)
    return RowDifference(grid, block.title, name, *means, test, notes, identical=ours == theirs)


def _seeds(count: int) -> str:
    return f"{count} seed" + "s" * (count != 1)


def _mean(row: Row) -> float:
    return float(np.mean(list(row.values("average").values())))


def _stream(row: Row, seed: int) -> str:
    return str(row.results[seed].get("stream"))


def _notes(first: Row, second: Row, same: list[int]) -> tuple[str, ...]:
    """Notes on seeds that are left out, and on settings and choices that differ."""
    lines = []
    for row, when in ((first, "before"), (second, "after")):
        if len(row.results) > len(same):
            lines.append(f"{_seeds(len(row.results) - len(same))} only {when}, or with another stream")
    old, new = (next(iter(row.results.values())) for row in (first, second))
    lines += [f"setting {text}" for text in _changes(old["settings"], new["settings"])]
    for seed in same:
        changes = _changes(first.results[seed]["chosen"], second.results[seed]["chosen"])
        lines += [f"seed {seed} chose {text}" for text in changes]
    return tuple(lines)


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    differ = [name for name in dict.fromkeys([*old, *new]) if old.get(name) != new.get(name)]
    return [f"{name} {old.get(name)} → {new.get(name)}" for name in differ]
