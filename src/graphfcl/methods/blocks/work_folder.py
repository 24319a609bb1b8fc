"""The folder of a large graph's intermediate arrays, stored under keys that identify their inputs.

A file that exists under its key is never computed again, so a killed run continues where it stopped. Other settings,
another graph, or another visible part of it give other keys.
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

FORMAT = 2  # version of the computations; with another version, everything is computed again
IN_USE = "in-use"  # lock file of processes that need a folder to stay
COMPUTING = "computing"  # lock file of the process that computes in a work folder
HALF_WRITTEN = re.compile(r"\.(.+\.arrays|(part|slice)-\d+)\.[\w-]+\.\d+\.[0-9a-f]{16}\.tmp")  # see temporary_beside
MAGIC = b"graphfcl arrays 1"
SHORT = 16  # digits of a key in a folder name; each file contains the whole key

Arrays = dict[str, np.ndarray]


def key_of(**values: Any) -> str:
    """Compute a key from values: a SHA-256 digest."""
    return sha256_of(canonical_json({**values, "format": FORMAT}))


def arrays_key(arrays: Mapping[str, np.ndarray]) -> str:
    """Compute a key from the names, types, shapes and contents of arrays."""
    listed = [(name, each.dtype.str, each.shape, sha256_of(each.tobytes())) for name, each in sorted(arrays.items())]
    return sha256_of(canonical_json(listed))


_own: dict[Path, Any] = {}  # thread lock for each lock file that this process used
_held: set[Path] = set()  # lock files that this process holds
_own_lock = threading.Lock()  # protects ``_own``


@contextmanager
def alone_in(work: Path) -> Iterator[None]:
    """Hold the lock of a work folder, so that one process at a time computes in it.

    A second process waits, and then finds the files of the first one. Half-written files of killed processes are
    removed first. The lock is reentrant, and is released when the process ends.
    """
    path = work.resolve() / COMPUTING
    with _own_lock:
        own = _own.setdefault(path, threading.RLock())
    with own:  # other threads of this process wait here
        if path in _held:
            yield
            return
        with open_lock(path) as lock:
            if not take_lock(lock.fileno(), path):
                warnings.warn(f"another process is using {work}: waiting until it has finished.", GraphfclWarning, 3)
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
    """Hold the lock of a graph's work folder. A graph in memory has no work folder, and no lock is taken."""
    return nullcontext() if graph.work is None else alone_in(graph.work)


@dataclass(frozen=True)
class WorkFolder:
    """A folder of tables and small arrays of one or more graphs. One process computes in it at a time."""

    path: Path

    def table(
        self, phase: str, key: str, rows: int, columns: int, *, kind: str = "<f4", by: Literal["slices", "parts"]
    ) -> StoredTable:
        """Return the location of a table. ``phase`` is a readable prefix of its name."""
        return StoredTable(self.path / f"{phase}-{key[:SHORT]}", key, rows, columns, kind, by)

    def arrays(self, phase: str, key: str, compute: Callable[[], Arrays]) -> Arrays:
        """Read small arrays, or compute and write them."""
        path = self.path_of(phase, key)
        stored = read_arrays(path, key)
        if stored is None:
            write_arrays(path, key, compute())
            stored = read_arrays(path, key)
            assert stored is not None
        return stored

    def path_of(self, phase: str, key: str) -> Path:
        """Return the file of small arrays."""
        return self.path / f"{phase}-{key[:SHORT]}.arrays"

    def put(self, phase: str, arrays: Arrays) -> "StoredArrays":
        """Write arrays for tasks to read. Equal arrays are written once."""
        key = arrays_key(arrays)
        stored = StoredArrays(self.path_of(phase, key), key)
        if read_arrays(stored.path, key) is None:
            write_arrays(stored.path, key, arrays)
        return stored


@dataclass(frozen=True)
class StoredArrays:
    """A reference to arrays in a file, which is passed to tasks."""

    path: Path
    key: str

    def read(self) -> Arrays:
        stored = read_arrays(self.path, self.key)
        if stored is None:
            raise DamagedFile(f"{self.path} is missing or damaged: start again, and it is computed again.")
        return stored


def write_arrays(path: Path, key: str, arrays: Mapping[str, np.ndarray]) -> None:
    """Write a file durably with arrays by name, their key, and a checksum."""
    from safetensors.numpy import save

    content = save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, {"key": key})
    check = zlib.crc32(content).to_bytes(4, "little")

    def fill(file: Any) -> None:
        file.write(MAGIC + check)
        file.write(content)

    write_with_room(path, fill)


def read_arrays(path: Path, key: str) -> Arrays | None:
    """Read a file of arrays; None if it is missing, damaged, or has another key."""
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
