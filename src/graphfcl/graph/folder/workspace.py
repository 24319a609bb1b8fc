"""The workspace in which a graph folder is built, and from which it is moved to its place when it is complete.

The folder ``out`` is built in ``.out.importing`` beside it. If the process is killed, that folder stays, and the next
import to ``out`` empties it and starts again.
"""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from graphfcl.errors import InputError
from graphfcl.graph.folder.blocks import BLOCK, BlockWriter, FileEntry
from graphfcl.graph.folder.manifest import Manifest, write_manifest
from graphfcl.runtime.files import file_lock, flush_folder, make_folder

LOCK, SPOOL = "lock", "spool"


class Workspace:
    """The unfinished folder, with a folder ``spool`` for temporary files."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.spool = folder, folder / SPOOL
        self._writers: dict[str, BlockWriter] = {}

    def file(self, name: str, dtype: str, block: int = BLOCK) -> BlockWriter:
        """Create a file of the graph folder to append to."""
        self._writers[name] = BlockWriter(self.folder / name, dtype, block)
        return self._writers[name]

    def write(self, name: str, values: np.ndarray, dtype: str, block: int = BLOCK) -> None:
        """Write a whole file."""
        self.file(name, dtype, block).append(values)

    def drop(self, name: str) -> None:
        """Delete a file that is not needed after all."""
        self._writers.pop(name).abandon()
        (self.folder / name).unlink()

    def finish(self) -> dict[str, FileEntry]:
        """Flush all files to the disk, and return their checksums."""
        return {name: writer.close() for name, writer in self._writers.items()}

    def abandon(self) -> None:
        for writer in self._writers.values():
            writer.abandon()


@contextmanager
def workspace(out: Path) -> Iterator[Workspace]:
    """Return a context with a workspace that only this process writes to; it is deleted at the end in any case.

    Errors of the disk become an InputError.
    """
    refuse_existing(out)
    folder = out.absolute().with_name(f".{out.absolute().name}.importing")
    try:
        make_folder(folder)
        with ExitStack() as stack:
            if not stack.enter_context(file_lock(folder / LOCK, wait=0)):
                raise InputError(f"another process is importing to {out}: wait for it, or choose another folder.")
            refuse_existing(out)
            _empty(folder)
            space = Workspace(folder)
            space.spool.mkdir()
            try:
                yield space
            finally:
                space.abandon()
                shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        raise InputError(_failure(out, error)) from error


def publish(space: Workspace, manifest: Manifest, out: Path) -> None:
    """Write the manifest and move the folder to ``out``."""
    shutil.rmtree(space.spool)
    (space.folder / LOCK).unlink()
    write_manifest(space.folder, manifest)
    flush_folder(space.folder)
    try:
        os.rename(space.folder, out.absolute())
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            refuse_existing(out)
        raise
    flush_folder(out.absolute().parent)


def refuse_existing(out: Path) -> None:
    """Raise an InputError if ``out`` exists and is not an empty folder."""
    if out.is_dir() and not any(out.iterdir()):
        return
    if out.exists() or out.is_symlink():
        raise InputError(f"{out} exists already: name another folder, or remove it first.")


def _empty(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.name == LOCK:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _failure(out: Path, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return (
            f"the disk is full ({error.strerror}) while {out} is written: free some space or choose another disk; "
            "nothing was left behind."
        )
    return f"{out} cannot be written ({error.strerror or error}): choose a folder that you may write to."
