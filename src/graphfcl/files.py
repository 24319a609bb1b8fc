"""Writing files so that a reader finds the old content or the new, never half of either."""

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from graphfcl.errors import InputError


def write_durably(path: str | Path, write: Callable[[BinaryIO], object]) -> None:
    """Call ``write`` on a temporary file beside ``path``, flush it to the disk, and move it into place."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        flush_folder(path.parent)
    except OSError as error:
        raise InputError(
            f"{path} cannot be written ({error.strerror or error}): choose a folder with free space that you may "
            "write to; what stood there before is unchanged."
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def flush_folder(folder: Path) -> None:
    """Make a rename inside ``folder`` last through a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
