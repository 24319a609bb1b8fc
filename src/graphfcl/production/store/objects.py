"""Content by its checksum: an object never changes, and equal content is stored once.

The name of an object is the SHA-256 of its content. Its file begins with one byte: ``0``, and the content follows as it
is, or ``z``, and it follows compressed by zlib. What is larger than ``SMALL`` is compressed at most ``RATIO`` times, so
that a small file cannot become a large array.
"""

import re
import stat
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from graphfcl.production.store.damage import Damaged, need
from graphfcl.runtime.files import flush_folder, sha256_of, write_bytes

SMALL = 1 << 16
RATIO = 16
SAMPLE = 1 << 14  # bytes that show whether compressing is worth its time
WORTH = 0.9
NAME = re.compile(r"[0-9a-f]{64}")


@dataclass
class ReadCounter:
    """How many bytes of files were read."""

    read: int = 0

    def add(self, count: int) -> None:
        self.read += count


def read_file(path: Path, most: int, counter: ReadCounter) -> bytes:
    """The content of a file that has at most so many bytes."""
    try:
        found = path.stat()
        need(stat.S_ISREG(found.st_mode), "is no file")
        need(found.st_size <= most, "is too long")
        with open(path, "rb") as file:
            content = file.read(found.st_size)
    except OSError as error:
        raise Damaged("cannot be read") from error
    counter.add(len(content))
    return content


class Objects(Protocol):
    """Where objects are kept."""

    def put(self, content: bytes) -> str:
        """Keep some content; its name."""
        ...

    def get(self, name: str, size: int) -> bytes:
        """The content of a name, which must be of this size; :class:`Damaged` if it is not there or another."""
        ...

    def stored_bytes(self, names: Iterable[str]) -> int:
        """What these objects take up; :class:`Damaged` if one is missing."""
        ...


class MemoryObjects:
    """Objects in memory: for copies of a model."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}

    def put(self, content: bytes) -> str:
        name = sha256_of(content)
        self.content[name] = content
        return name

    def get(self, name: str, size: int) -> bytes:
        if len(self.content.get(name, b"")) != size:
            raise Damaged(f"the object {name[:12]} is missing")
        return self.content[name]

    def stored_bytes(self, names: Iterable[str]) -> int:
        return sum(len(self.content[name]) for name in names)


class ObjectFolder:
    """Objects as files of a folder. Those that were read or written once are known to be whole."""

    def __init__(self, path: Path, counter: ReadCounter) -> None:
        self.path, self.counter = path, counter
        self._whole: dict[str, int] = {}  # bytes of the file of each

    def put(self, content: bytes) -> str:
        name = sha256_of(content)
        if not self.is_there(name, len(content)):
            stored = packed(content)
            write_bytes(self.path / name, stored)
            self._whole[name] = len(stored)
        return name

    def is_there(self, name: str, size: int) -> bool:
        """Whether an object is in the folder. size: of its content.

        One that was read or written before must have a file of the same length; any other one is read.
        """
        try:
            if name in self._whole and (self.path / name).stat().st_size == self._whole[name]:
                return True
            self.get(name, size)
        except (Damaged, OSError):
            return False
        return True

    def get(self, name: str, size: int) -> bytes:
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise Damaged("it names a file that is no checksum")
        try:
            content = read_file(self.path / name, size + SMALL, self.counter)
        except Damaged as error:
            raise Damaged(f"its file {name} {error}") from error
        found = unpacked(content, size)
        if found is None or sha256_of(found) != name:
            raise Damaged(f"its file {name} has another checksum")
        self._whole[name] = len(content)
        return found

    def stored_bytes(self, names: Iterable[str]) -> int:
        try:
            return sum((self.path / name).stat().st_size for name in names)
        except (OSError, ValueError) as error:
            raise Damaged("one of its files is missing") from error

    def names(self) -> set[str]:
        """Of all objects in the folder."""
        return {path.name for path in self.path.glob("*") if NAME.fullmatch(path.name)}

    def flush(self) -> None:
        """Make the names of all objects last: one found here may come from a writer that was killed before that."""
        self.path.mkdir(exist_ok=True)
        flush_folder(self.path)


def packed(content: bytes) -> bytes:
    """What the file of some content holds."""
    if len(content) > 256 and len(zlib.compress(content[:SAMPLE], 1)) < WORTH * min(len(content), SAMPLE):
        shorter = zlib.compress(content, 1)
        if len(shorter) < WORTH * len(content) and (len(content) <= SMALL or len(content) <= RATIO * len(shorter)):
            return b"z" + shorter
    return b"0" + content


def unpacked(content: bytes, size: int) -> bytes | None:
    """The content of a file, if it is of this size; never makes more than that."""
    if content[:1] == b"0":
        return content[1:] if len(content) == size + 1 else None
    if content[:1] != b"z" or (size > SMALL and size > RATIO * len(content)):
        return None
    reader = zlib.decompressobj()
    try:
        found = reader.decompress(content[1:], size + 1)
    except zlib.error:
        return None
    return found if len(found) == size and reader.eof and not reader.unused_data else None
