"""Tables in text files: what separates columns, where a row stands, and what is wrong with a file.

Files are read without counting lines; to name one, the file is read again up to it.
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
    """What stands most often in the first line, outside quotes; a comma if nothing does, a tab in ``.tsv``."""
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
    """The lines, counted from 1, in which some rows begin, in ascending order; row 0 is the first below the header."""
    begins, lines, read = lines_of_rows(path, separator), [], 0
    for row in rows:
        lines.append(next(islice(begins, row - read, None), row + 2))
        read = row + 1
    return lines


def lines_of_rows(path: Path, separator: str) -> Iterator[int]:
    """The lines in which rows begin. Empty lines are no rows, and a value in quotes may go over several lines."""
    header, begins = True, 1
    try:
        with open(path, encoding="utf-8-sig", errors="replace", newline="") as file:
            reader = csv.reader(file, delimiter=separator)
            for values in reader:
                if values and not header:
                    yield begins
                header = header and not values
                begins = reader.line_num + 1
    except (OSError, csv.Error):  # a value of more bytes than the reader takes, or a file that is gone by now
        return


def wrong_row(path: Path, error: Exception, separator: str = ",") -> InputError | None:
    """A row of a CSV file that has too few or too many columns, if that is what Arrow says."""
    match = re.search(r"Expected (\d+) columns, got (\d+)", str(error))
    if match is None:
        return None
    line = _line_of_wrong_row(path, separator, int(match[1]))
    place = f"{path}, line {line}: the" if line else f"{path}: a"
    return InputError(f"{place} row has {match[2]} columns in place of {match[1]}: fix the row or drop it.")


def _line_of_wrong_row(path: Path, separator: str, columns: int) -> str | None:
    """Arrow counts rows only where one thread reads, and empty lines only where they are rows: read once more, so."""
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
    return next(row for row, content in enumerate(values.cast(pa.binary()).to_pylist()) if not _is_utf8(content or b""))


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
