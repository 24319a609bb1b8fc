"""What differs between the results of two folders, for instance before and after a change of the code."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.metrics import PairedDifference, paired_difference
from graphfcl.report.blocks import Block, Findings, Row, codes_of, collect
from graphfcl.report.comparison import p_figure
from graphfcl.report.table import Table

COLUMNS = ("grid", "dataset and protocol", "row", "seeds", "before", "after", "difference", "p", "notes")


@dataclass(frozen=True)
class RowDifference:
    """A row of two folders, on the average over sessions in %, over the seeds whose runs had the same stream.

    grid, block, row: the grid's name, the title of the block, the row's name.
    before, after: means; None where one folder has no such row. difference: after − before; None likewise, or where no
    stream is the same. notes: what else differs. identical: whether every seed has the same figure in both.
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

    def cells(self) -> tuple[str, ...]:
        """The texts of its line."""
        found = self.difference
        change = "" if found is None else f"{found.mean:+.2f}"
        change += "" if found is None or found.interval is None else f" ± {found.interval:.2f}"
        return (
            self.grid,
            self.block,
            self.row,
            str(found.count if found else 0),
            *("" if value is None else f"{value:.2f}" for value in (self.before, self.after)),
            change,
            "" if found is None or found.p_value is None else p_figure(found.p_value),
            "; ".join(self.notes),
        )


def folder_differences(before: str | Path, after: str | Path) -> list[RowDifference]:
    """All rows of both folders, in the order of the second; what only the first has comes last."""
    old, new = _rows(collect(before)), _rows(collect(after))
    return [_difference(place, old.get(place), new.get(place)) for place in dict.fromkeys([*new, *old])]


def difference_table(differences: list[RowDifference], before: str | Path, after: str | Path) -> Table:
    """One line a row that is not the same in both."""
    changed = [each for each in differences if not each.same]
    about = (
        "average over sessions (%) over the seeds whose streams are the same; difference: after minus before, with the "
        "95 % interval and the raw p-value of the corrected resampled t-test",
        f"rows that are the same in both: {len(differences) - len(changed)}",
    )
    return Table(f"{after} against {before}", COLUMNS, tuple(each.cells() for each in changed), notes=about)


Place = tuple[str, str, str]  # grid, title of the block, row


def _rows(findings: Findings) -> dict[Place, tuple[Block, Row]]:
    return {(block.grid.name, block.title, row.name): (block, row) for block in findings.blocks for row in block.rows}


def _difference(place: Place, old: tuple[Block, Row] | None, new: tuple[Block, Row] | None) -> RowDifference:
    grid, title, name = place
    if old is None or new is None:
        ((_, row),) = [each for each in (old, new) if each is not None]
        where = "first" if new is None else "second"
        before, after = (None if each is None else _mean(each[1]) for each in (old, new))
        alone = (f"only in the {where} folder ({_seeds(len(row.results))})",)
        return RowDifference(grid, title, name, before, after, None, alone)
    (_, first), (block, second) = old, new
    same = [seed for seed in first.results if seed in second.results and _stream(first, seed) == _stream(second, seed)]
    notes = _notes(first, second, len(same))
    if not same:
        return RowDifference(grid, title, name, _mean(first), _mean(second), None, notes)
    theirs, ours = ([row.values("average")[seed] for seed in same] for row in (first, second))
    ratio = float(np.mean([block.ratios[seed] for seed in same]))
    difference = paired_difference(ours, theirs, ratio)
    means = (float(np.mean(theirs)), float(np.mean(ours)))
    return RowDifference(grid, title, name, *means, difference, notes, identical=ours == theirs)


def _seeds(count: int) -> str:
    return f"{count} seed" + "s" * (count != 1)


def _mean(row: Row) -> float:
    return float(np.mean(list(row.values("average").values())))


def _stream(row: Row, seed: int) -> str:
    return str(row.results[seed].get("stream"))


def _notes(first: Row, second: Row, same: int) -> tuple[str, ...]:
    """Seeds that are left out, and other settings, code or device."""
    lines = []
    for row, which in ((first, "first"), (second, "second")):
        if len(row.results) > same:
            lines.append(
                f"{_seeds(len(row.results) - same)} of the {which} folder without the same stream in the other"
            )
    old, new = (next(iter(row.results.values())) for row in (first, second))
    lines += [f"setting {text}" for text in _changes(old["settings"], new["settings"])]
    lines += [f"chosen {text}" for text in _changes({"": first.chosen()}, {"": second.chosen()})]
    codes = [" and ".join(codes_of([row])) for row in (first, second)]
    lines += [f"code {codes[0]} → {codes[1]}"] if codes[0] != codes[1] else []
    return tuple(lines)


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    differ = [name for name in dict.fromkeys([*old, *new]) if old.get(name) != new.get(name)]
    return [f"{name} {old.get(name)} → {new.get(name)}".strip() for name in differ]
