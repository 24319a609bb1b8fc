"""Read one array of an ``.npz`` archive in blocks. Pickled objects are never loaded."""

import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

import numpy as np

from graphfcl.errors import InputError

DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError, ValueError)
PASSED_AT_ONCE = 1 << 20  # bytes


def array_names(path: str | Path) -> set[str]:
    """Return the names of the arrays of an archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {name.removesuffix(".npy") for name in archive.namelist()}
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist: check the path.") from error
    except (zipfile.BadZipFile, OSError) as error:
        raise InputError(f"{path} is not an .npz archive, or is truncated or damaged: copy it again.") from error


class ArrayStream:
    """The array ``name`` of an archive; shape and type come from its header."""

    def __init__(self, path: str | Path, name: str) -> None:
        self.path, self.name = path, name
        try:
            with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as file:
                version = np.lib.format.read_magic(file)
                header = (
                    np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                )
                self.shape, self.by_columns, self.dtype = header(file)
                self._start = file.tell()
        except FileNotFoundError as error:
            raise InputError(f"{path} does not exist: check the folder.") from error
        except KeyError as error:
            raise InputError(f"{path} has no array {name!r}: it is not in the expected layout.") from error
        except DAMAGE as error:
            raise self._damaged() from error
        if self.dtype.hasobject:
            raise InputError(
                f"{path} holds {name!r} as a pickled object, which is never loaded: save it as a plain array."
            )
        if self.dtype.kind not in "biuf":
            raise InputError(f"{path}: {name!r} holds {self.dtype}, not numbers: save it again.")
        self.by_columns &= len(self.shape) > 1
        self.size = int(np.prod(self.shape, dtype=np.int64))

    def blocks(self, items: int, start: int = 0, stop: int | None = None) -> Iterator[np.ndarray]:
        """Yield numbers ``start`` to ``stop`` - 1 in the order of the file, at most ``items`` in a block."""
        stop = self.size if stop is None else stop
        return self.pieces((min(items, stop - at) for at in range(start, stop, items)), start)

    def pieces(self, sizes: Iterable[int], start: int = 0) -> Iterator[np.ndarray]:
        """Yield numbers from ``start`` on in the order of the file, in blocks of these sizes."""
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(f"{self.name}.npy") as file:
                _pass_over(file, self._start + start * self.dtype.itemsize)
                for size in sizes:
                    content = file.read(size * self.dtype.itemsize)
                    if len(content) < size * self.dtype.itemsize:
                        raise self._damaged()
                    yield np.frombuffer(content, self.dtype)
        except DAMAGE as error:
            raise error if isinstance(error, InputError) else self._damaged() from error

    def rows(self, items: int) -> Iterator[np.ndarray]:
        """Yield (rows, d) blocks of about ``items`` numbers of a matrix that is stored by rows."""
        if len(self.shape) != 2:
            raise InputError(f"{self.path}: {self.name!r} has shape {self.shape}, it must be a matrix: save it again.")
        if self.by_columns:
            raise InputError(
                f"{self.path} stores {self.name!r} by columns (Fortran order): save it again as "
                "numpy.ascontiguousarray of it."
            )
        width = self.shape[1]
        for block in self.blocks(max(1, items // max(1, width)) * width) if width else ():
            yield block.reshape(-1, width)

    def _damaged(self) -> InputError:
        return InputError(f"{self.path} is truncated or damaged at {self.name!r}: copy or download it again.")


def _pass_over(file: IO[bytes], count: int) -> None:
    """Skip bytes by reading them. From Python 3.13 on, `seek` would disable the checksum of the array."""
    while count > 0:
        passed = len(file.read(min(count, PASSED_AT_ONCE)))
        if not passed:
            raise EOFError
        count -= passed
