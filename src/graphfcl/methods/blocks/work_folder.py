"""Where a large graph's intermediate arrays lie, each under a key that says of what it was computed.

A file that is there under its key is never computed again: a run that was killed goes on where it stopped. Other
settings, another graph or another visible part of it are other keys.
"""

import re
import threading
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from graphfcl.errors import GraphfclWarning
from graphfcl.methods.blocks.damaged_files import DamagedFile
from graphfcl.methods.blocks.stored_table import StoredTable
from graphfcl.methods.blocks.tile_files import write_with_room
from graphfcl.runtime.files import canonical_json, open_lock, safetensors_header, sha256_of, take_lock

if TYPE_CHECKING:  # stored answers are read without scipy
    from graphfcl.graph.interfaces import AnyGraph

FORMAT = 2  # of what phases compute: another one computes everything again
IN_USE = "in-use"  # the name of the lock of those who need a folder to stay
COMPUTING = "computing"  # the name of the lock of the one who computes in a work folder
HALF_WRITTEN = re.compile(r"\.(.+\.arrays|(part|slice)-\d+)\.[\w-]+\.\d+\.[0-9a-f]{16}\.tmp")  # see temporary_beside
MAGIC = b"graphfcl arrays 1"
SHORT = 16  # digits of a key in the name of a folder; the whole key is in each file

Arrays = dict[str, np.ndarray]


def key_of(**values: Any) -> str:
    """A text that differs whenever any of the values does."""
    return sha256_of(canonical_json({**values, "format": FORMAT}))


def arrays_key(arrays: Mapping[str, np.ndarray]) -> str:
    """A text that differs whenever one of some arrays does."""
    listed = [(name, each.dtype.str, each.shape, sha256_of(each.tobytes())) for name, each in sorted(arrays.items())]
    return sha256_of(canonical_json(listed))


_own: dict[Path, Any] = {}  # of each lock that a thread of this process has wanted
_held: set[Path] = set()  # those that this process holds
_looking = threading.Lock()


@contextmanager
def alone_in(work: Path) -> Iterator[None]:
    """Compute in a work folder alone; a second process waits, and then finds what the first one made.

    Files that killed processes left half-written are removed first. The lock is reentrant, and is released when the
    process ends.
    """
    path = work.resolve() / COMPUTING
    with _looking:
        own = _own.setdefault(path, threading.RLock())
    with own:  # other threads of this process wait here
        if path in _held:
            yield
            return
        with open_lock(path) as lock:
            if not take_lock(lock.fileno(), path):
                warnings.warn(f"another process computes in {work}: waiting until it has finished.", GraphfclWarning, 3)
                take_lock(lock.fileno(), path, blocking=True)
            for left in (*path.parent.glob(".*.tmp"), *path.parent.glob("*/.*.tmp")):
                if HALF_WRITTEN.fullmatch(left.name):
                    left.unlink(missing_ok=True)
            _held.add(path)
            try:
                yield
            finally:
                _held.discard(path)


def alone_on(graph: "AnyGraph") -> AbstractContextManager[None]:
    """:func:`alone_in` the work folder of a graph; nothing for one in memory, which has none."""
    return nullcontext() if graph.work is None else alone_in(graph.work)


@dataclass(frozen=True)
class WorkFolder:
    """A folder for tables and small arrays of one or more graphs. One process computes in it at a time."""

    path: Path

    def table(
        self, phase: str, key: str, rows: int, columns: int, *, kind: str = "<f4", by: Literal["slices", "parts"]
    ) -> StoredTable:
        """The place of a table; ``phase`` names it for people."""
        return StoredTable(self.path / f"{phase}-{key[:SHORT]}", key, rows, columns, kind, by)

    def arrays(self, phase: str, key: str, compute: Callable[[], Arrays]) -> Arrays:
        """Small arrays that were computed before, or are now."""
        path = self.path_of(phase, key)
        stored = read_arrays(path, key)
        if stored is None:
            write_arrays(path, key, compute())
            stored = read_arrays(path, key)
            assert stored is not None
        return stored

    def path_of(self, phase: str, key: str) -> Path:
        """The file of small arrays."""
        return self.path / f"{phase}-{key[:SHORT]}.arrays"

    def put(self, phase: str, arrays: Arrays) -> "StoredArrays":
        """Write arrays for tasks to read; the same ones are written once."""
        key = arrays_key(arrays)
        stored = StoredArrays(self.path_of(phase, key), key)
        if read_arrays(stored.path, key) is None:
            write_arrays(stored.path, key, arrays)
        return stored


@dataclass(frozen=True)
class StoredArrays:
    """Arrays in a file, as a task is handed them."""

    path: Path
    key: str

    def read(self) -> Arrays:
        stored = read_arrays(self.path, self.key)
        if stored is None:
            raise DamagedFile(f"{self.path} is missing or damaged: start again, and it is computed again.")
        return stored


def write_arrays(path: Path, key: str, arrays: Mapping[str, np.ndarray]) -> None:
    """One file, durably: arrays by name, their key, and a checksum."""
    from safetensors.numpy import save

    content = save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, {"key": key})
    check = zlib.crc32(content).to_bytes(4, "little")

    def fill(file: Any) -> None:
        file.write(MAGIC + check)
        file.write(content)

    write_with_room(path, fill)


def read_arrays(path: Path, key: str) -> Arrays | None:
    """The reverse; None if the file is missing, damaged, or of another key."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        content = path.read_bytes()
    except OSError:
        return None
    start = len(MAGIC) + 4
    body = memoryview(content)[start:]
    if content[: len(MAGIC)] != MAGIC or zlib.crc32(body) != int.from_bytes(content[len(MAGIC) : start], "little"):
        return None
    plain = bytes(body)
    try:
        return load(plain) if safetensors_header(plain).get("key") == key else None
    except (AttributeError, LookupError, SafetensorError, TypeError, ValueError):
        return None
