"""Where a table is not UTF-8: Arrow says that it is not, but not where."""

from pathlib import Path
from typing import Any


def where_not_utf8(path: Path) -> str | None:
    """The line of a text file in which its first bytes stand that are not UTF-8; None if all are, or it is no file."""
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, start=1):
                if not _is_utf8(line):
                    return f"line {number}"
    except OSError:
        pass
    return None


def first_not_utf8(values: Any) -> int:
    """The row of an Arrow column of text in which the first bytes stand that are not UTF-8."""
    import pyarrow as pa

    return next(row for row, content in enumerate(values.cast(pa.binary()).to_pylist()) if not _is_utf8(content or b""))


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
