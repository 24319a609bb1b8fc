"""One writer at a time, also if somebody removes the lock file while it is held."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from graphfcl.errors import InputError
from graphfcl.runtime.files import POLL, folders_can_be_opened, make_folder, take_lock


class WriterLock:
    """The lock of a folder: its file ``lock``, and the folder ``versions`` as a second guard.

    Whoever finds that the file was removed or replaced makes another one and locks that; but the second guard is still
    held by the first writer, and a folder with versions in it is not removed by a slip. Both go with the process.
    On Windows the file alone is locked: there nobody can remove a file that is open.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._held: list[int] = []

    @contextmanager
    def hold(self, wait: float) -> Iterator[bool]:
        """Whether this process alone writes while the context lasts. wait: seconds to wait for another."""
        until = time.monotonic() + wait
        while not self._take():
            if time.monotonic() >= until:
                yield False
                return
            time.sleep(POLL)
        try:
            yield True
        finally:
            self._release()

    def check(self) -> None:
        """Refuse to go on if what is locked is not what lies there any more."""
        places = (self.folder / "lock", self.folder / "versions")
        if not any(_is_file_of(descriptor, path) for descriptor, path in zip(self._held, places, strict=False)):
            raise InputError(
                f"{self.folder} was moved or replaced while it was being changed: check what lies there and try again; "
                "nothing was changed."
            )

    def _take(self) -> bool:
        """Take both locks, or none."""
        if self._held:  # by this very object
            return False
        make_folder(self.folder / "versions")
        taken: list[int] = []
        try:
            taken.append(os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666))
            if folders_can_be_opened():
                taken.append(os.open(self.folder / "versions", os.O_RDONLY))
            # Between opening and locking, the file may have been removed and made again by another writer.
            if all(take_lock(each, self.folder) for each in taken) and _is_file_of(taken[0], self.folder / "lock"):
                self._held, taken = taken, []
        finally:
            _close(taken)
        return bool(self._held)

    def _release(self) -> None:
        _close(self._held)
        self._held = []


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        with suppress(OSError):
            os.close(descriptor)


def _is_file_of(descriptor: int, path: Path) -> bool:
    """Whether an open file is the one that lies at a path now."""
    try:
        there, ours = os.stat(path), os.fstat(descriptor)
    except OSError:
        return False
    return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)
