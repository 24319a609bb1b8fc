"""Files: atomic durable writes, reads with clear errors, locks and hashes."""

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

POLL = 0.05  # seconds between two looks at a lock that another process holds
LOCKED_BYTE = 1 << 30  # which byte of a file is locked on Windows, where others cannot read a locked byte
WITHOUT_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOLCK)  # what a file system without locks says


def write_durably(path: str | Path, write: Callable[[BinaryIO], object]) -> None:
    """Call ``write`` on a temporary file beside ``path``, flush it to the disk, and move it into place."""
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
            "write to; what stood there before is unchanged."
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
    """A name beside a file that no other process has, on this machine or on another that sees the folder.

    Two containers may have the same process ids, and even the same host name: random digits come last.
    """
    name = os.fsencode(path.name)[:100].decode(errors="ignore")  # a name has room for 255 bytes
    host = re.sub(r"[^\w-]", "-", socket.gethostname(), flags=re.ASCII)[:40]
    return path.with_name(f".{name}.{host}.{os.getpid()}.{secrets.token_hex(8)}.tmp")


def make_folder(folder: Path) -> None:
    """Make a folder and those above it that are missing; their names last through a power cut."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(exist_ok=True)
        flush_folder(each.parent)


def need_folder(folder: Path, what: str) -> None:
    """:func:`make_folder` of a folder that a user named. what: the option or the words that name it in the message."""
    try:
        make_folder(folder)
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    except OSError as error:
        raise InputError(
            f"{what} {folder} cannot be made ({error.strerror or error}): name a folder that you may write to."
        ) from error


def write_bytes(path: str | Path, content: bytes) -> None:
    """:func:`write_durably` with the content at hand."""
    write_durably(path, lambda file: file.write(content))


def flush_folder(folder: Path) -> None:
    """Make a rename inside ``folder`` last through a power cut; nothing to do where folders cannot be opened."""
    if not folders_can_be_opened():
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def folders_can_be_opened() -> bool:
    """Whether a folder is a file to the system, which can be flushed and locked; not so on Windows."""
    return fcntl is not None


def read_bytes(path: str | Path, what: str) -> bytes:
    """The content of a file; ``what`` names it in the message when it cannot be read."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError as error:
        raise InputError(f"{what} {path} does not exist: check the path.") from error
    except OSError as error:
        raise InputError(f"{what} {path} cannot be read ({error.strerror}): check the path and its rights.") from error


def sha256_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def canonical_json(values: Any, *, ascii_only: bool = True) -> bytes:
    """JSON that is the same for the same values: sorted keys, no white space."""
    return json.dumps(values, sort_keys=True, ensure_ascii=ascii_only, separators=(",", ":")).encode()


def safetensors_header(content: bytes) -> dict[str, str]:
    """The texts in the header of a safetensors file; ValueError, KeyError or TypeError if it is none."""
    size = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + size])["__metadata__"]


@contextmanager
def file_lock(path: str | Path, *, wait: float | None = None) -> Iterator[bool]:
    """Whether this process alone holds the lock of a file while the context lasts.

    wait: seconds to wait for another process; 0 asks once, None waits for ever. The lock goes with the process.
    """
    with open(path, "ab", opener=_open_itself) as lock:
        yield _locked(lock.fileno(), Path(path), wait)


def _open_itself(path: str, flags: int) -> int:
    """Open a file, neither the target of a link nor a pipe without a reader. Windows has neither flag."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0), 0o666)


class SharedLock:
    """A lock that every user of a folder holds; a process that holds it alone may delete there."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor, self._path = descriptor, path

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Whether no other process holds the lock; if so, none can take it while the context lasts."""
        is_alone = take_lock(self._descriptor, self._path)
        try:
            yield is_alone
        finally:
            take_lock(self._descriptor, self._path, blocking=True, shared=True)


def open_lock(path: Path) -> BinaryIO:
    """The file of a lock in a work folder, which is made if need be."""
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
    """Hold the lock of a file in a work folder together with others. It goes with the process."""
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
    """Lock an open file; False if another process holds its lock and this one does not wait.

    shared: others may hold it in this way at the same time; Windows has no shared locks, so there it is exclusive.
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
    """:func:`take_lock` by the locks of Windows, which are of bytes and are refused rather than waited for."""
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
