"""An (n, D) array on disk, stored in files of column slices or of row parts."""

import shutil
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from graphfcl.methods.blocks.tile_files import BLOCK, SLICE, TileFile

PARTS = 32  # maximum number of row parts, which are the tasks of a row phase and the terms of its sums


def parts_of(rows: int) -> list[tuple[int, int]]:
    """List (first, end) of at most ``PARTS`` row parts of whole blocks. They depend on ``rows`` alone."""
    size = rows_of_part(rows)
    return [(start, min(start + size, rows)) for start in range(0, rows, size)]


def rows_of_part(rows: int) -> int:
    """Number of rows of each part except the last."""
    return BLOCK * max(1, -(-rows // (BLOCK * PARTS)))


def slices_of(columns: int) -> int:
    """Number of column slices."""
    return -(-columns // SLICE)


@dataclass(frozen=True)
class StoredTable:
    """An array of ``rows`` × ``columns`` numbers of type ``kind`` in files under ``folder``.

    There is a file for each slice of columns or for each part of rows, according to ``by``. ``key`` identifies the
    inputs of the computation.
    """

    folder: Path
    key: str
    rows: int
    columns: int
    kind: str
    by: Literal["slices", "parts"]

    def __reduce__(self) -> tuple[type["StoredTable"], tuple[Any, ...]]:
        return StoredTable, astuple(self)  # without the cached list of files

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
        """(first row, end) of each block of rows."""
        return [(start, min(start + BLOCK, self.rows)) for start in range(0, self.rows, BLOCK)]

    def missing(self, end: int | None = None) -> list[int]:
        """List the numbers of files, up to ``end``, that are missing, truncated, or have another key."""
        return [number for number, file in enumerate(self.files[:end]) if not file.is_whole()]

    def block(self, start: int, leading: int | None = None) -> np.ndarray:
        """Read the (rows, columns) block that begins at row ``start``, or its ``leading`` first columns."""
        columns = self.columns if leading is None else min(leading, self.columns)
        slices = slices_of(columns)
        values = np.empty((min(start + BLOCK, self.rows) - start, min(slices * SLICE, self.columns)), dtype=self.kind)
        self.slices_of_block(start, range(slices), values)
        return values[:, :columns]

    def slices_of_block(self, start: int, numbers: Sequence[int], out: np.ndarray) -> None:
        """Read slices of the block that begins at row ``start``, side by side, into ``out``."""
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
        """Read (m, columns) some rows in any order, of all columns or of the ``leading`` first ones."""
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
        """Write the missing files from an (n, D) array."""
        for number in self.missing():
            file = self.files[number]
            columns = slice(*file.columns)
            file.write(values[start:stop, columns] for start, stop in file.blocks)

    def remove(self, *, unless: "StoredTable | None" = None) -> None:
        """Delete the files, except if ``unless`` is the same table."""
        if unless is None or unless.folder != self.folder:
            remove_table(self.folder)


def remove_table(folder: Path) -> None:
    """Delete the files of a table, if there are any."""
    shutil.rmtree(folder, ignore_errors=True)
