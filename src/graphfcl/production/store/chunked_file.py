"""A file of arrays that is mapped into memory: each array in chunks with checksums, verified when they are touched.

::

    "graphfc2"  8 bytes: length of the header  32 bytes: SHA-256 of the header  header (JSON)
    arrays, each beginning at a multiple of 64

The header holds plain ``values``, and of each array type, shape, place, bytes of a chunk, and the checksums of its
chunks: SHA-256, the first 16 bytes of it. Such a file is written once and replaced as a whole.
"""

import hashlib
import math
import mmap
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from graphfcl.production.store.block_arrays import AXES, DTYPES
from graphfcl.production.store.damage import Damaged, need
from graphfcl.production.store.objects import ReadCounter
from graphfcl.production.store.strict_json import read_json, whole_number
from graphfcl.runtime.files import canonical_json, sha256_of, write_durably

MAGIC = b"graphfc2"
START = len(MAGIC) + 8 + 32
SHORT, LONG = 1 << 15, 1 << 20  # bytes of a chunk: of arrays of which single rows are asked for, and of the others
WHOLE_ABOVE = 1 << 11  # bytes of a row above which an array is read as a whole
DIGEST = 16
PAGE = 64
LARGEST_HEADER = 1 << 28


def write_chunked(path: Path, values: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write such a file aside, flush it and move it into place."""
    plain = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    described, place = {}, 0
    for name, array in plain.items():
        row = array.itemsize * math.prod(array.shape[1:])
        size = LONG if row > WHOLE_ABOVE else SHORT
        described[name] = {
            "dtype": array.dtype.str,
            "shape": list(array.shape),
            "place": place,
            "chunk": size,
            "digests": "".join(_digest(chunk) for chunk in _chunks(array, size)),
        }
        place += -(-array.nbytes // PAGE) * PAGE
    header = canonical_json({"values": values, "arrays": described})

    def write(file: BinaryIO) -> None:
        file.write(MAGIC + len(header).to_bytes(8, "little") + bytes.fromhex(sha256_of(header)) + header)
        file.write(bytes(-(START + len(header)) % PAGE))
        for array in plain.values():
            for chunk in _chunks(array, LONG):
                file.write(chunk)
            file.write(bytes(-array.nbytes % PAGE))

    write_durably(path, write)


class ChunkedFile:
    """Such a file, opened to be read. What is damaged is said when it is touched, as :class:`Damaged`."""

    def __init__(self, path: Path, counter: ReadCounter) -> None:
        self._counter = counter
        try:
            found = path.stat()
            need(stat.S_ISREG(found.st_mode), "it is no file")
            with open(path, "rb") as file:
                start = file.read(START)
                size = int.from_bytes(start[len(MAGIC) : len(MAGIC) + 8], "little")
                known = start[: len(MAGIC)] == MAGIC and size <= min(LARGEST_HEADER, found.st_size)
                need(known, "it is no file of this kind")
                header = file.read(size)
                need(sha256_of(header) == start[-32:].hex(), "its header has another checksum")
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise error if isinstance(error, Damaged) else Damaged("it cannot be read") from error
        counter.add(START + size)
        said = read_json(header)
        self.values: dict[str, Any] = said["values"]
        first = START + size + -(START + size) % PAGE
        self._arrays = {name: ChunkedArray(self._map, how, first, counter) for name, how in said["arrays"].items()}

    def __getitem__(self, name: str) -> "ChunkedArray":
        if name not in self._arrays:
            raise Damaged(f"it lacks {name!r}")
        return self._arrays[name]


class ChunkedArray:
    """One array of such a file."""

    def __init__(self, content: mmap.mmap, how: Any, first: int, counter: ReadCounter) -> None:
        need(isinstance(how, dict) and how.get("dtype") in DTYPES, "an array has a type that is not known")
        self.dtype, shape = np.dtype(how["dtype"]), how.get("shape")
        need(isinstance(shape, list) and 0 < len(shape) <= AXES, "an array has no shape")
        self.shape = tuple(whole_number(axis, "the shape of an array", 0, 2**40) for axis in shape)
        self._row = self.dtype.itemsize * math.prod(self.shape[1:])
        self._size = self._row * self.shape[0]
        self._chunk = whole_number(how.get("chunk"), "the size of a chunk", 1, LONG)
        self._start = first + whole_number(how.get("place"), "the place of an array")
        need(self._start + self._size <= len(content), "it is shorter than it says")
        count = -(-self._size // self._chunk)
        self._digests = bytes.fromhex(str(how.get("digests")))
        need(len(self._digests) == DIGEST * count, "it lacks checksums")
        self._content, self._counter = content, counter
        self._verified = np.zeros(count, dtype=bool)

    def rows(self, start: int, end: int) -> np.ndarray:
        """Some rows, verified; a view into the file."""
        need(0 <= start <= end <= self.shape[0], "it has no such rows")
        low, high = start * self._row, end * self._row
        for chunk in range(low // self._chunk, -(-high // self._chunk)):
            if not self._verified[chunk]:
                self._verify(chunk)
        if low == high:
            return np.empty((end - start, *self.shape[1:]), self.dtype)
        flat = np.frombuffer(self._content, self.dtype, (high - low) // self.dtype.itemsize, self._start + low)
        return flat.reshape(end - start, *self.shape[1:])

    def whole(self) -> np.ndarray:
        """All rows."""
        return self.rows(0, self.shape[0])

    def _verify(self, chunk: int) -> None:
        start = self._start + chunk * self._chunk
        content = self._content[start : min(start + self._chunk, self._start + self._size)]
        self._counter.add(len(content))
        need(_digest(content) == self._digests[DIGEST * chunk : DIGEST * (chunk + 1)].hex(), "it has another checksum")
        self._verified[chunk] = True


def _chunks(array: np.ndarray, size: int) -> list[memoryview]:
    plain: Any = array.reshape(-1).view(np.uint8)
    flat = memoryview(plain)
    return [flat[start : start + size] for start in range(0, array.nbytes, size)]


def _digest(content: Any) -> str:
    return hashlib.sha256(content).hexdigest()[: 2 * DIGEST]
