"""CSV files: column separators, line numbers of rows, and causes of errors.

Files are read without counting lines. To name the line of a row, the file is read again up to that row.
"""

import csv
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv as arrow

from graphfcl.errors import InputError

SEPARATORS = (",", ";", "\t")
LONGEST_HEADER = 1 << 24  # bytes


def separator_of(path: Path) -> str:
    """Return the most frequent separator in the first line outside quotes (default: comma), or a tab for ``.tsv``."""
    try:
        with open(path, "rb") as file:
            header = file.readline(LONGEST_HEADER)
    except OSError:
        header = b""
    if header.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):  # the "Unicode text" of spreadsheets
        raise InputError(f"{path} is UTF-16: write it as UTF-8.")
    if path.suffix == ".tsv":
        return "\t"
    outside = b"".join(header.split(b'"')[::2]).decode("utf-8", "replace")
    return max(SEPARATORS, key=outside.count)


def lines_at(path: Path, separator: str, rows: Sequence[int]) -> list[int]:
    """Return the lines, from 1, at which ascending rows begin; row 0 is the first row below the header."""
    begins, lines, read = lines_of_rows(path, separator), [], 0
    for row in rows:
        lines.append(next(islice(begins, row - read, None), row + 2))
        read = row + 1
    return lines


def lines_of_rows(path: Path, separator: str) -> Iterator[int]:
    """Yield the lines at which rows begin. Empty lines are skipped, and quoted values may span several lines."""
    header, begins = True, 1
    try:
        with open(path, encoding="utf-8-sig", errors="replace", newline="") as file:
            reader = csv.reader(file, delimiter=separator)
            for values in reader:
                if values and not header:
                    yield begins
                header = header and not values
                begins = reader.line_num + 1
    except (OSError, csv.Error):  # a value is too long for the reader, or the file no longer exists
        return


def wrong_row(path: Path, error: Exception, separator: str = ",") -> InputError | None:
    """Make the error for a row with a wrong number of columns, or return None if ``error`` is of another kind."""
    match = re.search(r"Expected (\d+) columns, got (\d+)", str(error))
    if match is None:
        return None
    line = _line_of_wrong_row(path, separator, int(match[1]))
    place = f"{path}, line {line}: the" if line else f"{path}: a"
    return InputError(f"{place} row has {match[2]} columns in place of {match[1]}: fix the row or drop it.")


def _line_of_wrong_row(path: Path, separator: str, columns: int) -> str | None:
    """Read the file again for the line, which Arrow reports only with one thread and with empty lines as rows."""
    options = {
        "read_options": arrow.ReadOptions(use_threads=False, autogenerate_column_names=True),
        "parse_options": arrow.ParseOptions(delimiter=separator, newlines_in_values=True, ignore_empty_lines=False),
        "convert_options": arrow.ConvertOptions(column_types={f"f{column}": pa.binary() for column in range(columns)}),
    }
    try:
        for _ in arrow.open_csv(path, **options):
            pass
    except pa.ArrowInvalid as error:
        match = re.search(r"Row #(\d+)", str(error))
        return match[1] if match else None
    return None


def where_not_utf8(path: Path) -> str | None:
    """Return the first line of a file that is not UTF-8; None if there is none or the file cannot be read."""
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, start=1):
                if not _is_utf8(line):
                    return f"line {number}"
    except OSError:
        pass
    return None


def first_not_utf8(values: Any) -> int:
    """Return the first row of an Arrow text column that is not UTF-8."""
    return next(row for row, content in enumerate(values.cast(pa.binary()).to_pylist()) if not _is_utf8(content or b""))


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
