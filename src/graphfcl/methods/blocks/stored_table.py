"""An (n, D) array on disk, in files of column slices or of row parts."""

import shutil
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from graphfcl.methods.blocks.tile_files import BLOCK, SLICE, TileFile

PARTS = 32  # files of rows at most: tasks of a row phase, and terms of its sums


def parts_of(rows: int) -> list[tuple[int, int]]:
    """(first, end) of the row parts: whole blocks, at most ``PARTS`` of them; they follow from ``rows`` alone."""
    size = rows_of_part(rows)
    return [(start, min(start + size, rows)) for start in range(0, rows, size)]


def rows_of_part(rows: int) -> int:
    """Of every part but the last."""
    return BLOCK * max(1, -(-rows // (BLOCK * PARTS)))


def slices_of(columns: int) -> int:
    """In how many slices so many columns lie."""
    return -(-columns // SLICE)


@dataclass(frozen=True)
class StoredTable:
    """rows × columns numbers of type ``kind`` in files under ``folder``.

    by: ``slices``, a file for each slice of columns, or ``parts``, a file for each part of rows.
    key: says of what it was computed.
    """

    folder: Path
    key: str
    rows: int
    columns: int
    kind: str
    by: Literal["slices", "parts"]

    def __reduce__(self) -> tuple[type["StoredTable"], tuple[Any, ...]]:
        return StoredTable, astuple(self)  # without its files

    @cached_property
    def files(self) -> list[TileFile]:
        if self.by == "slices":
            places = [
                ((0, self.rows), (start, min(start + SLICE, self.columns))) for start in range(0, self.columns, SLICE)
            ]
        else:
            places = [(part, (0, self.columns)) for part in parts_of(self.rows)]
        return [
            TileFile(self.folder / f"{self.by[:-1]}-{number:04d}", self.key, rows, columns, self.kind)
            for number, (rows, columns) in enumerate(places)
        ]

    @cached_property
    def _part_rows(self) -> int:
        return rows_of_part(self.rows)

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """(first row, end) of all blocks."""
        return [(start, min(start + BLOCK, self.rows)) for start in range(0, self.rows, BLOCK)]

    def missing(self, end: int | None = None) -> list[int]:
        """Numbers of the files, of all or of those before ``end``, that are not there, cut short, or of something
        else."""
        return [number for number, file in enumerate(self.files[:end]) if not file.is_whole()]

    def block(self, start: int, leading: int | None = None) -> np.ndarray:
        """(rows, columns) of the block that begins at a row. leading: read so many columns, the first ones, alone."""
        columns = self.columns if leading is None else min(leading, self.columns)
        slices = slices_of(columns)
        values = np.empty((min(start + BLOCK, self.rows) - start, min(slices * SLICE, self.columns)), dtype=self.kind)
        self.slices_of_block(start, range(slices), values)
        return values[:, :columns]

    def slices_of_block(self, start: int, numbers: Sequence[int], out: np.ndarray) -> None:
        """Read some slices of the block that begins at a row, side by side, into (rows, their columns) ``out``."""
        if self.by == "parts":
            part = start // self._part_rows
            self.files[part].slices_of_block((start - part * self._part_rows) // BLOCK, numbers, out)
            return
        column = 0
        for number in numbers:
            file = self.files[number]
            file.block(start // BLOCK, out[:, column : column + file.width])
            column += file.width

    def rows_at(self, rows: np.ndarray, leading: int | None = None) -> np.ndarray:
        """(m, columns) of some rows in any order, of all columns or of the leading ones."""
        order = np.argsort(rows, kind="stable")
        ends = np.searchsorted(rows[order], np.arange(0, self.rows + BLOCK, BLOCK))
        columns = self.columns if leading is None else min(leading, self.columns)
        values = np.empty((rows.size, columns), dtype=self.kind)
        for number, (start, _) in enumerate(self.blocks):
            here = order[ends[number] : ends[number + 1]]
            if here.size:
                values[here] = self.block(start, leading)[rows[here] - start]
        return values

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        return self.rows_at(np.asarray(rows))

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, self.columns

    def fill(self, values: np.ndarray) -> None:
        """Write what is missing of it from an (n, D) array."""
        for number in self.missing():
            file = self.files[number]
            columns = slice(*file.columns)
            file.write(values[start:stop, columns] for start, stop in file.blocks)

    def remove(self, *, unless: "StoredTable | None" = None) -> None:
        """Delete its files: nothing needs them any more. unless: a table that stays; it may be this one."""
        if unless is None or unless.folder != self.folder:
            remove_table(self.folder)


def remove_table(folder: Path) -> None:
    """Delete the files of a table; one that is not there is no error."""
    shutil.rmtree(folder, ignore_errors=True)
