"""Raw files of a graph folder: arrays of numbers with a checksum for each block of bytes.

A checksum is the first 16 bytes of SHA-256. Together the checksums of a file identify its content.
"""

import hashlib
import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.errors import InputError

BLOCK = 1 << 22  # bytes per checksum
SMALL_BLOCK = 1 << 16  # bytes per checksum in files with random access
DIGEST = 16  # bytes of a checksum


@dataclass(frozen=True)
class FileEntry:
    """Entry of a file in the manifest: type and number of its items, bytes per checksum, and checksums."""

    dtype: str
    items: int
    block: int
    checksums: tuple[str, ...]

    @property
    def byte_count(self) -> int:
        return self.items * np.dtype(self.dtype).itemsize


class BlockWriter:
    """Appends numbers to a file and computes its checksums."""

    def __init__(self, path: Path, dtype: str, block: int = BLOCK) -> None:
        self.path, self.dtype, self.block = path, np.dtype(dtype), block
        self._file = open(path, "wb", buffering=0)  # noqa: SIM115 (closed by close)
        self._items, self._in_block = 0, 0
        self._hash = hashlib.sha256()
        self._checksums: list[str] = []

    def append(self, values: np.ndarray) -> None:
        """Write the numbers of an array, in C order."""
        plain: Any = np.ascontiguousarray(values, dtype=self.dtype).reshape(-1)
        content = memoryview(plain.view(np.uint8))
        self._items += plain.size
        start = 0
        while start < len(content):
            part = content[start : start + self.block - self._in_block]
            written = self._file.write(part) or 0
            self._hash.update(part[:written])
            self._in_block += written
            start += written
            if self._in_block == self.block:
                self._end_block()

    def close(self) -> FileEntry:
        """Flush the file to the disk and return its entry."""
        if self._in_block:
            self._end_block()
        os.fsync(self._file.fileno())
        self._file.close()
        return FileEntry(self.dtype.str, self._items, self.block, tuple(self._checksums))

    def abandon(self) -> None:
        """Close the file without an entry. Closing it again does nothing."""
        self._file.close()

    def _end_block(self) -> None:
        self._checksums.append(self._hash.hexdigest()[: 2 * DIGEST])
        self._hash, self._in_block = hashlib.sha256(), 0


class BlockReader:
    """Reads ranges of a file into new arrays. Each block is compared with its checksum when it is first read.

    The file is not memory-mapped, because mapped pages would count as memory of the process.
    """

    def __init__(self, path: Path, entry: FileEntry) -> None:
        self.path, self.entry, self.dtype = path, entry, np.dtype(entry.dtype)
        self._verified = np.zeros(len(entry.checksums), dtype=bool)
        try:
            self._descriptor = os.open(path, os.O_RDONLY)
        except OSError as error:
            self._descriptor = -1
            raise InputError(
                f"{path} cannot be read ({error.strerror}): it belongs to the graph folder; copy the folder again."
            ) from error
        size = os.fstat(self._descriptor).st_size
        if size != entry.byte_count:
            raise InputError(
                f"{path} has {size:,} bytes in place of {entry.byte_count:,}: it was cut or changed; copy it again or "
                "import the graph again."
            )

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return the numbers at positions ``start`` to ``stop`` - 1."""
        if not 0 <= start <= stop <= self.entry.items:
            raise InputError(f"{self.path} has no items {start} to {stop}: the files of the graph folder do not match.")
        size, block = self.dtype.itemsize, self.entry.block
        low, high = start * size, stop * size
        first, last = low // block, -(-high // block)
        if self._verified[first:last].all():
            return self._bytes(low, high).view(self.dtype)
        begin = first * block
        content = self._bytes(begin, min(last * block, self.entry.byte_count))
        for number in range(first, last):
            if not self._verified[number]:
                self._verify(number, content[number * block - begin :][:block])
        return content[low - begin : high - begin].view(self.dtype)

    def take(self, places: np.ndarray) -> np.ndarray:
        """Return the numbers at (m,) positions in any order; each block is read once."""
        per_block = max(1, self.entry.block // self.dtype.itemsize)
        order = np.argsort(places, kind="stable")
        ordered = np.asarray(places)[order]
        values = np.empty(ordered.size, dtype=self.dtype)
        blocks = ordered // per_block
        cuts = np.append(np.flatnonzero(np.diff(blocks, prepend=-1)), ordered.size)
        for low, high in pairwise(cuts.tolist()):
            start = int(ordered[low])
            values[order[low:high]] = self.read(start, int(ordered[high - 1]) + 1)[ordered[low:high] - start]
        return values

    def verify(self) -> None:
        """Compare all blocks with their checksums, including blocks that were read before."""
        block = self.entry.block
        for number in range(len(self.entry.checksums)):
            start = number * block
            self._verify(number, self._bytes(start, min(start + block, self.entry.byte_count)))

    def _bytes(self, low: int, high: int) -> np.ndarray:
        content: Any = np.empty(high - low, dtype=np.uint8)
        buffer: Any = memoryview(content)
        done = 0
        while done < len(buffer):
            try:
                count = os.preadv(self._descriptor, [buffer[done : done + (1 << 30)]], low + done)
            except OSError as error:
                raise InputError(f"{self.path} cannot be read ({error.strerror}): check the disk.") from error
            if count == 0:
                raise InputError(f"{self.path} ends too early: it was cut; copy it again or import the graph again.")
            done += count
        return content

    def _verify(self, number: int, content: np.ndarray) -> None:
        checksum = hashlib.sha256(content.data).hexdigest()[: 2 * DIGEST]
        if checksum != self.entry.checksums[number]:
            raise InputError(
                f"{self.path} was changed (block {number} has another checksum): copy it again or import the graph "
                "again."
            )
        self._verified[number] = True
