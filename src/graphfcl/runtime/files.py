"""Atomic and durable writes, reads with clear errors, file locks and hashes."""

import errno
import hashlib
import importlib
import json
import os
import re
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from graphfcl.errors import InputError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

POLL = 0.05  # seconds between two attempts to take a lock
LOCKED_BYTE = 1 << 30  # byte that is locked on Windows, far beyond the content, as locked bytes cannot be read
WITHOUT_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOLCK)  # errors of file systems without locks


def write_durably(path: str | Path, write: Callable[[BinaryIO], object]) -> None:
    """Call ``write`` with a temporary file beside ``path``, flush it to the disk, and rename it to ``path``."""
    path = Path(path)
    temporary = temporary_beside(path)
    try:
        make_folder(path.parent)
        with open(temporary, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise InputError(
            f"{path} cannot be written ({error.strerror or error}): choose a folder with free space that you may "
            "write to; an existing file is unchanged."
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    try:
        flush_folder(path.parent)
    except OSError as error:
        raise InputError(
            f"{path} was written, but the disk did not confirm it ({error.strerror or error}): check the disk, and "
            "write it again."
        ) from error


def temporary_beside(path: Path) -> Path:
    """Return a temporary file name beside a file that is unique among all processes and machines.

    It ends with random digits, because two containers may have the same process ids and host name.
    """
    name = os.fsencode(path.name)[:100].decode(errors="ignore")  # file names have at most 255 bytes
    host = re.sub(r"[^\w-]", "-", socket.gethostname(), flags=re.ASCII)[:40]
    return path.with_name(f".{name}.{host}.{os.getpid()}.{secrets.token_hex(8)}.tmp")


def make_folder(folder: Path) -> None:
    """Make a folder and its missing parents durably, so that they survive a power cut."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(exist_ok=True)
        flush_folder(each.parent)


def need_folder(folder: Path, what: str) -> None:
    """Make a folder that a user named; ``what`` is the option or text that names it in the message."""
    try:
        make_folder(folder)
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    except OSError as error:
        raise InputError(
            f"{what} {folder} cannot be made ({error.strerror or error}): name a folder that you may write to."
        ) from error


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write bytes as :func:`write_durably` does."""
    write_durably(path, lambda file: file.write(content))


def flush_folder(folder: Path) -> None:
    """Flush a folder, so that a rename in it survives a power cut. Does nothing on Windows."""
    if not folders_can_be_opened():
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def folders_can_be_opened() -> bool:
    """Tell whether folders can be opened, flushed and locked like files (not on Windows)."""
    return fcntl is not None


def read_bytes(path: str | Path, what: str) -> bytes:
    """Read a file; ``what`` names it in the message if it cannot be read."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError as error:
        raise InputError(f"{what} {path} does not exist: check the path.") from error
    except OSError as error:
        raise InputError(f"{what} {path} cannot be read ({error.strerror}): check the path and its rights.") from error


def sha256_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def canonical_json(values: Any, *, ascii_only: bool = True) -> bytes:
    """Return canonical JSON, with sorted keys and no white space."""
    return json.dumps(values, sort_keys=True, ensure_ascii=ascii_only, separators=(",", ":")).encode()


def safetensors_header(content: bytes) -> dict[str, str]:
    """Return the metadata in the header of a safetensors file; ValueError, KeyError or TypeError if it has none."""
    size = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + size])["__metadata__"]


@contextmanager
def file_lock(path: str | Path, *, wait: float | None = None) -> Iterator[bool]:
    """Take the exclusive lock of a file until the context ends; yield whether it was taken.

    ``wait`` is the number of seconds to wait for another process. 0 tries once, None waits without limit. The lock is
    released if the process dies.
    """
    with open(path, "ab", opener=_open_itself) as lock:
        yield _locked(lock.fileno(), Path(path), wait)


def _open_itself(path: str, flags: int) -> int:
    """Open a file without following links or waiting for a pipe (Windows has neither flag)."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0), 0o666)


class SharedLock:
    """A lock that all users of a folder hold together. A process that holds it alone may delete files in the folder."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor, self._path = descriptor, path

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Take the lock exclusively until the context ends; yield whether no other process holds it."""
        is_alone = take_lock(self._descriptor, self._path)
        try:
            yield is_alone
        finally:
            take_lock(self._descriptor, self._path, blocking=True, shared=True)


def open_lock(path: Path) -> BinaryIO:
    """Open the lock file of a work folder, and make the folder if necessary."""
    try:
        make_folder(path.parent)
        return open(path, "ab", opener=_open_itself)
    except OSError as error:
        raise InputError(
            f"the work folder {path.parent} cannot be written ({error.strerror or error}): name one that you may write "
            "to with --work."
        ) from error


@contextmanager
def shared_lock(path: Path) -> Iterator[SharedLock]:
    """Hold the shared lock of a work folder until the context ends. It is released if the process dies."""
    with open_lock(path) as lock:
        take_lock(lock.fileno(), path, blocking=True, shared=True)
        yield SharedLock(lock.fileno(), path)


def _locked(descriptor: int, path: Path, wait: float | None) -> bool:
    if wait is None:
        return take_lock(descriptor, path, blocking=True)
    until = time.monotonic() + wait
    while not take_lock(descriptor, path):
        if time.monotonic() >= until:
            return False
        time.sleep(POLL)
    return True


def take_lock(descriptor: int, path: Path, *, blocking: bool = False, shared: bool = False) -> bool:
    """Lock an open file; return False if another process holds the lock and ``blocking`` is false.

    Several processes can hold a ``shared`` lock. Windows has no shared locks, so there it is exclusive.
    """
    if fcntl is None:
        return _take_windows_lock(descriptor, path, blocking)
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(descriptor, kind if blocking else kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in WITHOUT_LOCKS:
            raise
        raise InputError(
            f"{path} cannot be locked, because its file system has no file locks ({error.strerror}): mount it with "
            "them (Lustre: option flock; NFS: without nolock, with its lock service running), or choose another folder."
        ) from error
    return True


def _take_windows_lock(descriptor: int, path: Path, blocking: bool) -> bool:
    """Take a lock on Windows, where locks apply to bytes and a waiting process must poll."""
    try:
        windows = importlib.import_module("msvcrt")
    except ImportError as error:
        raise InputError(
            f"{path} cannot be locked, because this Python has no file locks: use one for Linux, macOS or Windows."
        ) from error
    while True:
        os.lseek(descriptor, LOCKED_BYTE, os.SEEK_SET)
        try:
            windows.locking(descriptor, windows.LK_NBLCK, 1)
        except PermissionError:
            if not blocking:
                return False
            time.sleep(POLL)
        else:
            return True
