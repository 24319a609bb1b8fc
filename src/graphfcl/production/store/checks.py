"""Checks of content and files that another program may have written."""

import json
import math
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from graphfcl.errors import GraphfclError, InputError

DEEPEST = 40  # levels of lists and dictionaries in one another
JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")

UNFIT = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    OSError,
    RecursionError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""Errors that code may raise if its arguments have a wrong type, size or shape."""


class Damaged(ValueError):
    """Stored content is invalid; the message says which and how."""


@contextmanager
def need_usable(what: str) -> Iterator[None]:
    """Report errors of code inside, which uses stored values, as damage: ``what``, and the message of the error."""
    try:
        yield
    except (GraphfclError, Damaged):
        raise
    except UNFIT as error:
        raise Damaged(f"{what} ({first_line(error)})") from error


def first_line(error: BaseException) -> str:
    """Return the first line of another library's error message."""
    text = str(error).strip()
    return text.splitlines()[0][:120] if text else type(error).__name__


def need(fits: bool, what: str) -> None:
    """Raise :class:`Damaged` with the text ``what`` unless ``fits``."""
    if not fits:
        raise Damaged(what)


def whole_number(value: Any, what: str, least: int = 0, most: int = 2**62) -> int:
    """Return a value that must be an int in a range; bool is not accepted."""
    if type(value) is not int or not least <= value <= most:
        raise Damaged(f"{what} is not a whole number from {least} to {most}")
    return value


def _refuse_constant(text: str) -> float:
    raise Damaged(f"it holds the number {text}")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def read_json(content: bytes) -> Any:
    """Parse JSON; raises :class:`Damaged` if it is invalid, not finite, or nested too deeply."""
    try:
        values = _DECODER.decode(content.decode())
    except RecursionError as error:
        raise Damaged("it is nested too deeply") from error
    except ValueError as error:  # that of the encoding among them
        raise error if isinstance(error, Damaged) else Damaged("it is not valid JSON") from error
    level: list[Any] = [[values]]
    for _ in range(DEEPEST):
        nested: list[Any] = []
        for members in level:
            kinds = set(map(type, members))
            if float in kinds and (math.inf in members or -math.inf in members):
                raise Damaged("it holds a number that is not finite, such as Infinity or 1e999")
            if dict in kinds or list in kinds:
                nested += [each for each in members if type(each) in (dict, list)]
        if not nested:
            return values
        level = [each.values() if type(each) is dict else each for each in nested]
    raise Damaged("it is nested too deeply")


def refuse_files_beside(path: Path) -> None:
    """Refuse links, pipes and write-ahead logs, which SQLite would follow, and some journals."""
    for ending in ("", "-journal", "-wal", "-shm"):
        name = f"{path}{ending}"
        try:
            mode = os.lstat(name).st_mode
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(mode):
            raise InputError(
                f"{name} is a symbolic link or not a regular file, and a model keeps its files in its own folder: put "
                "the file itself there."
            )
        if ending in ("-wal", "-shm"):
            raise InputError(f"{name} was not written by graphfcl: remove it.")
    refuse_journal(path)


def refuse_journal(path: Path) -> None:
    """Refuse a journal that names another file, which SQLite would delete. graphfcl never writes one."""
    journal = f"{path}-journal"
    if not os.path.lexists(journal):
        return
    with suppress(FileNotFoundError), open(journal, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 16))
        if file.read()[8:] == JOURNAL_MAGIC:
            raise InputError(f"{journal} names another file, which graphfcl never writes: remove it.")
