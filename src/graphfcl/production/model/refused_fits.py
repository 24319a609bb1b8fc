"""A fit that is refused leaves nothing behind; one that can go on keeps what it has."""

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

from graphfcl.errors import InputError
from graphfcl.methods.blocks.tile_files import DiskFull
from graphfcl.methods.blocks.work_folder import COMPUTING
from graphfcl.runtime.files import file_lock


class LeavingNothing:
    """A context: if an :class:`InputError` ends it, all that was made below a folder since the object was made goes.

    So do folders above it that were not there. Whoever uses it makes sure that no other process writes there.

    keep: whether there is something to go on with, so that all of it stays; it stays on a full disk too.
    """

    def __init__(self, folder: Path, *, keep: Callable[[], bool]) -> None:
        self._folder, self._keep = folder, keep
        self._missing = [each for each in (folder, *folder.parents) if not each.exists()]
        self._before = set(folder.rglob("*"))

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, InputError) or isinstance(error, DiskFull) or self._keep():
            return
        made = set(self._folder.rglob("*")) - self._before
        for path in made:
            if path.parent in made:  # it goes with its folder
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        with suppress(OSError):  # a folder that is not empty stays
            for each in self._missing:
                each.rmdir()


def tidy_work(work: Path | None, keep: Callable[[], bool]) -> AbstractContextManager[None]:
    """The same for a work folder that is not there yet; it stays if another process computes in it by then."""
    if work is None or work.exists():
        return nullcontext()
    return LeavingNothing(work, keep=lambda: keep() or _somebody_computes(work))


def _somebody_computes(work: Path) -> bool:
    if not (work / COMPUTING).exists():
        return False
    with file_lock(work / COMPUTING, wait=0) as free:
        return not free
