"""A file with some rows and columns of a large array, stored as tiles with checksums.

File format::

    "graphfcl tiles 1"  8 bytes: length of the header  header (JSON), padded with spaces to a multiple of 64
    tiles  4 bytes per tile: its CRC-32  4 bytes: the CRC-32 of header and checksums

A tile has ``BLOCK`` rows and ``SLICE`` columns, fewer at the ends, in row-major order. Tiles are ordered by block of
rows, and within a block by columns. Rows of a file with one slice are therefore contiguous, and so are the tiles of a
block in a file with all columns. The header contains the ``key``, which identifies the inputs of the computation, and
the rows and columns of the file. They determine its size, so truncated files are detected without reading them.
"""

import errno
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

import numpy as np

from graphfcl.errors import InputError
from graphfcl.methods.blocks.damaged_files import DamagedFile
from graphfcl.runtime.files import canonical_json, write_durably

MAGIC = b"graphfcl tiles 1"
BLOCK = 16_384  # rows of a tile; every sum over rows is a sum over such blocks in their order
SLICE = 8  # columns of a tile
ALIGNED = 64


class DiskFull(InputError):
    """The disk is full. Files that were written before stay and are not computed again."""


class _NotWhole(Exception):
    """A file is damaged or has another key."""


@dataclass(frozen=True)
class TileFile:
    """A file, which may not be written yet, with some rows and columns of an array.

    Args:
        path: The file.
        key: Identifies the inputs of the computation.
        rows: (first, end) of the rows; the first row begins a block.
        columns: (first, end) of the columns; the first column begins a slice.
        kind: Number type.
    """

    path: Path
    key: str
    rows: tuple[int, int]
    columns: tuple[int, int]
    kind: str

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """(first row, end) of each block."""
        first, end = self.rows
        return [(start, min(start + BLOCK, end)) for start in range(first, end, BLOCK)]

    @property
    def width(self) -> int:
        return self.columns[1] - self.columns[0]

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.kind)

    @property
    def tile_bytes(self) -> int:
        """Bytes of all tiles."""
        return (self.rows[1] - self.rows[0]) * self.width * self.dtype.itemsize

    @property
    def tile_count(self) -> int:
        return -(-(self.rows[1] - self.rows[0]) // BLOCK) * self.slice_count

    @property
    def slice_count(self) -> int:
        return -(-self.width // SLICE)

    def block_rows(self, block: int) -> tuple[int, int]:
        """Return (first row, end) of a block, relative to the file."""
        return block * BLOCK, min((block + 1) * BLOCK, self.rows[1] - self.rows[0])

    def slice_columns(self, number: int) -> tuple[int, int]:
        """Return (first column, end) of a slice, relative to the file."""
        return number * SLICE, min((number + 1) * SLICE, self.width)

    @cached_property
    def _header(self) -> bytes:
        values = {"key": self.key, "rows": self.rows, "columns": self.columns, "kind": self.kind}
        text = canonical_json(values)
        start = len(MAGIC) + 8
        text += b" " * (-(start + len(text)) % ALIGNED)
        return MAGIC + len(text).to_bytes(8, "little") + text

    @property
    def byte_count(self) -> int:
        return len(self._header) + self.tile_bytes + 4 * self.tile_count + 4

    def write(self, blocks: Iterator[np.ndarray]) -> None:
        """Write the file durably. ``blocks`` yields the (rows, width) values of each block."""

        room = np.empty(BLOCK * SLICE, dtype=self.dtype)  # buffer of one tile; allocating each tile is slower

        def fill(file: BinaryIO) -> None:
            file.write(self._header)
            checksums = []
            for (first, end), values in zip(self.blocks, blocks, strict=True):
                assert values.shape == (end - first, self.width)
                for number in range(self.slice_count):
                    start, stop = self.slice_columns(number)
                    tile = room[: len(values) * (stop - start)].reshape(len(values), stop - start)
                    _copy_rows(values[:, start:stop], tile)
                    checksums.append(zlib.crc32(tile.data))
                    file.write(tile.data)
            content = np.array(checksums, dtype="<u4").tobytes()
            file.write(content)
            file.write(_checksum(self._header, content))

        write_with_room(self.path, fill)

    def is_whole(self) -> bool:
        """Whether the file exists with this key, extent and full size. Tiles are checked when they are read."""
        try:
            return self.path.stat().st_size == self.byte_count and self._checksums.size == self.tile_count
        except (OSError, InputError, _NotWhole):
            return False

    def block(self, block: int, out: np.ndarray) -> None:
        """Read all columns of a block into (rows, width) ``out``."""
        self.slices_of_block(block, range(self.slice_count), out)

    def slices_of_block(self, block: int, numbers: Sequence[int], out: np.ndarray) -> None:
        """Read slices of a block side by side into ``out``."""
        try:
            checksums, item = self._checksums, self.dtype.itemsize
        except _NotWhole as error:
            raise self._damaged() from error
        (first, end), column = self.block_rows(block), 0
        with self._opened() as file:
            for number in numbers:
                start, stop = self.slice_columns(number)
                size = (end - first) * (stop - start) * item
                before = (first * self.width + start * (end - first)) * item
                raw = os.pread(file.fileno(), size, len(self._header) + before)
                if len(raw) != size or zlib.crc32(raw) != checksums[block * self.slice_count + number]:
                    raise self._damaged()
                tile = np.frombuffer(raw, dtype=self.dtype).reshape(end - first, stop - start)
                _copy_rows(tile, out[:, column : column + stop - start])
                column += stop - start

    @cached_property
    def _checksums(self) -> np.ndarray:
        """(tiles,) CRC-32. Raises ``_NotWhole`` if the header differs or the checksums are damaged."""
        place, size = len(self._header) + self.tile_bytes, 4 * self.tile_count
        with self._opened() as file:
            header = os.pread(file.fileno(), len(self._header), 0)
            content, last = os.pread(file.fileno(), size, place), os.pread(file.fileno(), 4, place + size)
        if header != self._header or last != _checksum(header, content):
            raise _NotWhole
        return np.frombuffer(content, dtype="<u4")

    def _opened(self) -> BinaryIO:
        try:
            return open(self.path, "rb", buffering=0)
        except FileNotFoundError as error:
            raise DamagedFile(f"{self.path} is missing: start again, and it is computed again.") from error
        except OSError as error:
            raise InputError(
                f"{self.path} cannot be read ({error.strerror}): start again, and it is computed again."
            ) from error

    def _damaged(self) -> InputError:
        """Remove the file, because the next run would read it again, and return the error to raise."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            return InputError(
                f"{self.path} is damaged and cannot be removed ({error.strerror}): delete it and start again "
                "(--resume), and it is computed again."
            )
        return DamagedFile(f"{self.path} is damaged and was removed: start again (--resume), and it is computed again.")


def write_with_room(path: Path, fill: Callable[[BinaryIO], None]) -> None:
    """Write a file durably; a full disk raises :class:`DiskFull`."""
    try:
        write_durably(path, fill)
    except InputError as error:
        if isinstance(error.__cause__, OSError) and error.__cause__.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(
                f"the disk of {path.parent} is full: make room and start again, which goes on where it stopped."
            ) from error
        raise


def _copy_rows(values: np.ndarray, out: np.ndarray) -> None:
    """Copy values to ``out``. Rows of the same type are copied as bytes, which is twice as fast."""
    size = values.shape[1] * values.itemsize
    if values.dtype == out.dtype and all(each.size and each.strides[1] == each.itemsize for each in (values, out)):
        np.copyto(out.view(f"V{size}"), values.view(f"V{size}"))
    else:
        np.copyto(out, values, casting="same_kind")


def _checksum(*parts: bytes) -> bytes:
    value = 0
    for part in parts:
        value = zlib.crc32(part, value)
    return value.to_bytes(4, "little")
